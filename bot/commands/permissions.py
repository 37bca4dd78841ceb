"""Who may give which command."""

from bot.domain.command import Command, Help, Status
from bot.domain.refs import Actor
from bot.errors import NotAllowed
from bot.github import comments
from bot.github.base import Permission

WRITERS: frozenset[Permission] = frozenset({"admin", "maintain", "write"})
READERS: frozenset[Permission] = WRITERS | {"triage", "read"}


def allowed(command: Command) -> frozenset[Permission]:
    """Say which roles may give a command: who only looks needs to read, for all else a person has to be a writer."""
    return READERS if isinstance(command, Status | Help) else WRITERS


def check(command: Command, permission: Permission, actor: Actor) -> None:
    """Refuse a command that this person may not give.

    Args:
        command: what is asked.
        permission: the role as GitHub says it now; where GitHub does not answer, there is nothing to check and the
            caller has to refuse.
        actor: who asks.

    Raises:
        NotAllowed: with the line to post.
    """
    if permission not in allowed(command):
        raise NotAllowed(comments.not_allowed(actor.login, command, permission))
