"""What a route needs, and GitHub's refusals of those who do not have it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bot.testing.hub.errors import HubError, not_found
from bot.testing.hub.identity import Caller, reaches, sees
from bot.testing.hub.records import ROLES, Repository, Role
from bot.testing.hub.state.apps import LEVELS, Apps

FORBIDDEN = "Resource not accessible by integration"
ADMIN = "Must have admin rights to Repository."


@dataclass(frozen=True, slots=True)
class Need:
    """What a route asks of its caller.

    Args:
        who: `repository` judges by permissions or role in the route's repository; the others by the kind of caller.
        permissions: any one of them is enough for an App.
        level: the level that App needs.
        role: the weakest role of a person.
        apps_only: people may not, as with check runs.
    """

    who: Literal["repository", "app", "installation", "person", "anybody", "nobody"]
    permissions: tuple[str, ...] = ()
    level: Literal["read", "write"] = "read"
    role: Role = "read"
    apps_only: bool = False


APP = Need("app")
INSTALLATION = Need("installation")
PERSON = Need("person")
ANYBODY = Need("anybody")
METADATA = Need("repository", ("metadata",))


def read(*permissions: str) -> Need:
    """Return the need to read with any one of these permissions."""
    return Need("repository", permissions)


def write(*permissions: str, role: Role = "write", apps_only: bool = False) -> Need:
    """Return the need to write with any one of these permissions, or with a role."""
    return Need("repository", permissions, "write", role, apps_only)


def check_kind(need: Need, caller: Caller) -> None:
    """Refuse callers of the wrong kind.

    Raises:
        HubError: 401 or 403.
    """
    if need.who == "app" and caller.kind != "app":
        raise HubError(401, "A JSON web token could not be decoded")
    if need.who != "app" and caller.kind == "app":
        raise HubError(401, "Bad credentials")
    if need.who == "installation" and caller.kind != "installation":
        raise HubError(403, "You must authenticate with an installation access token in order to list repositories.")
    if need.who == "person":
        if caller.kind == "anonymous":
            raise HubError(401, "Requires authentication")
        if caller.kind != "person":
            raise HubError(403, FORBIDDEN)


def check_repository(hub: Apps, need: Need, caller: Caller, repository: Repository) -> None:
    """Refuse a caller who may not do this in a repository.

    Raises:
        HubError: 401, 403 with `X-Accepted-GitHub-Permissions`, or 404.
    """
    if not sees(hub, caller, repository):
        raise not_found()
    if need.level == "read" and not repository.private:
        return
    if caller.kind == "anonymous":
        raise HubError(401, "Requires authentication")
    if caller.kind == "person":
        _check_person(hub, need, caller, repository)
    elif not reaches(hub, caller, repository) or not allows(caller, need):
        raise HubError(403, FORBIDDEN, headers={"X-Accepted-GitHub-Permissions": accepted(need)})


def allows(caller: Caller, need: Need) -> bool:
    """Tell whether a token has one of the permissions at the level needed."""
    levels = (caller.permissions.get(name) for name in need.permissions)
    return any(level and LEVELS.index(level) >= LEVELS.index(need.level) for level in levels)


def accepted(need: Need) -> str:
    """Return what would have been accepted, as GitHub writes it: alternatives joined by semicolons."""
    return "; ".join(f"{name}={need.level}" for name in need.permissions)


def _check_person(hub: Apps, need: Need, caller: Caller, repository: Repository) -> None:
    if need.apps_only:
        raise HubError(403, "You must authenticate via a GitHub App.")
    if ROLES.index(hub.role(repository, caller.user)) < ROLES.index(need.role):
        raise HubError(403, ADMIN)
