"""Real servers for the tests of the egress proxy, on loopback."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any

from bot.sandbox.egress.addresses import Address, Streams
from bot.sandbox.egress.allowed import Allowed, Decision
from bot.sandbox.egress.proxy import EgressProxy

LOOPBACK = "127.0.0.1"


@dataclass
class Names:
    """A resolver: what each name stands for, the last answer again and again, and what was asked."""

    answers: dict[str, list[Sequence[str]]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    async def resolve(self, host: str, port: int) -> list[Address]:
        """Answer as `SystemResolver` does."""
        self.asked.append(host)
        answers = self.answers.get(host)
        if not answers:
            raise OSError("no such name")
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        return [ip_address(address) for address in answer]


@dataclass
class Origin:
    """A TCP server that hands each connection to a talk."""

    port: int = 0
    connections: int = 0
    received: int = 0
    """Bytes, where the talk counts them."""


Talk = Callable[[Origin, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def echo(origin: Origin, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send back what comes, until its end."""
    while data := await reader.read(65536):
        origin.received += len(data)
        writer.write(data)
        await writer.drain()


async def swallow(origin: Origin, reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
    """Take what comes."""
    while data := await reader.read(65536):
        origin.received += len(data)


@contextlib.asynccontextmanager
async def origin(talk: Talk = echo, host: str = LOOPBACK, **options: Any) -> AsyncIterator[Origin]:
    """Serve on loopback."""
    made = Origin()
    talking: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            await talk(made, reader, writer)
        writer.close()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        made.connections += 1
        task = asyncio.create_task(serve(reader, writer))
        talking.add(task)
        task.add_done_callback(talking.discard)

    server = await asyncio.start_server(accept, host, made.port, **options)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()
        for task in list(talking):
            task.cancel()
        await asyncio.gather(*talking, return_exceptions=True)
        await server.wait_closed()


@dataclass
class Served:
    """A running proxy."""

    proxy: EgressProxy
    port: int
    decisions: list[Decision]

    @property
    def url(self) -> str:
        """As clients are told it."""
        return f"http://{LOOPBACK}:{self.port}"


@contextlib.asynccontextmanager
async def serving(allowed: Allowed, **options: Any) -> AsyncIterator[Served]:
    """Run a proxy on loopback, which takes any address unless told otherwise."""
    decisions: list[Decision] = []
    options.setdefault("acceptable", lambda _: True)
    proxy = EgressProxy(allowed, decided=decisions.append, **options)
    listener = socket.create_server((LOOPBACK, 0))
    port = listener.getsockname()[1]
    await proxy.start(listener)
    try:
        yield Served(proxy, port, decisions)
    finally:
        await proxy.close()


@dataclass
class Answer:
    """What the proxy said, and the connection behind it."""

    status: int
    head: str
    streams: Streams

    async def rest(self) -> bytes:
        """Read to the end and close."""
        try:
            return await self.streams[0].read()
        except OSError:
            return b""
        finally:
            self.streams[1].close()

    async def talk(self, data: bytes) -> bytes:
        """Send and read as much back."""
        self.streams[1].write(data)
        return await self.streams[0].readexactly(len(data))

    def close(self) -> None:
        """Close the connection."""
        self.streams[1].close()


async def send(served: Served, head: bytes) -> Answer:
    """Send a request's head and read the head of the answer; the status is 0 where there is none."""
    streams = await asyncio.open_connection(LOOPBACK, served.port)
    streams[1].write(head)
    try:
        said = (await streams[0].readuntil(b"\r\n\r\n")).decode("latin-1")
    except (OSError, asyncio.IncompleteReadError):
        return Answer(0, "", streams)
    return Answer(int(said.split()[1]), said, streams)


async def connect(served: Served, authority: str) -> Answer:
    """Ask for a tunnel."""
    return await send(served, f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n".encode())


async def until(condition: Callable[[], bool], timeout_s: float = 10) -> None:
    """Wait for a state."""
    async with asyncio.timeout(timeout_s):
        while not condition():  # noqa: ASYNC110 - the state is not ours to signal
            await asyncio.sleep(0.005)
