"""Who we are to GitHub: the App's own signature, tokens of its installations, or one given token."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol

import httpx
import jwt

from bot.errors import Forbidden, GitHubError, OperatorError
from bot.github.payloads import AccessToken
from bot.github.retry import Timing, server_time
from bot.github.transport import same_origin
from bot.redaction import register_secret

MIN_LIFE = timedelta(minutes=5)
"""A token that lives shorter is replaced before it is used."""
REPLICATION_S = 5.0
"""Seconds after minting in which a 401 may mean that the token has not reached all of GitHub's machines.

Source: https://github.com/octokit/auth-app.js (it tries again for as long)
"""
_REPLICATION_PAUSES_S = (0.5, 1.0, 1.5)
_SKEW_TOLERANCE = timedelta(seconds=5)

API_PERMISSIONS: Mapping[str, str] = {
    "contents": "read",
    "issues": "write",
    "metadata": "read",
    "pull_requests": "write",
}
"""What the API calls need; the token of one call covers one repository."""
GIT_PERMISSIONS: Mapping[str, str] = {"contents": "write", "metadata": "read"}
"""What a push needs; without `workflows`, so GitHub itself refuses a changed workflow that nobody agreed to."""
THREAD_PERMISSIONS: Mapping[str, str] = {"contents": "write", "metadata": "read", "pull_requests": "write"}
"""What resolving a review thread and ending a draft need: both ask for `contents` too, which no page of GitHub says.

Source: https://github.com/github/gh-aw/issues/35726, https://github.com/cli/cli/discussions/6924
"""
PUBLIC_PERMISSIONS: Mapping[str, str] = {"metadata": "read"}


@dataclass(frozen=True, slots=True)
class Scope:
    """What a token is good for; also its key in the cache, so it names the host."""

    base_url: str
    app_id: str
    installation_id: int
    repositories: tuple[int, ...]
    """Numeric ids; empty means all of the installation's."""
    permissions: tuple[tuple[str, str], ...]
    """Sorted."""


@dataclass(frozen=True, slots=True)
class Token:
    """An installation token."""

    value: str
    expires_at: datetime
    minted_at: float
    """Seconds of the monotonic clock."""

    def __repr__(self) -> str:
        return f"Token(expires_at={self.expires_at.isoformat()})"


class Tokens:
    """Mints installation tokens, each once however many ask, and keeps them while they live.

    Args:
        mint: asks GitHub for one; raises GitHubError.
        timing: the clock.
    """

    def __init__(self, mint: Callable[[Scope], Awaitable[AccessToken]], timing: Timing) -> None:
        self._mint = mint
        self._timing = timing
        self._kept: dict[Scope, Token] = {}
        self._pending: dict[Scope, asyncio.Task[Token]] = {}

    async def fetch(self, scope: Scope) -> Token:
        """Return a token that lives for at least five more minutes."""
        kept = self._kept.get(scope)
        if kept is not None and kept.expires_at - self._timing.clock() > MIN_LIFE:
            return kept
        task = self._pending.get(scope)
        if task is None:
            task = asyncio.create_task(self._renew(scope))
            self._pending[scope] = task
            task.add_done_callback(lambda done: self._settle(scope, done))
        # Shielded: others may wait for the same token when this call is cancelled.
        return await asyncio.shield(task)

    def drop(self, scope: Scope, token: Token) -> None:
        """Forget a token that GitHub no longer takes, unless it was replaced already."""
        if self._kept.get(scope) is token:
            del self._kept[scope]

    async def _renew(self, scope: Scope) -> Token:
        minted = await self._mint(scope)
        register_secret(minted.token, passing=True)
        token = Token(minted.token, _expiry(minted.expires_at), self._timing.monotonic())
        now = self._timing.clock()
        self._kept = {key: other for key, other in self._kept.items() if other.expires_at > now}
        self._kept[scope] = token
        return token

    def _settle(self, scope: Scope, task: asyncio.Task[Token]) -> None:
        del self._pending[scope]
        if not task.cancelled():
            # Retrieved, lest asyncio complains when nobody waits any longer.
            task.exception()


class OwnHostAuth(httpx.Auth):
    """An authentication that never leaves GitHub's own host, whatever URL is asked."""

    def __init__(self, base_url: httpx.URL) -> None:
        self.base_url = base_url

    def may_sign(self, request: httpx.Request) -> bool:
        """Tell whether our credentials may go there."""
        return same_origin(request.url, self.base_url)

    def refused_us(self, response: httpx.Response) -> bool:
        """Tell whether GitHub did not take our credentials; another host, after a redirect, never saw them."""
        return response.status_code == httpx.codes.UNAUTHORIZED and self.may_sign(response.request)


