"""What happened in a task; the progress comment, `--json`, the terminal, the demo and the API read only this."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from typing import Literal

from bot.domain.ceilings import Whose
from bot.domain.task import Outcome

CheckPhase = Literal["before", "after"]


@dataclass(frozen=True, slots=True)
class RunQueued:
    """A request was accepted and waits for a worker."""

    requester: str
    request: str
    position: int
    """Runs before it in the queue."""


@dataclass(frozen=True, slots=True)
class RunHeld:
    """A daily ceiling keeps the queued run from starting."""

    whose: Whose
    usd: float
    """The ceiling, in US dollars."""
    until: str
    """When the next day begins, as ISO 8601 with its zone."""


@dataclass(frozen=True, slots=True)
class RunStarted:
    """A worker took the run."""

    model: str
    mode: str
    settings: Mapping[str, object]
    """What applied, as the pull request says it."""


@dataclass(frozen=True, slots=True)
class WorkspaceReady:
    """The working copy stands."""

    branch: str
    commit: str
    files: int


@dataclass(frozen=True, slots=True)
class SetupFinished:
    """The harness set the project up, or tried to: before the work, or again before the checks after it."""

    names: str
    """The ecosystems, as `python, node`; empty for a repository's own commands alone."""
    command: str
    """What was run, joined by `&&`; where it failed, the command that did."""
    exit_code: int | None
    """None where it ran out of time."""
    seconds: float
    cached: bool
    """Whether an earlier task had set the same up already."""
    output: str = ""
    """Head and tail of what the command that failed printed."""
    remark: str = ""
    """What could not be set up here, as sentences; empty where all was."""
    changed: Sequence[str] = ()
    """Files that the work changed, so that the project was set up again; empty before the work."""


@dataclass(frozen=True, slots=True)
class CheckSkipped:
    """The harness did not run one of the repository's checks, since its result would say nothing."""

    name: str
    command: str
    reason: str
    """As `the set-up failed`."""
    phase: CheckPhase = "before"


@dataclass(frozen=True, slots=True)
class CheckFinished:
    """The harness itself ran one of the repository's checks."""

    phase: CheckPhase
    name: str
    command: str
    exit_code: int | None
    """None where it ran out of time."""
    seconds: float
    output: str
    """Head and tail of what it printed."""
    commit: str
    """The commit it ran on."""


@dataclass(frozen=True, slots=True)
class ModelReplied:
    """The model answered."""

    turn: int
    """1 for the first."""
    text: str
    calls: int
    input_tokens: int
    """Tokens neither read from nor written to the provider's cache; as the others, of the request that was answered."""
    cache_read_tokens: int
    cache_write_tokens: int
    output_tokens: int
    cost_usd: float | None
    """Of all requests of the turn, those that failed too; None where a price is unknown."""
    model: str
    window: int = 0
    """Tokens that the model reads at once; 0 where it was not recorded."""


@dataclass(frozen=True, slots=True)
class ToolFinished:
    """One tool call is done."""

    turn: int
    index: int
    name: str
    summary: str
    """One line for people: the path or the command."""
    is_error: bool
    seconds: float
    command: str | None = None
    exit_code: int | None = None
    output: str | None = None
    plan: Sequence[Mapping[str, object]] | None = None
    """The model's plan as it stands behind the call, each line as `text` and `done`; None where the call set none."""


@dataclass(frozen=True, slots=True)
class PlanProposed:
    """A plan was put to the people."""

    number: int
    """1 for the first of the run."""
    text: str
    """Markdown, in the model's words."""
    files: Sequence[str]
    turns: int | None
    """Replies that the work is expected to take; None where the plan did not say."""
    questions: Sequence[str]
    waits: str
    """Why it waits for people, as a sentence; empty where the work begins at once."""


@dataclass(frozen=True, slots=True)
class QuestionAsked:
    """The model asked the people, and stopped."""

    text: str


@dataclass(frozen=True, slots=True)
class Notice:
    """A sentence for people: a warning, a retry, a message that was taken up."""

    text: str


@dataclass(frozen=True, slots=True)
class CommitMade:
    """The work became a commit."""

    sha: str
    subject: str
    files: int
    insertions: int
    deletions: int
    same_tree_as: str | None = None
    """The internal commit on which the last checks ran, where its files are exactly the same."""
    protected: Sequence[str] = ()
    """Files that it changes and that people decide about."""


@dataclass(frozen=True, slots=True)
class BranchPushed:
    """The commit stands on the remote."""

    branch: str
    sha: str


@dataclass(frozen=True, slots=True)
class PullOpened:
    """The pull request stands, or was brought up to date."""

    number: int
    url: str
    updated: bool


@dataclass(frozen=True, slots=True)
class RunFinished:
    """The run is over."""

    outcome: Outcome
    reason: str
    """One sentence for people; empty for `done` without remarks."""
    summary: str
    """The model's own account, shown as its word."""
    turns: int
    tokens: int
    cost_usd: float | None
    seconds: float


Fact = (
    RunQueued
    | RunHeld
    | RunStarted
    | WorkspaceReady
    | SetupFinished
    | CheckSkipped
    | CheckFinished
    | ModelReplied
    | ToolFinished
    | PlanProposed
    | QuestionAsked
    | Notice
    | CommitMade
    | BranchPushed
    | PullOpened
    | RunFinished
)

KINDS: dict[str, type[Fact]] = {
    "run.queued": RunQueued,
    "run.held": RunHeld,
    "run.started": RunStarted,
    "workspace.ready": WorkspaceReady,
    "setup.finished": SetupFinished,
    "check.skipped": CheckSkipped,
    "check.finished": CheckFinished,
    "model.replied": ModelReplied,
    "tool.finished": ToolFinished,
    "plan.proposed": PlanProposed,
    "question.asked": QuestionAsked,
    "notice": Notice,
    "commit.made": CommitMade,
    "branch.pushed": BranchPushed,
    "pull.opened": PullOpened,
    "run.finished": RunFinished,
}
_NAMES = {kind: name for name, kind in KINDS.items()}


@dataclass(frozen=True, slots=True)
class RunEvent:
    """One entry of a task's stream."""

    task_id: str
    seq: int
    """Position in the task's stream, from 1, without holes."""
    run: int
    """The run it belongs to."""
    at: datetime
    fact: Fact


def kind_of(fact: Fact) -> str:
    """Name the kind of a fact, as `model.replied`."""
    return _NAMES[type(fact)]


def to_data(fact: Fact) -> dict[str, object]:
    """Turn a fact into plain JSON values."""
    return asdict(fact)


def from_data(kind: str, data: Mapping[str, object]) -> Fact:
    """Turn stored values back into a fact; fields that a later version added or dropped are tolerated."""
    made = KINDS[kind]
    known = {field.name for field in fields(made)}
    # The values were written by `to_data` of the same class.
    return made(**{name: value for name, value in data.items() if name in known})  # type: ignore[arg-type]
