"""Where a call would change a file."""

import json

import pytest

from bot.tools.place import file_of, line_of

TEXT = b"one\ntwo\nthree\nfour\n"


def patch(*lines: str) -> dict[str, object]:
    """Make the arguments of a patch."""
    return {"patch": "\n".join(["*** Begin Patch", *lines, "*** End Patch"])}


@pytest.mark.parametrize(
    ("tool", "given", "line"),
    [
        ("edit", {"old": "two", "new": "2"}, 2),
        ("edit", {"old": "one\ntwo\nthree", "new": "one\ntwo\n3"}, 3),
        ("edit", {"old": "four\n", "new": "four\nfive\n"}, 4),
        ("edit", {"old": "nowhere", "new": "x"}, None),
        ("write", {"content": "one\ntwo\n3\nfour\n"}, 3),
        ("write", {"content": ""}, 1),
        ("write", {"content": TEXT.decode()}, None),
        ("delete", {}, 1),
    ],
)
def test_the_first_line_that_changes(tool: str, given: dict[str, object], line: int | None) -> None:
    """Counted as git does; what does not fit, or changes nothing, is nowhere."""
    arguments = json.dumps({"path": "./a/b.txt", **given})
    assert file_of(tool, arguments) == "a/b.txt"
    assert line_of(tool, arguments, TEXT) == line
    assert line_of(tool, arguments, b"\0" + TEXT) is None


def test_other_line_ends_are_no_difference() -> None:
    """Nor are signs that only Python takes for line ends."""
    given = json.dumps({"path": "a", "content": "one\ntwo\n3\n"})
    assert line_of("write", given, b"one\r\ntwo\r\nthree\r\n") == 3
    assert line_of("write", json.dumps({"path": "a", "content": "o\x0bne\n2\n"}), b"o\x0bne\ntwo\n") == 2


def test_a_patch_of_one_file() -> None:
    """Updated or deleted; what adds a file or changes several has no line."""
    update = ("*** Update File: a.txt", "@@", " two", "-three", "+3")
    assert file_of("apply_patch", json.dumps(patch(*update))) == "a.txt"
    assert line_of("apply_patch", json.dumps(patch(*update)), TEXT) == 3
    assert line_of("apply_patch", json.dumps(patch("*** Delete File: a.txt")), TEXT) == 1
    for others in (patch("*** Add File: a.txt", "+x"), patch(*update, "*** Delete File: b.txt"), {"patch": "no patch"}):
        assert file_of("apply_patch", json.dumps(others)) is None


def test_other_tools_change_no_line() -> None:
    """A command, a move, a push."""
    for tool in ("run", "move", "push"):
        assert file_of(tool, json.dumps({"path": "a", "command": "rm a"})) is None
