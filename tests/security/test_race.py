"""Folders that turn into links while they are used: nothing outside is written, removed or read."""

import ctypes
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path

import pytest

from bot.errors import WorkspaceError
from bot.sandbox.helper.files import delete, move, replace
from bot.sandbox.helper.frames import Refusal
from bot.workspace.worktree import GitWorkspace
from tests.security.poisoned import Arena, arena, own, source
from tests.unit.workspace.helpers import AT, git, opened

pytestmark = pytest.mark.security

TRIES = 40_000
LIMIT = 1 << 20
_FORK = multiprocessing.get_context("fork")
_AT_CWD = -100
_EXCHANGE = 2


@pytest.fixture(name="place")
def arena_fixture() -> Iterator[Arena]:
    """A folder with an outside that everybody may write to."""
    with arena() as made:
        outside = made.base / "outside"
        outside.mkdir()
        outside.chmod(0o777)
        yield made


@pytest.fixture
def root(place: Arena) -> Path:
    """A workspace with a folder `good` and a link `evil` that leads outside."""
    folder = place.base / "tree"
    trap(folder, place.base / "outside")
    return folder


def trap(folder: Path, outside: Path) -> None:
    """Put a folder and a link beside each other."""
    (folder / "good").mkdir(parents=True)
    (folder / "evil").symlink_to(outside)
    own(folder)


def swap(folder: str) -> None:
    """Exchange folder and link until we are ended; there is no moment without either."""
    rename = ctypes.CDLL(None).renameat2
    good, evil = os.fsencode(f"{folder}/good"), os.fsencode(f"{folder}/evil")
    while True:
        rename(_AT_CWD, good, _AT_CWD, evil, _EXCHANGE)


@contextmanager
def swapping(folder: Path, uid: int | None) -> Iterator[None]:
    """Swap beside us, as the workspace's own user."""
    process = _FORK.Process(target=become, args=(uid, swap, str(folder)))
    process.start()
    try:
        yield
    finally:
        process.kill()
        process.join()


def become(uid: int | None, act: Callable[..., None], *arguments: object) -> None:
    """Do something as an unprivileged user."""
    if uid is not None:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    act(*arguments)


def attempt(act: Callable[[str, int], None], root: str, done: "Synchronized[int]", tries: int) -> None:
    """Try again and again; count what was not refused."""
    count = 0
    for number in range(tries):
        with suppress(Refusal, OSError):
            act(root, number)
            count += 1
    done.value = count


def raced(root: Path, act: Callable[[str, int], None], tries: int = TRIES) -> int:
    """Race an act against the swapper; how often it was done."""
    uid = own(root)
    done: Synchronized[int] = _FORK.Value("i", 0)
    with swapping(root, uid):
        process = _FORK.Process(target=become, args=(uid, attempt, act, str(root), done, tries))
        process.start()
        process.join()
    assert process.exitcode == 0
    return done.value


def ours(root: str, number: int) -> None:
    """Write a new file with the product's own code."""
    replace(root, f"good/{number % 100}-{number}", b"x", None, LIMIT)


def removing(root: str, _: int) -> None:
    """Remove a file that only the outside has, with the product's own code."""
    delete(root, "good/precious.txt")


def moving(root: str, number: int) -> None:
    """Move it into the workspace, with the product's own code."""
    move(root, "good/precious.txt", f"stolen-{number}")


def careless(root: str, number: int) -> None:
    """Write a new file as many programs do: look where it is, then open it."""
    path = f"{root}/good/{number}"
    if not os.path.realpath(path).startswith(f"{root}/"):
        raise PermissionError
    with open(path, "xb") as file:  # noqa: PTH123 - the attacked way
        file.write(b"x")


def test_nothing_is_written_outside(place: Arena, root: Path) -> None:
    """S55: of 40,000 writes none lands outside; some are done and many are refused."""
    done = raced(root, ours)
    assert list((place.base / "outside").iterdir()) == []
    assert 0 < done < TRIES
    inside = next(path for path in (root / "good", root / "evil") if not path.is_symlink())
    assert len(list(inside.iterdir())) == done


def test_the_race_is_real(place: Arena, root: Path) -> None:
    """The careless way writes outside in the same race."""
    raced(root, careless, TRIES // 8)
    assert list((place.base / "outside").iterdir()) != []


@pytest.mark.parametrize("act", [removing, moving])
def test_nothing_is_taken_from_outside(place: Arena, root: Path, act: Callable[[str, int], None]) -> None:
    """S55: what only the outside has is neither removed nor moved."""
    precious = place.base / "outside" / "precious.txt"
    precious.write_text("precious")
    own(precious)
    assert raced(root, act, TRIES // 4) == 0
    assert precious.read_text() == "precious"


async def test_the_server_reads_and_writes_nothing_outside(place: Arena) -> None:
    """S55: recording and restoring a tree that is swapped all the time takes nothing in and puts nothing out."""
    folder = source(place)
    (folder / "good").mkdir()
    (folder / "good" / "x").write_text("x")
    git(folder, "add", "good")
    git(folder, "commit", "--quiet", "--message=good")
    workspace, base = await opened(place.state, folder)
    outside = place.base / "outside"
    (outside / "x").write_text(place.secret.read_text())
    (outside / "x").chmod(0o600)
    uid = workspace.root.stat().st_uid
    ends = time.monotonic() + 3
    done = 0
    with swapping(workspace.root, uid or None):
        while time.monotonic() < ends:
            with suppress(OSError):
                (workspace.root / "evil").symlink_to(outside)
            done += await one_round(workspace, base)
    assert done > 20
    assert {path.name for path in outside.iterdir()} == {"x"}
    assert (outside / "x").read_text() == place.secret.read_text()
    objects = git(workspace.git_dir, "cat-file", "--batch-all-objects", "--batch-check=%(objectname) %(objecttype)")
    blobs = [row.split()[0] for row in objects.splitlines() if row.endswith("blob")]
    assert not [sha for sha in blobs if "canary" in git(workspace.git_dir, "cat-file", "blob", sha)]


async def one_round(workspace: GitWorkspace, base: str) -> int:
    """Record and restore; how much was done: a tree that changes too fast may be given up, in words."""
    done = 0
    for step in (
        lambda: workspace.checkpoint(["good/x", "evil/x"], "m", AT),
        lambda: workspace.checkpoint(None, "m", AT),
        lambda: workspace.restore(base),
    ):
        with suppress(WorkspaceError):
            await step()
            done += 1
    return done
