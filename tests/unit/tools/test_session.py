"""What a model really edited, in a session that somebody recorded, comes out the same."""

import difflib
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from bot.tools.contents import Text
from bot.tools.edits import replace
from bot.tools.hunks import put
from bot.tools.patch import Update, read_patch
from tests.unit.tools.session import RecordedEdit, recorded_edits

ROOT = Path(__file__).parents[3]
LEAST = 98


@pytest.fixture(scope="module")
def recorded() -> tuple[Sequence[RecordedEdit], int]:
    """All edits; without the recording the tests are skipped, or fail where it is required."""
    shared = (ROOT / os.environ.get("SHARED_DIR", "../shared")).resolve()
    file = shared / "data" / "sessions" / "coding-agent" / "large-session.jsonl"
    if not file.exists():
        why = f"no recording: SHARED_DIR has no {file.relative_to(shared)}"
        if os.environ.get("REQUIRE_SHARED") == "1":
            pytest.fail(why)
        pytest.skip(why)
    return recorded_edits(file)


def test_enough_can_be_rebuilt(
    recorded: tuple[Sequence[RecordedEdit], int], capsys: pytest.CaptureFixture[str]
) -> None:
    """Of most edits the file before is known, of many the whole of it."""
    edits, count = recorded
    with capsys.disabled():
        whole = sum(edit.whole for edit in edits)
        print(f"\n{len(edits)} of {count} recorded edits rebuilt, {whole} with the whole file")  # noqa: T201
    assert len(edits) >= LEAST


def test_every_edit_gives_what_was_recorded(recorded: tuple[Sequence[RecordedEdit], int]) -> None:
    """Each is exact and gives the recorded file, but one: what recorded it took `$$` in the new text for `$`."""
    other = []
    for edit in recorded[0]:
        made = replace(Text(edit.before, bom=False), edit.old, edit.new)
        assert made.how == "exact"
        if made.text != edit.after:
            other.append(edit)
            assert made.text == edit.before.replace(edit.old, edit.new)
            assert edit.after == edit.before.replace(edit.old, edit.new.replace("$$", "$"))
    assert [edit.path for edit in other] == ["packages/coding-agent/src/tui/footer.ts"]


def test_every_edit_can_be_written_as_a_patch(recorded: tuple[Sequence[RecordedEdit], int]) -> None:
    """With three lines around each change every part of such a patch fits, and gives the recorded file."""
    for edit in recorded[0]:
        before, after = (text.removesuffix("\n") for text in (edit.before, edit.after))
        if before == after:
            continue
        rows = list(difflib.unified_diff(before.split("\n"), after.split("\n"), n=3, lineterm=""))[2:]
        patch = "\n".join(["*** Begin Patch", "*** Update File: f", *rows, "*** End Patch"])
        (section,) = read_patch(patch)
        assert isinstance(section, Update)
        made = put(Text(edit.before, bom=False), section.hunks, "f")
        assert made.text.removesuffix("\n") == after
        assert made.how == []
