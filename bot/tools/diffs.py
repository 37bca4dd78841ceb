"""A short unified diff of one file, made in time that does not grow with what stayed the same."""

import difflib
from collections.abc import Sequence

_CONTEXT = 3
_MOST_COMPARED = 2000
LINES = 60


def diff(old: str, new: str, *, most_lines: int = LINES) -> str:
    """Show what changed, without names of files; a longer diff is cut with a note."""
    before, after = _lines(old), _lines(new)
    if before == after:
        return "(only line ends changed)"
    head = _same(before, after)
    tail = _same(before[head:][::-1], after[head:][::-1])
    start = max(0, head - _CONTEXT)
    ends = [len(lines) - max(0, tail - _CONTEXT) for lines in (before, after)]
    here, there = before[start : ends[0]], after[start : ends[1]]
    if max(len(here), len(there)) > _MOST_COMPARED:
        return f"@@ lines {start + 1}–{ends[0]} became {start + 1}–{ends[1]}, too many to show @@"  # noqa: RUF001
    rows = list(difflib.unified_diff(here, there, n=_CONTEXT, lineterm=""))[2:]
    shown = [_moved(row, start) for row in rows[:most_lines]]
    more = [f"[… {len(rows) - most_lines} more lines of the diff …]"] if len(rows) > most_lines else []
    return "\n".join([*shown, *more])


def _lines(text: str) -> Sequence[str]:
    return text.replace("\r\n", "\n").removesuffix("\n").split("\n") if text else []


def _same(one: Sequence[str], other: Sequence[str]) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (left, right) in pairs if left != right), min(len(one), len(other)))


def _moved(row: str, by: int) -> str:
    """Correct the numbers of a hunk's head, since the equal lines before it were left out."""
    if not row.startswith("@@ "):
        return row
    _, before, after, _ = row.split(" ", 3)
    return f"@@ {_range(before, by)} {_range(after, by)} @@"


def _range(text: str, by: int) -> str:
    first, comma, count = text[1:].partition(",")
    return f"{text[0]}{int(first) + by}{comma}{count}"
