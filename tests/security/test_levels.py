"""S78 to S84: which level is chosen, what it costs, and that two tasks do not meet."""

import asyncio
import contextlib
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from bot.errors import SandboxError
from bot.sandbox.base import Level, Place
from bot.sandbox.bubblewrap import Bubblewrap
from bot.sandbox.choose import choose
from bot.sandbox.confinement import Confinement, Layout
from bot.sandbox.helper.landlock import version
from bot.sandbox.identity import Identity
from bot.sandbox.landlock import Landlock
from bot.sandbox.process import ProcessSandbox
from bot.sandbox.selftest.run import CHECKS, attacked
from bot.sandbox.unconfined import Unconfined
from tests.security.conftest import (
    ATTACKER,
    LEVELS,
    ORDINARY,
    ROOT,
    Ground,
    Make,
    both,
    ordinary_user,
    required,
    running,
    shared,
    unusable,
)  # fmt: skip

pytestmark = pytest.mark.security


@pytest.mark.skipif(not ROOT, reason="only root can be refused as root")
def test_never_root(ground: Ground, level: str) -> None:
    """S78: as root, no sandbox is made that would act as root, and it is said what to do."""
    confinements: dict[str, Confinement] = {"bubblewrap": Bubblewrap(), "landlock": Landlock()}
    for uid, gid in ((None, None), (0, None), (0, 1), (ground.uid, 0)):
        with pytest.raises(SandboxError, match=r"refusing to run tools as uid 0 .*ordinary user.*uid of its own"):
            ProcessSandbox(Place(ground.tree, uid=uid, gid=gid), confinements[level])


class Imitation:
    """Says that it is a level, and is something else."""

    def __init__(self, level: Level, layout: Callable[[Place, Identity, str], Layout]) -> None:
        """Take another's layout."""
        self.level: Level = level
        self._layout = layout

    def layout(self, place: Place, identity: Identity, home: str) -> Layout:
        """Answer as the other."""
        return self._layout(place, identity, home)


def fails(*_: object) -> Layout:
    """Be a program that is not installed."""
    raise SandboxError("`bwrap` is not installed")


def ends(place: Place, identity: Identity, home: str) -> Layout:
    """Be a program that starts and ends at once, as where namespaces are forbidden."""
    made = Unconfined().layout(place, identity, home)
    return Layout(made.root, made.home, made.temporary, ["/bin/false"], interpreters=made.interpreters)


BROKEN: Mapping[str, Callable[..., Layout]] = {"missing": fails, "fails": ends, "leaky": Unconfined().layout}


@pytest.mark.parametrize("way", BROKEN)
async def test_falls_back(reasons: Mapping[str, str], way: str) -> None:
    """S79: a `bubblewrap` that is missing, fails, or shuts nothing in gives way to `landlock`, with why and remedy."""
    if reasons["landlock"]:
        unusable("landlock", reasons["landlock"])
    uid = ATTACKER if ROOT else None
    levels = (Imitation("bubblewrap", BROKEN[way]), Landlock())
    chosen = await choose("auto", "landlock", uid=uid, allowed_none=False, levels=levels)
    assert (chosen.level, chosen.shell) == ("landlock", True)
    assert chosen.missing[0].startswith("bubblewrap: ")
    assert "install `bubblewrap`" in chosen.remedy


FILTERED = """
import asyncio, sys
from bot.sandbox.choose import choose
from bot.sandbox.helper import landlock, seccomp
for name in sys.argv[1].split():
    column = seccomp._ARCHITECTURES[__import__("os").uname().machine][0]
    seccomp._DENIED.update({"a": (444, 444)} if name == "landlock" else {})
from bot.sandbox.helper.kernel import SET_NO_NEW_PRIVS, hide, prctl
hide()
prctl(SET_NO_NEW_PRIVS, 1)
seccomp.install((1, 2, 10, 16), watched=False, shared=False, truncates=True)
chosen = asyncio.run(choose("auto", "landlock", uid=None, allowed_none=False))
print(chosen.level, chosen.shell, len(chosen.missing), "|".join([*chosen.missing, chosen.remedy]))
"""


