"""Where in a file a call of a tool would change something; pure, and nothing is changed."""

import json
import posixpath
from collections.abc import Mapping
from itertools import takewhile

from bot.errors import ToolError
from bot.tools.contents import decode
from bot.tools.edits import replace
from bot.tools.hunks import put
from bot.tools.patch import Delete, Section, Update, read_patch


def file_of(tool: str, arguments: str) -> str | None:
    """Return the one file that a call changes where it is; None for calls that change others, several, or none.

    Args:
        tool: its name.
        arguments: JSON, as it was asked for.
    """
    given = _read(arguments)
    match tool:
        case "edit" | "write" | "delete":
            path = given.get("path")
        case "apply_patch":
            section = _section(given)
            path = section.path if section else None
        case _:
            return None
    return posixpath.normpath(path) if isinstance(path, str) and path else None


def line_of(tool: str, arguments: str, data: bytes) -> int | None:
    """Return the first line of a file that a call would change, from 1; None where the call does not fit the file.

    What is added behind the last line is there.

    Args:
        tool: its name, of those that `file_of` knows.
        arguments: JSON, as it was asked for.
        data: of the file.
    """
    try:
        before = decode(data, "").text
        after = _after(tool, _read(arguments), data)
    except ToolError:
        return None
    return _first(before, after)


def changed_line(before: bytes, after: bytes) -> int | None:
    """Return the first line of a file as it is now that is not as it was; None where it has none, or is no text."""
    try:
        return _first(decode(after, "").text, decode(before, "").text)
    except ToolError:
        return None


def _first(text: str, other: str) -> int | None:
    """Return the first line of a text that is another one in the other text, or its last where lines only follow."""
    lines, others = _lines(text), _lines(other)
    if not lines or text == other:
        return None
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(lines, others, strict=False)))
    return min(same + 1, len(lines))


def _lines(text: str) -> list[str]:
    """Take a text apart as git does; its line ends are no difference."""
    return text.removesuffix("\n").replace("\r\n", "\n").split("\n") if text else []


def _after(tool: str, given: Mapping[str, object], data: bytes) -> str:
    """Return what would be in the file.

    Raises:
        ToolError: the call does not fit it.
    """
    content = decode(data, "")
    match tool:
        case "edit":
            count = given.get("expected_count", 1)
            old, new = str(given.get("old", "")), str(given.get("new", ""))
            return replace(content, old, new, count if isinstance(count, int) else 1).text
        case "write":
            return str(given.get("content", ""))
        case "apply_patch" if isinstance(section := _section(given), Update):
            return put(content, section.hunks, section.path).text
        case _:
            return ""


def _section(given: Mapping[str, object]) -> Update | Delete | None:
    """Return what a patch does, where it changes one file that is there."""
    try:
        sections: list[Section] = [*read_patch(str(given.get("patch", "")))]
    except ToolError:
        return None
    only = sections[0] if len(sections) == 1 else None
    return only if isinstance(only, Update | Delete) else None


def _read(arguments: str) -> Mapping[str, object]:
    given = json.loads(arguments)
    return given if isinstance(given, dict) else {}
