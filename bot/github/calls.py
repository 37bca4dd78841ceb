"""Calls for one token's owner, over REST and GraphQL: manners, patience, translation of what failed."""

from collections.abc import Mapping
from typing import TypeVar
from urllib.parse import quote

import httpx

from bot.domain.refs import RepositoryRef
from bot.errors import GitHubError
from bot.github import payloads
from bot.github.retry import Patience, refuse_errors
from bot.github.transport import Connection, LastingKit, Manners, Query, graphql_url
from bot.redaction import masked

T = TypeVar("T")

_IDEMPOTENT = frozenset({"GET", "HEAD", "PUT", "DELETE"})


class Caller:
    """Makes the calls of one token's owner: manners, patience, translation.

    Args:
        connection: the shared pool.
        manners: how many at a time and how far apart; None for the App's own few calls.
    """

    def __init__(self, connection: Connection, manners: Manners | None) -> None:
        self._connection = connection
        self._manners = manners
        self._patience = Patience(connection.timing)

    def kit(self, auth: httpx.Auth, *, follow: bool = True) -> LastingKit:
        """Make a client that authenticates so, and follows redirects or not."""
        return self._connection.kit(auth, self._manners, follow=follow)

    def bare(self) -> httpx.AsyncClient:
        """Make a client without credentials, for links to other hosts that GitHub gives out."""
        return self._connection.bare()

    async def send(
        self,
        kit: LastingKit,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        json: object = None,
        idempotent: bool = False,
    ) -> httpx.Response:
        """Make one call, again where that is right, and return the answer unread.

        Args:
            kit: from `kit`.
            method: GET, HEAD, PUT and DELETE may be repeated; others only when `idempotent`.
            path: below the API's root, its parts quoted.
            query: after the question mark.
            json: the body; secrets in it are masked here, whoever wrote them.
            idempotent: whether a second effect would be no harm.
        """
        body = masked(json)

        async def attempt() -> httpx.Response:
            answer = await kit.arequest(method, path, params=dict(query or {}), json=body)
            return answer.raw_response

        return await self._patience.persist(attempt, idempotent=idempotent or method in _IDEMPOTENT)

    async def ask(
        self, auth: httpx.Auth, text: str, variables: Mapping[str, object], *, idempotent: bool = True
    ) -> httpx.Response:
        """Send a query or a mutation of GraphQL, and return an answer without errors, unread.

        Args:
            auth: as whom.
            text: the document; one that begins with `query` waits for no write.
            variables: of the document; secrets in them are masked here.
            idempotent: whether a second effect would be no harm.
        """
        reads = self._manners is not None and text.lstrip().startswith("query")
        kit = self._connection.kit(auth, self._manners.reads if self._manners and reads else self._manners)
        body = {"query": text, "variables": masked(dict(variables))}

        async def attempt() -> httpx.Response:
            answer = await kit.arequest("POST", graphql_url(self._connection.base_url), json=body)
            refuse_errors(answer.raw_response, self._connection.timing.clock())
            return answer.raw_response

        return await self._patience.persist(attempt, idempotent=idempotent)


def read(response: httpx.Response, made: type[T]) -> T:
    """Read an answer as one of our types."""
    try:
        return payloads.parse(response.content, made)
    except payloads.BadPayload as error:
        where = f"{response.request.method} {response.request.url.path}"
        raise GitHubError(f"{where}: {error}", status=response.status_code) from error


def part(text: str) -> str:
    """Quote one part of a path."""
    return quote(text, safe="")


def root(repository: RepositoryRef) -> str:
    """Return the path of a repository's routes."""
    return f"/repos/{part(repository.owner)}/{part(repository.name)}"
