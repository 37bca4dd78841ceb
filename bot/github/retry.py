"""What a failed call means, and whether and when it is tried again."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TypeVar

import httpx
from githubkit.exception import GitHubException, RequestError, RequestFailed

from bot.errors import (
    BotError,
    Conflict,
    Forbidden,
    GitHubError,
    GitHubUnavailable,
    NotFound,
    RateLimited,
)
from bot.github.payloads import BadPayload, Failure, parse
from bot.redaction import mask

T = TypeVar("T")

DEADLINE_S = 20.0
"""Seconds within which a call may be tried again; longer waits belong to the durable queue, not into a call."""
ATTEMPTS = 5
SECONDARY_WAIT_S = 60.0
"""GitHub's own advice where a secondary limit names no time.

Source: https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api
"""
_LONGEST_WAIT_S = 86_400.0
_MESSAGE_LIMIT = 500


@dataclass(frozen=True, slots=True)
class Timing:
    """Clock, chance and sleep, so that tests need no waiting."""

    clock: Callable[[], datetime]
    """The wall clock, aware."""
    random: Callable[[], float]
    """Uniform in [0, 1)."""
    sleep: Callable[[float], Awaitable[None]] = field(default=asyncio.sleep)
    monotonic: Callable[[], float] = field(default=time.monotonic)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a failed attempt means."""

    error: BotError
    refused: bool = False
    """Whether it certainly had no effect, so that even a creating POST may be sent again."""
    asked_wait_s: float | None = None
    """Seconds that GitHub asked us to wait."""


class Patience:
    """Tries calls again for one token's owner; while GitHub limits it, nothing is sent."""

    def __init__(self, timing: Timing, *, deadline_s: float = DEADLINE_S) -> None:
        self._timing = timing
        self._deadline_s = deadline_s
        self._closed_until = 0.0

    async def persist(self, call: Callable[[], Awaitable[T]], *, idempotent: bool) -> T:
        """Await the call, and again where that is right.

        Args:
            call: one attempt.
            idempotent: whether a second effect would be no harm.

        Raises:
            RateLimited: GitHub wants us to wait longer than the deadline.
            GitHubError: as judged.
        """
        timing = self._timing
        started = timing.monotonic()
        attempt = 0
        while True:
            await self._wait_for_limit(started)
            try:
                return await call()
            except (GitHubException, GitHubError) as error:
                verdict = judge(error, timing.clock())
                if isinstance(verdict.error, RateLimited):
                    self._closed_until = timing.monotonic() + verdict.error.retry_after_s
                wait_s = self._wait(verdict, attempt, idempotent=idempotent)
                if wait_s is None or timing.monotonic() - started + wait_s > self._deadline_s:
                    if verdict.error is error:
                        raise
                    raise verdict.error from error
            attempt += 1
            await timing.sleep(wait_s)

    def _wait(self, verdict: Verdict, attempt: int, *, idempotent: bool) -> float | None:
        """Return the seconds until the next attempt; None where there is none."""
        if attempt + 1 >= ATTEMPTS or not isinstance(verdict.error, GitHubUnavailable | RateLimited):
            return None
        if not (verdict.refused or idempotent):
            return None
        jittered = min(8.0, 0.5 * 2.0**attempt) * (0.5 + 0.5 * self._timing.random())
        return max(jittered, verdict.asked_wait_s or 0.0)

    async def _wait_for_limit(self, started: float) -> None:
        """Send nothing before a known limit has passed: going on may get the App banned."""
        now = self._timing.monotonic()
        left = self._closed_until - now
        if left <= 0:
            return
        if now - started + left > self._deadline_s:
            raise RateLimited(f"GitHub limits our rate for {left:.0f} more seconds", retry_after_s=left)
        await self._timing.sleep(left)


def judge(error: GitHubException | GitHubError, now: datetime) -> Verdict:
    """Translate what the library raised into our own error, which is taken as it is."""
    if isinstance(error, RateLimited):
        return Verdict(error, refused=True, asked_wait_s=error.retry_after_s)
    if isinstance(error, GitHubError):
        return Verdict(error)
    if isinstance(error, RequestFailed):
        return _judge_answer(error.response.raw_response, now)
    if isinstance(error, RequestError):
        return _judge_failure(error.exc)
    return Verdict(GitHubError(f"a request to GitHub failed: {_reason(error)}"))


def _judge_failure(cause: Exception) -> Verdict:
    if isinstance(cause, BotError):
        # Raised within the authentication, as while minting a token: nothing of the call itself was sent.
        wait_s = cause.retry_after_s if isinstance(cause, RateLimited) else None
        return Verdict(cause, asked_wait_s=wait_s)
    if isinstance(cause, httpx.ProxyError):
        return Verdict(_judge_proxy(cause), refused=True)
    if isinstance(cause, httpx.ConnectError) and "CERTIFICATE_VERIFY_FAILED" in str(cause):
        host = cause.request.url.host
        remedy = "set `network.ca_bundle` to the file with the authority's certificate"
        return Verdict(Forbidden(f"the certificate of {host} is not trusted: {remedy}: {_reason(cause)}"))
    if isinstance(cause, httpx.TransportError):
        refused = isinstance(cause, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)
        return Verdict(GitHubUnavailable(f"no answer to {_where(cause.request)}: {_reason(cause)}"), refused=refused)
    return Verdict(GitHubError(f"a request to GitHub failed: {_reason(cause)}"))


