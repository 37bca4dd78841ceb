"""A plan that stands before the work."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Proposal:
    """What the model means to do, in its own words and with its own estimates."""

    text: str
    """Markdown."""
    files: Sequence[str] = ()
    """Paths that it expects to change."""
    turns: int | None = None
    """Replies that it expects the work to take; None where it did not say."""
    questions: Sequence[str] = ()
    """What it has to know of people before it begins."""
