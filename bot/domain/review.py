"""Threads of a review: what people said on lines of a pull request, and what the work answers."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class Said:
    """One comment of a thread."""

    author: str
    """Login; empty where the account was deleted, and where we said it."""
    writes: bool
    """Whether a person with write access said it: what such people ask for is to be done, all else is to be known."""
    text: str
    ours: bool = False
    """Whether we said it."""
    silent: bool = False
    """Whether it is ours and says that something here has no answer yet."""


@dataclass(frozen=True, slots=True)
class OpenThread:
    """A thread that is not resolved, or in which somebody asks for something all the same."""

    name: str
    """`T1`, `T2`, … in the order in which they were begun; of this round alone."""
    id: str
    """The node id on GitHub."""
    path: str
    line: int | None
    """The last line that it is about; None for a thread on a whole file."""
    start_line: int | None
    """The first of several lines."""
    old_side: bool
    """Whether the line is of the file as it was before the pull request."""
    outdated: bool
    """Whether the code has changed since, so that the line is where it stood then."""
    hunk: str
    """The hunk from its header down to the line, as of the comment."""
    said: Sequence[Said]
    """Oldest first."""
    told: bool = True
    """Whether the round deals with it; else there was no room, and it is told by its name and place alone."""
    omitted: int = 0
    """How many of its comments are not told, for their length."""
    asks: bool = False
    """Whether the request that began the run stands in it."""
    resolved: bool = False
    """Whether people resolved it before that."""
    seen: Sequence[str] = ()
    """What others had said there when it was told: a mark of each comment, which changes with its text."""
    reopened: bool = False
    """Whether people opened it again after we resolved it."""

    @property
    def is_asked(self) -> bool:
        """Whether somebody who may write asks for something here."""
        return any(one.writes for one in self.said)

    @property
    def is_answered(self) -> bool:
        """Whether the last word is an answer of ours, and nobody found since that it is none."""
        return bool(self.said) and self.said[-1].ours and not self.said[-1].silent and not self.reopened

    @property
    def is_due(self) -> bool:
        """Whether an answer is due: somebody who may write asks, here and now or since our last answer."""
        return self.is_asked and (self.asks or not self.is_answered)

    @property
    def without_words(self) -> Self:
        """The same thread without what was said in it; who asked stands there all the same."""
        return replace(self, hunk="", said=[replace(one, text="") for one in self.said])

    def to_data(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {**asdict(self), "said": [asdict(one) for one in self.said]}

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> Self:
        """Turn stored values back."""
        return cls(**{**data, "said": tuple(Said(**one) for one in data["said"])})


@dataclass(frozen=True, slots=True)
class ThreadAnswer:
    """What the model answers in a thread."""

    thread: str
    """Its name."""
    text: str
    done: bool
    """Whether what was asked there is done, in the model's word."""
