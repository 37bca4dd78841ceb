"""What every noun needs: the lock, the clock, ids, tables, git repositories and the way out for webhooks."""

from __future__ import annotations

import base64
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from bot.testing.hub.errors import not_found
from bot.testing.hub.faults import Faults
from bot.testing.hub.git.history import Git
from bot.testing.hub.limits import Meter
from bot.testing.hub.records import ROLES, App, Installation, Repository, Role, Token, User
from bot.testing.hub.webhooks import Hooks

P = ParamSpec("P")
T = TypeVar("T")
S = TypeVar("S", bound="Core")

FIRST_ID = 1001
"""Ids count up from here, so that none is mistaken for an issue number."""


def locked(method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], T]:
    """Run a method of the state under the state's lock."""

    @wraps(method)
    def guarded(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        with self.lock:
            return method(self, *args, **kwargs)

    return guarded


def wall_clock() -> datetime:
    """Return the time of the machine."""
    return datetime.now(UTC)


class Core:
    """Tables and tools that the nouns share.

    Args:
        root: folder for the bare repositories; made when absent, never deleted.
        clock: returns the hub's time, aware.
    """

    def __init__(self, root: Path, *, clock: Callable[[], datetime] = wall_clock) -> None:
        self.root = root
        self.clock = clock
        self.lock = threading.RLock()
        self.base_url = "http://127.0.0.1"
        self.faults = Faults()
        self.hooks = Hooks(clock=clock, lock=self.lock, next_id=self.next_id)
        self.users: dict[str, User] = {}
        self.repositories: dict[int, Repository] = {}
        self.apps: dict[int, App] = {}
        self.installations: dict[int, Installation] = {}
        self.tokens: dict[str, Token] = {}
        self.nodes: dict[str, object] = {}
        """Whatever has a GraphQL node id."""
        self.meter = Meter(clock)
        self.manifest_codes: dict[str, App] = {}
        """Codes of the manifest flow that were not yet converted."""
        self.log_links: dict[str, tuple[bytes, datetime]] = {}
        """Logs of jobs by the secret in their link, and when the link ends."""
        self._last_id = FIRST_ID - 1

    @property
    def api_url(self) -> str:
        """Root of the REST API, without a slash at the end."""
        return f"{self.base_url}/api/v3"

    def next_id(self) -> int:
        """Return the next id; the same calls give the same ids."""
        with self.lock:
            self._last_id += 1
            return self._last_id

    def now(self) -> datetime:
        """Return the hub's time to the second, as GitHub stores it."""
        return self.clock().replace(microsecond=0)

    def new_ids(self, prefix: str) -> tuple[int, str]:
        """Return an id and its GraphQL node id, such as `I_kwDOAAAD6Q`."""
        number = self.next_id()
        return number, node_id(prefix, number)

    def git(self, repository: Repository) -> Git:
        """Return the git repository behind a repository."""
        return Git(repository.path)

    def app_of(self, user: User) -> App | None:
        """Return the App whose `[bot]` account this is."""
        return next((app for app in self.apps.values() if app.bot is user), None)

    def role(self, repository: Repository, user: User | None) -> Role:
        """Return what a person may do; anybody may read a public repository."""
        floor: Role = "none" if repository.private else "read"
        if user is None:
            return floor
        if user is repository.owner:
            return "admin"
        given = repository.roles.get(user.id, "none")
        return max(floor, given, key=ROLES.index)

    def association(self, repository: Repository, user: User) -> str:
        """Return the `author_association` of a person."""
        if user is repository.owner:
            return "OWNER"
        if repository.roles.get(user.id, "none") != "none":
            return "COLLABORATOR"
        merged = any(i.pull and i.pull.merged_at and i.user is user for i in repository.issues.values())
        return "CONTRIBUTOR" if merged else "NONE"

    @locked
    def node(self, node: str) -> object:
        """Return the record with a GraphQL node id.

        Raises:
            HubError: 404 when there is none.
        """
        if node not in self.nodes:
            raise not_found()
        return self.nodes[node]


def node_id(prefix: str, number: int) -> str:
    """Return the GraphQL node id of a record."""
    return f"{prefix}_kwDO{base64.urlsafe_b64encode(number.to_bytes(6, 'big')).decode()}"
