"""Tasks and runs: one request from accepted to pull request, and one life of the loop inside it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from bot.domain.refs import RepositoryRef, ThreadKind

RunState = Literal["queued", "running", "finished"]
Mode = Literal["auto", "plan", "act"]
"""`plan`: people approve a plan first. `auto`: a plan is posted, and waits only where it has to. `act`: no plan."""
PlanAs = Literal["comment", "pull"]
"""How a plan that waits is put: as a comment, or as a draft pull request that holds it as a file."""
Ready = Literal["auto", "never"]
"""Whether a pull request whose checks are green is marked ready for review by itself."""
Intent = Literal["fix", "plan", "ask", "update", "check"]
"""What a run is for: `fix` does the work, `plan` makes a plan that waits, `ask` answers a question and changes nothing,
`update` brings the base branch in, `check` runs the checks alone."""
ASIDE: frozenset[Intent] = frozenset({"ask", "check"})
"""What leaves the task as it stands: what waits for people goes on waiting."""
BESIDE: frozenset[Intent] = ASIDE | {"update"}
"""Those, and what changes the branch without being work that people asked for in words: it too leaves what waits."""
REPAIR = "repair:"
"""Begins the event keys of runs that nobody asked for: red checks of others on the head of our pull request did."""
LATE = "late:"
"""Begins the event keys of runs for what was said while another one was open; behind it stand the task and the last
inbox item."""
ON_LINE = "line:"
"""Begins the event keys of what was asked in a comment on a line; behind it stand the repository and the comment."""
Outcome = Literal["done", "failed", "stopped", "waiting", "budget"]
"""How a run ended; `waiting` means that a person has to answer."""


@dataclass(frozen=True, slots=True)
class Task:
    """Everything that one thread asked for; later requests on the same thread are further runs of it."""

    id: str
    """32 hexadecimal digits."""
    repository: RepositoryRef
    number: int
    """The issue or pull request on which it began; 0 for a task of the terminal."""
    kind: ThreadKind
    title: str
    body: str
    """The thread's own text as of the trigger that began the task."""
    requester: str
    """Login of the person who began it."""
    installation_id: int | None
    branch: str
    """The branch that the task writes: its own, or the head branch of a person's pull request."""
    base_branch: str
    """The branch that the pull request goes into."""
    pull_number: int | None
    """The pull request that carries the work; None until it stands."""
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Run:
    """One life of the loop: the first, or one after a further request."""

    task_id: str
    seq: int
    """1 for the first run of a task."""
    number: int
    """The issue or pull request on which this run was asked for; its progress comment stands there."""
    kind: ThreadKind
    """Whether that is an issue or a pull request."""
    state: RunState
    outcome: Outcome | None
    reason: str
    """One sentence for people; empty while all is well."""
    request: str
    """What the person asked in this run; empty means the thread's own text."""
    requester: str
    model: str | None
    """`provider:name` that the person chose for this run."""
    comment_id: int | None
    """The comment that asked; None for a label."""
    abi: int
    """The version of the workflow's body that this run follows."""
    created_at: datetime
    commanded: bool = False
    """Whether a person asked in so many words, and not by a label."""
    intent: Intent = "fix"
    usd: float | None = None
    """The run's own budget in US dollars, where a person gave one."""
    fresh: bool = False
    """Whether it begins without what was said and done before it."""
    requester_id: int = 0
    """The requester's number on GitHub; 0 where none is known, as at the terminal."""
    event_key: str = ""
    """Names what asked for it."""
    asked_at: datetime | None = None
    """When it was asked for by GitHub's clock, in whole seconds; None where GitHub did not say."""

    @property
    def id(self) -> str:
        """Also the durable workflow's id."""
        return f"{self.task_id}-{self.seq}"

    @property
    def is_repair(self) -> bool:
        """Whether red checks began it, and no person."""
        return self.event_key.startswith(REPAIR)

    @property
    def is_on_line(self) -> bool:
        """Whether a comment on a line asked for it."""
        return self.event_key.startswith(ON_LINE)


def branch_name(number: int, task_id: str, afresh: int = 0) -> str:
    """Name the branch of a task: made by us alone, never from anybody's text.

    Args:
        number: of the issue.
        task_id: of the task.
        afresh: the run that began anew from the base branch; 0 for the task's first branch.
    """
    return f"agent/{number}-{task_id[:8]}{f'-{afresh}' if afresh else ''}"
