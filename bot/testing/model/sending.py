"""Send a reply piece by piece, at its pace and with its faults; the same for every wire."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from bot.testing.model.reply import Fault, Pace

GARBAGE = b"<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>"


class Played(Response):
    """A body sent piece by piece; `complete=False` leaves it unfinished, which makes uvicorn drop the connection."""

    def __init__(self, frames: AsyncIterator[bytes], headers: Mapping[str, str], *, complete: bool) -> None:
        super().__init__()
        self.raw_headers = [(name.encode(), value.encode()) for name, value in headers.items()]
        self._frames = frames
        self._complete = complete

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until the end or until the client has gone."""
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        sending = asyncio.ensure_future(self._send(send))
        leaving = asyncio.ensure_future(_left(receive))
        try:
            done, _ = await asyncio.wait((sending, leaving), return_when=asyncio.FIRST_COMPLETED)
            if sending in done:
                await sending
        finally:
            sending.cancel()
            leaving.cancel()

    async def _send(self, send: Send) -> None:
        async for frame in self._frames:
            await send({"type": "http.response.body", "body": frame, "more_body": True})
        if self._complete:
            await send({"type": "http.response.body", "body": b"", "more_body": False})


async def streamed(
    events: Sequence[tuple[bytes, bool]], pace: Pace, fault: Fault | None, broken: bytes
) -> AsyncIterator[bytes]:
    """Yield a stream until its fault, if it has one.

    Args:
        events: bytes of each, and whether it is a delta and waits for `pace.chunk_s`.
        pace: how fast.
        fault: what happens after `fault.after` events, before the last one at the latest.
        broken: the event that a `stream_error` sends.
    """
    if fault is not None and fault.kind == "garbage":
        yield GARBAGE
        return
    for number, (event, is_delta) in enumerate(events):
        if fault is not None and number == min(fault.after, len(events) - 1):
            if fault.kind in ("stream_error", "bad_json", "drop"):
                yield {"stream_error": broken, "bad_json": _torn(event)}.get(fault.kind, b"")
                return
            await asyncio.sleep(fault.seconds if fault.kind == "stall" else 0)
        if is_delta:
            await asyncio.sleep(pace.chunk_s)
        yield event


async def whole(data: bytes, fault: Fault | None) -> AsyncIterator[bytes]:
    """Yield a body that is no stream, with the same faults: half of it for `drop` and `bad_json`."""
    kind = None if fault is None else fault.kind
    if fault is not None and kind == "stall":
        await asyncio.sleep(fault.seconds)
    yield {"garbage": GARBAGE, "drop": data[: len(data) // 2], "bad_json": data[: len(data) // 2]}.get(kind or "", data)


def _torn(event: bytes) -> bytes:
    """Return an event with half of its data: no JSON, but whole as an event."""
    name, data, rest = event.partition(b"data: ")
    return name + data + rest[: len(rest) // 2].rstrip() + b"\n\n"


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
