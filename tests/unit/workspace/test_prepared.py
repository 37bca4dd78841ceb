"""Prepared environments: made by one, read by all, and nothing that an installer left gains anything."""

import asyncio
import contextlib
import os
import stat
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from bot.errors import SandboxError, WorkspaceError
from bot.workspace.prepared import DEEPEST, PreparedFolders, own_folder

ROOT = os.geteuid() == 0
MAKER = 61_234 if ROOT else None
OTHER = 61_235
Make = Callable[[Path], Awaitable[bool]]


@pytest.fixture
def state() -> Iterator[Path]:
    """A state folder that other uids may pass through."""
    with tempfile.TemporaryDirectory(prefix="prepared-", ignore_cleanup_errors=True) as made:
        Path(made).chmod(0o711)
        yield Path(made)


def acting(uid: int | None, code: str, *arguments: object) -> "subprocess.CompletedProcess[str]":
    """Run Python as a user."""
    command = [sys.executable if uid is None else "/usr/bin/python3", "-c", textwrap.dedent(code), *map(str, arguments)]
    who = {} if uid is None else {"user": uid, "group": uid, "extra_groups": []}
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd="/", **who)  # type: ignore[call-overload, no-any-return]


def by(code: str) -> Make:
    """Make an environment by code that is given its folder."""

    async def make(folder: Path) -> bool:
        done = await asyncio.to_thread(acting, MAKER, code, folder)
        assert done.returncode == 0, done.stderr
        return True

    return make


SIMPLE = """
import os, sys
os.chdir(sys.argv[1])
os.makedirs('bin/inner')
open('bin/tool', 'w').write('#!/bin/sh\\necho tool\\n')
os.chmod('bin/tool', 0o4755)
open('secret', 'w').write('s')
os.chmod('secret', 0o600)
os.symlink('bin/tool', 'link')
os.mkfifo('pipe')
os.chmod('bin/inner', 0o777)
"""


async def test_it_is_sealed(state: Path) -> None:
    """What was made can be read and run by every task, written by none, and carries no uid."""
    folders = PreparedFolders(state)
    held = await folders.take("r", "k", MAKER, by(SIMPLE))
    assert held is not None
    assert held.fresh
    tool = held.folder / "bin" / "tool"
    assert stat.S_IMODE(tool.stat().st_mode) == 0o555
    assert stat.S_IMODE((held.folder / "bin" / "inner").stat().st_mode) == 0o555
    assert stat.S_IMODE((held.folder / "secret").stat().st_mode) == 0o444
    assert not (held.folder / "pipe").exists()
    assert (held.folder / "link").readlink() == Path("bin/tool")
    if ROOT:
        for path in (held.folder, *held.folder.rglob("*")):
            assert path.lstat().st_uid == 0, path
        read = acting(OTHER, "import sys; print(open(sys.argv[1]).read())", held.folder / "bin" / "tool")
        assert "echo tool" in read.stdout, read.stderr
        for uid in (OTHER, MAKER):
            for name in ("bin/tool", "new", "bin/new"):
                assert acting(uid, "import sys; open(sys.argv[1], 'a')", held.folder / name).returncode != 0
    held.release()


async def test_the_second_one_gets_what_the_first_made(state: Path) -> None:
    """One that is there is not made again, in this process or another."""
    (first, second) = (PreparedFolders(state), PreparedFolders(state))
    made = await first.take("r", "k", MAKER, by(SIMPLE))
    assert made is not None
    made.release()

    async def never(_: Path) -> bool:
        raise AssertionError("made twice")

    held = await second.take("r", "k", MAKER, never)
    assert held is not None
    assert (held.fresh, held.folder) == (False, made.folder)
    held.release()
    assert await second.hold("r", "other") is None
    assert await second.hold("other", "k") is None


async def test_of_two_at_once_one_makes_it(state: Path) -> None:
    """Tasks that want the same at once wait for one of them."""
    times = 0

    async def make(folder: Path) -> bool:
        nonlocal times
        times += 1
        await asyncio.sleep(0.1)
        return await by(SIMPLE)(folder)

    held = await asyncio.gather(*(PreparedFolders(state).take("r", "k", MAKER, make) for _ in range(5)))
    assert times == 1
    assert sorted(one.fresh for one in held if one is not None) == [False] * 4 + [True]
    for one in held:
        assert one is not None
        one.release()


async def test_what_was_not_made_is_not_kept(state: Path) -> None:
    """A failed set-up, an error and a cancelled one leave nothing, and the next task tries again."""
    folders = PreparedFolders(state)

    async def fail(folder: Path) -> bool:
        await by(SIMPLE)(folder)
        return False

    async def broken(folder: Path) -> bool:
        await by(SIMPLE)(folder)
        raise WorkspaceError("broken")

    async def forever(folder: Path) -> bool:
        await by(SIMPLE)(folder)
        await asyncio.Event().wait()
        return True

    assert await folders.take("r", "k", MAKER, fail) is None
    with pytest.raises(WorkspaceError, match="broken"):
        await folders.take("r", "k", MAKER, broken)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(1):
            await folders.take("r", "k", MAKER, forever)
    assert list((state / "environments" / "r").glob("*/")) == []
    held = await folders.take("r", "k", MAKER, by(SIMPLE))
    assert held is not None
    held.release()


