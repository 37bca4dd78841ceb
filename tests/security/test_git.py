"""What the agent puts into a work tree, and what a repository brings along, runs nothing and calls nobody."""

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.errors import RepositoryRefused, WorkspaceError
from bot.workspace.base import Origin
from bot.workspace.clone import GitWorkspaces
from bot.workspace.git import Git
from bot.workspace.inplace import InPlaceWorkspaces
from bot.workspace.local import place_of
from bot.workspace.worktree import GitWorkspace
from tests.security.poisoned import CONTROL, Arena, Case, arena, cases, published, size_of, source
from tests.unit.workspace.githttp import GitServer, serving
from tests.unit.workspace.helpers import AT, BOT, entries, git, local, publish, tokens

pytestmark = pytest.mark.security

BRANCH = "agent/1-00c0ffee"
SMALL = 10 << 20
QUICK_S = 5.0
NOTHING = {"ran": [], "called": [], "pushed elsewhere": ""}
IN_TREE = ("runs", "calls", "left", "still")


@pytest.fixture(name="place")
def arena_fixture() -> Iterator[Arena]:
    """A folder, a marker and a listener."""
    with arena() as made:
        yield made


@pytest.fixture
def server(place: Arena) -> Iterator[GitServer]:
    """A git server over HTTP without a repository yet."""
    root = place.base / "served"
    (root / "acme").mkdir(parents=True)
    with serving(root) as made:
        yield made


def origin(server: GitServer) -> Origin:
    """Name the served repository."""
    return Origin("github-1", f"{server.url}/acme/web.git", tokens("write-token"))


def bare(server: GitServer) -> Path:
    """Return the served repository's folder."""
    return server.root / "acme" / "web.git"


def innocent(pushed: dict[str, str]) -> None:
    """Look at what was pushed: no repository, and no path that somebody takes for one."""
    for path in pushed:
        assert ".git" not in path.lower().split("/"), path
    assert "160000" not in pushed.values()


@pytest.mark.parametrize("case", cases(*IN_TREE))
async def test_poisoned_work_tree(place: Arena, server: GitServer, case: Case) -> None:
    """S85, S88: over a whole task nothing of the agent's runs, and the right commit comes to the right place."""
    published(bare(server))
    workspaces = GitWorkspaces(place.state)
    made = await workspaces.open("t1", origin(server), "main")
    workspace = made.workspace
    assert isinstance(workspace, GitWorkspace)
    honest = "printf 'print(1)\\r\\n' >honest.py\n"
    await place.act(workspace.root, made.owner_uid, f"repo\n{case.snippet}\n{honest}")
    await workspace.checkpoint(["honest.py", "src", ".git", ".git/config", "inner/.git/config"], "m", AT)
    checkpoint = await workspace.checkpoint(None, "m", AT)
    left = dict(workspace.left_out)
    commit = await workspace.commit("Fix", BOT, AT, parent=made.base)
    assert commit is not None
    assert "honest.py" in await workspace.diff(made.base, commit, limit_chars=20_000_000)
    assert (await workspace.diff_stat(made.base, commit)).files > 0
    assert "honest.py" in await workspace.changed_paths(made.base, commit)
    await workspace.push(commit, BRANCH, expected=None)
    again = await GitWorkspaces(place.state).open("t1", origin(server), "main", commit=checkpoint)
    assert await again.workspace.checkpoint(None, "m", AT) == checkpoint
    await again.workspace.restore(made.base)
    assert git(bare(server), "rev-parse", BRANCH) == commit
    assert git(bare(server), "rev-parse", "main") == made.base
    assert await workspaces.remote_head("t1", origin(server), BRANCH) == commit
    await workspaces.forget("t1")
    assert not workspace.git_dir.exists()
    assert place.damage == NOTHING
    git(bare(server), "fsck", "--connectivity-only")
    pushed = entries(bare(server), BRANCH)
    innocent(pushed)
    assert git(bare(server), "show", f"{BRANCH}:honest.py") == "print(1)"
    assert "canary" not in git(bare(server), "cat-file", "--batch-all-objects", "--batch")
    if case.kind.startswith("left"):
        assert case.detail in left or not case.detail
        assert set(left) - {".git"}
        assert not [path for path in pushed for out in left if f"{path}/".startswith(f"{out}/")]


@pytest.mark.parametrize("case", cases("runs", "calls"))
def test_the_poison_is_real(place: Arena, case: Case) -> None:
    """A program that trusts the same work tree runs the attacker's program, or calls the attacker's host."""
    folder = place.base / "careless"
    shutil.copytree(source(place), folder, ignore=shutil.ignore_patterns(".git"))
    place.shell(f"repo\n{case.snippet}", folder)
    place.forget_damage()
    place.shell(CONTROL, folder, check=False)
    harmed = place.marks if case.kind == "runs" else place.listener.calls or place.damage["pushed elsewhere"]
    assert harmed


