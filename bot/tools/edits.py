"""The heart of `edit`: text in, text out; what does not fit exactly once in a known way is refused, never guessed."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from bot.errors import ToolError
from bot.tools.alike import moved, plain, same_but_ends, shift
from bot.tools.contents import Text, with_newlines
from bot.tools.nearest import present, similar
from bot.tools.placeholders import left_out

Span = tuple[int, int]
_MOST_LINES = 20
_MOST_OVERLAPS = 1000
"""Each costs a look over the whole of `old`, and with one alone the edit is refused."""


@dataclass(frozen=True, slots=True)
class Edited:
    """What an edit gave."""

    text: str
    how: str
    """The pass that fitted: `exact` or what it let differ."""
    spans: Sequence[Span]
    """The replaced parts of the old text."""


@dataclass(frozen=True, slots=True)
class _Match:
    spans: Sequence[Span]
    new: str
    """The replacement, made to fit."""


_Pass = Callable[[str, str, str], _Match | None]


def replace(content: Text, old: str, new: str, count: int = 1) -> Edited:
    """Replace `old` by `new`, which must be there so many times.

    Raises:
        ToolError: says where `old` occurs, what comes nearest, or that `new` is there already.
    """
    _sensible(content, old, new)
    if not old:
        return Edited(new, "exact", [(0, 0)])
    text = content.text
    found = _occurrences(text, old)
    if found:
        _counted(text, found, len(old), count)
        return _apply(content, _Match([(at, at + len(old)) for at in found], new), "exact")
    for how, attempt in _PASSES:
        match = attempt(text, old, new)
        if match is None or not match.spans:
            continue
        # Line ends are no difference to a model; anything else must leave one place only.
        _unique(text, match, how, count if how == _LINE_ENDS else 1, count)
        return _apply(content, match, how)
    raise ToolError(f"not_found: `old` is not in the file.{present(text, new)}{similar(text, old)}")


def _sensible(content: Text, old: str, new: str) -> None:
    if not old and content.text:
        raise ToolError("bad_arguments: `old` is empty, which only fits an empty or a new file")
    if old == new:
        raise ToolError("bad_arguments: `old` and `new` are the same")
    line = left_out(new, old)
    if line is not None:
        raise ToolError(f"placeholder: write all of the code; `new` has a line that only stands for some: {line}")


def _occurrences(text: str, old: str) -> list[int]:
    """Find all places, those that overlap too: `aa` is twice in `aaa`."""
    found: list[int] = []
    overlaps = 0
    at = text.find(old)
    while at >= 0 and overlaps < _MOST_OVERLAPS:
        overlaps += bool(found) and at - found[-1] < len(old)
        found.append(at)
        at = text.find(old, at + 1)
    return found


def _line_of(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def _places(text: str, starts: Sequence[int]) -> str:
    lines = ", ".join(str(_line_of(text, at)) for at in starts[:_MOST_LINES])
    return f"{len(starts)} times (lines {lines}{', …' if len(starts) > _MOST_LINES else ''})"


def _counted(text: str, found: Sequence[int], length: int, count: int) -> None:
    if len(found) != count:
        raise ToolError(
            f"not_unique: `old` occurs {_places(text, found)}, not {count}: "
            "add lines around it, or set expected_count to replace all"
        )
    if any(after - before < length for before, after in pairwise(found)):
        raise ToolError(f"not_unique: `old` occurs {_places(text, found)}, and they overlap: take a longer part")


def _unique(text: str, match: _Match, how: str, wanted: int, count: int) -> None:
    if len(match.spans) != wanted or (wanted != count):
        places = _places(text, [start for start, _ in match.spans])
        raise ToolError(
            f"not_unique: `old` is not in the file as written; with {how} it fits {places}, "
            f"where {count} {'was' if count == 1 else 'were'} expected: copy the lines exactly and add some around them"
        )


def _apply(content: Text, match: _Match, how: str) -> Edited:
    """Put the replacement in; line ends and the end of the file stay as they were."""
    text, parts, at = content.text, [], 0
    for start, end in match.spans:
        parts += [text[at:start], _in_style(content, match.new, start)]
        at = end
    result = "".join([*parts, text[at:]])
    if at == len(text):
        result = _same_end(text, result)
    if result == text:
        raise ToolError("bad_arguments: this edit changes nothing")
    return Edited(result, how, match.spans)


def _in_style(content: Text, new: str, start: int) -> str:
    """Give the replacement the line ends of its place: of the first line from there on, where they differ."""
    if content.mixed:
        first = re.compile(r"\r?\n").search(content.text, start)
        return with_newlines(new, first[0]) if first else new
    if "\n" not in content.text:
        return new
    return with_newlines(new, content.newline)


def _same_end(text: str, result: str) -> str:
    """Keep whether the last line ends with a line break, unless that is the whole change."""
    had = text.endswith("\n")
    if not text or not result or had == result.endswith("\n"):
        return result
    kept = result + ("\r\n" if text.endswith("\r\n") else "\n") if had else re.sub(r"\r?\n\Z", "", result)
    return result if kept == text else kept


def _plain_newlines(text: str, old: str, new: str) -> _Match | None:
    if "\r\n" not in text and "\r\n" not in old:
        return None
    starts = [at for at, char in enumerate(text) if not (char == "\n" and text[at - 1 : at] == "\r")]
    starts.append(len(text))
    here, wanted = text.replace("\r\n", "\n"), old.replace("\r\n", "\n")
    found = _occurrences(here, wanted)
    _counted(here, found, len(wanted), len(found))
    return _Match([(starts[at], starts[at + len(wanted)]) for at in found], new)


@dataclass(frozen=True, slots=True)
class _Lines:
    """The lines of a text with their places."""

    lines: Sequence[str]
    """Without their ends."""
    starts: Sequence[int]

    def spans(self, at: int, count: int, *, whole: bool) -> Span:
        """Say where lines stand; `whole` takes the last line's end too."""
        last = at + count - 1
        end = self.starts[last + 1] if whole else self.starts[last] + len(self.lines[last])
        return self.starts[at], end


