"""The connection to GitHub: one pool for the process, and manners."""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from functools import cache

import httpx
from githubkit import GitHub as Kit
from githubkit.auth import BaseAuthStrategy
from githubkit.core import GitHubCore
from githubkit.throttling import BaseThrottler

from bot.errors import OperatorError
from bot.github.retry import Timing, retry_after

MAX_CONCURRENT = 10
"""Requests at a time; GitHub's own limit is 100, Octokit's default is this."""
CONNECT_TIMEOUT_S = 5.0
_WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})


class Manners(BaseThrottler):
    """Few requests at a time for the process; for one token's owner, writes one by one and not too soon.

    Source: https://docs.github.com/en/rest/using-the-rest-api/best-practices-for-using-the-rest-api
    """

    def __init__(self, gate: asyncio.Semaphore, timing: Timing, *, write_interval_s: float) -> None:
        self._gate = gate
        self._timing = timing
        self._write_interval_s = write_interval_s
        self._writing = asyncio.Lock()
        self._wrote_at: float | None = None

    @contextmanager
    def acquire(self, request: httpx.Request) -> Generator[None, None, None]:
        """Refuse: this room is asynchronous."""
        raise NotImplementedError
        yield

    @property
    def reads(self) -> "Manners":
        """The same gate for requests that change nothing, whatever their method, as queries of GraphQL."""
        return Manners(self._gate, self._timing, write_interval_s=0.0)

    @asynccontextmanager
    async def async_acquire(self, request: httpx.Request) -> AsyncGenerator[None, None]:
        """Wait for this request's turn."""
        async with AsyncExitStack() as stack:
            writes = request.method in _WRITES
            if writes:
                await stack.enter_async_context(self._writing)
                await self._pause()
            await stack.enter_async_context(self._gate)
            try:
                yield
            finally:
                if writes:
                    self._wrote_at = self._timing.monotonic()

    async def _pause(self) -> None:
        if self._wrote_at is not None:
            left = self._wrote_at + self._write_interval_s - self._timing.monotonic()
            if left > 0:
                await self._timing.sleep(left)


class FixedAuth(BaseAuthStrategy):
    """Hands the library one of our own authentications."""

    def __init__(self, auth: httpx.Auth) -> None:
        self._auth = auth

    def get_auth_flow(self, github: GitHubCore[BaseAuthStrategy]) -> httpx.Auth:
        """Return it."""
        return self._auth


class LastingKit(Kit[FixedAuth]):
    """The library's client over a pool that outlives its calls.

    The library keeps its HTTP client in a context variable, so that each task that did not enter the context itself
    would make a new one, with a new pool and certificate store, for every call.
    """

    def __init__(self, client: httpx.AsyncClient, throttler: BaseThrottler | None) -> None:
        super().__init__(
            FixedAuth(httpx.Auth()), base_url=client.base_url, http_cache=False, auto_retry=False, throttler=throttler
        )
        self._client = client

    @asynccontextmanager
    async def get_async_client(self) -> AsyncGenerator[httpx.AsyncClient, None]:
        """Lend the lasting client."""
        yield self._client


class Connection:
    """The pool, and where GitHub is.

    Args:
        api_url: as `https://api.github.com`, `https://HOST/api/v3`, or a local one over plain HTTP.
        timing: clock, chance and sleep.
        ca_bundle: file of certificate authorities to trust beside the system's own.
        proxy: URL of a proxy for all requests, with its login; the environment is not asked.
        timeout_s: seconds without progress; the library's own default is none, with which a stalled GitHub stalls a
            task for ever.
        user_agent: GitHub wants one.
    """

    def __init__(
        self,
        api_url: str,
        timing: Timing,
        *,
        user_agent: str,
        timeout_s: float,
        ca_bundle: str | None = None,
        proxy: str | None = None,
    ) -> None:
        self.base_url = httpx.URL(api_url.rstrip("/") + "/")
        self.timing = timing
        self._headers = {"User-Agent": user_agent, "Accept": "application/vnd.github+json"}
        self._timeout = httpx.Timeout(timeout_s, connect=min(timeout_s, CONNECT_TIMEOUT_S))
        trusted = _trust(ca_bundle)
        through = httpx.Proxy(proxy, ssl_context=trusted if proxy.startswith("https:") else None) if proxy else None
        self._transport = httpx.AsyncHTTPTransport(verify=trusted, proxy=through)

    def kit(self, auth: httpx.Auth, throttler: BaseThrottler | None = None, *, follow: bool = True) -> LastingKit:
        """Make a client that authenticates so, and follows redirects or not; it shares the pool, needs no closing."""
        client = httpx.AsyncClient(
            base_url=self.base_url,
            auth=auth,
            headers=self._headers,
            timeout=self._timeout,
            follow_redirects=follow,
            transport=self._transport,
            event_hooks={"response": [self._mend]},
        )
        return LastingKit(client, throttler)

    def bare(self) -> httpx.AsyncClient:
        """Make a client without credentials over the same pool, which takes nothing packed; it needs no closing."""
        headers = {"User-Agent": self._headers["User-Agent"], "Accept-Encoding": "identity"}
        return httpx.AsyncClient(
            headers=headers, timeout=self._timeout, follow_redirects=True, max_redirects=3, transport=self._transport
        )

    async def close(self) -> None:
        """Give back the connections."""
        await self._transport.aclose()

    async def _mend(self, response: httpx.Response) -> None:
        """Make headers readable over which the library raises a bare ValueError: dates, nonsense, huge numbers."""
        if "retry-after" in response.headers:
            seconds = retry_after(response, self.timing.clock())
            del response.headers["retry-after"]
            if seconds is not None:
                response.headers["retry-after"] = str(int(-(-seconds // 1)))
        reset = response.headers.get("x-ratelimit-reset", "0")
        if not (reset.isascii() and reset.isdecimal() and len(reset) < len("100000000000")):
            del response.headers["x-ratelimit-reset"]


@cache
def _trust(ca_bundle: str | None) -> ssl.SSLContext:
    """Load whom to trust, once: it takes tens of milliseconds and megabytes."""
    # Not the library's own list: a company's authority is in the system's.
    context = ssl.create_default_context()
    if ca_bundle is not None:
        try:
            context.load_verify_locations(cafile=ca_bundle)
        except (OSError, ssl.SSLError) as error:
            raise OperatorError(f"the certificates in `{ca_bundle}` cannot be read: {error}") from error
    return context


def same_origin(first: httpx.URL, second: httpx.URL) -> bool:
    """Tell whether credentials for one may go to the other."""
    return (first.scheme, first.host, first.port) == (second.scheme, second.host, second.port)


def graphql_url(base_url: httpx.URL) -> httpx.URL:
    """Derive where GraphQL is from where REST is: beside `/api/v3` of a server of one's own, else below the root."""
    path = base_url.path.rstrip("/")
    beside = path.removesuffix("/v3") if path.endswith("/api/v3") else path
    return base_url.copy_with(path=f"{beside}/graphql")


def web_url(api_url: str) -> str:
    """Derive where people and git go from where the API is."""
    url = httpx.URL(api_url)
    path = url.path.rstrip("/").removesuffix("/api/v3").removesuffix("/api")
    host = url.host.removeprefix("api.") if url.host == "api.github.com" or url.host.endswith(".ghe.com") else url.host
    return str(url.copy_with(host=host, path=path or "/", query=None)).rstrip("/")


Query = Mapping[str, str | int]
