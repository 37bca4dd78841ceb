import hashlib
from pathlib import Path

import pytest

from bot.errors import BranchMoved, PushRejected, RepositoryRefused, WorkspaceError
from bot.workspace.clone import GitWorkspaces
from bot.workspace.git import Git
from bot.workspace.inplace import InPlaceWorkspaces
from bot.workspace.local import fetch_back
from tests.unit.workspace.helpers import AT, BOT, add, git, local, opened, seed


def fingerprint(folder: Path) -> dict[str, str]:
    """Hash every file below a folder."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


async def test_in_place(source: Path, state: Path) -> None:
    """The work tree changes, what the person had not committed is no part of the change, and `.git` stays as it was."""
    (source / "mine.txt").write_text("mine\n")
    (source / "src" / "app.py").write_text("print('mine')\n")
    (source / "private").write_text("p\n")
    (source / ".git" / "info").mkdir(exist_ok=True)
    (source / ".git" / "info" / "exclude").write_text("private\n")
    before = fingerprint(source / ".git")
    workspaces = InPlaceWorkspaces(state)
    made = await workspaces.open("t1", local(source), "main")
    workspace = made.workspace
    assert workspace.root == source
    assert "private" not in await workspace.changed_paths(git(source, "rev-parse", "HEAD"), made.base)
    assert "mine.txt" in await workspace.changed_paths(git(source, "rev-parse", "HEAD"), made.base)
    (source / "fix.txt").write_text("f\n")
    checkpoint = await workspace.checkpoint(None, "m", AT)
    assert await workspace.changed_paths(made.base, checkpoint) == ["fix.txt"]
    (source / "src" / "app.py").unlink()
    seed(source / "other", {"a": "b"})
    await workspace.restore(checkpoint)
    assert (source / "src" / "app.py").read_text() == "print('mine')\n"
    assert (source / "private").exists()
    assert (source / "other" / ".git").exists()
    commit = await workspace.commit("Fix", BOT, AT, parent=made.base)
    assert commit is not None
    with pytest.raises(PushRejected, match="push it yourself"):
        await workspace.push(commit, "agent/1-a", expected=None)
    await workspaces.forget("t1")
    assert (source / "mine.txt").exists()
    assert fingerprint(source / ".git") == before
    assert await workspaces.remote_head("t1", local(source), "main") == git(source, "rev-parse", "main")


async def test_in_place_again(source: Path, state: Path) -> None:
    """A clean checkout's base is its HEAD; a later process tells changes from a checkpoint, and puts nothing back."""
    add(source, {".gitattributes": "", "crlf.txt": "x\n"})
    workspaces = InPlaceWorkspaces(state)
    made = await workspaces.open("t1", local(source), "main")
    assert made.base == git(source, "rev-parse", "HEAD")
    (source / "fix.txt").write_text("f\n")
    checkpoint = await made.workspace.checkpoint(["fix.txt"], "m", AT)
    (source / "fix.txt").write_text("the person's\n")
    again = await InPlaceWorkspaces(state).open("t1", local(source), "main", commit=checkpoint)
    assert (source / "fix.txt").read_text() == "the person's\n"
    assert again.base == checkpoint
    found = await again.workspace.commit("Fix", BOT, AT, parent=checkpoint)
    assert found is not None
    assert await again.workspace.changed_paths(checkpoint, found) == ["fix.txt"]


async def test_in_place_needs_a_commit(tmp_path: Path, state: Path) -> None:
    """A repository without commits is refused with what to do."""
    (tmp_path / "new").mkdir()
    git(tmp_path / "new", "init", "--quiet")
    with pytest.raises(RepositoryRefused, match="make a first commit"):
        await InPlaceWorkspaces(state).open("t1", local(tmp_path / "new"), "main")


async def test_fetch_back(source: Path, state: Path) -> None:
    """A finished commit becomes a new branch of the person's repository and nothing else changes."""
    workspaces = GitWorkspaces(state)
    workspace, base = await opened(state, source)
    (workspace.root / "fix.txt").write_text("f\n")
    commit = await workspace.commit("Fix", BOT, AT, parent=base)
    assert commit is not None
    before = fingerprint(source / ".git")
    await workspaces.fetch_back(source, workspace, commit, "agent/1-a")
    await workspaces.fetch_back(source, workspace, commit, "agent/1-a")
    after = fingerprint(source / ".git")
    assert {name for name in before if after.get(name) != before[name]} == set()
    assert {name for name in after if name not in before and not name.startswith("objects/")} == {
        "refs/heads/agent/1-a"
    }
    await workspaces.forget("t1")
    assert git(source, "show", "agent/1-a:fix.txt") == "f"
    git(source, "fsck", "--strict")


