"""A plan names files of the repository, as it has them: what hides where a path ends is refused or written out."""

from typing import cast

import pytest

from bot.errors import ToolError
from bot.tools.base import ToolContext, ToolOutput
from bot.tools.propose_plan import ProposePlan

PATH = ".github/workflows/x.yml"


async def plan(*files: str) -> ToolOutput:
    """Propose one."""
    context = cast("ToolContext", None)
    return await ProposePlan().call({"plan": "Do it.", "files": [*files], "turns": 3}, context)


async def test_a_path_is_kept_without_detours_and_whole() -> None:
    """Empty ones are none; a long one is not cut."""
    long = f"{'x' * 3_000}/AGENTS.md"
    made = await plan(f"docs/notes/{'a/../' * 50}../../{PATH}", "", long)
    assert made.proposal is not None
    assert made.proposal.files == [PATH, long]


@pytest.mark.parametrize(
    ("files", "why"),
    [
        (["../other"], "outside"),
        (["a/../.."], "outside"),
        ([".."], "outside"),
        (["..\\x"], "outside"),
        (["x" * 4_097], "too_long"),
        (["x" * 4_000] * 6, "too_long"),
    ],
)
async def test_what_people_could_not_read_is_refused(files: list[str], why: str) -> None:
    """The model hears which, and plans anew."""
    with pytest.raises(ToolError, match=f"^{why}"):
        await plan(*files)
