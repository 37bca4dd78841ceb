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
class Answer:
    """Answer what a waiting task asked, so that it goes on."""

    text: str


@dataclass(frozen=True, slots=True)
class Stop:
    """End the running task, or drop what it waits for; what was done is kept."""


@dataclass(frozen=True, slots=True)
class Status:
    """Say what the task is doing."""


@dataclass(frozen=True, slots=True)
class Help:
    """Say what may be asked."""


Command = Fix | Answer | Stop | Status | Help