def filtered(ground: Ground, forbidden: str) -> str:
    """Choose as an ordinary user in a container that forbids namespaces, and more."""
    user = ORDINARY if ROOT else None
    clean = {"PATH": os.environ["PATH"], "PYTHONPATH": str(Path.cwd()), "TMPDIR": str(ground.out)}
    done = subprocess.run(
        [sys.executable, "-c", FILTERED, forbidden], text=True, capture_output=True, env=clean, user=user, group=user,
        extra_groups=None if user is None else [], timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_in_a_container(ground: Ground, reasons: Mapping[str, str]) -> None:
    """S79: where a filter of system calls forbids namespaces, as Docker's does, commands run at `landlock`."""
    if reasons["landlock"]:
        unusable("landlock", reasons["landlock"])
    text = filtered(ground, "")
    assert text.startswith("landlock True "), text
    assert "bubblewrap: " in text


def test_no_level_at_all(ground: Ground) -> None:
    """S80: where Landlock is forbidden too no command is run, and both remedies are named; it is never just `none`."""
    text = filtered(ground, "landlock")
    assert text.startswith("none False 2 bubblewrap: "), text
    assert "landlock: " in text
    assert "install `bubblewrap`" in text
    assert "lsm=" in text


@pytest.mark.parametrize("at_most", range(1, 8))
async def test_versions_of_landlock(reasons: Mapping[str, str], at_most: int) -> None:
    """S81: each version withstands the attacks; a uid of its own lacks nothing, the server's what is documented."""
    if reasons["landlock"]:
        unusable("landlock", reasons["landlock"])
    if at_most > version():
        pytest.skip(f"this kernel has version {version()}")
    if ROOT:
        own = await attacked(Landlock(at_most=at_most), ATTACKER)
        assert (own.usable, own.reason, own.missing) == (True, "", ())
    with ordinary_user(ORDINARY) if ROOT else contextlib.nullcontext():
        verdict = await attacked(Landlock(at_most=at_most), None)
    lacking = ["mode, owner or times of a file outside could be changed"]
    if at_most < 6:
        lacking.insert(0, "a process outside was ended")
    assert (verdict.usable, verdict.reason, verdict.missing) == (True, "", tuple(lacking))


async def test_attacks_have_teeth() -> None:
    """S81: the same attacks succeed where nothing shuts them in."""
    verdict = await attacked(Unconfined(), ATTACKER if ROOT else None)
    assert not verdict.usable
    assert len(verdict.reason.split("; ")) >= 7
    assert len(CHECKS) >= 12


def test_required_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    """S82: where `REQUIRE_SANDBOX` names a level, its absence is an error and no skip."""
    monkeypatch.setenv("REQUIRE_SANDBOX", "bubblewrap")
    with pytest.raises(pytest.fail.Exception, match="REQUIRE_SANDBOX=bubblewrap, but"):
        unusable("bubblewrap", "it is missing")
    with pytest.raises(pytest.skip.Exception):
        unusable("landlock", "it is missing")
    monkeypatch.setenv("REQUIRE_SANDBOX", ",".join(LEVELS))
    assert required() == {*LEVELS}
    monkeypatch.setenv("REQUIRE_SANDBOX", "bwrap")
    with pytest.raises(pytest.UsageError):
        required()


async def test_overhead(sandbox: ProcessSandbox) -> None:
    """S83: a command costs at most 30 ms more than a plain process in the same run (median of 60)."""
    plain, inside = [], []
    for _ in range(60):
        begun = time.perf_counter()
        process = await asyncio.create_subprocess_exec("/bin/bash", "-c", "true", stdin=subprocess.DEVNULL)
        await process.wait()
        between = time.perf_counter()
        await sandbox.run("true", timeout_s=5)
        plain.append(between - begun)
        inside.append(time.perf_counter() - between)
    assert statistics.median(inside) - statistics.median(plain) < 0.030


async def test_side_by_side(make: Make, ground: Ground, other_ground: Ground, level: str) -> None:
    """S84: of another task neither files, processes, memory nor ports are in reach, and nothing of it stays."""
    if not ROOT:
        pytest.skip("two uids of their own take root")
    mine, theirs = make(ground, level), make(other_ground, level)
    other_ground.seed("notes.txt", other_ground.secret)
    held = (
        "umask 077; cp notes.txt /dev/shm/iw-held; python3 -m http.server 0 -b 127.0.0.1 & "
        "sleep $SLEEP & cp notes.txt ~/h; wait"
    )
    task = asyncio.ensure_future(theirs.run(held, timeout_s=30))
    while not (found := running(other_ground.sleep)):  # noqa: ASYNC110 - another process is waited for
        await asyncio.sleep(0.01)
    (pid, *_) = found
    output = await both(
        ground,
        mine,
        f"cat {other_ground.tree}/notes.txt /dev/shm/iw-held /tmp/issuewright-*/h; ls {other_ground.tree} /dev/shm\n"
        f"echo x > {other_ground.tree}/x; kill -9 {pid}; cat /proc/{pid}/environ /proc/{pid}/root/home/agent/h\n"
        f"ps -ef; ipcs -m; (echo > /dev/tcp/127.0.0.1/8000) 2>&1; cat /proc/{pid}/cmdline",
    )
    assert other_ground.secret not in output
    assert "notes.txt\n" not in output
    assert running(other_ground.sleep)
    assert not (other_ground.tree / "x").exists()
    # Arguments are what `landlock` cannot hide.
    assert (other_ground.sleep in output) == (level == "landlock")
    task.cancel()
    await asyncio.wait([task])
    await theirs.close()
    assert shared() == []
