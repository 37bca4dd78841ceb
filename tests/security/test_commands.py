"""S61: no line of the corpus does harm outside a sandbox, and most of them do where nothing shuts them in."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.sandbox.process import ProcessSandbox
from tests.security.conftest import Answering, Ground, Make

pytestmark = [pytest.mark.security, pytest.mark.timeout(300)]

CORPUS = Path(__file__).with_name("corpus") / "commands.txt"
LEAST = 120
LEAST_THAT_HURT = 90
WITHIN_S = 8.0
_NETWORK = (
    "$PORT",
    "$UDP",
    "$SOCK",
    "$DGRAM",
    '"PORT"',
    '"UDP"',
    '"SOCK"',
    '"DGRAM"',
    "ABSTRACT",
    "env.PORT",
    "(PORT)",
)


def corpus() -> list[str]:
    """Read the commands."""
    return [line for line in CORPUS.read_text("utf-8").splitlines() if line and not line.startswith("#")]


@contextlib.asynccontextmanager
async def attended(ground: Ground) -> AsyncIterator[None]:
    """Answer whoever calls, meanwhile."""
    task = asyncio.create_task(ground.contacts.attend())
    try:
        yield
    finally:
        task.cancel()


async def hurt(sandbox: ProcessSandbox, ground: Ground, lines: list[str]) -> dict[str, list[str]]:
    """Run each line and tell what those did that did harm."""
    found = {}
    async with attended(ground):
        for line in lines:
            ground.renew()
            assert ground.victim is not None
            result = await sandbox.run(f"export VICTIM={ground.victim.pid}\n{line}", timeout_s=WITHIN_S)
            if done := ground.harm(result.stdout + result.stderr):
                found[line] = done
    return found


def test_size_of_the_corpus() -> None:
    """There are many lines, and none twice."""
    assert len(corpus()) >= LEAST
    assert len(set(corpus())) == len(corpus())


async def test_bypasses(sandbox: ProcessSandbox, ground: Ground) -> None:
    """S61: none of them writes, reads, reaches, gains, ends or leaves anything outside."""
    assert await hurt(sandbox, ground, corpus()) == {}
    assert (await sandbox.run("echo on", timeout_s=5)).stdout == "on\n"


async def test_bypasses_of_an_ordinary_user(ordinary: ProcessSandbox, ordinary_ground: Ground) -> None:
    """S61: nor where the server's own uid is all that commands have."""
    assert await hurt(ordinary, ordinary_ground, corpus()) == {}


async def test_bypasses_of_a_proxy(make: Make, ground: Ground, level: str) -> None:
    """S61, S70: neither does the network open to anything but the proxy where there is one."""
    lines = [line for line in corpus() if any(word in line for word in _NETWORK)]
    assert len(lines) >= 30
    sandbox = make(ground, level, proxy=Answering)
    assert await hurt(sandbox, ground, lines) == {}


async def test_teeth(make: Make, throwaway_ground: Ground) -> None:
    """The corpus can hurt: most lines do, with the uid alone between them and the machine."""
    sandbox = make(throwaway_ground, "none")
    found = await hurt(sandbox, throwaway_ground, corpus())
    assert len(found) >= LEAST_THAT_HURT, f"only {len(found)} of {len(corpus())} lines do harm with the tools here"
