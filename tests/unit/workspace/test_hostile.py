import ast
import os
import time
from pathlib import Path

import pytest

import bot
from bot.errors import RepositoryRefused
from bot.workspace.clone import GitWorkspaces
from bot.workspace.paths import is_dot_git
from bot.workspace.worktree import GitWorkspace
from tests.unit.workspace.githttp import GitServer
from tests.unit.workspace.helpers import AT, BOT, entries, git, local, marks, opened, seed
from tests.unit.workspace.test_remote import bare, origin


def poison(root: Path, marker: Path) -> None:
    """Put everything into a work tree that has ever made git run a program."""

    def run(name: str) -> str:
        return f"touch {marker}/{name}; cat"

    for place in (root, root / "src"):
        (place / ".git").unlink(missing_ok=True)
        git(place, "init", "--quiet")
        hooks = place / ".git" / "hooks"
        hooks.mkdir(exist_ok=True)
        for name in (
            "pre-commit",
            "post-commit",
            "pre-push",
            "post-checkout",
            "post-index-change",
            "reference-transaction",
        ):
            (hooks / name).write_text(f"#!/bin/sh\n{run(name)}\n")
            (hooks / name).chmod(0o755)
        config = {
            "core.fsmonitor": run("fsmonitor"),
            "core.hooksPath": str(hooks),
            "core.sshCommand": run("ssh"),
            "core.pager": run("pager"),
            "core.editor": run("editor"),
            "filter.evil.clean": run("clean"),
            "filter.evil.smudge": run("smudge"),
            "filter.evil.process": run("process"),
            "filter.evil.required": "true",
            "diff.evil.command": run("diff"),
            "diff.evil.textconv": run("textconv"),
            "diff.external": run("external"),
            "merge.evil.driver": run("merge"),
            "credential.helper": f"!{run('credential')}",
            "gpg.program": run("gpg"),
            "commit.gpgSign": "true",
            "uploadpack.packObjectsHook": run("pack"),
            "url.ext::sh -c touch% x.insteadOf": "http",
            "remote.origin.url": f"ext::sh -c {run('ext')}",
            "submodule.evil.update": f"!{run('update')}",
        }
        for key, value in config.items():
            git(place, "config", key, value)
        (place / ".gitattributes").write_text("* filter=evil diff=evil merge=evil text eol=crlf ident\n")
        (place / ".gitmodules").write_text(
            f'[submodule "evil"]\n\tpath = evil\n\turl = x\n\tupdate = !{run("module")}\n'
        )
        (place / ".lfsconfig").write_text("[lfs]\n\turl = http://127.0.0.1:9/\n")
        (place / ".gitconfig").write_text(f"[core]\n\tfsmonitor = {run('home')}\n")
    (root / "evil").mkdir()
    (root / "evil" / ".git").write_text(f"gitdir: {root}/src/.git\n")
    (root / "dangling.git").symlink_to(root / ".git")


async def test_poisoned_tree_runs_nothing(server: GitServer, state: Path, tmp_path: Path) -> None:
    """Over a whole task no program of the work tree runs, and the right commit arrives."""
    marker = tmp_path / "markers"
    marker.mkdir()
    workspaces = GitWorkspaces(state)
    made = await workspaces.open("t1", origin(server), "main")
    workspace = made.workspace
    (workspace.root / "src" / "app.py").write_text("print('good')\n")
    poison(workspace.root, marker)
    marked = marks(marker)
    await workspace.checkpoint(["src/app.py", ".gitattributes"], "m", AT)
    checkpoint = await workspace.checkpoint(None, "m", AT)
    commit = await workspace.commit("Fix", BOT, AT, parent=made.base)
    assert commit is not None
    assert "print('good')" in await workspace.diff(made.base, commit, limit_chars=100_000)
    await workspace.diff_stat(made.base, commit)
    await workspace.push(commit, "agent/1-a", expected=None)
    await workspace.restore(made.base)
    await workspace.restore(checkpoint)
    await workspaces.open("t1", origin(server), "main", commit=checkpoint)
    assert marks(marker) == marked
    pushed = entries(bare(server), "agent/1-a")
    assert not [name for name in pushed if "/.git/" in f"/{name}/"]
    assert "160000" not in pushed.values()
    control = tmp_path / "control"
    (control / "src").mkdir(parents=True)
    poison(control, marker)
    git(control, "status")
    assert marks(marker) != marked, "the poison works where git reads it"
    assert git(bare(server), "show", "agent/1-a:src/app.py") == "print('good')"