def _judge_proxy(error: httpx.ProxyError) -> GitHubError:
    """Say what to set where the proxy, and not GitHub, refused."""
    where, said = error.request.url.host, str(error)
    if said.startswith("407"):
        return Forbidden(
            f"the proxy wants a login before it connects to {where} ({said}): set "
            "ISSUEWRIGHT_NETWORK__HTTPS_PROXY_LOGIN, or name a file in `network.https_proxy_login_file`"
        )
    if said.startswith("4"):
        return Forbidden(f"the proxy does not let us connect to {where} ({said}): allow that host there")
    return GitHubUnavailable(f"the proxy of `network.https_proxy` did not connect to {where}: {_reason(error)}")


def _judge_answer(response: httpx.Response, now: datetime) -> Verdict:
    status = response.status_code
    message = message_of(response)
    text = f"{_where(response.request)} answered {status}: {message}"
    if status in (403, 429):
        wait_s = _limit_wait(response, message, now)
        if wait_s is not None:
            return Verdict(RateLimited(text, retry_after_s=wait_s, status=status), refused=True, asked_wait_s=wait_s)
    if status >= httpx.codes.INTERNAL_SERVER_ERROR or status == httpx.codes.REQUEST_TIMEOUT:
        return Verdict(GitHubUnavailable(text, status=status), asked_wait_s=retry_after(response, now))
    if status in (404, 410):
        return Verdict(NotFound(text, status=status))
    if status in (401, 403, 451):
        needed = response.headers.get("x-accepted-github-permissions")
        hint = f" (the App needs: {needed})" if needed and status == httpx.codes.FORBIDDEN else ""
        return Verdict(Forbidden(text + hint, status=status))
    if status in (409, 422):
        return Verdict(Conflict(text, status=status))
    return Verdict(GitHubError(text, status=status))


def refuse_errors(response: httpx.Response, now: datetime) -> None:
    """Raise what an answer of GraphQL says went wrong; its status is 200 all the same.

    Source: https://docs.github.com/en/graphql/overview/rate-limits-and-query-limits-for-the-graphql-api
    """
    try:
        errors = parse(response.content, Failure).errors
    except BadPayload as error:
        raise GitHubUnavailable(f"{_where(response.request)} answered no JSON", status=response.status_code) from error
    if not errors:
        return
    message = message_of(response)
    text = f"{_where(response.request)} refused: {message}"
    kinds = {error.type for error in errors if not isinstance(error, str)}
    if "RATE_LIMITED" in kinds or "secondary rate" in message.lower():
        raise RateLimited(text, retry_after_s=_limit_wait(response, message, now) or SECONDARY_WAIT_S)
    if "NOT_FOUND" in kinds:
        raise NotFound(text)
    if kinds & {"FORBIDDEN", "INSUFFICIENT_SCOPES"}:
        raise Forbidden(text)
    if kinds & {"UNPROCESSABLE", "VALIDATION"}:
        raise Conflict(text)
    # Without a kind: a query that is none, or their own failure, for which they always have the same words.
    raise GitHubUnavailable(text) if message.startswith("Something went wrong") else GitHubError(text)


def _limit_wait(response: httpx.Response, message: str, now: datetime) -> float | None:
    """Return the seconds to wait, or None where a 403 is no limit.

    Source: https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api#exceeding-the-rate-limit
    """
    asked = retry_after(response, now)
    if asked is not None:
        return asked
    secondary = "secondary rate" in message.lower() or "abuse detection" in message.lower()
    if response.headers.get("x-ratelimit-remaining") == "0":
        reset = response.headers.get("x-ratelimit-reset", "")
        server = _date(response.headers.get("date")) or now
        left = float(reset) - server.timestamp() if reset.isascii() and reset.isdecimal() else SECONDARY_WAIT_S
        left = min(max(left, 1.0), _LONGEST_WAIT_S)
        return max(left, SECONDARY_WAIT_S) if secondary else left
    if secondary or response.status_code == httpx.codes.TOO_MANY_REQUESTS:
        return SECONDARY_WAIT_S
    return None


def retry_after(response: httpx.Response, now: datetime) -> float | None:
    """Read `Retry-After`, in seconds or as a date; None where there is none that can be read."""
    value = response.headers.get("retry-after", "").strip()
    if value.isascii() and value.isdecimal():
        return min(float(value), _LONGEST_WAIT_S)
    date = _date(value)
    if date is None:
        return None
    server = _date(response.headers.get("date")) or now
    return min(max((date - server).total_seconds(), 0.0), _LONGEST_WAIT_S)


def server_time(response: httpx.Response) -> datetime | None:
    """Read when the server answered, by its own clock."""
    return _date(response.headers.get("date"))


def message_of(response: httpx.Response) -> str:
    """Read GitHub's own words from a refusal."""
    try:
        failure = parse(response.content, Failure)
    except (BadPayload, httpx.StreamError):
        return response.reason_phrase or "no reason given"
    details = [
        detail if isinstance(detail, str) else detail.message or " ".join(filter(None, (detail.field, detail.code)))
        for detail in failure.errors or ()
    ]
    words = "; ".join(filter(None, [failure.message, *details])) or response.reason_phrase
    return mask(" ".join(words.split()))[:_MESSAGE_LIMIT]


def _date(value: str | None) -> datetime | None:
    if not value:
        return None
    try:
        date = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)


def _where(request: httpx.Request) -> str:
    return f"{request.method} {request.url.path}"


def _reason(error: BaseException) -> str:
    return mask(f"{type(error).__name__} {error}".strip())
