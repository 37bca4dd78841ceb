"""What a change does to the checks that are to judge it, and which of its tests are new."""

import re
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet

from bot.projects.evidence.called import Calls, calls_of, within
from bot.projects.evidence.cases import LONGEST_LINE
from bot.projects.evidence.changes import Change, Finding, is_read, shown, text_of
from bot.projects.evidence.definitions import defines, redefined
from bot.projects.evidence.languages import language_of
from bot.projects.evidence.shadows import place_of, shadows, steered
from bot.projects.evidence.weaker import Compared, Place

_SNAPSHOT = re.compile(r"\.(?:snap|ambr|golden|approved\.\w+)$|(?:^|/)(?:__snapshots__|__image_snapshots__)/")
_MANY_SNAPSHOTS = 5
"""Files of snapshots in one change that a reviewer hardly reads each."""
_MANY_LINES = 60
_COOKIE = re.compile(r"[ \t\f]*#.{0,200}?coding[:=][ \t]*(?P<name>[-\w.]{1,80})")
_HIDDEN = re.compile(r"\\u+000[ad]", re.IGNORECASE)
_PLAIN = re.compile(
    r"utf[-_]?8(?:[-_]sig)?|(?:us[-_])?ascii|latin[-_]?1|iso[-_]8859[-_]1|(?:windows|cp)[-_]?125\d", re.IGNORECASE
)
"""Encodings in which ASCII is what it looks like."""
TEST_FOLDERS = frozenset({"test", "tests", "__tests__", "spec", "specs", "testdata", "fixtures", "e2e"})
"""Folders that hold nothing but tests and what they need."""


def touched(changes: Sequence[Change], commands: Sequence[str] = ()) -> list[Finding]:
    """Say what alters the meaning of a check, in the order of paths; empty where nothing does.

    Args:
        changes: all files of a change; of those that were not changed none is needed.
        commands: those of the checks, and what `told` gives of files that they call and the change leaves as they are.
    """
    calls = within(changes, commands)
    found = [finding for change in changes for finding in redefined(change, calls)]
    found += [finding for change in changes for finding in shadows(change, calls)]
    found += Compared(changes).findings()
    found += [finding for change in changes for finding in steered(change)]
    found += _snapshots(changes)
    found += [finding for change in changes for finding in _unread(change)]
    found += [finding for change in changes for finding in _linked(change, calls)]
    return sorted(set(found), key=lambda one: (one.path, one.line or 0, one.kind, one.words))


def first(paths: Iterable[str], new: AbstractSet[str], commands: Sequence[str]) -> list[str]:
    """Sort the paths of a change by what they may say of checks, those that were there before those that are new.

    Args:
        paths: all of the change.
        new: those of them that were not there before.
        commands: as for `touched`.
    """
    calls = calls_of(commands)

    def rank(path: str) -> tuple[bool, bool, bool, str]:
        is_defined = defines(path) or calls.call(path) or (path in new and bool(place_of(path, calls)))
        return not (is_defined or language_of(path)), path in new, not is_defined, path

    return sorted(paths, key=rank)


def unread(paths: Sequence[str], read: int) -> list[Finding]:
    """Say that files of a change were not read here.

    Args:
        paths: in the order of `first`.
        read: how many of them were read.
    """
    left = len(paths) - read
    words = f"{left} of {len(paths)} files of this change were not read here, from this one on: look at them yourself."
    return [Finding(paths[read], None, "unread", words)] if left > 0 else []


def new_tests(changes: Sequence[Change]) -> list[str]:
    """Name the tests that are new, as `path::name`; what is only renamed or moved is not."""
    return sorted(map(_named, Compared(changes).new))


def changed_tests(changes: Sequence[Change]) -> list[str]:
    """Name the tests that were there and say something else now, as `path::name`."""
    return sorted(
        _named(new)
        for old, new in Compared(changes).pairs
        if [line.text for line in old.case.code] != [line.text for line in new.case.code]
    )


def _unread(change: Change) -> Iterator[Finding]:
    """Say so where a file would have had to be compared and could not be."""
    if change.before == change.after or not (language_of(change.path) or defines(change.path)):
        return
    if not (is_read(change.before) and is_read(change.after)):
        words = "The file is binary or too long to be compared here: look at what changed."
        yield Finding(change.path, None, "unread", words)
        return
    had = {line for line in text_of(change.before).split("\n") if len(line) > LONGEST_LINE}
    lines = enumerate(text_of(change.after).split("\n"), 1)
    if number := next((at for at, line in lines if len(line) > LONGEST_LINE and line not in had), None):
        words = "The line is too long to be compared here: look at what is behind its begin."
        yield Finding(change.path, number, "unread", words)
    if (
        change.path.endswith(".java")
        and _HIDDEN.search(text_of(change.after))
        and not _HIDDEN.search(text_of(change.before))
    ):
        words = "An escape in the file ends a line: what looks like a comment may go on as code."
        yield Finding(change.path, None, "unread", words)
    head = text_of(change.after).split("\n", 2)[:2]
    cookie = next(filter(None, map(_COOKIE.match, head)), None) if change.path.endswith(".py") else None
    if cookie is not None and not _PLAIN.fullmatch(cookie["name"]):
        words = f"The file is written in {shown(cookie['name'])}: Python reads something else than what stands there."
        yield Finding(change.path, 1, "unread", words)


def _linked(change: Change, calls: Calls) -> Iterator[Finding]:
    """Name links where tests or what defines checks is looked for: what they lead to is not compared."""
    if not change.is_link or change.before == change.after:
        return
    path, tests = change.path, {*change.path.lower().split("/")} & TEST_FOLDERS
    if tests or language_of(path) or defines(path) or calls.call(path) or place_of(path, calls):
        words = f"The file is a link to {shown(text_of(change.after))} now, and what is there counts in its place."
        yield Finding(path, None, "configuration", words)


def _named(place: Place) -> str:
    return f"{place.path}::{place.case.name}"


def _snapshots(changes: Sequence[Change]) -> Iterator[Finding]:
    """Say where so many snapshots were written anew that what they show was hardly looked at."""
    replaced = [
        one for one in changes if one.before is not None and one.before != one.after and _SNAPSHOT.search(one.path)
    ]
    lines = sum(_gone(one) for one in replaced)
    if replaced and (len(replaced) >= _MANY_SNAPSHOTS or lines >= _MANY_LINES):
        files = f"{len(replaced)} files of snapshots" if len(replaced) > 1 else "A file of snapshots"
        yield Finding(
            replaced[0].path, None, "snapshots", f"{files} changed, in which {lines} lines are no longer there."
        )


def _gone(change: Change) -> int:
    after = set(text_of(change.after).split("\n"))
    return sum(line not in after for line in text_of(change.before).split("\n"))