async def test_repository_with_filters_runs_nothing(state: Path, source: Path, tmp_path: Path) -> None:
    """A repository whose own files name filters and submodules is checked out byte by byte."""
    marker = tmp_path / "markers"
    marker.mkdir()
    (source / "data.bin").write_bytes(b"version https://git-lfs.github.com/spec/v1\n$Id$\r\n")
    (source / ".gitattributes").write_text("*.bin filter=lfs ident working-tree-encoding=UTF-16\n")
    (source / ".gitmodules").write_text(
        f'[submodule "x"]\n\tpath = x\r\n\turl = ext::touch {marker}/x\n\tupdate = !touch {marker}/y\n'
    )
    (source / "payload").symlink_to(".git/hooks")
    git(source, "-c", "core.attributesFile=/dev/null", "add", "--", ".gitattributes", ".gitmodules", "payload")
    blob = git(source, "hash-object", "-w", "--no-filters", "data.bin")
    git(source, "update-index", "--add", "--cacheinfo", f"100644,{blob},data.bin")
    git(source, "commit", "--quiet", "--message=filters")
    workspace, base = await opened(state, source)
    assert (workspace.root / "data.bin").read_bytes() == b"version https://git-lfs.github.com/spec/v1\n$Id$\r\n"
    assert await workspace.checkpoint(None, "m", AT) == base
    assert marks(marker) == []


def tree(folder: Path, rows: list[tuple[str, str, bytes]]) -> str:
    """Write a tree object that git's own commands would refuse to make."""
    data = b"".join(mode.encode() + b" " + name + b"\0" + bytes.fromhex(sha) for mode, sha, name in rows)
    return git(folder, "hash-object", "-t", "tree", "-w", "--literally", "--stdin", stdin=data)


def point(folder: Path, made: str) -> None:
    """Make a tree the tip of `main`."""
    commit = git(folder, "commit-tree", "-m", "evil", made)
    git(folder, "update-ref", "refs/heads/main", commit)


@pytest.mark.parametrize(
    "name",
    [
        b".git",
        b".GIT",
        b".git.",
        b".git ",
        b".git. .",
        b"git~1",
        b"GIT~1",
        b".git:x",
        b"..",
        b"a\\.git",
        ".g\u200cit".encode(),
    ],
)
async def test_unsafe_paths(state: Path, source: Path, name: bytes) -> None:
    """A repository with a path that some system takes for git's own folder, or that leaves the tree, is refused."""
    blob = git(source, "rev-parse", "HEAD:README.md")
    inner = tree(source, [("100644", blob, b"config")])
    point(source, tree(source, [("40000", inner, name)]))
    with pytest.raises(RepositoryRefused, match="cannot be checked out"):
        await opened(state, source)
    assert not (state / "tasks" / "t1" / "tree").exists()


def test_innocent_names() -> None:
    """Names that only look like git's are taken."""
    for name in (b".gitignore", b".github", b"git", b"a.git", b"git~2", b"digit", b".gitmodules", "…".encode()):
        assert not is_dot_git(name)


async def test_git_bomb(state: Path, source: Path) -> None:
    """A few kilobytes that unfold to ten thousand million files are refused at once."""
    made = git(source, "hash-object", "-w", "--stdin", stdin=b"x")
    mode = "100644"
    for _ in range(10):
        made = tree(source, [(mode, made, b"%d" % number) for number in range(10)])
        mode = "40000"
    point(source, made)
    start = time.monotonic()
    with pytest.raises(RepositoryRefused, match="too large: more than 50,000 files or folders"):
        await opened(state, source)
    assert time.monotonic() - start < 5


