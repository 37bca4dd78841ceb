"""Byte order marks and line ends of Windows do not come between what a model saw and what it may do."""

from bot.tools.base import ToolContext
from tests.unit.tools.calls import Put, Use, raw


async def test_what_search_shows_can_be_copied(use: Use, put: Put) -> None:
    """The byte order mark of a first line is not shown: an edit looks for the line without it."""
    await put("a.py", b"\xef\xbb\xbfimport os\nimport re\n")
    output = await use("search", pattern="import")
    assert output.text == "a.py\n1: import os\n2: import re"
    assert not (await use("edit", path="a.py", old="import os", new="import sys")).is_error


async def test_the_end_of_a_line_is_found_with_either_end(use: Use, put: Put) -> None:
    """An expression with `$` fits lines of both kinds, and a point does not eat a carriage return."""
    await put("dos.txt", b"one(1)\r\ntwo(2)\r\n")
    await put("unix.txt", b"one(1)\n")
    assert (await use("search", pattern=r"one\(.\)$")).text == "dos.txt\n1: one(1)\nunix.txt\n1: one(1)"
    assert (await use("search", pattern=r"(?i)ONE.{3}$")).text == "dos.txt\n1: one(1)\nunix.txt\n1: one(1)"


async def test_lines_added_in_a_mixed_file_end_as_their_place_does(use: Use, put: Put, context: ToolContext) -> None:
    """Also where the text that is replaced has no line end of its own."""
    await put("a.txt", b"one\r\ntwo\nthree")
    for old in ("one", "two", "three"):
        assert not (await use("edit", path="a.txt", old=old, new=f"new\n{old}")).is_error
    assert await raw(context, "a.txt") == b"new\r\none\r\nnew\ntwo\nnew\nthree"
