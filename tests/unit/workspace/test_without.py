"""A commit that leaves a folder as it was, and folders of a commit that are listed; with real git."""

from pathlib import Path

import pytest

from bot.errors import RepositoryRefused, WorkspaceError
from bot.workspace.base import Origin
from bot.workspace.clone import GitWorkspaces
from bot.workspace.inplace import InPlaceWorkspaces
from tests.unit.workspace.githttp import GitServer
from tests.unit.workspace.helpers import AT, BOT, add, entries, git, local, opened, tokens


async def committed(state: Path, source: Path, without: str, changes: dict[str, str | None]) -> tuple[Path, str, str]:
    """Change a fresh work tree and commit it without a folder; returns git directory, base and commit."""
    workspace, base = await opened(state, source)
    for name, content in changes.items():
        path = workspace.root / name
        if content is None:
            path.unlink()
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    made = await workspace.commit("Work", BOT, AT, parent=base, without=without)
    assert all((workspace.root / name).exists() == (content is not None) for name, content in changes.items())
    return workspace.git_dir, base, made or base


@pytest.mark.parametrize("folder", ["bank", "docs/bank"])
async def test_a_folder_is_left_as_it_was(source: Path, state: Path, folder: str) -> None:
    """What was changed, added, deleted or made executable below the folder is not in the commit; all else is."""
    add(source, {f"{folder}/a.md": "a\n", f"{folder}/deep/b.md": "b\n", "docs/c.md": "c\n", f"{folder}2/x": "x\n"})
    changes = {f"{folder}/a.md": "evil\n", f"{folder}/deep/b.md": None, f"{folder}/new/n": "n", "docs/c.md": "C\n"}
    git_dir, base, made = await committed(state, source, folder, {**changes, f"{folder}2/x": "X\n"})
    assert git(git_dir, "diff", "--name-only", base, made).split() == sorted(["docs/c.md", f"{folder}2/x"])
    assert git(git_dir, "rev-parse", f"{base}:{folder}") == git(git_dir, "rev-parse", f"{made}:{folder}")
    git(git_dir, "fsck", "--strict")


@pytest.mark.parametrize("folder", ["bank", "docs/bank"])
async def test_a_folder_that_was_not_there_is_not_made(source: Path, state: Path, folder: str) -> None:
    """A new folder stays out, with the folders above it that hold nothing else, and then nothing has changed."""
    _, base, made = await committed(state, source, folder, {f"{folder}/a.md": "a"})
    assert made == base


async def test_a_file_in_the_folders_place_stays_out(source: Path, state: Path) -> None:
    """The path is left as it was, whatever stands there now; a file in the way of its parents counts where none was."""
    git_dir, base, made = await committed(state, source, "bank", {"bank": "file"})
    assert made == base
    git_dir, base, made = await committed(state / "two", source, "docs/bank", {"docs": "file"})
    assert git(git_dir, "diff", "--name-only", base, made) == "docs"


async def test_a_parent_that_became_a_file_gives_way(source: Path, state: Path) -> None:
    """Where the folder was, its parents remain folders."""
    add(source, {"docs/bank/a.md": "a\n"})
    workspace, base = await opened(state, source)
    (workspace.root / "docs/bank/a.md").unlink()
    (workspace.root / "docs/bank").rmdir()
    (workspace.root / "docs").rmdir()
    (workspace.root / "docs").write_text("file")
    assert await workspace.commit("Work", BOT, AT, parent=base, without="docs/bank") is None


async def test_a_link_that_the_folder_was_stays(source: Path, state: Path) -> None:
    """A link in the folder's place is left as it was, too."""
    (source / "bank").symlink_to("src")
    add(source, {"x": "x"})
    workspace, base = await opened(state, source)
    (workspace.root / "bank").unlink()
    (workspace.root / "x").write_text("y")
    made = await workspace.commit("Work", BOT, AT, parent=base, without="bank")
    assert made is not None
    assert entries(workspace.git_dir, made)["bank"] == "120000"
    assert await workspace.changed_paths(base, made) == ["x"]