async def test_fetch_back_refusals(source: Path, state: Path) -> None:
    """A branch that is the person's own is never moved."""
    workspaces = GitWorkspaces(state)
    workspace, base = await opened(state, source)
    (workspace.root / "fix.txt").write_text("f\n")
    commit = await workspace.commit("Fix", BOT, AT, parent=base)
    assert commit is not None
    git(source, "branch", "taken")
    for branch, said in [("taken", "already"), ("main", "already"), ("--x", "no valid"), ("a..b", "no valid")]:
        with pytest.raises(WorkspaceError, match=said):
            await workspaces.fetch_back(source, workspace, commit, branch)
    git(source, "symbolic-ref", "HEAD", "refs/heads/unborn")
    with pytest.raises(WorkspaceError, match="checked out"):
        await workspaces.fetch_back(source, workspace, commit, "unborn")
    assert git(source, "rev-parse", "taken", "main").split() == [base, base]


async def test_fetch_back_moves_a_branch_that_stands_where_it_was_left(
    source: Path, state: Path, tmp_path: Path
) -> None:
    """A further run moves the task's own branch; not where it stands elsewhere, and nowhere that it is checked out."""
    workspace, base = await opened(state, source)
    commits: list[str] = []
    for number in range(3):
        (workspace.root / "fix.txt").write_text(f"{number}\n")
        made = await workspace.commit("Fix", BOT, AT, parent=commits[-1] if commits else base)
        assert made is not None
        commits.append(made)
    runner = Git(state)
    first, second, third = commits

    async def back(commit: str, expected: str | None) -> None:
        await fetch_back(runner, source, workspace.git_dir, commit, "agent/1-a", expected=expected)

    await back(first, None)
    await back(second, first)
    assert git(source, "rev-parse", "agent/1-a") == second
    for expected in (None, first, base):
        with pytest.raises(BranchMoved):
            await back(third, expected)
    git(source, "worktree", "add", "--quiet", str(tmp_path / "linked"), "agent/1-a")
    with pytest.raises(BranchMoved, match=r"is checked out in .*linked"):
        await back(third, second)
    git(source, "worktree", "remove", str(tmp_path / "linked"))
    git(source, "checkout", "--quiet", "agent/1-a")
    with pytest.raises(BranchMoved, match="is checked out"):
        await back(third, second)
    git(source, "checkout", "--quiet", "main")
    git(source, "branch", "--quiet", "-D", "agent/1-a")
    with pytest.raises(BranchMoved, match="does not stand"):
        await back(third, second)
    assert git(source, "branch", "--list", "agent/*") == ""


async def test_uncommitted(source: Path, state: Path) -> None:
    """What is changed, new or deleted is listed; what is ignored is not; the index is not written."""
    workspaces = GitWorkspaces(state)
    git(source, "config", "core.autocrlf", "false")
    add(source, {".gitattributes": "", "crlf.txt": "x\n"})
    assert await workspaces.uncommitted(source) == []
    (source / "README.md").unlink()
    (source / "new file").write_text("n")
    (source / "src" / "app.py").write_text("changed")
    (source / "x.log").write_text("l")
    git(source, "config", "core.fsmonitor", f"touch {source.parent}/marker; false")
    index = (source / ".git" / "index").read_bytes()
    assert await workspaces.uncommitted(source) == ["README.md", "new file", "src/app.py"]
    assert (source / ".git" / "index").read_bytes() == index
    assert not (source.parent / "marker").exists()


async def test_linked_work_tree(source: Path, state: Path, tmp_path: Path) -> None:
    """A linked work tree of a person's repository is a checkout like any other."""
    add(source, {".gitattributes": "", "crlf.txt": "x\n"})
    linked = tmp_path / "linked"
    git(source, "worktree", "add", "--quiet", "-b", "side", str(linked))
    made = await InPlaceWorkspaces(state).open("t1", local(linked), "side")
    assert made.base == git(linked, "rev-parse", "HEAD")
    workspace, _ = await opened(tmp_path / "state2", linked)
    assert (workspace.root / "README.md").exists()
