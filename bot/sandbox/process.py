"""A sandbox of level `none`: a process of the workspace's uid, and nothing else between it and the machine."""

import asyncio
import os
import secrets
import shutil
import signal
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, cast

from bot.errors import SandboxError
from bot.sandbox.base import Entry, ExecResult, FileContent, Hit
from bot.sandbox.channel import Channel, Identity, end_left_behind
from bot.sandbox.environment import environment as make_environment
from bot.sandbox.helper.frames import Head
from bot.sandbox.limits import ResourceLimits
from bot.sandbox.output import both_ends

_BEYOND_S = 30.0
"""A helper that answers so much later than it should is ended."""
_FLOOD = 128 + signal.SIGKILL


def identify(uid: int | None, gid: int | None) -> Identity:
    """Decide whom the helper acts as; never uid 0.

    Raises:
        SandboxError: it would be root, or this process may not take that uid.
    """
    mine = os.geteuid()
    wanted = mine if uid is None else uid
    group = gid if gid is not None else (os.getegid() if uid is None else uid)
    if wanted == 0 or (group == 0 and mine == 0):
        raise SandboxError(
            "refusing to run tools as uid 0 or gid 0: root in a workspace is root on the machine; "
            "start the server as an ordinary user, or give each workspace a uid of its own"
        )
    if mine not in (wanted, 0):
        raise SandboxError(
            f"uid {mine} cannot start tools as uid {wanted}; start the server as root or leave the workspace's uid out"
        )
    return Identity(wanted, group, own=wanted != mine)


class ProcessSandbox:
    """Acts on one workspace through one helper process; operations go one after the other."""

    def __init__(
        self,
        root: Path,
        *,
        uid: int | None = None,
        gid: int | None = None,
        environment: Mapping[str, str] | None = None,
        limits: ResourceLimits | None = None,
        home: Path | None = None,
    ) -> None:
        """Describe a workspace; nothing is started.

        Args:
            root: the work tree; it and its parents must be open to the uid.
            uid: of the workspace; None where the server's own is meant, which must not be root's.
            gid: of the workspace; None means the same number as `uid`.
            environment: added to the environment of tools.
            limits: what commands may use up.
            home: of the workspace, kept at the end; None makes a passing one.
        """
        self._identity = identify(uid, gid)
        self._root = root
        self._extra = environment or {}
        self._limits = limits or ResourceLimits()
        self._kept_home = home
        self._home: Path | None = None
        self._mark = secrets.token_hex(6)
        self._channel: Channel | None = None
        self._lock = asyncio.Lock()

    @property
    def level(self) -> str:
        """`none`: only the uid stands between a command and the machine."""
        return "none"

    async def start(self) -> None:
        """Start the helper; the first operation does it otherwise.

        Raises:
            SandboxError: the uid can run no Python, or cannot enter the workspace.
        """
        async with self._lock:
            await self._ready()

    async def run(self, command: str, *, timeout_s: float, cwd: str = ".", output_chars: int = 16_000) -> ExecResult:
        """Run `bash -c command` with an environment of our own; nothing that it started survives it."""
        settings: Head = {"command": command, "cwd": cwd, "timeout": timeout_s}
        # Escapes take room and a character has up to four bytes.
        settings |= {"keep": 4 * output_chars, "flood": self._limits.output_bytes}
        answer, body = await self._ask("run", settings, within_s=timeout_s + _BEYOND_S)
        texts = _texts(answer, body, output_chars)
        why = answer["why"]
        if why == "flood":
            texts[1] += f"\n[ended: it printed more than {self._limits.output_bytes:,} bytes]"
        code = None if why == "timeout" else _FLOOD if why == "flood" else _number(answer["code"])
        return ExecResult(code, texts[0], texts[1], float(str(answer["seconds"])), timed_out=why == "timeout")

    async def open(self, path: str, *, limit_bytes: int) -> FileContent:
        """Read a regular file; FIFOs, devices and links that leave the workspace are refused."""
        answer, data = await self._ask("open", {"path": path, "limit": limit_bytes})
        return _content(answer, data)

    async def replace(self, path: str, data: bytes, *, expected_sha256: str | None) -> FileContent:
        """Write a file whole and at once, keeping mode bits; missing folders are made."""
        answer, _ = await self._ask("replace", {"path": path, "expected": expected_sha256}, data)
        return _content(answer, data)

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

    async def close(self) -> None:
        """End the helper and everything it started."""
        async with self._lock:
            await self._drop()
            if self._home is not None and self._kept_home is None:
                # Other hands filled it: a folder that cannot be removed is left.
                await asyncio.to_thread(shutil.rmtree, self._home, ignore_errors=True)
            self._home = None

    async def _ask(
        self, operation: str, settings: Head, body: bytes = b"", *, within_s: float = _BEYOND_S
    ) -> tuple[Head, bytes]:
        """Ask the helper; where the caller is cancelled meanwhile, the command is ended first."""
        async with self._lock:
            channel = await self._ready()
            channel.send({**settings, "op": operation}, body)
            asking = asyncio.ensure_future(channel.answer())
            try:
                async with asyncio.timeout(within_s):
                    return await asyncio.shield(asking)
            except asyncio.CancelledError:
                await self._abandon(channel, asking)
                raise
            except (EOFError, TimeoutError) as error:
                asking.cancel()
                await asyncio.wait([asking])
                await self._drop()
                late = isinstance(error, TimeoutError)
                raise SandboxError(f"the workspace's helper {'does not answer' if late else 'ended'}") from error

    async def _abandon(self, channel: Channel, asking: "asyncio.Future[tuple[Head, bytes]]") -> None:
        """Let the helper end what it does; one that cannot is ended itself."""
        channel.cancel()
        done, _ = await asyncio.wait([asking], timeout=_BEYOND_S)
        if not done or isinstance(asking.exception(), EOFError):
            asking.cancel()
            await self._drop()

    async def _ready(self) -> Channel:
        if self._channel is not None and not self._channel.alive:
            await self._drop()
        if self._channel is None:
            home = await asyncio.to_thread(self._make_home)
            settings = {
                "root": str(self._root),
                "home": str(home),
                "own_uid": self._identity.own,
                "file_bytes": self._limits.readable_bytes,
                "limits": self._limits.rlimits(own_uid=self._identity.own),
            }
            made = make_environment(str(home), self._mark, self._extra)
            self._channel = await Channel.open(self._identity, made, settings)
        return self._channel

    async def _drop(self) -> None:
        channel, self._channel = self._channel, None
        if channel is not None:
            await channel.close()
            await asyncio.to_thread(end_left_behind, self._identity, self._mark, number=signal.SIGKILL)

    def _make_home(self) -> Path:
        if self._home is None:
            self._home = self._kept_home or Path(tempfile.mkdtemp(prefix="issuewright-"))
        for place in (self._home, self._home / "tmp"):
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
            if self._identity.own:
                os.chown(place, self._identity.uid, self._identity.gid, follow_symlinks=False)
        return self._home


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
