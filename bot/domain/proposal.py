"""A plan that stands before the work."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass


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


@dataclass(frozen=True, slots=True)
class Sheet:
    """A file on the task's branch that holds a plan, so that it is reviewed line by line."""

    path: str
    plan: str
    """The plan's hash."""
    digest: str
    """SHA-256 of the file."""
    gone: bool = False
    """Whether the work took it away."""
    refused: str = ""
    """Why it could not be put there, as a sentence."""


def hash_of(task_id: str, proposal: Proposal) -> str:
    """Return the SHA-256 of a plan, in hexadecimal digits: who approves one approves these very bytes for this task."""
    kept = json.dumps([task_id, asdict(proposal)], sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(kept.encode("utf-8", "surrogatepass")).hexdigest()


def short(whole: str) -> str:
    """Shorten a hash as people see and write it."""
    return whole[:8]