async def test_folder_bomb(state: Path, source: Path) -> None:
    """Folders alone count too."""
    made = git(source, "mktree", stdin=b"")
    for _ in range(6):
        made = tree(source, [("40000", made, b"%d" % number) for number in range(10)])
    point(source, made)
    with pytest.raises(RepositoryRefused, match="too large"):
        await opened(state, source)


async def test_too_many_bytes(state: Path, source: Path) -> None:
    """The size of all files is known before one is written."""
    with pytest.raises(RepositoryRefused, match="MiB"):
        await GitWorkspaces(state, max_bytes=20).open("t1", local(source), "main")


async def test_paths_of_any_length(state: Path, source: Path) -> None:
    """A path longer than the system takes is refused, and so is one that is too deep."""
    made, mode = git(source, "rev-parse", "HEAD:README.md"), "100644"
    for _ in range(140):
        made, mode = tree(source, [(mode, made, b"d" * 10)]), "40000"
    point(source, made)
    with pytest.raises(RepositoryRefused, match="deeper than"):
        await opened(state, source)


async def test_hard_link_to_anothers_file(state: Path, source: Path, tmp_path: Path) -> None:
    """Where the server is root, a hard link to a file of somebody else is not read."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    made = await GitWorkspaces(state).open("t1", local(source), "main")
    secret = tmp_path / "secret"
    secret.write_text("secret")
    os.link(secret, made.workspace.root / "innocent")
    assert await made.workspace.checkpoint(None, "m", AT) == made.base
    assert isinstance(made.workspace, GitWorkspace)
    assert "innocent" in made.workspace.left_out


def test_nobody_mutates_through_gitpython() -> None:
    """In `bot/` no call of GitPython changes anything, and git is started by one module only."""
    changing = {
        "clone_from", "clone", "fetch", "pull", "push", "submodule_update", "create_head", "create_tag",
        "create_remote", "checkout", "commit_tree", "index", "git", "init",
        "archive", "set_reference", "set_commit", "write_tree",
    }  # fmt: skip
    room = Path(bot.__file__).parent
    starters = set()
    for path in room.rglob("*.py"):
        if "testing" in path.parts:
            continue
        module = ast.parse(path.read_text())
        imports = [node for node in ast.walk(module) if isinstance(node, ast.Import | ast.ImportFrom)]
        named = {
            alias.name if isinstance(node, ast.Import) else node.module or ""
            for node in imports
            for alias in node.names
        }
        if named & {"git", "gitdb"} or any(name.startswith(("git.", "gitdb.")) for name in named):
            attributes = {node.attr for node in ast.walk(module) if isinstance(node, ast.Attribute)}
            assert not attributes & changing, path
        words = [node.value for node in ast.walk(module) if isinstance(node, ast.Constant)]
        if "git" in words and any("subprocess" in ast.dump(node) for node in ast.walk(module)):
            starters.add(path.relative_to(room).as_posix())
    assert {name for name in starters if name.startswith("workspace/")} == {"workspace/git.py"}


async def test_seeded_names(tmp_path: Path, state: Path) -> None:
    """Names that differ in case only, with spaces, quotes and newlines, are all written and recorded."""
    source = tmp_path / "odd"
    seed(
        source,
        {"A.txt": "1", "a.txt": "2", "with space": "3", 'quo"te': "4", "new\nline": "5", "-dash": "6", ":(top)": "7"},
    )
    workspace, base = await opened(state, source)
    assert (workspace.root / "a.txt").read_text() == "2"
    (workspace.root / ":(top)").write_text("8")
    changed = await workspace.checkpoint([":(top)"], "m", AT)
    assert await workspace.changed_paths(base, changed) == [":(top)"]
    assert await workspace.read_at(base, "new\nline") == b"5"
