"""The heart of `apply_patch`: parts of a patch put into one text; a part that does not fit in one place is refused."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import accumulate

from bot.errors import ToolError
from bot.tools.alike import indent, moved, plain, same_but_ends, shift
from bot.tools.contents import Text
from bot.tools.nearest import present, similar
from bot.tools.patch import Hunk
from bot.tools.placeholders import left_out

_CLOSERS = tuple(")]}{")
"""A line that begins so and is not indented still belongs to the block above it."""
_MOST_LINES = 20

_Fits = Callable[[Sequence[str], Sequence[str]], bool]


@dataclass(frozen=True, slots=True)
class Patched:
    """What the parts made of a text."""

    text: str
    how: Sequence[str]
    """What the passes that fitted let differ; empty where everything was exact."""


@dataclass(frozen=True, slots=True)
class _Line:
    text: str
    end: str
    """Empty at the end of a file without a last line break."""


class _File:
    """The lines of a file, and where each of them is."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self._bare: dict[str, list[int]] | None = None

    def exactly(self, wanted: Sequence[str], start: int) -> Sequence[int]:
        """Find a run of lines, as they are written."""
        last = len(self.lines) - len(wanted)
        found = []
        with suppress(ValueError):
            while True:
                at = self.lines.index(wanted[0], start, last + 1)
                if self.lines[at : at + len(wanted)] == wanted:
                    found.append(at)
                start = at + 1
        return found

    def alike(self, wanted: Sequence[str], start: int, fits: _Fits) -> Sequence[int]:
        """Find a run of lines, in a way that lets something differ."""
        last = len(self.lines) - len(wanted)
        return [at for at in range(start, last + 1) if fits(self.lines[at : at + len(wanted)], wanted)]

    def named(self, anchor: str, start: int) -> Sequence[int]:
        """Find the lines that an anchor names, wherever they are indented."""
        if self._bare is None:
            self._bare = {}
            for at, line in enumerate(self.lines):
                self._bare.setdefault(plain(line).strip(), []).append(at)
        found = self._bare.get(plain(anchor).strip(), [])
        return found[bisect_left(found, start) :]


@dataclass(frozen=True, slots=True)
class _Place:
    hunk: Hunk
    at: int
    """Index of the first line."""
    how: str
    new: Sequence[str]
    """The added lines, made to fit."""


def put(content: Text, hunks: Sequence[Hunk], path: str) -> Patched:
    """Put parts into a text, each below the one before it; line ends and the end of the file stay as they were.

    Args:
        content: of the file.
        hunks: in the order of the file.
        path: for the words of a refusal.

    Raises:
        ToolError: names the part, where its lines occur or what comes nearest.
    """
    lines = _lines(content.text)
    file = _File([line.text for line in lines])
    made: list[_Line] = []
    at = 0
    how: list[str] = []
    for number, hunk in enumerate(hunks, 1):
        name = f"part {number} of {path} (line {hunk.line} of the patch)"
        _sensible(hunk, name)
        place = _find(file, hunk, at, name)
        made += lines[at : place.at]
        made += _changed(lines, place, content.newline)
        at = place.at + len(place.hunk.old)
        if place.how and place.how not in how:
            how.append(place.how)
    return Patched(_joined([*made, *lines[at:]], content), how)


def _lines(text: str) -> Sequence[_Line]:
    *pieces, last = text.split("\n")
    lines = [_Line(piece.removesuffix("\r"), "\r\n" if piece.endswith("\r") else "\n") for piece in pieces]
    return [*lines, _Line(last, "")] if last else lines


def _sensible(hunk: Hunk, name: str) -> None:
    if list(hunk.old) == list(hunk.new):
        raise ToolError(f"bad_patch: {name} changes nothing. Nothing was changed.")
    line = left_out("\n".join(hunk.new), "\n".join(hunk.old))
    if line is not None:
        raise ToolError(f"placeholder: write all of the code; {name} has a line that only stands for some: {line}")


def _find(file: _File, hunk: Hunk, start: int, name: str) -> _Place:
    """Find the one place at or below `start`."""
    lines, old = file.lines, list(hunk.old)
    added = [text for mark, text in hunk.rows if mark == "+"]
    if not old:
        if hunk.anchors:
            raise ToolError(
                f"bad_patch: {name} has only lines to add: give a line of the file, with a space before it, that they "
                "follow. Nothing was changed."
            )
        return _Place(hunk, len(lines), "", added)
    found, how = file.exactly(old, start), ""
    passes = iter(_PASSES if any(line.strip() for line in old) else ())
    while not found and (tried := next(passes, None)) is not None:
        how = tried[0]
        found = file.alike(old, start, tried[1])
    if found:
        at = _one(file, hunk, found, (start, how), name)
        return _Place(hunk, at, how, _fitted(added, lines[at : at + len(old)], hunk, how, name))
    if hunk.rows[-1] == (" ", ""):
        # Models take what follows the last line break of a file for a line.
        shorter = replace(hunk, rows=hunk.rows[:-1])
        if shorter.old and start <= len(lines) - len(shorter.old) and lines[-len(shorter.old) :] == list(shorter.old):
            return _find(file, replace(shorter, at_end=True), start, name)
    raise _missing(lines, hunk, start, name)


