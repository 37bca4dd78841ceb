"""What a change does to the checks that are to judge it, and which of its tests are new."""

import re
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet

from bot.projects.evidence.called import calls_of, within
from bot.projects.evidence.changes import Change, Finding, is_read, text_of
from bot.projects.evidence.definitions import defines, redefined
from bot.projects.evidence.languages import language_of
from bot.projects.evidence.shadows import place_of, shadows, steered
from bot.projects.evidence.weaker import Compared, Place

_SNAPSHOT = re.compile(r"\.(?:snap|ambr|golden|approved\.\w+)$|(?:^|/)(?:__snapshots__|__image_snapshots__)/")
_MANY_SNAPSHOTS = 5
"""Files of snapshots in one change that a reviewer hardly reads each."""
_MANY_LINES = 60


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
    found += filter(None, map(_unread, changes))
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


def _unread(change: Change) -> Finding | None:
    """Say so where a file would have had to be compared and could not be."""
    readable = is_read(change.before) and is_read(change.after)
    if readable or change.before == change.after or not (language_of(change.path) or defines(change.path)):
        return None
    return Finding(
        change.path, None, "unread", "The file is binary or too long to be compared here: look at what changed."
    )


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
