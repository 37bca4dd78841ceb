"""Takes a file of tests apart by line and indentation: its tests, and what each asserts and skips."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from bot.projects.evidence.changes import text_of
from bot.projects.evidence.languages import Language, language_of, masked

_STRING = re.compile(r"""(["'`])((?:\\.|(?!\1)[^\\\n]){0,300})\1""")
_EACH = re.compile(r"""[)`]\s*\(\s*(["'`])((?:\\.|(?!\1)[^\\\n]){0,300})\1""")
_RETURN = re.compile(r"return(?: None|;| Ok\(\(\)\);?)?$")
_CLOSES = (")", "]", "}")
_GOES_ON = ("{", ":", "(", "[", ",", "=>")
_ABOVE = ("@", "#[")


@dataclass(frozen=True, slots=True)
class Line:
    """A line of code that matters."""

    number: int
    text: str
    """Without the spaces around it."""
    is_top: bool = False
    """Whether it is not indented."""


@dataclass(frozen=True, slots=True)
class Case:
    """A test, or the rest of a file, named by the empty string."""

    name: str
    start: int
    """The number of its first line, from 1."""
    code: Sequence[Line] = ()
    """Its lines that are not empty."""
    asserts: Sequence[Line] = ()
    skips: Sequence[Line] = ()
    """Its own, and those of the groups around it."""


@dataclass(frozen=True, slots=True)
class Cases:
    """A file of tests."""

    tests: dict[str, Case] = field(default_factory=dict)
    rest: Case = field(default_factory=lambda: Case("", 1))
    only: Sequence[Line] = ()


@dataclass(slots=True)
class _Group:
    name: str
    indent: int
    skips: list[Line]


def read(path: str, data: bytes | None) -> Cases:
    """Read the tests of a file; none for files that hold none."""
    language = language_of(path)
    text = text_of(data)
    return _Reader(language, text).read() if language is not None and text else Cases()


class _Reader:
    """Goes through one file once."""

    def __init__(self, language: Language, text: str) -> None:
        """Take a file's text."""
        self._language = language
        self._plain = text.split("\n")
        self._code = masked(language, text).split("\n")

    def read(self) -> Cases:
        """Find its tests."""
        tests: dict[str, Case] = {}
        taken: set[int] = set()
        heads: set[int] = set()
        groups: list[_Group] = []
        for at, code in enumerate(self._code):
            if at in taken or not code.strip():
                continue
            indent = _indent(code)
            if not code.lstrip().startswith(_CLOSES):
                groups = [group for group in groups if group.indent < indent]
            begins = self._language.test.search(code) is not None
            named = self._language.group.search(code) if self._language.group else None
            if not begins and not named:
                continue
            first = self._head(at)
            if begins and self._is_marked(first, at):
                lines = range(first, self._end(at, indent) + 1)
                name = self._language.join.join([*(group.name for group in groups), self._name(at, lines.stop)])
                around = [skip for group in groups for skip in group.skips]
                # Of two that have one name, as overloads do, the later one is what counts.
                tests[name] = self._case(name, lines, around)
                taken.update(lines)
            elif named:
                name = named.groupdict().get("name") or self._string(at)
                skips = [self._line(row) for row in range(first, at + 1) if self._skips(row)]
                groups.append(_Group(name, indent, skips))
                heads.update(range(first, at + 1))
        apart = taken | heads
        rest = [row for row in range(len(self._code)) if row not in apart]
        only = self._matching(self._language.only, range(len(self._code)))
        return Cases(tests, self._case("", rest, []), only)

    def _head(self, at: int) -> int:
        """Go up to the first line of what stands above a function: decorators, attributes, annotations."""
        first, indent = at, _indent(self._code[at])
        for row in range(at - 1, -1, -1):
            code = self._code[row]
            text = code.strip()
            if not text or _indent(code) < indent:
                break
            if _indent(code) == indent and text.startswith(_ABOVE):
                first = row
            elif _indent(code) == indent and not text.startswith(_CLOSES):
                break
        return first

    def _is_marked(self, first: int, at: int) -> bool:
        marked = self._language.marked
        return marked is None or any(marked.search(self._code[row]) for row in range(first, at + 1))

    def _end(self, at: int, indent: int) -> int:
        """Find the last line of what begins here."""
        last = at
        for row in range(at + 1, len(self._code)):
            text = self._code[row].strip()
            if not text:
                continue
            if _indent(self._code[row]) > indent or text == "{":
                last = row
            elif not text.startswith(_CLOSES):
                break
            elif self._language.braces and not text.endswith(_GOES_ON):
                return row
            else:
                last = row
        return last

    def _name(self, at: int, stop: int) -> str:
        found = self._language.test.search(self._code[at])
        if found is not None and (name := found.groupdict().get("name")):
            return name
        each = ".each" in self._code[at] and _EACH.search("\n".join(self._plain[at:stop]))
        return str(each[2]) if each else self._string(at)

    def _string(self, at: int) -> str:
        found = _STRING.search(" ".join(self._plain[at : at + 2]))
        return found[2] if found else self._plain[at].strip()

    def _skips(self, row: int) -> bool:
        return self._language.skips.search(self._code[row]) is not None

    def _case(self, name: str, rows: Sequence[int], around: Sequence[Line]) -> Case:
        asserts = self._matching(self._language.asserts, rows)
        skips = [*around, *self._matching(self._language.skips, rows)]
        if name:
            skips += self._leaves(rows, asserts)
        code = [self._line(row) for row in rows if self._plain[row].strip()]
        return Case(name, rows[0] + 1 if rows else 1, code, asserts, skips)

    def _matching(self, pattern: re.Pattern[str] | None, rows: Sequence[int]) -> list[Line]:
        return [self._line(row) for row in rows if pattern is not None and pattern.search(self._code[row])]

    def _line(self, row: int) -> Line:
        return Line(row + 1, self._plain[row].strip(), is_top=_indent(self._plain[row]) == 0)

    def _leaves(self, rows: Sequence[int], asserts: Sequence[Line]) -> Iterator[Line]:
        """Find a `return` that always comes before an assertion."""
        body = [row for row in rows if self._code[row].strip()]
        head = next(row for row in body if self._language.test.search(self._code[row]))
        inner = [row for row in body if row > head and _indent(self._code[row]) > _indent(self._code[head])]
        depth = min((_indent(self._code[row]) for row in inner), default=0)
        last = max((one.number for one in asserts), default=0)
        for row in inner:
            if _indent(self._code[row]) == depth and row + 1 < last and _RETURN.match(self._code[row].strip()):
                yield self._line(row)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
