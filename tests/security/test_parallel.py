"""Commands side by side, at each level: what shuts one in shuts in all, and none can do more than one alone."""

import asyncio

import pytest

from bot.sandbox.process import MOST, ProcessSandbox
from tests.security.conftest import Answering, Ground, Make, running
from tests.security.test_sandbox import WAYS_OUT
from tests.security.test_way_out import HARM, HELLO, attended

pytestmark = pytest.mark.security

HELPER = "awk '{ print $4 }' /proc/$PPID/stat"
"""Whose child it is that watches over a command."""


@pytest.fixture(params=["own", "ordinary"])
def place(request: pytest.FixtureRequest) -> Ground:
    """Grounds of a uid of its own, and of the server's."""
    ground: Ground = request.getfixturevalue("ground" if request.param == "own" else "ordinary_ground")
    return ground


@pytest.fixture
async def sandbox(make: Make, place: Ground, level: str) -> ProcessSandbox:
    """A started sandbox whose operations go side by side."""
    built = make(place, level, parallel=True)
    await built.start()
    return built


async def test_one_ends_alone(sandbox: ProcessSandbox, place: Ground) -> None:
    """Each waits for the other; what one started is gone with it while the other goes on."""
    first = asyncio.ensure_future(
        sandbox.run("touch a; until [ -e b ]; do sleep 0.02; done; until [ -e go ]; do sleep 0.02; done", timeout_s=30)
    )
    hidden = "(setsid bash -c '(sleep $SLEEP >/dev/null 2>&1 </dev/null &) ; exit') >/dev/null 2>&1"
    second = await sandbox.run(
        f"touch b; until [ -e a ]; do sleep 0.02; done; {hidden}; env -i setsid sleep $SLEEP &", timeout_s=30
    )
    assert second.exit_code == 0
    assert place.harm() == []
    assert not first.done()
    await sandbox.replace("go", b"", expected_sha256=None)
    assert (await first).exit_code == 0


async def test_write_outside(sandbox: ProcessSandbox, place: Ground) -> None:
    """S64: neither of two changes anything beside the work tree."""
    command = WAYS_OUT.replace("SERVERS", str(place.out))
    results = await asyncio.gather(*(sandbox.run(command, timeout_s=20) for _ in range(2)))
    assert place.harm("".join(one.stdout + one.stderr for one in results)) == []


async def test_the_helper_outlives_all(sandbox: ProcessSandbox, place: Ground) -> None:
    """A command may end what watches over itself and its neighbours, but not the helper, and nothing stays."""
    before = (await sandbox.run(HELPER, timeout_s=5)).stdout
    harm = HARM.replace("for s in KILL STOP", "for s in KILL")
    commands = (f"sleep $SLEEP & {harm}; kill -9 -1; sleep $SLEEP", "setsid sleep $SLEEP & sleep 2")
    await asyncio.gather(*(sandbox.run(command, timeout_s=4) for command in commands))
    assert running(place.sleep) == []
    assert (await sandbox.run(HELPER, timeout_s=5)).stdout == before
    assert place.harm() == []


async def test_all_go_out_by_one_door(make: Make, ground: Ground, level: str) -> None:
    """S70: eight that connect at once reach the proxy, and no other address."""
    made: list[Answering] = []

    def proxy() -> Answering:
        made.append(Answering())
        return made[-1]

    sandbox = make(ground, level, proxy=proxy, parallel=True)
    command = f"for i in 1 2 3; do {HELLO}; done; (: > /dev/tcp/127.0.0.1/$PORT) 2>&1"
    async with attended(ground):
        results = await asyncio.gather(*(sandbox.run(command, timeout_s=30) for _ in range(MOST)))
    assert all(one.stdout.startswith("hello" * 3) for one in results)
    assert all("refused" in one.stdout or "unreachable" in one.stdout for one in results)
    assert (len(made), made[0].called) == (1, 3 * MOST)
    assert ground.harm() == []
