"""What goes into the reading of a change, and what comes out of it."""

from dataclasses import dataclass
from typing import Literal

Kind = Literal[
    "script",
    "configuration",
    "ci",
    "elsewhere",
    "skip",
    "assertions",
    "removed",
    "threshold",
    "ignored failure",
    "snapshots",
    "unread",
]
_MOST_BYTES = 1 << 20
"""Of a file that is read; what is longer was written by no person."""
_SHOWN = 80


APART = frozenset[str]({"ci", "elsewhere"})
"""Kinds of findings about checks that the harness does not run: CI's, and those that none of its commands leads to."""


@dataclass(frozen=True, slots=True)
class Change:
    """A file before and after; None where it is not there."""

    path: str
    before: bytes | None
    after: bytes | None
    is_link: bool = False
    """Whether it is a symbolic link afterwards, whose content is the path that it leads to."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A change that alters what a check means: no fault as such, but for a reviewer to see."""

    path: str
    line: int | None
    """In the file as it is after the change, from 1; None where it is gone."""
    kind: Kind
    words: str
    """One sentence for reviewers; what it quotes of the files is short, and in no way harmless."""


def is_read(data: bytes | None) -> bool:
    """Say whether a file is read here: what is binary or very long is not."""
    return data is None or (len(data) <= _MOST_BYTES and b"\0" not in data)


def text_of(data: bytes | None) -> str:
    """Read a file as text; empty where there is none, or it is not read."""
    if data is None or not is_read(data):
        return ""
    return data.decode("utf-8-sig", errors="replace").replace("\r\n", "\n").replace("\r", "\n")


def shown(text: str) -> str:
    """Quote text of a file in one short line of code."""
    plain = " ".join(text.split()).replace("`", "'")
    return f"`{plain if len(plain) <= _SHOWN else plain[: _SHOWN - 1] + '…'}`"


def listed(names: list[str]) -> str:
    """Name the first few of many."""
    return ", ".join(map(shown, names[:3])) + (f" and {len(names) - 3} more" if len(names) > 3 else "")  # noqa: PLR2004
