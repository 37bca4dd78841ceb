"""The server's end of one helper process: its start, its frames and its end."""

import asyncio
import contextlib
import json
import os
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bot.errors import SandboxError, ToolError
from bot.sandbox.confinement import Layout
from bot.sandbox.environment import MARK
from bot.sandbox.helper.frames import LENGTHS, Head, pack
from bot.sandbox.identity import Identity

START_S = 20.0
END_S = 8.0
_MOST_HEAD = 64 << 20
_MOST_BODY = 256 << 20

_MODULES = (
    "frames", "kernel", "files", "changes", "source", "watch", "landlock", "children", "globs", "listing", "seccomp",
    "network", "keepers", "main",
)  # fmt: skip
"""Each after those that it imports."""

_FIRST_WORDS = """\
import json, os, sys, types
if sys.version_info < (3, 9): sys.exit("Python 3.9 or later is needed")
def take(n):
    b = b""
    while len(b) < n:
        c = os.read(0, n - len(b))
        if not c: sys.exit()
        b += c
    return b
modules, settings = json.loads(take(int.from_bytes(take(4), "big")))
for name, text in modules:
    module = sys.modules[name] = types.ModuleType(name)
    exec(compile(text, name, "exec"), module.__dict__)
module.serve(settings)
"""
"""Small, since everybody on the machine sees it in the list of processes; the sources follow on the line."""


def first_frame(settings: Mapping[str, object], *, network: bool) -> bytes:
    """Pack the helper's sources and its settings; what is for some helpers only, where it is needed."""
    folder = Path(__file__).with_name("helper")
    needed = {"network": network, "keepers": settings["parallel"] is True}
    names = [name for name in _MODULES if needed.get(name, True)]
    sources = [(f"bot.sandbox.helper.{name}", (folder / f"{name}.py").read_text("utf-8")) for name in names]
    text = json.dumps([sources, dict(settings)]).encode()
    return len(text).to_bytes(4, "big") + text


@contextlib.contextmanager
def _descriptors(data: Mapping[str, bytes]) -> Iterator[dict[str, int]]:
    """Hold contents in files of memory while a process is started that reads them."""
    held: dict[str, int] = {}
    try:
        for name, text in data.items():
            held[name] = os.memfd_create(name)
            os.write(held[name], text)
            os.lseek(held[name], 0, os.SEEK_SET)
        yield held
    finally:
        for fd in held.values():
            os.close(fd)


@dataclass(frozen=True, slots=True)
class Start:
    """Everything that decides how a helper begins."""

    identity: Identity
    layout: Layout
    environment: Mapping[str, str]
    settings: Mapping[str, object]