@pytest.mark.parametrize("case", cases("refused", "broken"))
async def test_repository_that_is_refused(place: Arena, server: GitServer, case: Case) -> None:
    """S86, S87: a repository that cannot be checked out safely is refused in time, with a reason, and takes no room."""
    folder = source(place)
    place.shell(case.snippet, folder)
    publish(folder, bare(server))
    started = time.monotonic()
    with pytest.raises(RepositoryRefused if case.kind.startswith("refused") else WorkspaceError) as caught:
        await GitWorkspaces(place.state, max_bytes=64 << 20).open("t1", origin(server), "main")
    assert time.monotonic() - started < QUICK_S
    assert case.detail in str(caught.value)
    assert not (place.state / "tasks" / "t1" / "tree").exists()
    assert size_of(place.state) < SMALL
    assert place.damage == NOTHING


@pytest.mark.parametrize("case", cases("whole"))
async def test_repository_that_is_taken(place: Arena, server: GitServer, case: Case) -> None:
    """S86, S87: filters, submodules, LFS, links and odd names are bytes: written as they are, and the same again."""
    folder = source(place)
    place.shell(case.snippet, folder)
    publish(folder, bare(server))
    place.forget_damage()
    wanted = entries(folder, git(folder, "rev-parse", "main"))
    for task, chosen in (("t1", origin(server)), ("t2", local(folder))):
        started = time.monotonic()
        made = await GitWorkspaces(place.state).open(task, chosen, "main")
        assert time.monotonic() - started < QUICK_S
        assert made.base == git(folder, "rev-parse", "main")
        assert on_disk(made.workspace.root) == {path: KINDS[mode] for path, mode in wanted.items() if mode != "160000"}
        assert await made.workspace.checkpoint(None, "m", AT) == made.base
        await made.workspace.restore(made.base)
    assert size_of(place.state) < SMALL + 3 * size_of(folder)
    assert place.damage == NOTHING


KINDS = {"100644": "file", "100755": "program", "120000": "link"}


def on_disk(root: Path) -> dict[str, str]:
    """List what is in a work tree, but for the file that shows commands the history."""
    found = {}
    for path in root.rglob("*"):
        name = os.fsencode(path.relative_to(root)).decode("utf-8", "surrogateescape")
        if path.is_symlink():
            found[name] = "link"
        elif path.is_file() and name != ".git":
            found[name] = "program" if path.stat().st_mode & 0o100 else "file"
    return found


async def test_incomplete_repository(place: Arena) -> None:
    """S86: a person's partial clone is refused in words; what it lacks is not fetched from anywhere."""
    folder = source(place)
    blob = git(folder, "rev-parse", "HEAD:README.md")
    (folder / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    git(folder, "config", "remote.origin.url", f"http://127.0.0.1:{place.listener.port}/x.git")
    git(folder, "config", "remote.origin.promisor", "true")
    with pytest.raises(RepositoryRefused, match=r"incomplete: `README.md` is missing"):
        await GitWorkspaces(place.state).open("t1", local(folder), "main")
    assert place.damage == NOTHING


OWN = (
    "hook-post-checkout", "hook-post-index-change", "hook-reference-transaction", "hooks-path", "fsmonitor",
    "include-path", "config-of-worktree", "alternate-refs", "diff-external", "diff-textconv", "upload-pack",
    "remote-http", "instead-of",
)  # fmt: skip
"""Poison that could be in a person's own `.git`; their own filters are left alone, since LFS lives on them."""


@pytest.mark.parametrize("case", [case for case in cases("runs", "calls") if case.id in OWN])
async def test_persons_own_repository(place: Arena, case: Case) -> None:
    """S85: where we read a person's own `.git`, and bring a branch back, it runs nothing and nobody is called."""
    folder = source(place)
    place.shell(case.snippet, folder)
    (folder / "README.md").write_text("changed by the person")
    place.forget_damage()
    workspaces = GitWorkspaces(place.state)
    assert (await place_of(Git(place.state), folder)).branch == "main"
    assert "README.md" in await workspaces.uncommitted(folder)
    made = await workspaces.open("t1", local(folder), "main")
    (made.workspace.root / "fix.txt").write_text("f")
    commit = await made.workspace.commit("Fix", BOT, AT, parent=made.base)
    assert commit is not None
    assert isinstance(made.workspace, GitWorkspace)
    await workspaces.fetch_back(folder, made.workspace, commit, BRANCH)
    assert git(folder, "-c", "core.hooksPath=/dev/null", "rev-parse", BRANCH) == commit
    there = InPlaceWorkspaces(place.base / "other-state")
    kept = await there.open("t2", local(folder), "main")
    (kept.workspace.root / "fix.txt").write_text("f")
    mine = await kept.workspace.commit("Fix", BOT, AT, parent=kept.base)
    assert mine is not None
    assert "fix.txt" in await kept.workspace.diff(kept.base, mine, limit_chars=10_000)
    await kept.workspace.restore(kept.base)
    assert place.damage == NOTHING
