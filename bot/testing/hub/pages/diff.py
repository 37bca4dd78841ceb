"""Patches as rows with line numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from bot.testing.hub.diffs import HEADER
from bot.testing.hub.git.history import FileChange

Kind = Literal["hunk", "add", "del", "same", "note"]

MOST_ROWS = 3000
"""Rows of one page; what is beyond is left out with a note."""

MOST_ROWS_OF_FILE = 1000
MOST_FILES = 300
LONGEST_ROW = 1000
"""Characters; minified files have longer lines, which nobody reads."""

KINDS: dict[str, Kind] = {"+": "add", "-": "del", "\\": "note"}


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a diff."""

    kind: Kind
    old: int | None
    new: int | None
    text: str


@dataclass(frozen=True, slots=True)
class File:
    """A file of a diff as it is shown."""

    change: FileChange
    rows: list[Row]
    note: str | None
    """Why rows are missing."""


@dataclass(frozen=True, slots=True)
class Diff:
    """The files of a diff as they are shown."""

    files: list[File]
    additions: int
    deletions: int
    hidden: int
    """How many files are left out at the end."""


def rows_of(patch: str) -> list[Row]:
    """Return the rows of a patch, hunk headers included."""
    rows: list[Row] = []
    old = new = 0
    for text in patch.split("\n"):
        if header := HEADER.match(text):
            old, new = int(header[1]), int(header[2])
            rows.append(Row("hunk", None, None, text))
            continue
        kind = KINDS.get(text[:1], "same")
        here = (old if kind in ("del", "same") else None, new if kind in ("add", "same") else None)
        rows.append(Row(kind, *here, _cut(text[1:])))
        old, new = old + (here[0] is not None), new + (here[1] is not None)
    return rows


def diff_of(changes: Sequence[FileChange]) -> Diff:
    """Return what is shown of a diff: large ones are cut."""
    files, left = [], MOST_ROWS
    for change in changes[:MOST_FILES]:
        rows = rows_of(change.patch) if change.patch else []
        shown = rows[: min(MOST_ROWS_OF_FILE, max(left, 0))]
        left -= len(shown)
        files.append(File(change, shown, _note(change, len(rows), len(shown))))
    return Diff(
        files,
        sum(change.additions for change in changes),
        sum(change.deletions for change in changes),
        max(0, len(changes) - MOST_FILES),
    )


def _note(change: FileChange, rows: int, shown: int) -> str | None:
    if shown < rows:
        return f"This diff is large: {rows - shown} of its {rows} lines are not shown."
    if change.patch is not None:
        return None
    if change.status == "renamed":
        return "Renamed without changes."
    return "No lines to show: the file is empty or binary, or only its mode changed."


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_ROW else f"{text[:LONGEST_ROW]} … ({len(text)} characters)"
