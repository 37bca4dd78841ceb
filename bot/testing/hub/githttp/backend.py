"""Runs `git http-backend` as the CGI program it is."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from bot.testing.hub.git.plumbing import ENVIRONMENT

CHUNK = 65_536
HEAD_END = b"\r\n\r\n"
SCRIPT = Path(__file__).with_name("proc_receive.py")


@lru_cache(maxsize=1)
def backend_path() -> str:
    """Return the path of `git http-backend`."""
    done = subprocess.run(["git", "--exec-path"], env=ENVIRONMENT, capture_output=True, check=True)
    return f"{done.stdout.decode().strip()}/git-http-backend"


def hook_folder(root: Path) -> Path:
    """Return a folder with the `proc-receive` hook, made when absent."""
    folder = root / "hooks"
    hook = folder / "proc-receive"
    if not hook.exists():
        folder.mkdir(parents=True, exist_ok=True)
        hook.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I "{SCRIPT}"\n')
        hook.chmod(0o755)
    return folder


def configuration(settings: Mapping[str, str]) -> dict[str, str]:
    """Return environment variables that set git configuration."""
    pairs = enumerate(settings.items())
    variables = {
        name: text
        for index, (key, value) in pairs
        for name, text in ((f"GIT_CONFIG_KEY_{index}", key), (f"GIT_CONFIG_VALUE_{index}", value))
    }
    return {"GIT_CONFIG_COUNT": str(len(settings)), **variables}


@dataclass(slots=True)
class Head:
    """Status and headers of a CGI answer, and what was read of its body."""

    status: int
    headers: list[tuple[bytes, bytes]]
    rest: bytes


class Backend:
    """One run of the program.

    Args:
        environment: the CGI variables.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = {**ENVIRONMENT, **environment}
        self._process: asyncio.subprocess.Process | None = None
        self._feeder: asyncio.Task[None] | None = None

    async def start(self, body: AsyncIterator[bytes]) -> Head:
        """Start the program, feed it the request body and return the head of its answer."""
        pipe = asyncio.subprocess.PIPE
        self._process = await asyncio.create_subprocess_exec(
            backend_path(), stdin=pipe, stdout=pipe, stderr=asyncio.subprocess.DEVNULL, env=self._environment
        )
        self._feeder = asyncio.create_task(self._feed(body))
        data = b""
        while HEAD_END not in data and (chunk := await self._read()):
            data += chunk
        return _head(data)

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the rest of the body."""
        while chunk := await self._read():
            yield chunk

    async def finish(self) -> None:
        """Wait for the program's end; one that is still running is killed."""
        if self._process is None:
            return
        if self._feeder is not None:
            self._feeder.cancel()
            await asyncio.gather(self._feeder, return_exceptions=True)
        if self._process.stdout is not None and not self._process.stdout.at_eof():
            self._process.kill()
        await self._process.wait()

    async def _read(self) -> bytes:
        assert self._process is not None  # noqa: S101 -- started
        assert self._process.stdout is not None  # noqa: S101 -- a pipe
        return await self._process.stdout.read(CHUNK)

    async def _feed(self, body: AsyncIterator[bytes]) -> None:
        assert self._process is not None  # noqa: S101 -- started
        assert self._process.stdin is not None  # noqa: S101 -- a pipe
        try:
            async for chunk in body:
                self._process.stdin.write(chunk)
                await self._process.stdin.drain()
        except (BrokenPipeError, ConnectionResetError):
            return  # git answered without reading everything
        finally:
            self._process.stdin.close()


def _head(data: bytes) -> Head:
    text, _, rest = data.partition(HEAD_END)
    status, headers = 200, []
    for line in text.split(b"\r\n"):
        name, _, value = line.partition(b": ")
        if name.lower() == b"status":
            status = int(value.split()[0])
        elif name:
            headers.append((name.lower(), value))
    return Head(status if text else 500, headers, rest)