class AppAuth(OwnHostAuth):
    """Signs as the App itself; used for the App's own routes and never for a repository's."""

    def __init__(self, base_url: httpx.URL, app_id: str, private_key: str, timing: Timing) -> None:
        super().__init__(base_url)
        self._app_id = app_id
        self._key = private_key
        self._timing = timing
        self._skew = timedelta()

    async def async_auth_flow(self, request: httpx.Request) -> AsyncGenerator[httpx.Request, httpx.Response]:
        """Sign; where GitHub's clock differs from ours, believe GitHub's and sign once more."""
        if not self.may_sign(request):
            yield request
            return
        request.headers["Authorization"] = f"Bearer {self._sign()}"
        response = yield request
        theirs = server_time(response) if self.refused_us(response) else None
        if theirs is None:
            return
        skew = theirs - self._timing.clock()
        if abs(skew - self._skew) > _SKEW_TOLERANCE:
            self._skew = skew
            request.headers["Authorization"] = f"Bearer {self._sign()}"
            yield request

    def _sign(self) -> str:
        """Sign anew each time: it takes a millisecond an hour, and a cache would outlive a replaced key.

        GitHub takes at most ten minutes; a minute of them lies in the past, against a clock that runs ahead.
        """
        now = self._timing.clock() + self._skew
        claims = {"iss": self._app_id, "iat": int(now.timestamp()) - 60, "exp": int(now.timestamp()) + 540}
        try:
            return jwt.encode(claims, self._key, algorithm="RS256")
        except (ValueError, TypeError, jwt.PyJWTError):
            # Without the cause: it may quote the key.
            raise OperatorError("the App's private key cannot be read: it has to be the PEM file of GitHub") from None


class InstallationAuth(OwnHostAuth):
    """Authenticates as an installation, with a token of one scope."""

    def __init__(self, base_url: httpx.URL, tokens: Tokens, scope: Scope, timing: Timing) -> None:
        super().__init__(base_url)
        self._tokens = tokens
        self._scope = scope
        self._timing = timing

    async def async_auth_flow(self, request: httpx.Request) -> AsyncGenerator[httpx.Request, httpx.Response]:
        """Send with a token; on 401 wait for a fresh one to spread, or replace an old one, once."""
        if not self.may_sign(request):
            yield request
            return
        token = await self._tokens.fetch(self._scope)
        request.headers["Authorization"] = f"Bearer {token.value}"
        response = yield request
        if not self.refused_us(response):
            return
        if self._timing.monotonic() - token.minted_at > REPLICATION_S:
            self._tokens.drop(self._scope, token)
            token = await self._tokens.fetch(self._scope)
            request.headers["Authorization"] = f"Bearer {token.value}"
            response = yield request
        for pause_s in _REPLICATION_PAUSES_S:
            if not self.refused_us(response):
                return
            await self._timing.sleep(pause_s)
            response = yield request
        if self.refused_us(response):
            self._tokens.drop(self._scope, token)


class GivenAuth(OwnHostAuth):
    """Authenticates with one given token, as that of a GitHub Actions job."""

    def __init__(self, base_url: httpx.URL, token: str) -> None:
        super().__init__(base_url)
        self._token = token

    async def async_auth_flow(self, request: httpx.Request) -> AsyncGenerator[httpx.Request, httpx.Response]:
        """Send with the token."""
        if self.may_sign(request):
            request.headers["Authorization"] = f"Bearer {self._token}"
        yield request


class Credentials(Protocol):
    """Where a client's authentications come from."""

    def auth(self, repository_id: int | None, permissions: Mapping[str, str] = API_PERMISSIONS) -> httpx.Auth:
        """Return the authentication for calls on one repository; None for what is public."""
        ...

    async def git_token(self, repository_id: int, *, workflows: bool = False) -> str:
        """Return a token for git; one that may change workflows, where that is wanted and can be had."""
        ...


class InstallationCredentials:
    """Tokens of one installation, each for one repository and no more than is needed."""

    def __init__(self, base_url: httpx.URL, app_id: str, installation_id: int, tokens: Tokens, timing: Timing) -> None:
        self._base_url = base_url
        self._app_id = app_id
        self._installation_id = installation_id
        self._tokens = tokens
        self._timing = timing

    def auth(self, repository_id: int | None, permissions: Mapping[str, str] = API_PERMISSIONS) -> httpx.Auth:
        """Return the authentication for calls on one repository; None for what is public."""
        wanted = PUBLIC_PERMISSIONS if repository_id is None else permissions
        return InstallationAuth(self._base_url, self._tokens, self._scope(repository_id, wanted), self._timing)

    async def git_token(self, repository_id: int, *, workflows: bool = False) -> str:
        """Return a token for git, of this repository alone."""
        if workflows:
            # Without the App's permission GitHub refuses the push itself, and names what is missing.
            with suppress(Forbidden):
                wanted = {**GIT_PERMISSIONS, "workflows": "write"}
                return (await self._tokens.fetch(self._scope(repository_id, wanted))).value
        return (await self._tokens.fetch(self._scope(repository_id, GIT_PERMISSIONS))).value

    def _scope(self, repository_id: int | None, permissions: Mapping[str, str]) -> Scope:
        repositories = () if repository_id is None else (repository_id,)
        granted = tuple(sorted(permissions.items()))
        return Scope(str(self._base_url), self._app_id, self._installation_id, repositories, granted)


class GivenCredentials:
    """One given token for everything."""

    def __init__(self, base_url: httpx.URL, token: str) -> None:
        self._auth = GivenAuth(base_url, token)
        self._token = token

    def auth(self, repository_id: int | None, permissions: Mapping[str, str] = API_PERMISSIONS) -> httpx.Auth:
        """Return the one authentication."""
        return self._auth

    async def git_token(self, repository_id: int, *, workflows: bool = False) -> str:
        """Return the one token."""
        return self._token


def _expiry(value: str) -> datetime:
    """Read `expires_at`, with or without milliseconds."""
    try:
        moment = datetime.fromisoformat(value)
    except ValueError as error:
        raise GitHubError(f"a token came with an expiry that is no date: {value!r}") from error
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
