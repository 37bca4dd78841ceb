"""Commands side by side: each has its own answer, time and end, and nothing of any of them stays."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from bot.errors import SandboxError
from bot.sandbox.base import ExecResult
from bot.sandbox.base import Place as Where
from bot.sandbox.limits import ResourceLimits
from bot.sandbox.process import MOST, ProcessSandbox
from tests.unit.sandbox.test_commands import SURVIVORS

Alive = Callable[[str], list[str]]
WAIT = "until [ -e {name} ]; do sleep 0.02; done"


@pytest.fixture
async def build(place: Any) -> AsyncIterator[Callable[..., ProcessSandbox]]:
    """Make sandboxes whose operations go side by side; all are closed at the end."""
    made: list[ProcessSandbox] = []

    def build(**limits: int) -> ProcessSandbox:
        made.append(ProcessSandbox(Where(place.root, uid=place.uid, parallel=True), limits=ResourceLimits(**limits)))
        return made[-1]

    yield build
    for sandbox in made:
        await sandbox.close()


@pytest.fixture
async def sandbox(build: Callable[..., ProcessSandbox]) -> ProcessSandbox:
    """One of them, started."""
    built = build()
    await built.start()
    return built


def begin(sandbox: ProcessSandbox, command: str, timeout_s: float = 30) -> "asyncio.Task[ExecResult]":
    """Run a command while the test goes on."""
    return asyncio.ensure_future(sandbox.run(command, timeout_s=timeout_s))


async def there(path: Path) -> None:
    """Wait until a command has made a file."""
    async with asyncio.timeout(20):
        while not path.exists():  # noqa: ASYNC110, ASYNC240 - another process makes it
            await asyncio.sleep(0.01)


async def test_all_run_at_once_and_each_gets_its_own_answer(sandbox: ProcessSandbox) -> None:
    """Each waits until all others have begun; exit code and streams are its own."""
    waits = "; ".join(WAIT.format(name=f"begun-{number}") for number in range(4))
    command = "touch begun-{n}; {waits}; echo out {n}; echo err {n} >&2; exit {n}"
    results = await asyncio.gather(*(begin(sandbox, command.format(n=number, waits=waits)) for number in range(4)))
    assert [(one.exit_code, one.stdout, one.stderr) for one in results] == [
        (number, f"out {number}\n", f"err {number}\n") for number in range(4)
    ]


async def test_an_answer_does_not_wait_for_those_that_were_asked_before(sandbox: ProcessSandbox, place: Any) -> None:
    """The second command's answer comes first; files are read, written and listed meanwhile, in one folder each."""
    place.put("sub/x")
    first = asyncio.ensure_future(sandbox.run(f"{WAIT.format(name='../go')}; pwd", timeout_s=30, cwd="sub"))
    assert (await sandbox.run("pwd", timeout_s=30)).stdout == f"{place.root}/sub\n".replace("/sub", "")
    assert [entry.path for entry in (await sandbox.list("**", limit=9))[0]] == ["sub/x"]
    assert not first.done()
    await sandbox.replace("go", b"", expected_sha256=None)
    assert (await first).stdout == f"{place.root}/sub\n"


async def test_lists_and_searches_side_by_side(sandbox: ProcessSandbox, place: Any) -> None:
    """They share a repository of ours, which each of them finds whole."""
    place.put("a/x.txt", b"word\n")
    for _ in range(10):
        found = await asyncio.gather(*(sandbox.search("word", glob=None, limit=9) for _ in range(MOST)))
        listed = await asyncio.gather(*(sandbox.list("**", limit=9) for _ in range(MOST)))
        assert [total for _, total in (*found, *listed)] == [1] * 2 * MOST


async def test_each_has_its_own_time(sandbox: ProcessSandbox, place: Any, alive: Alive) -> None:
    """A command whose time is up is ended with all that it started, however it hid; the one beside it goes on."""
    number = 7_100_000 + os.getpid() * 10
    first = begin(sandbox, f"sleep {number + 1} & {WAIT.format(name='go')}; echo on")
    ways = "\n".join(way.format(n=number) for way in SURVIVORS.values())
    second = await sandbox.run(f"{ways}\ntrap '' TERM\nwhile :; do sleep 0.05; done", timeout_s=1)
    assert (second.timed_out, second.exit_code) == (True, None)
    assert alive(str(number)) == []
    assert alive(f"sleep {number + 1}")
    place.put("go")
    assert (await first).stdout == "on\n"
    assert alive(f"sleep {number + 1}") == []