async def test_what_is_recorded_later_knows_the_folder(source: Path, state: Path) -> None:
    """Leaving a folder out of a commit changes nothing in what the work tree is known to hold."""
    workspace, base = await opened(state, source)
    (workspace.root / "bank").mkdir()
    (workspace.root / "bank" / "a.md").write_text("a")
    (workspace.root / "x").write_text("x")
    made = await workspace.commit("Work", BOT, AT, parent=base, without="bank")
    assert made is not None
    (workspace.root / "x").write_text("y")
    kept = await workspace.checkpoint(["x"], "by path", AT)
    assert await workspace.changed_paths(made, kept) == ["bank/a.md", "x"]


async def test_no_path_outside_is_left_out(source: Path, state: Path) -> None:
    """A path that leaves the tree is refused."""
    workspace, base = await opened(state, source)
    for path in ("../x", "/x", "."):
        with pytest.raises(WorkspaceError):
            await workspace.commit("Work", BOT, AT, parent=base, without=path)


async def test_the_files_of_a_folder_are_listed(source: Path, state: Path) -> None:
    """Regular files are listed with their sizes; folders, links and what is not there are not."""
    (source / "link.md").symlink_to("README.md")
    (source / "linked").symlink_to("src")
    add(source, {"sp ace/ü.md": "abc"})
    workspace, base = await opened(state, source)
    top = await workspace.files_at(base, ".")
    assert top == {"README.md": 6, ".gitignore": 13, "crlf.txt": 8, ".gitattributes": 21}
    assert await workspace.files_at(base, "src") == {"app.py": 11}
    assert await workspace.files_at(base, "sp ace") == {"ü.md": 3}
    for nothing in ("linked", "README.md", "nowhere", "src/../src/nowhere"):
        assert await workspace.files_at(base, nothing) == {}
    for outside in ("..", "/etc", "../x"):
        with pytest.raises(WorkspaceError):
            await workspace.files_at(base, outside)
    with pytest.raises(WorkspaceError):
        await workspace.files_at("0" * 40, "src")


async def test_files_of_one_name_are_found_in_all_folders(source: Path, state: Path) -> None:
    """By their whole names, as of the commit; what changed since plays no part."""
    add(source, {"R.md": "a", "sp ace/ü/R.md": "b", "src/xR.md": "c", "R.md.d/x": "d"})
    workspace, base = await opened(state, source)
    (workspace.root / "src" / "R.md").write_text("e")
    assert await workspace.paths_named(base, "R.md") == {"R.md", "sp ace/ü/R.md"}
    assert await workspace.paths_named(base, "nowhere") == set()


async def test_another_branch_comes_within_reach(server: GitServer, state: Path, tmp_path: Path) -> None:
    """The newest commit of a branch that the work does not stand on can be read beside it."""
    person = tmp_path / "person"
    bare = server.root / "acme" / "web.git"
    git(tmp_path, "clone", "--quiet", str(bare), str(person))
    git(person, "checkout", "--quiet", "-b", "work")
    first = add(person, {"AGENTS.md": "theirs"})
    git(person, "push", "--quiet", "origin", "work")
    origin = Origin("github-1", f"{server.url}/acme/web.git", tokens("read-token"))
    workspaces = GitWorkspaces(state)
    made = await workspaces.open("t1", origin, "work")
    git(person, "checkout", "--quiet", "main")
    newest = add(person, {"AGENTS.md": "ours"})
    git(person, "push", "--quiet", "origin", "main")
    assert await workspaces.fetch("t1", origin, "main") == newest
    assert await made.workspace.read_at(newest, "AGENTS.md") == b"ours"
    assert (made.base, (made.workspace.root / "AGENTS.md").read_text()) == (first, "theirs")
    with pytest.raises(RepositoryRefused):
        await workspaces.fetch("t1", origin, "gone")


async def test_a_checkouts_own_branch_is_within_reach(source: Path, state: Path) -> None:
    """In a person's checkout nothing is brought."""
    assert await InPlaceWorkspaces(state).fetch("t1", local(source), "main") == git(source, "rev-parse", "main")