async def test_half_of_one_counts_for_nothing(state: Path) -> None:
    """What a killed worker left is no environment, and goes when somebody makes it."""
    half = state / "environments" / "r" / "k" / "content"
    half.mkdir(parents=True)
    (half / "old").write_text("old")
    folders = PreparedFolders(state)
    assert await folders.hold("r", "k") is None
    held = await folders.take("r", "k", MAKER, by(SIMPLE))
    assert held is not None
    assert not (held.folder / "old").exists()
    held.release()


@pytest.mark.skipif(not ROOT, reason="only root can take files of another user over")
async def test_a_link_to_a_file_of_others_opens_nothing(state: Path) -> None:
    """Links of either kind that lead out of it do not change what they lead to; a foreign file is refused."""
    secret = state / "secret"
    secret.write_text("s")
    secret.chmod(0o600)
    folder = state / "folder"
    folder.mkdir(mode=0o700)

    async def links(content: Path) -> bool:
        await by(SIMPLE)(content)
        (content / "soft").symlink_to(secret)
        (content / "up").symlink_to(folder, target_is_directory=True)
        return True

    async def hard(content: Path) -> bool:
        # An old kernel, or one without protection, lets a user do this.
        (content / "hard").hardlink_to(secret)
        return True

    held = await PreparedFolders(state).take("r", "soft", MAKER, links)
    assert held is not None
    held.release()
    with pytest.raises(SandboxError, match="another user"):
        await PreparedFolders(state).take("r", "hard", MAKER, hard)
    for path, mode in ((secret, 0o600), (folder, 0o700)):
        assert (path.stat().st_uid, stat.S_IMODE(path.stat().st_mode)) == (0, mode)
    assert not (state / "environments" / "r" / "hard").exists()


async def test_a_content_that_is_a_link_is_refused(state: Path) -> None:
    """The folder itself must still be one when it is taken over."""
    aim = state / "aim"
    aim.mkdir(mode=0o700)

    async def swap(content: Path) -> bool:
        await asyncio.to_thread(content.rmdir)
        await asyncio.to_thread(content.symlink_to, aim, target_is_directory=True)
        return True

    with pytest.raises(OSError, match="content"):
        await PreparedFolders(state).take("r", "k", MAKER, swap)
    assert stat.S_IMODE(aim.stat().st_mode) == 0o700


async def test_folders_without_end_are_refused(state: Path) -> None:
    """A tree that is too deep costs no more than its first folders."""
    deep = f"""
        import os, sys
        os.chdir(sys.argv[1])
        for _ in range({DEEPEST + 50}):
            os.mkdir('d')
            os.chdir('d')
    """
    with pytest.raises(SandboxError, match="inside each other"):
        await PreparedFolders(state).take("r", "k", MAKER, by(deep))
    assert not (state / "environments" / "r" / "k").exists()


async def test_those_used_longest_ago_go_and_those_in_use_stay(state: Path) -> None:
    """A repository keeps its newest ones; one that a task holds is not removed."""
    folders = PreparedFolders(state, keep=2)
    used = await folders.take("r", "used", MAKER, by(SIMPLE))
    assert used is not None
    os.utime(used.folder.parent / "sealed", (1, 1))
    for number in range(4):
        held = await folders.take("r", f"k{number}", MAKER, by(SIMPLE))
        assert held is not None
        os.utime(held.folder.parent / "sealed", (10 + number, 10 + number))
        held.release()
    left = sorted(path.name for path in (state / "environments" / "r").glob("*/"))
    assert left == ["k2", "k3", "used"]
    used.release()
    # It was not the last that was made, but the last that was used.
    os.utime(used.folder.parent / "sealed", (1, 1))
    again = await folders.hold("r", "k2")
    assert again is not None
    again.release()
    last = await folders.take("r", "last", MAKER, by(SIMPLE))
    assert last is not None
    last.release()
    assert sorted(path.name for path in (state / "environments" / "r").glob("*/")) == ["k2", "last"]


async def test_a_name_that_is_no_folder_is_refused(state: Path) -> None:
    """Neither a repository nor a key can lead out of the folder."""
    for repository, key in (("..", "k"), ("r", "../x"), ("r", "")):
        with pytest.raises(WorkspaceError):
            await PreparedFolders(state).hold(repository, key)


def test_the_own_folder_is_the_tasks_alone(state: Path) -> None:
    """It belongs to the task, keeps what is in it, and begins empty where that is wanted."""
    own = state / "own"
    own_folder(own, MAKER, empty=True)
    (own / "a").write_text("a")
    assert stat.S_IMODE(own.stat().st_mode) == 0o700
    assert own.stat().st_uid == (os.geteuid() if MAKER is None else MAKER)
    own_folder(own, MAKER, empty=False)
    assert (own / "a").exists()
    own_folder(own, MAKER, empty=True)
    assert list(own.iterdir()) == []