def _spawn(
    start: Start, interpreter: str, line: socket.socket, complaints: int, passed: Sequence[int]
) -> subprocess.Popen[bytes]:
    """Start an interpreter that inherits nothing but its end of the line and the descriptors that are passed."""
    identity = start.identity
    with _descriptors(start.layout.data) as held:
        command = [part.format(**held) if part.startswith("{") else part for part in start.layout.command]
        return subprocess.Popen(
            [*command, interpreter, "-I", "-S", "-X", "utf8", "-c", _FIRST_WORDS],
            stdin=line.fileno(),
            stdout=line.fileno(),
            stderr=complaints,
            env=dict(start.environment),
            cwd="/",
            start_new_session=True,
            umask=0o022,
            user=identity.uid if identity.own else None,
            group=identity.gid if identity.own else None,
            extra_groups=[] if identity.own else None,
            pass_fds=[*passed, *held.values()],
        )


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that was sent."""

    number: int
    answer: "asyncio.Future[tuple[Head, bytes]]"
    """As the helper gave it; EOFError where the helper is gone."""


class Channel:
    """One living helper; each answer reaches who asked, in whichever order they come."""

    def __init__(
        self, process: subprocess.Popen[bytes], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._process = process
        self._reader = reader
        self._writer = writer
        self._count = 0
        self._waiting: dict[int, asyncio.Future[tuple[Head, bytes]]] = {}
        self._reading: asyncio.Task[None] | None = None

    @classmethod
    async def open(cls, start: Start, control: socket.socket | None = None) -> "Channel":
        """Start a helper with the first interpreter that its uid can run.

        Args:
            start: how.
            control: the helper's end of a line on which sockets are handed over; None where it has no network.

        Raises:
            SandboxError: none of them works, or the workspace cannot be used by that uid.
        """
        # The number is the same at the other side.
        settings = {**start.settings, "control": control.fileno() if control else -1}
        first = await asyncio.to_thread(first_frame, settings, network=control is not None)
        tried: list[str] = []
        for interpreter in start.layout.interpreters:
            with tempfile.TemporaryFile() as complaints:
                try:
                    return await cls._attempt(start, interpreter, first, complaints.fileno(), control)
                except (OSError, EOFError) as error:
                    complaints.seek(0)
                    words = complaints.read(2000).decode("utf-8", "replace").strip().splitlines()
                    tried.append(f"{interpreter}: {words[-1] if words else str(error) or type(error).__name__}")
        raise SandboxError(
            f"no Python interpreter runs as uid {start.identity.uid} ({'; '.join(tried)}); "
            "install Python 3.9 or later as /usr/bin/python3, readable for everybody"
        )

    @classmethod
    async def _attempt(
        cls, start: Start, interpreter: str, first: bytes, complaints: int, control: socket.socket | None
    ) -> "Channel":
        # A pair of sockets, since the end of a pipe could be opened again by way of /proc.
        ours, theirs = socket.socketpair()
        passed = [control.fileno()] if control else []
        with theirs:
            ours.setblocking(False)  # noqa: FBT003 - the name of the method says it
            reader, writer = await asyncio.open_connection(sock=ours, limit=1 << 20)
            try:
                # In this thread and without a pause: nothing that is cancelled here may leave a process.
                process = _spawn(start, interpreter, theirs, complaints, passed)
            except OSError:
                writer.close()
                raise
        channel = cls(process, reader, writer)
        try:
            writer.write(first)
            async with asyncio.timeout(START_S):
                head, _ = await channel._receive()
        except BaseException:
            await channel.close()
            raise
        if "ready" not in head:
            await channel.close()
            raise SandboxError(f"the workspace cannot be used as uid {start.identity.uid}: {head.get('broken')}")
        channel._reading = asyncio.create_task(channel._read(), name="sandbox-answers")
        return channel

    @property
    def alive(self) -> bool:
        """Whether the helper may still answer."""
        reads = self._reading is not None and not self._reading.done()
        return reads and not self._reader.at_eof() and self._process.poll() is None

    def ask(self, head: Head, body: bytes = b"") -> Asked:
        """Send one request; a helper that is not told to go side by side must have answered the one before."""
        self._count += 1
        asked = Asked(self._count, asyncio.get_running_loop().create_future())
        if self.alive:
            self._waiting[asked.number] = asked.answer
            self._writer.write(pack({**head, "id": asked.number}, body))
        else:
            asked.answer.set_exception(EOFError("the helper is gone"))
        return asked

    def cancel(self, asked: Asked) -> None:
        """Ask the helper to end what it does for a request; the answer comes as ever."""
        self._writer.write(pack({"op": "cancel", "id": asked.number}))

    async def _read(self) -> None:
        """Give each answer to who waits for it, until the helper is gone."""
        try:
            while True:
                self._give(*await self._receive())
        except (EOFError, OSError) as error:
            gone = error if isinstance(error, EOFError) else EOFError(str(error))
        except asyncio.CancelledError:
            gone = EOFError("the helper is closed")
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(gone)

    def _give(self, head: Head, body: bytes) -> None:
        number = head.pop("id", None)
        answer = self._waiting.pop(number, None) if isinstance(number, int) else None
        if answer is None:
            raise EOFError("the helper broke the protocol")
        if not answer.done():
            answer.set_result((head, body))

    async def _receive(self) -> tuple[Head, bytes]:
        head, body = LENGTHS.unpack(await self._reader.readexactly(LENGTHS.size))
        if head > _MOST_HEAD or body > _MOST_BODY:
            raise EOFError("the helper broke the protocol")
        text = await self._reader.readexactly(head)
        try:
            answer = json.loads(text)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise EOFError("the helper broke the protocol")  # noqa: TRY004 - as if it were gone
        return answer, await self._reader.readexactly(body)

    async def close(self) -> None:
        """Close the line, wait until the helper has ended its processes, and end it where it does not."""
        if self._reading is not None:
            self._reading.cancel()
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()
        try:
            await asyncio.to_thread(self._process.wait, END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            await asyncio.to_thread(self._process.wait)


def opened(answer: tuple[Head, bytes]) -> tuple[Head, bytes]:
    """Return an answer that is one.

    Raises:
        ToolError: what the model can mend.
        SandboxError: the helper or its place is broken.
    """
    head, _ = answer
    if "refused" in head:
        raise ToolError(str(head["refused"]))
    if "broken" in head:
        raise SandboxError(f"the workspace's helper failed: {head['broken']}")
    return answer


def left_behind(identity: Identity, mark: str) -> list[int]:
    """Find processes that outlived their helper: all of the uid where nobody else has it, else by their mark."""
    found = []
    wanted = f"{MARK}={mark}".encode()
    for place in Path("/proc").iterdir():
        if not place.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            if identity.alone:
                # The first number is the real uid; a zombie needs no end.
                status = (place / "status").read_text("utf-8", "replace")
                uid = int(status.partition("\nUid:")[2].split()[0])
                mine = uid == identity.uid and "\nState:\tZ" not in status
            else:
                mine = wanted in (place / "environ").read_bytes().split(b"\0")
            if mine:
                found.append(int(place.name))
    return found


def end_left_behind(identity: Identity, mark: str, *, number: int, passes: Sequence[int] = range(50)) -> None:
    """Send a signal to what outlived its helper until nothing is found any more."""
    for _ in passes:
        pids = left_behind(identity, mark)
        if not pids:
            return
        for pid in pids:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)