@pytest.mark.parametrize("way", SURVIVORS)
async def test_survivors(sandbox: ProcessSandbox, place: Any, alive: Alive, way: str) -> None:
    """S75: however a process hides, none is left after the return, though another command still runs."""
    number = 7_200_000 + os.getpid() * 10
    first = begin(sandbox, f"touch begun; {WAIT.format(name='go')}; echo on")
    await there(place.root / "begun")
    assert not (await sandbox.run(SURVIVORS[way].format(n=number), timeout_s=10)).timed_out
    assert alive(str(number)) == []
    place.put("go")
    assert (await first).stdout == "on\n"


async def test_cancel(sandbox: ProcessSandbox, place: Any, alive: Alive) -> None:
    """Cancelling one call ends its command alone."""
    number = 8_100_000 + os.getpid()
    first = begin(sandbox, f"{WAIT.format(name='go')}; echo on")
    for pause in (0.0, 0.15):
        second = begin(sandbox, f"setsid sleep {number} & sleep {number}")
        await asyncio.sleep(pause)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        assert alive(str(number)) == []
    place.put("go")
    assert (await first).stdout == "on\n"


async def test_a_flood_ends_its_own_command(build: Callable[..., ProcessSandbox], place: Any) -> None:
    """S74: what one prints is its own."""
    sandbox = build(output_bytes=1 << 20)
    first = begin(sandbox, f"{WAIT.format(name='go')}; echo on")
    assert "printed more than" in (await sandbox.run("yes", timeout_s=30)).stderr
    place.put("go")
    assert (await first).stdout == "on\n"


async def test_a_workspace_has_one_limit_of_processes(build: Callable[..., ProcessSandbox], alive: Alive) -> None:
    """S73: two commands that keep the limit alone and break it together are both ended, and told so."""
    sandbox = build(processes=60)
    number = 7_300_000 + os.getpid() * 10
    command = f"for i in $(seq 40); do sleep {number} & done; echo begun; wait"
    results = await asyncio.gather(*(sandbox.run(command, timeout_s=20) for _ in range(2)))
    assert {one.exit_code for one in results} == {137}
    assert {one.stdout for one in results} == {"begun\n"}
    assert all("more than 60 processes at once" in one.stderr for one in results)
    assert alive(str(number)) == []


async def test_a_killed_keeper(sandbox: ProcessSandbox, alive: Alive) -> None:
    """A command that kills what watches over it ends those beside it too; all are told, and the next one runs."""
    number = 9_100_000 + os.getpid()
    first = begin(sandbox, f"echo begun; touch begun; setsid sleep {number} & sleep {number}")
    second = begin(sandbox, f"setsid sleep {number} & {WAIT.format(name='begun')}; kill -9 $PPID; sleep {number}")
    for one, printed in ((await first, "begun\n"), (await second, "")):
        assert (one.exit_code, one.stdout) == (137, printed)
        assert "killed what watched over one of them" in one.stderr
    assert alive(str(number)) == []
    assert (await sandbox.run("echo on", timeout_s=5)).stdout == "on\n"


async def test_a_dead_helper(sandbox: ProcessSandbox, alive: Alive) -> None:
    """Where the helper itself is killed, every call is told, nothing is left, and the next call works."""
    number = 9_200_000 + os.getpid()
    kill = "kill -9 $(awk '{ print $4 }' /proc/$PPID/stat)"
    calls = [begin(sandbox, f"setsid sleep {number} & sleep {number}"), begin(sandbox, f"{kill}; sleep {number}")]
    given = await asyncio.gather(*calls, return_exceptions=True)
    assert [str(one) for one in given] == ["the workspace's helper ended"] * 2
    assert alive(str(number)) == []
    results = await asyncio.gather(*(sandbox.run(f"echo {name}", timeout_s=5) for name in "ab"))
    assert [one.stdout for one in results] == ["a\n", "b\n"]


