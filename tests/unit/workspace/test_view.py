"""What commands see of git: the history and their own changes, and nothing that they could change."""

import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bot.workspace.base import Opened, Origin
from bot.workspace.clone import GitWorkspaces
from tests.unit.workspace.githttp import GitServer
from tests.unit.workspace.helpers import AT, BOT, add, git, local
from tests.unit.workspace.test_remote import origin


def ask(opened: Opened, *args: str) -> str:
    """Run git as a command of the tree's uid would, and return all that it says."""
    uid = opened.owner_uid
    done = subprocess.run(
        ["git", "-c", "safe.directory=*", *args],
        cwd=opened.workspace.root,
        env={"PATH": os.environ["PATH"], "HOME": "/nonexistent"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        user=uid,
        group=uid,
        extra_groups=None if uid is None else [],
    )
    return done.stdout


@pytest.fixture
def state() -> Iterator[Path]:
    """A folder that other users can pass through."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o711)
        yield Path(folder)


@pytest.fixture(params=["cloned", "local"])
def where(request: pytest.FixtureRequest, source: Path, server: GitServer) -> Callable[[], Origin]:
    """A repository on a server, and one on this machine."""
    return lambda: origin(server) if request.param == "cloned" else local(source)


async def test_history_and_changes(where: Callable[[], Origin], state: Path) -> None:
    """`log`, `blame` and `show` give the history; `status` and `diff` only what was changed since."""
    opened = await GitWorkspaces(state).open("t1", where(), "main")
    assert opened.base[:12] in ask(opened, "log", "--format=%H")
    assert "print('a')" in ask(opened, "blame", "-s", "src/app.py")
    assert ask(opened, "branch", "--show-current") == "main\n"
    assert ask(opened, "rev-parse", "--show-toplevel") == f"{opened.workspace.root}\n"
    # Line ends are the blobs' own, whatever `.gitattributes` asks for.
    assert ask(opened, "status", "--porcelain") == ""
    (opened.workspace.root / "src" / "app.py").write_text("print('b')\n")
    (opened.workspace.root / "new").write_text("")
    assert ask(opened, "status", "--porcelain") == " M src/app.py\n?? new\n"
    assert "+print('b')" in ask(opened, "diff")


@pytest.mark.skipif(os.geteuid() != 0, reason="the tree's uid is the server's own")
async def test_nothing_is_written(where: Callable[[], Origin], state: Path) -> None:
    """The tree's uid can neither commit nor change what git shows."""
    opened = await GitWorkspaces(state).open("t1", where(), "main")
    (opened.workspace.root / "new").write_text("")
    assert opened.base in ask(opened, "log", "--format=%H")
    for words in (["add", "."], ["commit", "-m", "x"], ["config", "core.fsmonitor", "x"], ["branch", "b"], ["gc"]):
        assert "denied" in ask(opened, *words), words
    view = opened.readable[0]
    assert not [path for path in view.rglob("*") if path.lstat().st_uid == opened.owner_uid]


async def test_made_anew(state: Path, source: Path, server: GitServer) -> None:
    """What a command made of it is gone with the next restore, and a further run sees the newer history."""
    workspaces = GitWorkspaces(state)
    opened = await workspaces.open("t1", origin(server), "main")
    root = opened.workspace.root
    (root / ".git").unlink()
    git(root, "init", "--quiet")
    git(root, "config", "core.fsmonitor", "false")
    await opened.workspace.restore(opened.base)
    assert (root / ".git").read_text() == f"gitdir: {opened.readable[0]}\n"
    await opened.workspace.close()
    newer = add(source, {"later": "1"})
    git(source, "push", "--quiet", str(server.root / "acme" / "web.git"), "main")
    again = await workspaces.open("t1", origin(server), "main")
    assert again.base == newer
    assert newer in ask(again, "log", "--format=%H")


async def test_what_the_task_pushed_and_fetched_again_is_seen(state: Path, server: GitServer) -> None:
    """A further run, whose objects lie in the task's own store and in the cache, has its history all the same."""
    first = await GitWorkspaces(state).open("t1", origin(server), "main")
    (first.workspace.root / "new").write_text("new\n")
    made = await first.workspace.commit("Add it", BOT, AT, parent=first.base)
    assert made is not None
    await first.workspace.push(made, "agent/t1", expected=None)
    again = await GitWorkspaces(state).open("t1", origin(server), "agent/t1")
    assert again.base == made
    assert ask(again, "log", "-1", "--format=%s") == "Add it\n"
    assert ask(again, "status", "--porcelain") == ""
