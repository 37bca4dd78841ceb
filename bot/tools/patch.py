"""The grammar of patches over several files: text in, sections out; what cannot be read is refused with its line.

Source: https://github.com/openai/codex/blob/main/codex-rs/apply-patch/apply_patch_tool_instructions.md
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal

from bot.errors import ToolError

BEGIN = "*** Begin Patch"
END = "*** End Patch"
_AT_END = "*** End of File"
_HEADER = re.compile(r"\*\*\* (Add|Delete|Update) File:(.*)")
_MOVE = re.compile(r"\*\*\* Move to:(.*)")
_ANCHOR = re.compile(r"@@(?:\s*-\d+(?:,\d+)? \+\d+(?:,\d+)? @@)?(.*)")
"""The numbers of a unified diff may stand there; they are not needed."""
_WRAPPER = re.compile(r"```\w*|(?:apply_patch\s+)?<<-?\s*(['\"]?)\w+\1|[A-Z]+")
"""What models put around a patch: a fence, a here-document."""
_NO_NEWLINE = "\\ No newline at end of file"
_MOST_FILES = 200
FORM = (
    f"A patch is `{BEGIN}`, then for each file `*** Add File: PATH` and lines with + before them, or `*** Delete File: "
    "PATH`, or `*** Update File: PATH`, perhaps `*** Move to: PATH`, and parts of `@@ LINE ABOVE` with the old and new "
    f"lines, each with a space, - or + before it; then `{END}`"
)

Row = tuple[Literal[" ", "-", "+"], str]


@dataclass(frozen=True, slots=True)
class Hunk:
    """Lines that stand together in a file, and what becomes of them."""

    line: int
    """Where it begins in the patch, from 1."""
    anchors: Sequence[str]
    """Lines somewhere above, the outermost first."""
    rows: Sequence[Row]
    at_end: bool
    """Whether the last old line is the last of the file."""

    @property
    def old(self) -> Sequence[str]:
        """The lines that must be there."""
        return [text for mark, text in self.rows if mark != "+"]

    @property
    def new(self) -> Sequence[str]:
        """The lines that stand there afterwards."""
        return [text for mark, text in self.rows if mark != "-"]


@dataclass(frozen=True, slots=True)
class Add:
    """A new file."""

    path: str
    content: str


@dataclass(frozen=True, slots=True)
class Delete:
    """A file that goes."""

    path: str


@dataclass(frozen=True, slots=True)
class Update:
    """A file that changes, moves, or both."""

    path: str
    target: str | None
    hunks: Sequence[Hunk]


Section = Add | Delete | Update


def read_patch(text: str) -> Sequence[Section]:
    """Read a patch.

    Raises:
        ToolError: says in which line of the patch it goes wrong, and how a patch looks.
    """
    lines = text.replace("\r\n", "\n").split("\n")
    first, last = _inside(lines)
    reader = _Reader(lines, first, last)
    sections = reader.sections()
    if not sections:
        raise bad(first, f"the patch names no file. {FORM}")
    if len(sections) > _MOST_FILES:
        raise bad(first, f"the patch has more than {_MOST_FILES} files; send several")
    named = [path for section in sections for path in _paths(section)]
    twice = next((path for path in named if named.count(path) > 1), None)
    if twice is not None:
        raise bad(first, f"{twice} is named twice; put all that changes in a file into one section")
    return sections


def _paths(section: Section) -> Sequence[str]:
    target = section.target if isinstance(section, Update) else None
    return [section.path, *([target] if target is not None else [])]


def bad(index: int, why: str) -> ToolError:
    """Make the refusal for a line, counted from 0."""
    return ToolError(f"bad_patch: line {index + 1}: {why}. Nothing was changed.")


def _inside(lines: Sequence[str]) -> tuple[int, int]:
    """Find the lines between the first and the last; what else is there may only be wrapping."""
    stripped = [line.strip() for line in lines]
    if BEGIN not in stripped:
        raise bad(0, f"there is no `{BEGIN}`. {FORM}")
    first = stripped.index(BEGIN)
    last = max((index for index, line in enumerate(lines) if line.strip() == END), default=-1)
    if last < first:
        raise bad(len(lines) - 1, f"there is no `{END}`: the patch was cut off; send it again whole")
    for index in (*range(first), *range(last + 1, len(lines))):
        if stripped[index] and not _WRAPPER.fullmatch(stripped[index]):
            raise bad(index, f"this stands outside the patch: {stripped[index][:100]!r}")
    return first + 1, last


class _Reader:
    """Goes over the lines once."""

    def __init__(self, lines: Sequence[str], first: int, last: int) -> None:
        self._lines = lines
        self._at = first
        self._last = last

    def sections(self) -> list[Section]:
        """Read to the end."""
        found: list[Section] = []
        while (line := self._peek()) is not None:
            header = _HEADER.fullmatch(line.strip())
            if header is not None:
                self._at += 1
                found.append(self._section(header[1], _path(header[2], self._at - 1)))
            elif line.strip():
                raise bad(self._at, f"expected `*** Add File: `, `*** Delete File: ` or `*** Update File: `: {line!r}")
            else:
                self._at += 1
        return found

    def _peek(self) -> str | None:
        return self._lines[self._at] if self._at < self._last else None

    def _section(self, kind: str, path: str) -> Section:
        match kind:
            case "Add":
                return Add(path, self._added())
            case "Delete":
                return Delete(path)
            case _:
                return self._update(path)

    def _added(self) -> str:
        rows = []
        while (line := self._peek()) is not None and line.startswith("+"):
            rows.append(line[1:] + "\n")
            self._at += 1
        return "".join(rows)

    def _update(self, path: str) -> Update:
        begins = self._at - 1
        move = _MOVE.fullmatch((self._peek() or "").strip())
        target = None
        if move is not None:
            target = _path(move[1], self._at)
            self._at += 1
        hunks: list[Hunk] = []
        while (line := self._peek()) is not None and not _HEADER.fullmatch(line):
            hunk = self._hunk()
            if hunk is not None:
                hunks.append(hunk)
        if not hunks and target is None:
            raise bad(begins, f"nothing is to be changed in {path}")
        return Update(path, target, hunks)

    def _hunk(self) -> Hunk | None:
        """Read one; None where there is nothing but blank lines."""
        start = self._at
        anchors = self._anchors()
        rows: list[Row] = []
        at_end, blank = False, 0
        while not at_end and (line := self._peek()) is not None and not line.startswith("@@"):
            if _HEADER.fullmatch(line):
                break
            at_end = line.rstrip() == _AT_END
            if not at_end and line != _NO_NEWLINE:
                rows.append(self._row(line))
                blank = 0 if line else blank + 1
            self._at += 1
        if not at_end:
            # Blank lines before the next part belong to the patch: those of a file have a space in them.
            del rows[len(rows) - blank :]
        if not rows and not anchors:
            return None
        if all(mark == " " for mark, _ in rows):
            raise bad(start, "this part has no line with + or - before it")
        return Hunk(start + 1, anchors, rows, at_end)

    def _anchors(self) -> Sequence[str]:
        found = []
        while (line := self._peek()) is not None and (match := _ANCHOR.fullmatch(line)) is not None:
            found.append(match[1].strip())
            self._at += 1
        return [text for text in found if text]

    def _row(self, line: str) -> Row:
        match line[:1]:
            case "":
                return " ", ""
            case " " | "-" | "+" as mark:
                return mark, line[1:]
            case _:
                raise bad(self._at, f"lines of a file have a space, - or + before them: {line[:100]!r}")


def _path(text: str, index: int) -> str:
    path = text.strip()
    if not path:
        raise bad(index, "the path is missing")
    return PurePosixPath(path).as_posix()