async def test_close_ends_all(sandbox: ProcessSandbox, place: Any, alive: Alive) -> None:
    """Closing waits for nobody."""
    number = 8_300_000 + os.getpid()
    calls = [begin(sandbox, f"touch {name}; setsid sleep {number} & sleep {number}") for name in "ab"]
    for name in "ab":
        await there(place.root / name)
    await sandbox.close()
    for one in calls:
        with pytest.raises(SandboxError, match="ended"):
            await one
    assert alive(str(number)) == []


async def test_one_more_than_may_run_waits(sandbox: ProcessSandbox, place: Any) -> None:
    """Of nine commands eight run."""
    calls = [begin(sandbox, f"touch begun-{n}; {WAIT.format(name='go')}; echo {n}") for n in range(MOST + 1)]
    for n in range(MOST):
        await there(place.root / f"begun-{n}")
    await asyncio.sleep(0.1)
    assert not (place.root / f"begun-{MOST}").exists()
    place.put("go")
    assert [one.stdout for one in await asyncio.gather(*calls)] == [f"{n}\n" for n in range(MOST + 1)]


async def test_nothing_of_many_is_left(sandbox: ProcessSandbox) -> None:
    """S75: after many commands the helper has no child but the keeper that answers, and no descriptor more."""
    look = "helper=$(awk '{ print $4 }' /proc/$PPID/stat); cat /proc/$helper/task/*/children; echo; echo $PPID"
    for _ in range(5):
        await asyncio.gather(*(sandbox.run("sleep 0 & setsid true & true", timeout_s=5) for _ in range(MOST)))
    children, keeper = (await sandbox.run(look, timeout_s=5)).stdout.split("\n")[:2]
    assert children.split() == [keeper]


async def test_descriptors(sandbox: ProcessSandbox) -> None:
    """S67: a command has no line to the server, the helper, or a command beside it."""
    other = begin(sandbox, "sleep 0.3")
    look = (
        "for fd in /proc/self/fd/*; do readlink $fd; done; ls /proc/$PPID/fd /proc/$PPID/environ; cat /proc/$PPID/mem"
    )
    result = await sandbox.run(look, timeout_s=5)
    await other
    assert "socket:" not in result.stdout
    assert result.stderr.count("Permission denied") >= 2


SERVER = """
import asyncio, sys
from pathlib import Path
from bot.sandbox.base import Place as Where
from bot.sandbox.process import ProcessSandbox

async def main():
    sandbox = ProcessSandbox(Where(Path(sys.argv[1]), uid=int(sys.argv[2]) or None, parallel=True))
    await asyncio.gather(*(sandbox.run(command, timeout_s=60) for command in sys.argv[3:]))

asyncio.run(main())
"""


def test_a_killed_server(place: Any, alive: Alive) -> None:
    """S77: within two seconds after the server is killed neither helper, keepers nor commands are left."""
    number = 6_100_000 + os.getpid()
    commands = [f"setsid sleep {number}.{n} >/dev/null 2>&1 & sleep {number}.{n}" for n in (1, 2)]
    argv = [sys.executable, "-c", SERVER, str(place.root), str(place.uid or 0), *commands]
    clean = {"PATH": os.environ["PATH"], "TMPDIR": str(place.base), "PYTHONPATH": str(Path.cwd())}
    server = subprocess.Popen(argv, env=clean)

    def sleeping() -> list[str]:
        return [line for line in alive(str(number)) if line.startswith("sleep ")]

    until = time.monotonic() + 20
    while time.monotonic() < until and len(sleeping()) < 4:
        time.sleep(0.02)
    (helper,) = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()
    assert len(sleeping()) == 4
    server.kill()
    server.wait()
    until = time.monotonic() + 2
    while time.monotonic() < until and (Path(f"/proc/{helper}/cmdline").exists() or alive(str(number))):
        time.sleep(0.02)
    assert alive(str(number)) == []
    assert not Path(f"/proc/{helper}/cmdline").exists()
