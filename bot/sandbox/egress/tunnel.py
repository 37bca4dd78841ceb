"""Bytes between the two ends of a tunnel, counted and timed, and how an end is closed."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence

from bot.sandbox.egress.addresses import Streams
from bot.sandbox.egress.limits import Budget

_CHUNK = 64 << 10
_FLUSH_S = 2.0
"""Seconds that the last bytes of a connection have."""


async def tunnel(
    inside: Streams, outside: Streams, *, up: Sequence[Budget], down: Sequence[Budget], idle_s: float
) -> str:
    """Pass bytes both ways until both ends are done, one of them breaks or nothing moves any more.

    Returns a sentence, without its full stop, where a budget was too small for what came next, of which nothing was
    passed on; else nothing.

    Args:
        inside: towards the sandbox; stays the caller's to close, as does `outside`.
        outside: towards the network.
        up: what each byte from inside to outside is taken from.
        down: the same of the other direction.
        idle_s: seconds without a byte in either direction that end it; an end that takes nothing is idle too.
    """
    loop = asyncio.get_running_loop()
    both: set[asyncio.Task[str]] = set()
    try:
        async with asyncio.timeout(idle_s) as deadline:

            def moved() -> None:
                if not deadline.expired():
                    deadline.reschedule(loop.time() + idle_s)

            both = passing = {
                asyncio.create_task(_pass(inside[0], outside[1], up, moved)),
                asyncio.create_task(_pass(outside[0], inside[1], down, moved)),
            }
            while passing:
                done, passing = await asyncio.wait(passing, return_when=asyncio.FIRST_COMPLETED)
                if spent := next(filter(None, [one.result() for one in done]), ""):
                    return spent
    except OSError:
        # One end broke or was idle, which ends a tunnel like any other end.
        pass
    finally:
        for one in both:
            one.cancel()
        await asyncio.gather(*both, return_exceptions=True)
    return ""


async def _pass(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, budgets: Sequence[Budget], moved: Callable[[], None]
) -> str:
    """Pass bytes one way until their end; return what `tunnel` returns."""
    while data := await reader.read(_CHUNK):
        for budget in budgets:
            if not budget.take(len(data)):
                return f"{budget} are used up"
        writer.write(data)
        await writer.drain()
        moved()
    if writer.can_write_eof():
        writer.write_eof()
    return ""


@contextlib.asynccontextmanager
async def closing(writer: asyncio.StreamWriter) -> AsyncIterator[None]:
    """Close a connection after its last bytes, or at once where the block ends with an exception."""
    try:
        yield
        writer.close()
        with contextlib.suppress(OSError):
            async with asyncio.timeout(_FLUSH_S):
                await writer.wait_closed()
    finally:
        # Nothing where it is closed.
        writer.transport.abort()