def _lines(text: str) -> _Lines:
    parts = text.split("\n")
    starts = [0]
    for part in parts[:-1]:
        starts.append(starts[-1] + len(part) + 1)
    starts.append(len(text))
    return _Lines([part.removesuffix("\r") for part in parts], starts)


def _windows(text: str, old: str, fits: Callable[[Sequence[str], Sequence[str]], bool]) -> list[Span]:
    """Find the runs of whole lines that fit the lines of `old`."""
    here = _lines(text)
    whole = old.endswith("\n")
    wanted = old.replace("\r\n", "\n").removesuffix("\n").split("\n")
    if not any(line.strip() for line in wanted):
        return []
    return [
        here.spans(at, len(wanted), whole=whole)
        for at in range(len(here.lines) - len(wanted) + 1)
        if fits(here.lines[at : at + len(wanted)], wanted)
    ]


def _trailing(text: str, old: str, new: str) -> _Match | None:
    return _Match(_windows(text, old, same_but_ends), new)


def _indentation(text: str, old: str, new: str) -> _Match | None:
    spans = _windows(text, old, lambda found, wanted: shift(found, wanted) is not None)
    if len(spans) != 1:
        return _Match(spans, new)
    start, end = spans[0]
    found = text[start:end].replace("\r\n", "\n").removesuffix("\n").split("\n")
    wanted = old.replace("\r\n", "\n").removesuffix("\n").split("\n")
    by = shift(found, wanted)
    made = None if by is None else moved(new, *by)
    return None if made is None else _Match(spans, made)


def _typography(text: str, old: str, new: str) -> _Match | None:
    match = _plain_newlines(plain(text), plain(old), new)
    if match is not None:
        return match
    wanted = plain(old)
    found = _occurrences(plain(text), wanted)
    return _Match([(at, at + len(wanted)) for at in found], new)


_NUMBER = re.compile(r"^ *(\d+) ?\|(?: |$)")


def _without_numbers(text: str) -> str | None:
    """Take the numbers from before the lines; None where a line has none or they do not follow each other."""
    lines = text.removesuffix("\n").split("\n")
    numbers = [_NUMBER.match(line) for line in lines]
    values = [int(number[1]) for number in numbers if number]
    if len(values) != len(lines) or values != list(range(values[0], values[0] + len(values))):
        return None
    bare = "\n".join(_NUMBER.sub("", line) for line in lines)
    return bare + "\n" * text.endswith("\n")


def _numbers(text: str, old: str, new: str) -> _Match | None:
    bare = _without_numbers(old)
    if bare is None or not bare.strip():
        return None
    numbered = [bool(_NUMBER.match(line)) for line in new.split("\n") if line.strip()]
    if any(numbered) and not all(numbered):
        return None
    given = "\n".join(_NUMBER.sub("", line) for line in new.split("\n")) if any(numbered) else new
    spans = [(at, at + len(bare)) for at in _occurrences(text, bare)]
    if spans:
        return _Match(spans, given)
    return _plain_newlines(text, bare, given) or _trailing(text, bare, given)


_LINE_ENDS = "other line ends"
_PASSES: Sequence[tuple[str, _Pass]] = (
    (_LINE_ENDS, _plain_newlines),
    ("other spaces at line ends", _trailing),
    ("another indentation", _indentation),
    ("other quotes, dashes or spaces", _typography),
    ("line numbers taken away", _numbers),
)
"""In this order; each must fit in one place of the whole file."""
