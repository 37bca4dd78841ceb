"""The server's side of a sandbox: one helper process for each workspace, shut in by its level."""

import asyncio
import os
import secrets
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, cast

from bot.errors import SandboxError
from bot.sandbox.base import Change, Entry, ExecResult, FileContent, Hit, Level, Place
from bot.sandbox.channel import Asked, Channel, Start, end_left_behind, opened
from bot.sandbox.confinement import Confinement, Layout
from bot.sandbox.environment import environment as make_environment
from bot.sandbox.exit import Exit
from bot.sandbox.helper.frames import Head
from bot.sandbox.identity import identify
from bot.sandbox.limits import ResourceLimits
from bot.sandbox.output import both_ends
from bot.sandbox.unconfined import Unconfined

_BEYOND_S = 30.0
"""A helper that answers so much later than it should is ended."""
_KILLED = 128 + signal.SIGKILL
MOST = 8
"""Requests that are answered side by side, where they may."""


class ProcessSandbox:
    """Acts on one workspace through one helper process; operations go one after the other, unless the place says."""

    def __init__(
        self, place: Place, confinement: Confinement | None = None, *, limits: ResourceLimits | None = None
    ) -> None:
        """Describe a workspace; nothing is started.

        Args:
            place: the workspace.
            confinement: what shuts the helper in; None means that nothing does.
            limits: what commands may use up.

        Raises:
            SandboxError: commands would run as root, or as a uid that this process may not take.
        """
        self._place = place
        self._confinement = confinement or Unconfined()
        self._identity = identify(place.uid, place.gid, alone=place.alone)
        self._limits = limits or ResourceLimits()
        self._home: Path | None = None
        self._mark = secrets.token_hex(6)
        self._channel: Channel | None = None
        self._exit: Exit | None = None
        self._starting = asyncio.Lock()
        self._turn = asyncio.Semaphore(MOST if place.parallel else 1)

    @property
    def level(self) -> Level:
        """What stands between a command and the machine."""
        return self._confinement.level

    @property
    def root(self) -> str:
        """Where commands find the work tree."""
        return self._layout("").root

    async def start(self) -> None:
        """Start the helper; the first operation does it otherwise.

        Raises:
            SandboxError: the uid can run no Python, or cannot enter the workspace.
        """
        await self._ready()

    async def run(self, command: str, *, timeout_s: float, cwd: str = ".", output_chars: int = 16_000) -> ExecResult:
        """Run `bash -c command` with an environment of our own; nothing that it started survives it."""
        settings: Head = {"command": command, "cwd": cwd, "timeout": timeout_s}
        # Escapes take room and a character has up to four bytes.
        settings |= {"keep": 4 * output_chars, "flood": self._limits.output_bytes}
        answer, body = await self._ask("run", settings, within_s=timeout_s + _BEYOND_S)
        texts = _texts(answer, body, output_chars)
        why = str(answer["why"])
        broken = self._broken_limits().get(why)
        code = None if why == "timeout" else _KILLED if broken else _number(answer["code"])
        if words := broken or self._signalled().get(code):
            texts[1] += f"\n[ended: {words}]"
        return ExecResult(code, texts[0], texts[1], float(str(answer["seconds"])), timed_out=why == "timeout")

    async def open(self, path: str, *, limit_bytes: int) -> FileContent:
        """Read a regular file; FIFOs, devices and links that leave the workspace are refused."""
        answer, data = await self._ask("open", {"path": path, "limit": limit_bytes})
        return _content(answer, data)

    async def replace(self, path: str, data: bytes, *, expected_sha256: str | None) -> FileContent:
        """Write a file whole and at once, keeping mode bits; missing folders are made."""
        answer, _ = await self._ask("replace", {"path": path, "expected": expected_sha256}, data)
        return _content(answer, data)

    async def apply(self, changes: Sequence[Change]) -> Sequence[str | None]:
        """Make all of these changes or, where one cannot be made, none; the new SHA-256 of each, None where removed."""
        asked = [
            {
                "path": change.path,
                "expected": change.expected_sha256,
                "mode": change.mode,
                "size": None if change.data is None else len(change.data),
            }
            for change in changes
        ]
        answer, _ = await self._ask("apply", {"changes": asked}, b"".join(change.data or b"" for change in changes))
        return [None if row[0] is None else str(row[0]) for row in _rows(answer)]

    async def delete(self, path: str) -> None:
        """Remove one file or link."""
        await self._ask("delete", {"path": path})

    async def move(self, source: str, target: str) -> None:
        """Rename one file; the target must not exist."""
        await self._ask("move", {"path": source, "target": target})

    async def list(self, pattern: str, *, limit: int) -> tuple[Sequence[Entry], int]:
        """List what is not ignored and matches a glob (`**` spans folders); sorted, and how many there are in all."""
        answer, _ = await self._ask("list", {"pattern": pattern, "limit": limit})
        return [Entry(str(row[0]), _kind(row[1]), _number(row[2])) for row in _rows(answer)], _number(answer["total"])

    async def search(self, pattern: str, *, glob: str | None, limit: int) -> tuple[Sequence[Hit], int]:
        """Find a Perl regular expression in text files that are not ignored; the hits, and how many in all."""
        answer, _ = await self._ask("search", {"pattern": pattern, "glob": glob, "limit": limit})
        return [Hit(str(row[0]), _number(row[1]), str(row[2])) for row in _rows(answer)], _number(answer["total"])

    async def python_complaint(self, source: bytes) -> str | None:
        """Say what Python's compiler has against a source; None where it has nothing, or cannot judge it."""
        answer, _ = await self._ask("python", {}, source)
        return str(answer["complaint"]) or None

    async def close(self) -> None:
        """End the helper and everything it started."""
        async with self._starting:
            await self._end()
            if self._home is not None and self._place.home is None:
                # Other hands filled it, as deep as they liked: a folder that cannot be removed is left.
                argv = ["rm", "-rf", "--", str(self._home)]
                await asyncio.to_thread(subprocess.run, argv, stderr=subprocess.DEVNULL, check=False)
            self._home = None

    async def _ask(
        self, operation: str, settings: Head, body: bytes = b"", *, within_s: float = _BEYOND_S
    ) -> tuple[Head, bytes]:
        """Ask the helper; where the caller is cancelled meanwhile, the command is ended first."""
        async with self._turn:
            channel = await self._ready()
            asked = channel.ask({**settings, "op": operation}, body)
            try:
                async with asyncio.timeout(within_s):
                    return opened(await asyncio.shield(asked.answer))
            except asyncio.CancelledError:
                await self._abandon(channel, asked)
                raise
            except (EOFError, TimeoutError) as error:
                asked.answer.cancel()
                await self._drop(channel)
                late = isinstance(error, TimeoutError)
                raise SandboxError(f"the workspace's helper {'does not answer' if late else 'ended'}") from error

    async def _abandon(self, channel: Channel, asked: Asked) -> None:
        """Let the helper end what it does; one that cannot is ended itself."""
        channel.cancel(asked)
        done, _ = await asyncio.wait([asked.answer], timeout=_BEYOND_S)
        if not done or asked.answer.exception() is not None:
            asked.answer.cancel()
            await self._drop(channel)

    def _broken_limits(self) -> dict[str, str]:
        """Words for the limits that end a command."""
        limits = self._limits
        return {
            "flood": f"it printed more than {limits.output_bytes:,} bytes",
            "memory": f"its processes held more than {limits.memory_bytes >> 20:,} MiB of memory",
            "processes": f"it had more than {limits.processes:,} processes at once",
            "disk": f"there are more than {limits.disk_bytes >> 20:,} MiB or {limits.files:,} files in the workspace",
            "killed": "it, or a command beside it, killed what watched over one of them",
        }

    def _signalled(self) -> dict[int | None, str]:
        """Words for the limits of one process, at which the kernel ends it by a signal of its own."""
        limits = self._limits
        return {
            128 + signal.SIGXCPU: f"a process took more than {limits.cpu_s:,} s of processor time",
            128 + signal.SIGXFSZ: f"a file would have got larger than {limits.file_bytes >> 20:,} MiB",
        }

    def _layout(self, home: str) -> Layout:
        return self._confinement.layout(self._place, self._identity, home)

    async def _ready(self) -> Channel:
        async with self._starting:
            if self._channel is not None and not self._channel.alive:
                await self._end()
            if self._channel is None:
                self._channel = await self._open()
            return self._channel

    async def _open(self) -> Channel:
        home = await asyncio.to_thread(self._make_home)
        layout = self._layout(str(home))
        if self._place.proxy is not None:
            self._exit = await Exit.open(self._place.proxy(), layout.network)
        try:
            self._channel = await Channel.open(self._start(layout), self._exit.theirs if self._exit else None)
            if self._exit is not None:
                await self._exit.begin()
        except BaseException:
            await self._end()
            raise
        return self._channel

    def _start(self, layout: Layout) -> Start:
        place, identity, limits = self._place, self._identity, self._limits
        made = make_environment(layout.home, layout.temporary, self._mark, place.environment, place.programs)
        settings = {
            "root": layout.root,
            "home": layout.home,
            "own_uid": identity.own,
            "alone": layout.alone,
            "file_bytes": limits.readable_bytes,
            "limits": limits.rlimits(),
            "watch": limits.watched(),
            "writable": [str(path) for path in place.writable],
            "readable": list(layout.readable),
            "devices": list(layout.devices),
            "landlock": layout.landlock,
            "seccomp": layout.seccomp,
            "network": layout.network,
            "port": self._exit.port if self._exit else 0,
            "parallel": place.parallel,
        }
        way = self._exit.environment if self._exit else {}
        # Options of a JVM are joined: the proxy's beside the project's.
        both = {name: f"{made[name]} {way[name]}" for name in made.keys() & way.keys() if name.endswith("_OPTS")}
        return Start(identity, layout, {**made, **way, **both}, settings)

    async def _drop(self, channel: Channel) -> None:
        """End a helper, unless somebody who waited beside us has done so."""
        async with self._starting:
            if self._channel is channel:
                await self._end()

    async def _end(self) -> None:
        channel, self._channel = self._channel, None
        way, self._exit = self._exit, None
        if channel is not None:
            await channel.close()
            await asyncio.to_thread(end_left_behind, self._identity, self._mark, number=signal.SIGKILL)
        if way is not None:
            await way.close()

    def _make_home(self) -> Path:
        if self._home is None:
            self._home = self._place.home or Path(tempfile.mkdtemp(prefix="issuewright-"))
        self._own_folder(self._home)
        self._own_folder(self._home / "tmp")
        for name, text in self._place.files.items():
            path = self._home / name
            for parent in reversed(path.relative_to(self._home).parents):
                self._own_folder(self._home / parent)
            path.write_text(text, encoding="utf-8")
            path.chmod(0o644)
        return self._home

    def _own_folder(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self._identity.own:
            os.chown(folder, self._identity.uid, self._identity.gid, follow_symlinks=False)


def _number(value: object) -> int:
    if isinstance(value, int):
        return value
    raise SandboxError("the workspace's helper broke the protocol")


def _rows(answer: Head) -> list[list[object]]:
    rows = answer["rows"]
    # The helper sends nothing else; a wrong row fails where it is used.
    return cast("list[list[object]]", rows) if isinstance(rows, list) else []


def _kind(value: object) -> Literal["file", "directory", "symlink", "other"]:
    match value:
        case "file" | "directory" | "symlink":
            return value
        case _:
            return "other"


def _content(answer: Head, data: bytes) -> FileContent:
    return FileContent(data, _number(answer["size"]), _number(answer["mode"]), str(answer["sha256"]))


def _texts(answer: Head, body: bytes, limit: int) -> list[str]:
    """Cut the body into head and tail of each stream."""
    lengths, totals = answer["lengths"], answer["totals"]
    parts: list[bytes] = []
    at = 0
    for length in lengths if isinstance(lengths, list) else ():
        parts.append(body[at : at + length])
        at += length
    sizes = totals if isinstance(totals, list) else ()
    return [both_ends(parts[2 * index], parts[2 * index + 1], total, limit) for index, total in enumerate(sizes)]
