"""What other programs say about a commit: check runs and commit statuses as one list."""

from dataclasses import dataclass
from typing import Literal

CiState = Literal[
    "queued",
    "in_progress",
    "success",
    "failure",
    "neutral",
    "skipped",
    "cancelled",
    "timed_out",
    "action_required",
]
RED: frozenset[CiState] = frozenset({"failure", "timed_out", "cancelled", "action_required"})
"""What GitHub shows as failed."""
FAILED: frozenset[CiState] = frozenset({"failure", "timed_out"})
"""What may be a fault of the work; the rest of the red ones somebody cancelled, or they wait for a person."""
RUNNING: frozenset[CiState] = frozenset({"queued", "in_progress"})


@dataclass(frozen=True, slots=True)
class CiCheck:
    """One check run, or one commit status."""

    name: str
    app: str
    """The App's slug, as `github-actions`; empty for a commit status."""
    state: CiState
    url: str
    """Where people see more; may be empty."""
    note: str = ""
    """Its own headline, in its words; may be empty."""
    job_id: int | None = None
    """The job of GitHub Actions whose log there is; None for what others run."""
    ours: bool = False
    """Whether our own App made it."""

    @property
    def is_red(self) -> bool:
        """Whether it is shown as failed."""
        return self.state in RED

    @property
    def has_failed(self) -> bool:
        """Whether it ran, and found something wrong."""
        return self.state in FAILED

    @property
    def is_running(self) -> bool:
        """Whether it has not come to an end."""
        return self.state in RUNNING
