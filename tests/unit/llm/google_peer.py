"""A place that speaks just enough HTTP to answer a model with given bytes."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer; the connection is closed behind it."""

    body: bytes
    status: int = 200
    kind: str = "text/event-stream"
    headers: tuple[str, ...] = ()
    hangs: bool = False
    """Whether nothing follows the body, not even its end."""


@dataclass(slots=True)
class Peer:
    """Answers requests in turn and remembers them."""

    url: str
    answers: list[Answer]
    heads: list[str] = field(default_factory=list)
    bodies: list[Json] = field(default_factory=list)
    raws: list[bytes] = field(default_factory=list)
    """The bodies as they came."""


def events(*chunks: object) -> bytes:
    """Spell chunks as the stream is with `alt=sse`."""
    return b"".join(b"data: " + json.dumps(chunk).encode() + b"\r\n\r\n" for chunk in chunks)


@asynccontextmanager
async def serving(*answers: Answer) -> AsyncIterator[Peer]:
    """Serve these answers until the block ends."""
    peer = Peer("", list(answers))
    done = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = next(int(line[15:]) for line in head.splitlines() if line.lower().startswith("content-length:"))
        peer.heads.append(head)
        peer.raws.append(await reader.readexactly(length))
        if peer.raws[-1].startswith(b"{"):
            peer.bodies.append(json.loads(peer.raws[-1]))
        told = peer.answers.pop(0)
        lines = [f"HTTP/1.1 {told.status} X", f"content-type: {told.kind}", "connection: close", *told.headers]
        with contextlib.suppress(ConnectionError):
            writer.write("\r\n".join([*lines, "", ""]).encode() + told.body)
            await writer.drain()
            if told.hangs:
                await done.wait()
            writer.close()
            await writer.wait_closed()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    peer.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield peer
    finally:
        done.set()
        server.close()
        await server.wait_closed()
