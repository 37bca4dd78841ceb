"""What happened in a task; the progress comment, `--json`, the terminal, the demo and the API read only this."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from typing import Literal

from bot.domain.ceilings import Whose
from bot.domain.task import Intent, Outcome

CheckPhase = Literal["before", "after", "base", "proof", "head"]
"""Before the first edit; after the work; after it with the base's definition of the checks; the work's tests on the old
code; on a branch as it stands, without any work.
"""
Verdict = Literal["shown", "red", "green", "unclear", "not run"]
"""What the work's tests say of the old code: they fail there and pass now; they fail there and here; they pass there,
too; the tests failed there without them; or nobody knows.
"""


@dataclass(frozen=True, slots=True)
class RunQueued:
    """A request was accepted and waits for a worker."""

    requester: str
    request: str
    position: int
    """Runs before it in the queue."""
    intent: Intent = "fix"
    repair: bool = False
    """Whether red checks began it in the requester's place, and the words are the harness's."""


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
    found: bool = False
    """Whether it was found in the project's files, and the repository's file names none."""


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
    tree: str = ""
    """That commit's tree: the same files have the same."""
    unit: str = ""
    """What the next four count, as `tests`; empty where the output does not say."""
    collected: int | None = None
    passed: int | None = None
    failed: int | None = None
    """With those that could not be run."""
    skipped: int | None = None
    found: bool = False
    """Whether it was found in the project's files, and the repository's file names none."""
    remark: str = ""
    """Why what it printed of tests is not counted; empty where nothing speaks against that."""


@dataclass(frozen=True, slots=True)
class DefinitionsChanged:
    """The harness read what the work does to the checks that judge it; that may be nothing."""

    findings: Sequence[Mapping[str, object]]
    """Each as `path`, `line`, `kind` and `words`."""
    restored: Sequence[str]
    """Files that a check of the base's definition takes from the base; empty where there is none."""
    tests: Sequence[str]
    """Tests that are new or say something else now, as `path::name`."""
    complete: bool = True
    """False where the work ended early, so that no check was run on it."""


@dataclass(frozen=True, slots=True)
class ProofRun:
    """The harness put the work's tests on the old code, or says why it did not."""

    verdict: Verdict
    check: str
    """The name of the check that ran them; empty where none did."""
    reason: str = ""
    """Why they were not run, as `the set-up failed`."""


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
    answer: Mapping[str, object] | None = None
    """What is answered in a review thread, as `thread`, `text` and `done`; None where the call answered none."""


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
    hash: str = ""
    """SHA-256 of what is put to the people, as `proposal.hash_of` gives it."""


@dataclass(frozen=True, slots=True)
class QuestionAsked:
    """The model asked the people, and stopped."""

    text: str


@dataclass(frozen=True, slots=True)
class ActionRequested:
    """A call was put to the people, and not made."""

    hash: str
    """Of the request, all 64 digits."""
    tool: str
    shown: str
    """The command, or what else tells people which call it is, in one line."""
    why: str
    """Why people are asked."""
    rule: str
    """The rule of the policy that asks; empty where the model itself does."""
    asked_at: str
    """ISO 8601 with its zone."""


@dataclass(frozen=True, slots=True)
class ActionDecided:
    """A person decided about a call."""

    hash: str
    verdict: Literal["approved", "denied"]
    by: str
    """Login; of several who approved, joined by commas."""
    reason: str = ""
    """Why it was denied, in the person's words."""


@dataclass(frozen=True, slots=True)
class ActionsAllowed:
    """A person allowed all calls of a pattern, in this task from here on."""

    tool: str
    """`run` for commands that begin so; any other for calls that change such paths."""
    pattern: str
    by: str


@dataclass(frozen=True, slots=True)
class ActionCarriedOut:
    """What a person approved was done, once."""

    hash: str
    by: str
    """Who approved it."""
    shown: str
    is_error: bool


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
    merges: str = ""
    """The base branch's commit that it brings in, from which on the work is told apart; empty where it is no merge."""
    put_from: str = ""
    """The commit whose change it is, put on top of what others pushed meanwhile; empty where it is its own."""


@dataclass(frozen=True, slots=True)
class BranchPushed:
    """The commit stands on the remote."""

    branch: str
    sha: str
    workflows: bool = False
    """Whether it holds workflows of GitHub Actions, so that more than we see may be about to begin on it."""


@dataclass(frozen=True, slots=True)
class PullOpened:
    """The pull request stands, or was brought up to date."""

    number: int
    url: str
    updated: bool


@dataclass(frozen=True, slots=True)
class RoundAnswered:
    """The threads of a review were answered."""

    threads: int
    resolved: int


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
    | DefinitionsChanged
    | ProofRun
    | ModelReplied
    | ToolFinished
    | PlanProposed
    | QuestionAsked
    | ActionRequested
    | ActionDecided
    | ActionsAllowed
    | ActionCarriedOut
    | Notice
    | CommitMade
    | BranchPushed
    | PullOpened
    | RoundAnswered
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
    "definitions.changed": DefinitionsChanged,
    "proof.run": ProofRun,
    "model.replied": ModelReplied,
    "tool.finished": ToolFinished,
    "plan.proposed": PlanProposed,
    "question.asked": QuestionAsked,
    "action.requested": ActionRequested,
    "action.decided": ActionDecided,
    "actions.allowed": ActionsAllowed,
    "action.carried_out": ActionCarriedOut,
    "notice": Notice,
    "commit.made": CommitMade,
    "branch.pushed": BranchPushed,
    "pull.opened": PullOpened,
    "round.answered": RoundAnswered,
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
