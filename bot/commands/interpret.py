"""From what happened on GitHub to what was asked for."""

from typing import assert_never

from bot.commands.parser import parse
from bot.domain.command import Command, Fix, Review, Stop
from bot.domain.trigger import (
    CiFinished,
    Closed,
    Commented,
    Edited,
    Labelled,
    Pushed,
    ReviewDismissed,
    Reviewed,
    ThreadCommented,
    Trigger,
    Unlabelled,
)


def interpret(trigger: Trigger, *, label: str, word: str, alias: str = "") -> Command | None:
    """Say what a trigger asks for; None for nothing.

    Bots and Apps start nothing, neither by a label nor by a comment; that something ends may come from anybody.

    Args:
        trigger: what happened.
        label: the label that arms a thread; GitHub's labels differ in more than case.
        word: what a command begins with.
        alias: what it may begin with as well, as `@issuewright`; empty where that is nothing.

    Raises:
        CommandError: a person's comment begins with the word, and what follows cannot be understood.
    """
    actor = trigger.context.actor
    is_person = actor is not None and not actor.is_bot
    match trigger:
        case Labelled():
            return Fix("") if is_person and trigger.label.casefold() == label.casefold() else None
        case Unlabelled():
            return Stop() if trigger.label.casefold() == label.casefold() else None
        case Closed():
            return Stop()
        case Commented() | ThreadCommented() | Reviewed() if is_person and not trigger.via_app:
            said = parse(trigger.text, word) or (parse(trigger.text, alias) if alias else None)
            return said or (_review(trigger) if isinstance(trigger, Reviewed) else None)
        case Commented() | ThreadCommented() | Reviewed() | ReviewDismissed() | Edited() | Pushed() | CiFinished():
            return None
        case _:
            assert_never(trigger)


def _review(trigger: Reviewed) -> Review | None:
    """Say what a review without a command asks for."""
    if trigger.state not in {"CHANGES_REQUESTED", "COMMENTED", "APPROVED"}:
        return None
    return Review(trigger.text, trigger.state == "CHANGES_REQUESTED", trigger.state == "APPROVED")
