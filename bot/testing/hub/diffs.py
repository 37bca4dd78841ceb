"""Where a line stands in a patch: what a comment on a line needs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

HEADER = re.compile(r"^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")


@dataclass(frozen=True, slots=True)
class Place:
    """A line of a patch."""

    position: int
    """Lines below the first hunk header, counted from 1."""
    hunk: str
    """The hunk from its header down to the line."""


def locate(patch: str, line: int, side: Literal["LEFT", "RIGHT"]) -> Place | None:
    """Return the place of a line of the old (LEFT) or new (RIGHT) file, or None when the patch does not show it."""
    old = new = 0
    hunk: list[str] = []
    for position, text in enumerate(patch.split("\n")):
        if header := HEADER.match(text):
            old, new = int(header[1]) - 1, int(header[2]) - 1
            hunk = [text]
            continue
        hunk.append(text)
        old += text[:1] in ("-", " ")
        new += text[:1] in ("+", " ")
        here, shown = (old, "- ") if side == "LEFT" else (new, "+ ")
        if here == line and text[:1] in shown and text:
            return Place(position, "\n".join(hunk))
    return None
