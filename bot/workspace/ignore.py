"""`.gitignore` rules, read without git: it would open files in a work tree that others may write to."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

LARGEST = 65_536
"""Bytes of a `.gitignore` that are read; its patterns may take sixty times as much in memory."""

_CLASSES = {
    "alnum": "a-zA-Z0-9", "alpha": "a-zA-Z", "blank": " \\t", "cntrl": "\\x00-\\x1f\\x7f", "digit": "0-9",
    "graph": "\\x21-\\x7e", "lower": "a-z", "print": "\\x20-\\x7e", "punct": "!-/:-@\\[-`{-~",
    "space": "\\s", "upper": "A-Z", "xdigit": "0-9a-fA-F",
}  # fmt: skip

_NOTHING = re.compile(r"(?!)")


@dataclass(frozen=True, slots=True)
class Pattern:
    """One line of a `.gitignore`."""

    segments: tuple[re.Pattern[str] | None, ...]
    """One per folder; None stands for `**`."""
    anchored: bool
    negated: bool
    folders_only: bool

    def matches(self, names: Sequence[str], *, is_folder: bool) -> bool:
        """Match a path, given as its names below the folder of the `.gitignore`."""
        if self.folders_only and not is_folder:
            return False
        if not self.anchored:
            only = self.segments[0]
            return only is not None and only.fullmatch(names[-1]) is not None
        return _match(self.segments, names)


@dataclass(frozen=True)
class Rules:
    """The rules that hold in one folder."""

    path: tuple[str, ...] = ()
    levels: tuple[tuple[int, tuple[Pattern, ...]], ...] = ()
    """Depth of a `.gitignore` and its patterns, the root's first."""
    above: "Rules | None" = field(default=None, repr=False)

    def enter(self, name: bytes) -> "Rules":
        """Return the rules of a folder below, before its own `.gitignore`."""
        return Rules((*self.path, name.decode("latin-1")), self.levels, self)

    def plus(self, text: bytes | None) -> "Rules":
        """Return the rules of this folder with its own `.gitignore` added."""
        patterns = parse(text) if text else ()
        if not patterns:
            return self
        return Rules(self.path, (*self.levels, (len(self.path), patterns)), self.above)

    def ignores(self, name: bytes, *, is_folder: bool) -> bool:
        """Tell whether an untracked entry of this folder is ignored."""
        return self.excluded or self._matches((*self.path, name.decode("latin-1")), is_folder=is_folder)

    @cached_property
    def excluded(self) -> bool:
        """Whether the folder itself is ignored, so that nothing in it can be taken in again."""
        if self.above is None:
            return False
        return self.above.excluded or self.above._matches(self.path, is_folder=True)  # noqa: SLF001 the same class

    def _matches(self, names: tuple[str, ...], *, is_folder: bool) -> bool:
        for depth, patterns in reversed(self.levels):
            for pattern in reversed(patterns):
                if pattern.matches(names[depth:], is_folder=is_folder):
                    return not pattern.negated
        return False


@lru_cache(maxsize=64)
def parse(text: bytes) -> tuple[Pattern, ...]:
    """Read a `.gitignore`.

    Source: https://git-scm.com/docs/gitignore
    """
    lines = text.removeprefix(b"\xef\xbb\xbf").decode("latin-1").split("\n")
    return tuple(made for line in lines if (made := _pattern(line.removesuffix("\r"))) is not None)


def _pattern(line: str) -> Pattern | None:
    if line.startswith("#"):
        return None
    line = _without_trailing_spaces(line)
    negated = line.startswith("!")
    body = line[negated:]
    folders_only = body.endswith("/")
    body = body[:-1] if folders_only else body
    anchored = "/" in body
    body = body.removeprefix("/")
    if not body:
        return None
    try:
        segments = tuple(
            None if part == "**" and anchored else re.compile(_segment(part), re.DOTALL) for part in body.split("/")
        )
    except ValueError:
        return None
    return Pattern(segments, anchored, negated, folders_only)


def _without_trailing_spaces(line: str) -> str:
    kept = index = 0
    while index < len(line):
        escapes = line[index] == "\\"
        index += 1 + escapes
        if escapes or line[index - 1] != " ":
            kept = index
    return line[:kept]


def _segment(part: str) -> str:
    """Translate one name's pattern; atomic groups keep a hostile one from backtracking without end."""
    pieces: list[str] = [""]
    index = 0
    while index < len(part):
        char = part[index]
        index += 1
        if char == "*":
            if pieces[-1] or len(pieces) == 1:
                pieces.append("")
        elif char == "?":
            pieces[-1] += "."
        elif char == "[":
            text, index = _bracket(part, index)
            pieces[-1] += text
        elif char == "\\":
            if index == len(part):
                raise ValueError(part)
            pieces[-1] += re.escape(part[index])
            index += 1
        else:
            pieces[-1] += re.escape(char)
    if len(pieces) == 1:
        return pieces[0]
    middle = "".join(f"(?>.*?{piece})" for piece in pieces[1:-1] if piece)
    return f"{pieces[0]}{middle}.*{pieces[-1]}"


def _bracket(part: str, start: int) -> tuple[str, int]:
    index = start
    negated = part[index : index + 1] in {"!", "^"} and bool(part[index : index + 1])
    index += negated
    members = ""
    first = True
    while first or part[index : index + 1] != "]":
        first = False
        member, index = _member(part, index)
        if part[index : index + 1] == "-" and part[index + 1 : index + 2] not in {"]", ""} and len(member) == 1:
            last, index = _member(part, index + 1)
            if len(last) == 1:
                # A range that runs backwards matches nothing.
                members += f"{re.escape(member)}-{re.escape(last)}" if member <= last else ""
                continue
            members += re.escape(member) + "\\-" + last
            continue
        members += re.escape(member) if len(member) == 1 else member
    if not members:
        return (".", index + 1) if negated else ("(?!)", index + 1)
    return f"[{'^' if negated else ''}{members}]", index + 1


def _member(part: str, index: int) -> tuple[str, int]:
    named = re.compile(r"\[:([a-z]+):\]").match(part, index)
    if named:
        if named[1] not in _CLASSES:
            raise ValueError(part)
        return _CLASSES[named[1]], named.end()
    if part[index : index + 1] == "\\":
        index += 1
    if index >= len(part):
        raise ValueError(part)
    return part[index], index + 1


def _match(segments: Sequence[re.Pattern[str] | None], names: Sequence[str]) -> bool:
    """Match whole paths; only the last `**` is ever tried again, as in matching one `*`."""
    at = place = 0
    retry: tuple[int, int] | None = None
    while place < len(names):
        segment = segments[at] if at < len(segments) else _NOTHING
        if segment is None:
            at += 1
            if at == len(segments):
                return True
            retry = (at, place)
        elif segment.fullmatch(names[place]):
            at, place = at + 1, place + 1
        elif retry is not None:
            retry = (retry[0], retry[1] + 1)
            at, place = retry
        else:
            return False
    return at == len(segments)
