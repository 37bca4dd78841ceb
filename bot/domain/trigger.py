"""What happened on GitHub, in our words; payloads become these at the door and go no further."""

from dataclasses import dataclass

from bot.domain.refs import Actor, ThreadRef


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


@dataclass(frozen=True, slots=True)
class Unlabelled:
    """A label was taken away."""

    context: TriggerContext
    label: str


@dataclass(frozen=True, slots=True)
class Commented:
    """A comment was made in the conversation of an issue or pull request."""

    context: TriggerContext
    comment_id: int
    text: str
    via_app: bool
    """Whether a GitHub App wrote it on somebody's behalf."""


@dataclass(frozen=True, slots=True)
class Closed:
    """An issue or pull request was closed."""

    context: TriggerContext


Trigger = Labelled | Unlabelled | Commented | Closed
