"""What a person asked for."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fix:
    """Work on the thread: an issue becomes a pull request, a pull request gets a commit."""

    text: str
    """What to do, in the person's words; empty means the issue's own text."""
    model: str | None = None
    """`provider:name` where the person chose one."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Plan the work and wait for people, or change the plan that waits."""

    text: str
    """What to plan, or what to change; empty means the issue's own text."""


@dataclass(frozen=True, slots=True)
class Approve:
    """Let happen what waits for a person: a plan, or a single action."""

    hash: str | None = None
    """The beginning of what was asked for, in small hexadecimal digits; None means what stood there at that moment."""
    always: str = ""
    """A pattern of actions that are allowed from here on in this task; empty for what was asked alone."""
    text: str = ""
    """What is said beside the yes, on further lines: the work hears it."""


@dataclass(frozen=True, slots=True)
class Deny:
    """Do not let happen what waits for a person."""

    hash: str | None
    reason: str
    """For the model; may be empty."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Answer a question about the thread, the code or the plan; nothing is changed, and what waits goes on waiting."""

    text: str


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer what a waiting task asked, so that it goes on."""

    text: str


@dataclass(frozen=True, slots=True)
class Retry:
    """Do what the last run was asked to do once more."""

    fresh: bool = False
    """Whether it begins from the base branch, without what was said and done before."""


@dataclass(frozen=True, slots=True)
class Update:
    """Bring what the base branch has by now into the task's branch; conflicts are for the model."""


@dataclass(frozen=True, slots=True)
class Check:
    """Run the checks on the branch as it stands; no model is asked, and nothing is changed."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Let a task that reached its budget go on with another one."""

    usd: float
    """US dollars, of the further run alone."""


@dataclass(frozen=True, slots=True)
class ChooseModel:
    """Let the task's further runs use another model."""

    name: str
    """`provider:name`."""


@dataclass(frozen=True, slots=True)
class Review:
    """Deal with what a review says; it is no command that anybody writes."""

    text: str
    """Of the review itself."""
    wants_changes: bool
    """Whether it asks for changes, and does not only comment."""
    approves: bool = False
    """Whether it approves: that counts where a plan waits on the pull request."""


@dataclass(frozen=True, slots=True)
class Stop:
    """End the running task, or drop what it waits for; what was done is kept."""


@dataclass(frozen=True, slots=True)
class Status:
    """Say what the task is doing."""


@dataclass(frozen=True, slots=True)
class Help:
    """Say what may be asked."""


Command = (
    Fix
    | Plan
    | Approve
    | Deny
    | Ask
    | Answer
    | Retry
    | Update
    | Check
    | Budget
    | ChooseModel
    | Review
    | Stop
    | Status
    | Help
)


def name_of(command: Command) -> str:
    """Name a command as people write it."""
    return "model" if isinstance(command, ChooseModel) else type(command).__name__.lower()