def _one(file: _File, hunk: Hunk, found: Sequence[int], sought: tuple[int, str], name: str) -> int:
    """Choose by what the part says of its place; what is left must be one."""
    start, how = sought
    below = _below(file, hunk, found, start, name)
    last = len(file.lines) - len(hunk.old)
    if hunk.at_end and last in below:
        return last
    if len(below) == 1:
        return below[0]
    places = ", ".join(str(at + 1) for at in found[:_MOST_LINES])
    raise ToolError(
        f"not_unique: the old lines of {name} {f'with {how} ' if how else ''}fit {len(found)} times "
        f"(lines {places}{', …' if len(found) > _MOST_LINES else ''}){', and none of them' if not below else ''}"
        f"{' below its @@ line' if hunk.anchors else ''}: give more lines around the change, or name the line that the "
        "block begins with after @@. Nothing was changed."
    )


def _below(file: _File, hunk: Hunk, found: Sequence[int], start: int, name: str) -> Sequence[int]:
    """Keep the places below all anchors."""
    above: Sequence[int] = ()
    for anchor in hunk.anchors:
        named = file.named(anchor, start)
        above = _under(file.lines, above, named) if above else named
        if not above:
            raise ToolError(
                f"not_found: {name} is to stand below a line {anchor!r}, and there is none from line {start + 1} on."
                f"{similar(chr(10).join(file.lines), anchor)}\nNothing was changed."
            )
    return _under(file.lines, above, found) if above else found


def _under(lines: Sequence[str], above: Sequence[int], found: Sequence[int]) -> Sequence[int]:
    """Keep what stands in the block of one of the lines above; below the first of them where none has a block.

    A part may begin with the line above itself.
    """
    # How far the blocks reach that have begun so far.
    ends = list(accumulate((_end_of_block(lines, at) for at in above), max))
    if any(end > at + 1 for at, end in zip(above, ends, strict=True)):
        return [at for at in found if at >= above[0] and at < ends[bisect_right(above, at) - 1]]
    return [at for at in found if at >= above[0]]


def _end_of_block(lines: Sequence[str], at: int) -> int:
    """Say where the lines end that are indented deeper than one."""
    depth = len(indent(lines[at]))
    end = at + 1
    for index in range(at + 1, len(lines)):
        line = lines[index]
        deeper = len(indent(line)) - depth
        if line.strip() and not (deeper > 0 or (deeper == 0 and line.lstrip().startswith(_CLOSERS))):
            break
        end = index + 1 if line.strip() else end
    return end


def _fitted(added: Sequence[str], found: Sequence[str], hunk: Hunk, how: str, name: str) -> Sequence[str]:
    """Indent the added lines like the place."""
    by = shift(found, hunk.old) if how == _INDENTED else None
    if by is None:
        return added
    made = moved("\n".join(added), *by)
    if made is None:
        raise ToolError(
            f"not_found: the old lines of {name} fit with another indentation only, and its new ones have not enough "
            "to take away: copy the lines exactly. Nothing was changed."
        )
    return made.split("\n") if added else []


def _missing(lines: Sequence[str], hunk: Hunk, start: int, name: str) -> ToolError:
    text, old = "\n".join(lines), "\n".join(hunk.old)
    order = ""
    if start and any(list(lines[at : at + len(hunk.old)]) == list(hunk.old) for at in range(start)):
        order = " They stand above the part before it: parts come in the order of the file."
    said = f"not_found: the old lines of {name} are not in the file{f' from line {start + 1} on' if start else ''}."
    done = present(text, "\n".join(hunk.new)) if any(mark == "+" for mark, _ in hunk.rows) else ""
    return ToolError(f"{said}{order}{done}{similar(text, old)}\nNothing was changed.")


def _changed(lines: Sequence[_Line], place: _Place, newline: str) -> Sequence[_Line]:
    """Make the lines of one place: what stays is left as it is in the file."""
    made: list[_Line] = []
    at = place.at
    added = iter(place.new)
    for mark, _ in place.hunk.rows:
        if mark == "+":
            beside = lines[max(0, at - 1)] if lines else None
            made.append(_Line(next(added), (beside.end if beside else "") or newline))
        else:
            if mark == " ":
                made.append(lines[at])
            at += 1
    return made


def _joined(lines: Sequence[_Line], content: Text) -> str:
    """Put lines together; only the last may lack its end, and does so where the file's last did."""
    text = "".join(line.text + (line.end or content.newline) for line in lines)
    had = not content.text or content.text.endswith("\n")
    return text if had else re.sub(r"\r?\n\Z", "", text)


_INDENTED = "another indentation"
_PASSES: Sequence[tuple[str, _Fits]] = (
    ("other spaces at line ends", same_but_ends),
    (_INDENTED, lambda found, wanted: shift(found, wanted) is not None),
    ("other quotes, dashes or spaces", lambda found, wanted: [*map(plain, found)] == [*map(plain, wanted)]),
)
"""In this order; the first that fits anywhere decides."""
