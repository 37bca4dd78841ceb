"""Takes a file of tests apart by line and indentation: its tests, and what each asserts and skips."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from bot.projects.evidence.changes import text_of
from bot.projects.evidence.languages import Language, language_of, masked, meant

_STRING = re.compile(r"""(["'`])((?:\\.|(?!\1)[^\\\n]){0,300})\1""")
_EACH = re.compile(r"""[)`]\s*\(\s*(["'`])((?:\\.|(?!\1)[^\\\n]){0,300})\1""")
_RETURN = re.compile(
    r"(?:if \(?(?:True|true|1)\)?\s*:?\s*)?return(?: (?:None|True|False|0|1|true|nil|null|undefined|Ok\(\(\)\)))?;?$"
)
_CLOSES = (")", "]", "}")
_GOES_ON = ("{", ":", "(", "[", ",", "=>")
_ABOVE = ("@", "#[")
_LEAVES = re.compile(r"\s*return\b")
LONGEST_LINE = 4_000
"""Characters of a line that are read; a longer one was written by no person."""
_MOST_TRIED = 40
"""Lines of what may fail, and of what takes the failure."""


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
    ends: Sequence[Line] = ()
    """What ends the process of all tests."""


@dataclass(slots=True)
class _Group:
    name: str
    indent: int
    skips: list[Line]
    rows: range
    has_tests: bool = False


def read(path: str, data: bytes | None) -> Cases:
    """Read the tests of a file; none for files that hold none."""
    language = language_of(path)
    text = meant(path, text_of(data))
    return _Reader(language, text).read() if language is not None and text else Cases()


class _Reader:
    """Goes through one file once."""

    def __init__(self, language: Language, text: str) -> None:
        """Take a file's text."""
        self._language = language
        self._plain = text.split("\n")
        self._code = [line[:LONGEST_LINE] for line in masked(language, text).split("\n")]
        self._let: dict[int, bool] = {}
        self._asserting: dict[int, bool] = {}

    def read(self) -> Cases:
        """Find its tests."""
        tests: dict[str, Case] = {}
        taken: set[int] = set()
        known: list[_Group] = []
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
                for group in groups:
                    group.has_tests = True
                # Of two that have one name, as overloads do, the later one is what counts.
                tests[name] = self._case(name, lines, around)
                taken.update(lines)
            elif named:
                name = named.groupdict().get("name") or self._string(at)
                skips = [self._line(row) for row in range(first, at + 1) if self._skips(row)]
                groups.append(_Group(name, indent, skips, range(first, at + 1)))
                known.append(groups[-1])
        # A group whose tests are not found in it may hold any of the file's.
        apart = taken.union(*(group.rows for group in known if group.has_tests or not group.skips))
        rest = [row for row in range(len(self._code)) if row not in apart]
        only = self._matching(self._language.only, range(len(self._code)))
        ends = self._matching(self._language.ends, range(len(self._code)))
        return Cases(tests, self._case("", rest, []), only, ends)

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
        skips += self._swallowed(rows)
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

    def _swallowed(self, rows: Sequence[int]) -> Iterator[Line]:
        """Find where the failure of an assertion is taken and not raised again."""
        language = self._language
        pattern = language.swallows
        for row in rows if pattern is not None else ():
            code = self._code[row]
            found = pattern.search(code) if pattern is not None else None
            if found is None:
                continue
            rest, body = code[found.end() :], self._deeper(row)
            tried = self._tried(row)
            if "suppress(" in found[0]:
                is_let, tried = False, body
            elif found[0].lstrip().startswith("finally"):
                is_let = not any(_LEAVES.match(self._code[one]) for one in body)
            else:
                is_let = self._raises(rest) or any(map(self._lets, body))
            if not is_let and (any(found.groupdict().values()) or any(map(self._is_asserting, tried))):
                yield self._line(row)

    def _raises(self, code: str) -> bool:
        rethrows = self._language.rethrows
        return bool((rethrows and rethrows.search(code)) or self._language.asserts.search(code))

    def _lets(self, row: int) -> bool:
        """Say whether a line of a handler may fail the test; each is asked about once."""
        if row not in self._let:
            self._let[row] = self._raises(self._code[row])
        return self._let[row]

    def _is_asserting(self, row: int) -> bool:
        if row not in self._asserting:
            self._asserting[row] = self._language.asserts.search(self._code[row]) is not None
        return self._asserting[row]

    def _tried(self, row: int) -> list[int]:
        """Return the lines of what may raise what is taken in a row."""
        indent, tries, rows = _indent(self._code[row]), self._language.tries, list[int]()
        for above in range(row - 1, max(-1, row - _MOST_TRIED), -1):
            depth = _indent(self._code[above])
            if depth < indent and self._code[above].strip():
                break
            rows.append(above)
            if depth == indent and tries is not None and tries.search(self._code[above]):
                return rows
        return []

    def _deeper(self, row: int) -> list[int]:
        """Return the lines that are indented more than a row, up to the first that is not."""
        indent, rows = _indent(self._code[row]), list[int]()
        for below in range(row + 1, min(len(self._code), row + _MOST_TRIED)):
            if _indent(self._code[below]) <= indent and self._code[below].strip():
                break
            rows.append(below)
        return rows


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
