"""What happened on GitHub, in our words; payloads become these at the door and go no further."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from bot.domain.refs import Actor, ThreadRef

ReviewState = Literal["APPROVED", "CHANGES_REQUESTED", "COMMENTED", "DISMISSED", "PENDING"]


@dataclass(frozen=True, slots=True)
class TriggerContext:
    """What every trigger carries."""

    event_key: str
    """Names the happening itself, not its delivery: the same for a replay under another delivery id."""
    installation_id: int | None
    """None in GitHub Actions, where the job's token stands in for an installation."""
    actor: Actor | None
    """None where the account was deleted."""
    thread: ThreadRef
    title: str
    body: str
    """The issue's or pull request's own text as of the event; empty where there is none."""
    author: Actor | None
    """Who opened the thread; None where the account was deleted."""


@dataclass(frozen=True, slots=True)
class Labelled:
    """A label was added to an issue or pull request."""

    context: TriggerContext
    label: str
    at: datetime | None = None
    """As of `Commented`."""


@dataclass(frozen=True, slots=True)
class Unlabelled:
    """A label was taken away."""

    context: TriggerContext
    label: str
    at: datetime | None = None
    """As of `Commented`."""


@dataclass(frozen=True, slots=True)
class Commented:
    """A comment was made in the conversation of an issue or pull request."""

    context: TriggerContext
    comment_id: int
    text: str
    via_app: bool
    """Whether a GitHub App wrote it on somebody's behalf."""
    at: datetime | None = None
    """When it happened by GitHub's clock, in whole seconds; None where GitHub did not say."""


@dataclass(frozen=True, slots=True)
class Reviewed:
    """A review of a pull request was submitted; each single comment and answer on a line comes as one too."""

    context: TriggerContext
    review_id: int
    state: ReviewState
    """APPROVED, CHANGES_REQUESTED or COMMENTED."""
    text: str
    """Of the review itself, without its comments on lines; often empty."""
    commit: str | None
    """The head that was looked at."""
    via_app: bool
    at: datetime | None = None
    """As of `Commented`."""


@dataclass(frozen=True, slots=True)
class ReviewDismissed:
    """A review of a pull request counts no more."""

    context: TriggerContext
    review_id: int


@dataclass(frozen=True, slots=True)
class ThreadCommented:
    """A comment was made on a line of a pull request, or an answer to one."""

    context: TriggerContext
    comment_id: int
    """Of a comment on a line: such ids are counted apart from those of the conversation."""
    thread_root_id: int
    """The thread's first comment; its own id where it begins the thread."""
    review_id: int | None
    text: str
    via_app: bool
    path: str
    line: int | None
    """None where the line is no longer in the diff, and for a comment on a whole file."""
    at: datetime | None = None
    """As of `Commented`."""


@dataclass(frozen=True, slots=True)
class Edited:
    """The text of a comment was changed, by its author or by anybody else with the right to: `context.actor` did it."""

    context: TriggerContext
    comment_id: int
    on_line: bool
    """Whether it is a comment on a line, and not one of the conversation; the two are counted apart."""
    text: str
    """As it is now."""
    before: str | None
    """As it was; None where GitHub did not say."""


@dataclass(frozen=True, slots=True)
class Pushed:
    """The head branch of a pull request moved, or was moved back."""

    context: TriggerContext
    head_sha: str
    """Where it stands now."""
    before: str
    """Where it stood; empty where GitHub did not say."""


@dataclass(frozen=True, slots=True)
class Closed:
    """An issue or pull request was closed."""

    context: TriggerContext
    at: datetime | None = None
    """As of `Commented`."""


@dataclass(frozen=True, slots=True)
class CiFinished:
    """Checks of others on a commit came to an end, or one of them did."""

    context: TriggerContext
    """Names the repository alone: its thread has the number 0."""
    head_sha: str
    pulls: Sequence[int]
    """Open pull requests of the repository with this head, as far as GitHub says; of a fork it says none."""
    branches: Sequence[str]
    """Branches on which the commit stands; GitHub names ten at most."""


Trigger = (
    Labelled
    | Unlabelled
    | Commented
    | Reviewed
    | ReviewDismissed
    | ThreadCommented
    | Edited
    | Pushed
    | Closed
    | CiFinished
)
