"""What a trigger asks for, and who may ask."""

from collections.abc import Callable

import pytest

from bot.commands.interpret import interpret
from bot.commands.permissions import allowed, check
from bot.domain.command import Command, Fix, Help, Status, Stop
from bot.domain.refs import Actor, RepositoryRef, ThreadRef
from bot.domain.trigger import Closed, Commented, Labelled, Pushed, Reviewed, Trigger, TriggerContext, Unlabelled
from bot.errors import CommandError, NotAllowed
from bot.github.base import Permission

ADA = Actor(1, "ada")
BOT = Actor(2, "x[bot]", is_bot=True)
THREAD = ThreadRef(RepositoryRef(5, "ada/engine"), 7, "issue")


def context(actor: Actor | None = ADA) -> TriggerContext:
    """Make what every trigger carries."""
    return TriggerContext("key", 77, actor, THREAD, "T", "/agent fix of the issue's own text", ADA)


def said(text: str, actor: Actor | None = ADA, *, via_app: bool = False) -> Commented:
    """Make a comment."""
    return Commented(context(actor), 33, text, via_app)


def reviewed(text: str) -> Reviewed:
    """Make a review."""
    return Reviewed(context(), 34, "COMMENTED", text, "c0ffee", via_app=False)


@pytest.mark.parametrize(
    ("trigger", "command"),
    [
        (Labelled(context(), "agent"), Fix("")),
        (Labelled(context(), "Agent"), Fix("")),
        (Labelled(context(), "agents"), None),
        (Labelled(context(BOT), "agent"), None),
        (Labelled(context(None), "agent"), None),
        (Unlabelled(context(), "agent"), Stop()),
        (Unlabelled(context(BOT), "agent"), Stop()),
        (Unlabelled(context(), "bug"), None),
        (Closed(context()), Stop()),
        (Closed(context(None)), Stop()),
        (Pushed(context(), "c0ffee", "beef"), None),
        (said("/agent fix it"), Fix("it")),
        (said("/agent help"), Help()),
        (said("/agent status"), Status()),
        (said("thanks!"), None),
        (said("/agent fix", BOT), None),
        (said("/agent nonsense", BOT), None),
        (said("/agent fix", None), None),
        (said("/agent fix", via_app=True), None),
    ],
)
def test_what_is_asked(trigger: Trigger, command: Command | None) -> None:
    """Bots and Apps start nothing (S21, S22); whoever ends something ends it."""
    assert interpret(trigger, label="agent", word="/agent") == command


@pytest.mark.parametrize("made", [said, reviewed])
def test_our_name_is_another_word(made: Callable[[str], Trigger]) -> None:
    """Wherever a command may stand, and before what a review says without one."""
    assert interpret(made("@wright fix it"), label="agent", word="/agent", alias="@wright") == Fix("it")
    assert interpret(made("@wright fix it"), label="agent", word="/agent") != Fix("it")


def test_a_person_hears_of_a_typo() -> None:
    """With what they may have meant."""
    with pytest.raises(CommandError, match="Did you mean `/agent stop`"):
        interpret(said("/agent stop1"), label="agent", word="/agent")


ROLES: list[Permission] = ["admin", "maintain", "write", "triage", "read", "none"]


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("command", [Fix(""), Stop(), Status(), Help()])
def test_who_may_what(command: Command, role: Permission) -> None:
    """S14, S15: writers give work and end it; readers may ask how it stands."""
    expected = ROLES.index(role) <= (2 if isinstance(command, Fix | Stop) else 4)
    assert (role in allowed(command)) is expected
    if expected:
        check(command, role, ADA)
        return
    with pytest.raises(NotAllowed, match=r"^`ada` may not use"):
        check(command, role, ADA)
