"""One REST request and its answer, as handlers see them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar
from urllib.parse import parse_qsl, urlencode

from bot.testing.hub.errors import HubError, not_found
from bot.testing.hub.git.history import Git
from bot.testing.hub.hub import Hub
from bot.testing.hub.identity import Caller
from bot.testing.hub.permissions import ADMIN
from bot.testing.hub.records import ROLES, Issue, Repository, Role, User

T = TypeVar("T")
MOST_PER_PAGE = 100
PER_PAGE = 30
JSON_TYPE = "application/json; charset=utf-8"


@dataclass(slots=True)
class Answer:
    """What a handler returns; `body` is JSON unless it is bytes."""

    body: object = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)

    def encoded(self) -> bytes:
        """Return the bytes of the body."""
        if isinstance(self.body, bytes):
            return self.body
        if self.status == 204:  # noqa: PLR2004 -- No Content
            return b""
        return json.dumps(self.body, separators=(",", ":"), ensure_ascii=False).encode()


@dataclass(slots=True)
class Call:
    """A request that was allowed."""

    hub: Hub
    caller: Caller
    method: str
    path: str
    params: Mapping[str, str]
    query: Mapping[str, str]
    accept: str
    raw: bytes
    found: Repository | None = None

    @property
    def repository(self) -> Repository:
        """The repository of the route."""
        if self.found is None:
            raise not_found()
        return self.found

    @property
    def git(self) -> Git:
        """The git of the route's repository."""
        return self.hub.git(self.repository)

    @property
    def user(self) -> User:
        """Whoever acts."""
        if self.caller.user is None:
            raise HubError(401, "Requires authentication")
        return self.caller.user

    def number(self, name: str) -> int:
        """Return a path parameter as a number.

        Raises:
            HubError: 404 when it is none.
        """
        text = self.params[name]
        if not text.isdecimal():
            raise not_found()
        return int(text)

    def issue(self, name: str = "issue_number") -> Issue:
        """Return the issue or pull request that a path parameter names."""
        return self.hub.issue(self.repository, self.number(name))

    def pull(self) -> Issue:
        """Return the pull request that `pull_number` names.

        Raises:
            HubError: 404 when it is a plain issue.
        """
        issue = self.issue("pull_number")
        if issue.pull is None:
            raise not_found()
        return issue

    def require_author_or(self, author: User, role: Role) -> None:
        """Refuse a person who is neither the author nor has a role; Apps were judged by their permissions.

        Raises:
            HubError: 403.
        """
        if self.caller.kind != "person" or self.user is author:
            return
        if not self.has_role(role):
            raise HubError(403, ADMIN)

    def has_role(self, role: Role) -> bool:
        """Tell whether the caller has a role; an App with write permission counts as having it."""
        if self.caller.kind != "person":
            return True
        return ROLES.index(self.hub.role(self.repository, self.caller.user)) >= ROLES.index(role)

    def paged(
        self, items: Sequence[T], shape: Callable[[T], object], wrap: Callable[[list[object]], object] | None = None
    ) -> Answer:
        """Answer one page of a list, with its `Link` header.

        Args:
            items: all of them.
            shape: makes JSON of one.
            wrap: puts the page into an object.
        """
        size = max(1, min(self._count("per_page", PER_PAGE), MOST_PER_PAGE))
        page = max(1, self._count("page", 1))
        last = max(1, -(-len(items) // size))
        body = [shape(item) for item in items[(page - 1) * size : page * size]]
        links: dict[str, int] = {}
        if page > 1:
            links |= {"prev": min(page - 1, last), "first": 1}
        if page < last:
            links |= {"next": page + 1, "last": last}
        header = ", ".join(f'<{self.link({"page": str(number)})}>; rel="{rel}"' for rel, number in links.items())
        return Answer(wrap(body) if wrap else body, headers={"Link": header} if header else {})

    def link(self, query: Mapping[str, str]) -> str:
        """Return the URL of this call with other query parameters, by repository id as GitHub does."""
        path = self.path
        if self.found is not None and path.startswith("/repos/"):
            path = f"/repositories/{self.found.id}/{path.split('/', 4)[4]}"
        return f"{self.hub.api_url}{path}?{urlencode({**self.query, **query})}"

    def _count(self, name: str, default: int) -> int:
        text = self.query.get(name, "")
        return int(text) if text.isdecimal() else default


def parse_query(raw: str) -> dict[str, str]:
    """Return query parameters, the last of each name."""
    return dict(parse_qsl(raw, keep_blank_values=True))
