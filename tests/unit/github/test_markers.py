"""Marks that nobody can forge."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.github import markers
from bot.github.markers import find, make, strip

TASK = "0123456789abcdef" * 2
KEY = b"state key"
MARK = make(TASK, "progress", KEY)


def test_a_mark_is_found_again() -> None:
    """Anywhere in a text, and it does not show."""
    assert f"<!-- issuewright:v1:{TASK}:progress:{MARK[-20:-4]} -->" == MARK
    assert find(f"**Working**\n\n{MARK}", KEY) == (TASK, "progress")
    assert find("no mark", KEY) is None


@pytest.mark.parametrize(
    "forged",
    [
        MARK.replace(":progress:", ":pull:"),
        MARK.replace(TASK, "f" * 32),
        make(TASK, "progress", b"another key"),
        MARK[:-20] + "0" * 16 + " -->",
        MARK.replace("v1", "v2"),
        MARK.replace("<!--", "<!-"),
        MARK.upper(),
        f"<!-- issuewright:v1:{TASK}:progress: -->",
    ],
)
def test_a_forged_mark_is_not(forged: str) -> None:
    """S101: another slot, another task, another server's key."""
    assert find(forged, KEY) is None
    assert find(f"{forged}\n{MARK}\n{forged}", KEY) == (TASK, "progress")


def test_the_last_mark_counts() -> None:
    """Ours ends the text; one that was quoted stands before it."""
    other = make("f" * 32, "pull", KEY)
    assert find(f"> {other}\n\n{MARK}", KEY) == (TASK, "progress")


@pytest.mark.parametrize(("task", "slot"), [("", "a"), ("g" * 32, "a"), (TASK, ""), (TASK, "a:b"), (TASK, "a -->")])
def test_only_names_become_marks(task: str, slot: str) -> None:
    """Nothing that could end the comment early."""
    with pytest.raises(ValueError, match="no mark"):
        make(task, slot, KEY)


@given(st.text() | st.lists(st.sampled_from([MARK, "<!--", " ", "issuewright:", "x", "\n"])).map("".join))
def test_stripping_leaves_no_marks(text: str) -> None:
    """However they are nested; and twice is as once."""
    stripped = strip(text)
    assert find(stripped, KEY) is None
    assert strip(stripped) == stripped
    find(text, KEY)


def test_the_last_mark_is_read_as_it_stands() -> None:
    """Ours or not; what only looks like one is none."""
    first, second = markers.make("0a" * 16, "review.1", b"k"), markers.make("0a" * 16, "review.2", b"k")
    assert markers.last(f"Hello\n{first}\n> {second}\n") == second
    assert markers.last(f"Hello {first}") == first
    assert markers.last(second.replace("review.2", "Review!")) is None
    assert markers.last("") is None
