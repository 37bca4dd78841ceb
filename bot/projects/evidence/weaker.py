"""Tests that show less than before: skipped, emptied, gone."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from bot.projects.evidence.cases import Case, Line, read
from bot.projects.evidence.changes import Change, Finding, listed, shown
from bot.projects.evidence.languages import TRIVIAL, language_of

_ALIKE = 0.5
"""Of the lines of two tests that have to be the same for one to be the other under a new name."""
_MOST_COMPARED = 100
"""Tests without a partner, before and after, each of which is compared with each."""
_MOST_LINES = 300
"""Of a test, before or after, that are compared hunk by hunk; a longer one counts as one hunk."""
_QUOTES = re.compile(r"""(["'`]).*?\1""")


@dataclass(frozen=True, slots=True)
class Place:
    """A test, or the rest of a file, and where it stands."""

    path: str
    case: Case


Pair = tuple[Place, Place]
_Places = dict[tuple[str, str], Place]


class Compared:
    """The tests of a whole change, before and after, so that what only moves is seen to move."""

    def __init__(self, changes: Sequence[Change]) -> None:
        """Read the files of a change."""
        self._before = {one.path: read(one.path, one.before) for one in changes if one.before is not None}
        self._after = {one.path: read(one.path, one.after) for one in changes if one.after is not None}
        olds = {(path, name): Place(path, case) for path, of in self._before.items() for name, case in of.tests.items()}
        news = {(path, name): Place(path, case) for path, of in self._after.items() for name, case in of.tests.items()}
        self.pairs: list[Pair] = []
        """A test before, and the same one after: by its place, by its name, by what it says."""
        self._pair(olds, news, lambda place: (place.path, place.case.name))
        self._pair(olds, news, lambda place: ("", place.case.name))
        self._pair_alike(olds, news)
        self.gone, self.new = list(olds.values()), list(news.values())

    def rests(self) -> Iterator[Pair]:
        """Yield what stands beside the tests, of files that are there before and after."""
        for path in sorted(self._before.keys() & self._after.keys()):
            if not _is_program(path):
                yield Place(path, self._before[path].rest), Place(path, self._after[path].rest)

    def findings(self) -> Iterator[Finding]:
        """Say what shows less than before."""
        yield from self._skipped()
        yield from self._alone()
        yield from self._ending()
        yield from self._emptied()
        yield from self._lost()
        yield from self._not_run()

    def _pair(self, olds: _Places, news: _Places, key: Callable[[Place], tuple[str, str]]) -> None:
        places = {key(place): at for at, place in news.items()}
        for at, old in list(olds.items()):
            there = places.get(key(old))
            if there in news:
                self.pairs.append((olds.pop(at), news.pop(there)))

    def _pair_alike(self, olds: _Places, news: _Places) -> None:
        if len(olds) * len(news) > _MOST_COMPARED * _MOST_COMPARED:
            return
        bags = {
            at: Counter(line.text for line in place.case.code[:_MOST_LINES])
            for at, place in [*olds.items(), *news.items()]
        }
        for at in list(olds):
            shares = [(_share(bags[at], bags[other]), other) for other in news]
            share, best = max(shares, default=(0.0, at))
            if share >= _ALIKE:
                self.pairs.append((olds.pop(at), news.pop(best)))

    def _skipped(self) -> Iterator[Finding]:
        found: dict[tuple[str, Line], list[str]] = defaultdict(list)
        for old, new in [*self.pairs, *self.rests()]:
            had = Counter(map(_key, old.case.skips))
            for skip in new.case.skips:
                had[_key(skip)] -= 1
                # A fixture that is new may skip what uses it; in what stands beside the tests only the top counts.
                if had[_key(skip)] < 0 and (new.case.name or skip.is_top):
                    found[new.path, skip].append(new.case.name)
        for (path, line), names in found.items():
            what = f"The {_tests(names)}" if any(names) else "Any test of this file"
            yield Finding(
                path, line.number, "skip", f"{what} may be left out, or fail unseen: {shown(line.text)} is new."
            )

    def _alone(self) -> Iterator[Finding]:
        had = Counter(_key(line) for before in self._before.values() for line in before.only)
        for path, after in self._after.items():
            for line in after.only:
                had[_key(line)] -= 1
                if had[_key(line)] < 0:
                    yield Finding(
                        path, line.number, "skip", f"{shown(line.text)} can keep all other tests from running."
                    )

    def _ending(self) -> Iterator[Finding]:
        had = Counter(line.text for before in self._before.values() for line in before.ends)
        for path, after in self._after.items():
            new: list[Line] = []
            for line in after.ends if not _is_program(path) else ():
                had[line.text] -= 1
                if had[line.text] < 0:
                    new.append(line)
            if new:
                more = f" (and {len(new) - 1} more)" if len(new) > 1 else ""
                words = (
                    f"{shown(new[-1].text)} is new, which can end the run of all tests, or change how it ends{more}."
                )
                yield Finding(path, new[-1].number, "ignored failure", words)

    def _emptied(self) -> Iterator[Finding]:
        everywhere = self._missing(rest=True)
        for old, new in [*self.pairs, *self.rests()]:
            if _solid(old.case) <= _solid(new.case):
                continue
            missing = [line for gone in _hunks(old.case, new.case) for line in gone if everywhere[line.text] > 0]
            if missing:
                who = f"The test {shown(new.case.name)}" if new.case.name else "What the tests of this file share"
                are = "is gone" if len(missing) == 1 else "are gone"
                yield Finding(
                    new.path,
                    new.case.start,
                    "assertions",
                    f"{who} asserts less: {listed([line.text for line in missing])} {are}, with nothing instead.",
                )

    def _lost(self) -> Iterator[Finding]:
        elsewhere = self._missing(rest=False)
        lost: dict[str, list[str]] = defaultdict(list)
        for old in self.gone:
            if not old.case.asserts or any(elsewhere[line.text] > 0 for line in old.case.asserts):
                lost[old.path].append(old.case.name)
        for path, names in lost.items():
            is_there = path in self._after
            words = (
                f"The {_tests(names)} {'is' if len(names) == 1 else 'are'} gone{'' if is_there else ' with the file'}."
            )
            yield Finding(path, None, "removed", words)

    def _not_run(self) -> Iterator[Finding]:
        moved: dict[tuple[str, str], list[str]] = defaultdict(list)
        for old, new in self.pairs:
            if old.path != new.path and _is_run(old.path) and not _is_run(new.path):
                moved[old.path, new.path].append(new.case.name)
        for (old_path, new_path), names in moved.items():
            words = f"The {_tests(names)} of {shown(old_path)} went to a file that its runner does not look for."
            yield Finding(new_path, 1, "removed", words)

    def _missing(self, *, rest: bool) -> Counter[str]:
        """Count the assertions that are nowhere any more, whichever test they belonged to."""
        total: Counter[str] = Counter()
        for sign, side in ((1, self._before), (-1, self._after)):
            for cases in side.values():
                for case in [*cases.tests.values(), *([cases.rest] if rest else [])]:
                    for line in case.asserts:
                        total[line.text] += sign
        return total


def _share(one: Counter[str], other: Counter[str]) -> float:
    return (one & other).total() / max(one.total(), other.total(), 1)


def _key(line: Line) -> str:
    """Name a skip without its reason, which may be told in other words."""
    return _QUOTES.sub(r"\1\1", line.text)


def _solid(case: Case) -> int:
    return sum(not TRIVIAL.match(line.text) for line in case.asserts)


def _hunks(old: Case, new: Case) -> Iterator[list[Line]]:
    """Yield the assertions of each hunk that takes some away and puts none that could fail in their place."""
    before, after = ([line.text for line in case.code] for case in (old, new))
    solid = {line.number for line in new.asserts if not TRIVIAL.match(line.text)}
    asserts = {line.number for line in old.asserts if not TRIVIAL.match(line.text)}
    if max(len(before), len(after)) > _MOST_LINES:
        hunks = [[0, len(before), 0, len(after)]]
    else:
        codes = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
        hunks = [[*places] for tag, *places in codes if tag != "equal"]
    for start, end, there, thence in hunks:
        if not any(line.number in solid for line in new.code[there:thence]):
            yield [line for line in old.code[start:end] if line.number in asserts]


def _tests(names: Sequence[str]) -> str:
    return f"test{'s' if len(names) > 1 else ''} {listed(list(names))}"


def _is_program(path: str) -> bool:
    """Whether a file also holds what is tested: in Rust, tests stand beside it."""
    return path.endswith(".rs") and not path.startswith("tests/") and "/tests/" not in path


def _is_run(path: str) -> bool:
    language = language_of(path)
    return language is not None and language.run.search(path) is not None
