"""The log of one job of GitHub Actions: downloaded from where GitHub says, within bounds, and made plain text."""

import asyncio
import re
from collections.abc import Iterator

import httpx

from bot.errors import GitHubError, GitHubUnavailable, NotFound
from bot.github import text

LIMIT_BYTES = 8 << 20
"""What is read of a log."""
HEAD_BYTES = 1 << 20
"""Of a longer one: from its beginning, and the rest of the limit from its end, where the failure is."""
DOWNLOAD_S = 60.0
_CHUNK = 64 << 10
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z ?")


async def download(client: httpx.AsyncClient, link: httpx.URL) -> str:
    """Read a log and make it plain.

    Args:
        client: without credentials; it may follow redirects.
        link: where GitHub says that the log is.

    Raises:
        NotFound: it is not there any more.
        GitHubUnavailable: that host does not answer, or takes longer than a minute.
    """
    try:
        async with asyncio.timeout(DOWNLOAD_S):
            parts = await _read(client, link)
    except (httpx.TransportError, TimeoutError) as error:
        # Without the link, which holds a key.
        raise GitHubUnavailable(f"the log could not be downloaded from {link.host}: {type(error).__name__}") from error
    except httpx.HTTPError as error:
        raise GitHubError(f"the log could not be downloaded from {link.host}: {type(error).__name__}") from error
    # Millions of lines take seconds, in which others go on.
    return await asyncio.to_thread(lambda: "\n".join(plain(part) for part in parts))


async def _read(client: httpx.AsyncClient, link: httpx.URL) -> list[bytes]:
    async with client.stream("GET", link) as response:
        _check(response)
        size = response.headers.get("content-length", "")
        total = int(size) if size.isascii() and size.isdecimal() else None
        if total is None or total <= LIMIT_BYTES:
            data, more = await _take(response, LIMIT_BYTES)
            return [data, b"[the rest of the log was not read]"] if more else [data]
        head, _ = await _take(response, HEAD_BYTES)
    start = total - (LIMIT_BYTES - HEAD_BYTES)
    async with client.stream("GET", link, headers={"Range": f"bytes={start}-"}) as response:
        _check(response)
        if response.status_code != httpx.codes.PARTIAL_CONTENT:
            data, _ = await _take(response, LIMIT_BYTES)
            return [data, f"[{total - len(data)} more bytes of the log were not read]".encode()]
        tail, _ = await _take(response, LIMIT_BYTES - HEAD_BYTES)
    # Whole lines: a half one could be taken for something else.
    head, tail = head[: head.rfind(b"\n") + 1 or None], tail[tail.find(b"\n") + 1 :]
    return [head.removesuffix(b"\n"), f"[… {total - len(head) - len(tail)} bytes left out …]".encode(), tail]


def _check(response: httpx.Response) -> None:
    status = response.status_code
    if status in (httpx.codes.NOT_FOUND, httpx.codes.GONE):
        raise NotFound("the log is gone", status=status)
    if status >= httpx.codes.INTERNAL_SERVER_ERROR:
        raise GitHubUnavailable(f"{response.url.host} answered {status}", status=status)
    if not response.is_success:
        raise GitHubError(f"{response.url.host} answered {status}", status=status)


async def _take(response: httpx.Response, limit: int) -> tuple[bytes, bool]:
    """Read so many bytes as they come, undecoded: what is packed could become anything. Says whether there are more."""
    found = bytearray()
    async for chunk in response.aiter_raw(_CHUNK):
        found += chunk
        if len(found) > limit:
            return bytes(found[:limit]), True
    return bytes(found), False


def plain(data: bytes) -> str:
    """Make text of a log: no times, no escape codes, of a line written over only what was left to see."""
    return "\n".join(_lines(data.decode("utf-8", "replace")))


def _lines(whole: str) -> Iterator[str]:
    for line in whole.removeprefix("\ufeff").removesuffix("\n").split("\n"):
        found = _TIME.match(line)
        shown = line[found.end() :] if found else line
        if not shown.isprintable():
            shown = text.clean(shown.rstrip("\r").rpartition("\r")[2])
        yield shown
