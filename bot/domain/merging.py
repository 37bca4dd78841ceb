"""What comes of joining two histories."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Clash = Literal["lines", "binary", "link", "submodule", "deleted", "renamed", "kind"]
"""Why a path cannot be joined: `lines` were changed on both sides, `deleted` is gone on one side and changed on the
other, `kind` is a file on one side and a folder or a link on the other."""

Stands = Literal["ours", "theirs", "git", "anew"]
"""Whose version of a path that conflicted a merge ended with: as git left it, where that is neither side's, or written
anew by whoever resolved it."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """A path that a person or a model has to decide about."""

    path: str
    """Of the tree that holds what could be joined; bytes that are no UTF-8 are escaped as `os.fsdecode` does."""
    clash: Clash


@dataclass(frozen=True, slots=True)
class Merged:
    """Two commits joined."""

    tree: str
    """With conflicts, the lines of both sides and of what they came from stand in it between markers."""
    conflicts: Sequence[Conflict] = ()
    there: bool = False
    """Whether the one side has all of the other already."""


@dataclass(frozen=True, slots=True)
class PutOn:
    """A change that stands on top of what others did meanwhile."""

    commit: str
    others: int
    """Commits of others below it."""
    there: bool
    """Whether it is in their history already, put there by an earlier life."""
    same: bool = False
    """Whether they made the same change themselves, so that theirs is named and nothing is left to be pushed."""
