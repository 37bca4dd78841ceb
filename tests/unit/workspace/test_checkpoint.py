import os
import shutil
import time
from pathlib import Path

import pytest

from bot.errors import WorkspaceError
from bot.workspace.clone import GitWorkspaces
from bot.workspace.worktree import GitWorkspace
from tests.unit.workspace.helpers import AT, BOT, add, entries, git, local, opened, seed


async def test_tree_equals_commit(source: Path, state: Path) -> None:
    """A fresh work tree holds the blobs' own bytes, whatever `.gitattributes` asks, and no `.git`."""
    workspace, base = await opened(state, source)
    assert base == git(source, "rev-parse", "main")
    for name in entries(source, base):
        blob = git(source, "rev-parse", f"{base}:{name}")
        assert git(source, "hash-object", "--no-filters", str(workspace.root / name)) == blob
    # Where commands look for git; nothing of ours reads it.
    assert (workspace.root / ".git").is_file()
    assert await workspace.checkpoint(None, "same", AT) == base


async def test_same_inputs_same_id(source: Path, state: Path, tmp_path: Path) -> None:
    """Two machines that make the same change get the same checkpoint and commit ids."""
    ids = []
    for folder in (state, tmp_path / "other"):
        workspace, base = await opened(folder, source)
        (workspace.root / "src" / "app.py").write_text("print('b')\n")
        first = await workspace.checkpoint(["src/app.py"], "edit", AT)
        (workspace.root / "new.txt").write_text("n\n")
        second = await workspace.checkpoint(None, "run", AT)
        ids.append((first, second, await workspace.commit("Fix it", BOT, AT, parent=base)))
    assert ids[0] == ids[1]
    assert len(set(ids[0])) == 3


async def test_by_path_equals_full(source: Path, state: Path, tmp_path: Path) -> None:
    """Recording the changed paths gives the tree that git's own `add --all` gives."""
    workspace, _ = await opened(state, source)
    root = workspace.root
    (root / "src" / "lib" / "util.py").rename(root / "src" / "renamed.py")
    (root / "README.md").unlink()
    (root / "run.sh").write_text("#!/bin/sh\n")
    (root / "run.sh").chmod(0o755)
    (root / "link").symlink_to("src/app.py")
    (root / "dangling").symlink_to("/etc/shadow")
    (root / "empty").mkdir()
    (root / "crlf.txt").write_bytes(b"one\r\nthree\r\n")
    (root / os.fsdecode(b"caf\xe9")).write_text("latin\n")
    (root / "src" / "app.py").unlink()
    (root / "src" / "app.py").mkdir()
    (root / "src" / "app.py" / "inner").write_text("i\n")
    paths = ["src/lib/util.py", "src/renamed.py", "README.md", "run.sh", "link", "dangling", "empty", "crlf.txt"]
    by_path = await workspace.checkpoint([*paths, os.fsdecode(b"caf\xe9"), "src/app.py/inner"], "edit", AT)
    assert await workspace.checkpoint(None, "scan", AT) == by_path
    expected = tmp_path / "expected"
    git(source, "clone", "--quiet", str(source), str(expected))
    (expected / ".git" / "info" / "attributes").write_text("* -text\n")
    for path in [path for path in expected.iterdir() if path.name != ".git"]:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    shutil.copytree(root, expected, symlinks=True, dirs_exist_ok=True)
    git(expected, "add", "--all")
    assert git(workspace.git_dir, "rev-parse", f"{by_path}^{{tree}}") == git(expected, "write-tree")
    assert entries(workspace.git_dir, by_path)["run.sh"] == "100755"
    assert entries(workspace.git_dir, by_path)["link"] == "120000"
    git(workspace.git_dir, "fsck", "--strict")


async def test_folders_by_path(source: Path, state: Path) -> None:
    """A folder's path stands for all that is, or was, in it."""
    workspace, base = await opened(state, source)
    shutil.rmtree(workspace.root / "src")
    assert "src/app.py" not in entries(workspace.git_dir, await workspace.checkpoint(["src"], "gone", AT))
    (workspace.root / "deep" / "er").mkdir(parents=True)
    (workspace.root / "deep" / "er" / "x").write_text("x")
    assert "deep/er/x" in entries(workspace.git_dir, await workspace.checkpoint(["deep"], "new", AT))
    await workspace.restore(base)
    assert (workspace.root / "src" / "lib" / "util.py").read_text() == "X = 1\n"
    assert not (workspace.root / "deep").exists()


async def test_ignored_stays_out(source: Path, state: Path) -> None:
    """An ignored file is in no checkpoint, also when its path is given, and a tracked one is however ignored."""
    workspace, base = await opened(state, source)
    (workspace.root / "build").mkdir()
    (workspace.root / "build" / "out").write_text("o")
    (workspace.root / "x.log").write_text("l")
    assert await workspace.checkpoint(["build/out", "x.log"], "m", AT) == base
    assert await workspace.checkpoint(None, "m", AT) == base
    (workspace.root / ".gitignore").write_text("*.py\n")
    (workspace.root / "src" / "app.py").write_text("print('c')\n")
    changed = await workspace.checkpoint(None, "m", AT)
    assert await workspace.changed_paths(base, changed) == [".gitignore", "build/out", "src/app.py", "x.log"]


async def test_quick_rewrites_are_seen(source: Path, state: Path) -> None:
    """A file that is rewritten with the same length right after a checkpoint is recorded again."""
    workspace, _ = await opened(state, source)
    seen = set()
    for number in range(100, 140):
        (workspace.root / "src" / "app.py").write_text(f"{number}\n")
        seen.add(await workspace.checkpoint(None, "m", AT))
    assert len(seen) == 40


async def test_left_out(source: Path, state: Path) -> None:
    """What no commit may hold is named with its reason: large files, pipes, repositories of their own."""
    made = await GitWorkspaces(state, max_file_bytes=100).open("t1", local(source), "main")
    root = made.workspace.root
    (root / "large").write_bytes(b"x" * 101)
    os.mkfifo(root / "pipe")
    os.mkfifo(root / "src" / ".gitignore")
    seed(root / "vendor" / "other", {"a": "b"})
    git(root, "init", "--quiet", "--bare", "bare.git")
    git(root, "init", "--quiet")
    assert await made.workspace.checkpoint(None, "m", AT) == made.base
    assert isinstance(made.workspace, GitWorkspace)
    assert made.workspace.left_out == {
        "bare.git": "a bare repository",
        "large": "larger than 0 MiB",
        "pipe": "a pipe, socket or device",
        "src/.gitignore": "a pipe, socket or device",
        "vendor/other": "a repository of its own",
    }
    assert await made.workspace.checkpoint(["vendor/other/a", ".git/config", "bare.git/HEAD"], "m", AT) == made.base


async def test_submodules_are_kept_and_left_out(source: Path, state: Path) -> None:
    """A submodule is not checked out, is reported, and survives every commit."""
    inner = seed(source.parent / "inner", {"a": "b"})
    git(source, "update-index", "--add", "--cacheinfo", f"160000,{inner},libs/inner")
    git(source, "commit", "--quiet", "--message=submodule")
    workspace, _ = await opened(state, source)
    assert not (workspace.root / "libs").exists()
    assert workspace.left_out == {"libs/inner": "a submodule"}
    (workspace.root / "libs" / "inner").mkdir(parents=True)
    (workspace.root / "libs" / "inner" / "x").write_text("x")
    (workspace.root / "new").write_text("n")
    found = entries(workspace.git_dir, await workspace.checkpoint(None, "m", AT))
    assert found["libs/inner"] == "160000"
    assert "new" in found
    assert "libs/inner/x" not in found


async def test_restore_after_a_mess(source: Path, state: Path) -> None:
    """Whatever happened, restoring gives the commit's files back, keeps what is ignored, and writes outside never."""
    outside = source.parent / "outside"
    outside.mkdir()
    (outside / "kept").write_text("kept")
    workspace, base = await opened(state, source)
    root = workspace.root
    (root / "build").mkdir()
    (root / "build" / "cache").write_text("c")
    shutil.rmtree(root / "src")
    (root / "src").symlink_to(outside)
    (root / "README.md").unlink()
    (root / "README.md").mkdir()
    (root / "README.md" / "deep").mkdir()
    (root / "crlf.txt").unlink()
    os.mkfifo(root / "crlf.txt")
    (root / ".gitignore").write_text("*\n")
    (root / "hidden").write_text("by the line above")
    seed(root / "nested", {"a": "b"})
    deep = root / "deep"
    deep.mkdir()
    fd = os.open(deep, os.O_RDONLY)
    for _ in range(1_500):
        os.mkdir("d", dir_fd=fd)
        inner = os.open("d", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = inner
    os.close(fd)
    await workspace.checkpoint(None, "mess", AT)
    await workspace.restore(base)
    assert await workspace.checkpoint(None, "m", AT) == base
    assert sorted(path.name for path in root.iterdir()) == sorted(
        [".git", ".gitattributes", ".gitignore", "README.md", "build", "crlf.txt", "src"]
    )
    assert (root / "build" / "cache").read_text() == "c"
    assert [path.name for path in outside.iterdir()] == ["kept"]


async def test_restore_bare(source: Path, state: Path) -> None:
    """What is ignored goes too, whatever its modes, and nothing of what the commit holds."""
    workspace, base = await opened(state, source)
    root = workspace.root
    for folder in (root / "build" / "deep", root / "src" / "build"):
        folder.mkdir(parents=True)
        (folder / "cache.log").write_text("c")
        folder.chmod(0o500)
    (root / "build" / "link").symlink_to(source)
    seed(root / "build" / "nested", {"a": "b"})
    (root / "build").chmod(0)
    await workspace.restore(base, bare=True)
    assert await workspace.checkpoint(None, "m", AT) == base
    assert not (root / "build").exists()
    assert not (root / "src" / "build").exists()
    assert (source / "README.md").exists()
    assert sorted(path.name for path in root.iterdir()) == sorted(
        [".git", ".gitattributes", ".gitignore", "README.md", "crlf.txt", "src"]
    )


async def test_restore_between_checkpoints(source: Path, state: Path) -> None:
    """Each checkpoint can be gone back to, also by a process that never saw it."""
    workspace, base = await opened(state, source)
    (workspace.root / "one").write_text("1")
    one = await workspace.checkpoint(None, "one", AT)
    (workspace.root / "one").unlink()
    (workspace.root / "two").write_text("2")
    two = await workspace.checkpoint(None, "two", AT)
    await workspace.restore(one)
    assert (workspace.root / "one").exists()
    assert not (workspace.root / "two").exists()
    await workspace.close()
    with pytest.raises(WorkspaceError, match="closed"):
        await workspace.checkpoint(None, "m", AT)
    again = await GitWorkspaces(state).open("t1", local(source), "main", commit=two)
    assert again.base == two
    assert (again.workspace.root / "two").exists()
    assert await again.workspace.changed_paths(base, two) == ["two"]


async def test_commit(source: Path, state: Path) -> None:
    """A commit holds checkpoints and later work in one, on its parent, or is none where nothing changed."""
    workspace, base = await opened(state, source)
    assert await workspace.commit("Nothing", BOT, AT, parent=base) is None
    (workspace.root / "a").write_text("a\n")
    await workspace.checkpoint(["a"], "a", AT)
    (workspace.root / "b").write_text("b\n")
    made = await workspace.commit("Fix\n\nBecause", BOT, AT, parent=base)
    assert made is not None
    assert git(workspace.git_dir, "log", "-1", "--format=%P|%an|%ae|%ct|%B", made) == (
        f"{base}|{BOT.name}|{BOT.email}|{int(AT.timestamp())}|Fix\n\nBecause"
    )
    assert await workspace.changed_paths(base, made) == ["a", "b"]
    stat = await workspace.diff_stat(base, made)
    assert (stat.files, stat.insertions, stat.deletions) == (2, 2, 0)
    diff = await workspace.diff(base, made, limit_chars=10_000)
    assert "+a\n" in diff
    cut = await workspace.diff(base, made, limit_chars=60)
    assert diff.startswith(cut)
    assert cut.endswith("\n")
    (workspace.root / ":(glob)*").write_text("odd\n")
    odd = await workspace.checkpoint(None, "odd", AT)
    some = await workspace.diff(base, odd, limit_chars=10_000, paths=[":(glob)*", "b"])
    assert [line for line in some.split("\n") if line.startswith("+") and line[1:2] != "+"] == ["+odd", "+b"]
    assert await workspace.read_at(made, "a") == b"a\n"
    assert await workspace.read_at(base, "a") is None
    assert await workspace.read_at(base, "../a") is None
    with pytest.raises(WorkspaceError, match="not on this machine"):
        await workspace.read_at("0" * 40, "a")


async def test_paths_outside_are_refused(source: Path, state: Path) -> None:
    """A path that leaves the work tree is refused, and a link in it is not followed."""
    workspace, base = await opened(state, source)
    for path in ("../x", "/etc/passwd", "src/../../x", "."):
        with pytest.raises(WorkspaceError, match="no path inside"):
            await workspace.checkpoint([path], "m", AT)
    (workspace.root / "etc").symlink_to("/etc")
    found = entries(workspace.git_dir, await workspace.checkpoint(["etc/passwd"], "m", AT))
    assert found["etc"] == "120000"
    assert base


async def test_checkpoint_by_path_stays_flat(tmp_path: Path, state: Path) -> None:
    """One changed file among 5,000 is recorded without looking at the others."""
    source = tmp_path / "large"
    seed(source, {f"d{n % 50}/f{n}.py": f"print({n})\n" for n in range(5_000)})
    workspace, _ = await opened(state, source)
    taken = []
    for number in range(20):
        (workspace.root / "d3" / "f3.py").write_text(f"x = {number}\n")
        start = time.perf_counter()
        await workspace.checkpoint(["d3/f3.py"], "m", AT)
        taken.append(time.perf_counter() - start)
    # Some 1 ms on an idle machine; a look at every file takes 30 ms.
    assert sorted(taken)[5] < 0.015


async def test_growth_is_limited(source: Path, state: Path) -> None:
    """A tree that outgrows its limit is not recorded, and the text says what to do."""
    made = await GitWorkspaces(state, max_files=20).open("t1", local(source), "main")
    for number in range(30):
        (made.workspace.root / f"f{number}").write_text("x")
    with pytest.raises(WorkspaceError, match="delete what was generated"):
        await made.workspace.checkpoint(None, "m", AT)


async def test_moved_branch(source: Path, state: Path) -> None:
    """A task that is taken up again without a commit stands on the branch's new tip."""
    workspace, _ = await opened(state, source)
    (workspace.root / "stray").write_text("s")
    tip = add(source, {"later": "l"})
    workspace, base = await opened(state, source)
    assert base == tip
    assert (workspace.root / "later").exists()
    assert not (workspace.root / "stray").exists()


async def test_what_the_repository_tracks_is_not_ignored_when_it_is_made_anew(state: Path, tmp_path: Path) -> None:
    """A tracked file that `.gitignore` names stays the repository's when it is gone for a while, also across lives."""
    source = tmp_path / "forced"
    seed(source, {"a.txt": "a\n"})
    (source / "dist").mkdir()
    (source / "dist" / "app.js").write_text("1\n")
    (source / ".gitignore").write_text("dist/\n*.log\n")
    (source / "run.log").write_text("1\n")
    git(source, "add", "--force", "--all")
    git(source, "commit", "--quiet", "--message=built")
    workspace, base = await opened(state, source)
    root = workspace.root
    shutil.rmtree(root / "dist")
    (root / "run.log").unlink()
    gone = await workspace.checkpoint(None, "clean", AT)
    assert entries(workspace.git_dir, gone).keys() == {".gitignore", "a.txt"}

    def build() -> None:
        (root / "dist").mkdir()
        for path in ("dist/app.js", "dist/more.js", "run.log", "other.log"):
            (root / path).write_text("2\n")

    build()
    built = await workspace.checkpoint(None, "build", AT)
    assert entries(workspace.git_dir, built).keys() == {".gitignore", "a.txt", "dist/app.js", "run.log"}
    again = (await GitWorkspaces(state).open("t1", local(source), "main", commit=gone)).workspace
    assert isinstance(again, GitWorkspace)
    shutil.rmtree(root / "dist", ignore_errors=True)
    build()
    made = await again.commit("Build", BOT, AT, parent=base)
    assert made is not None
    assert await again.changed_paths(base, made) == ["dist/app.js", "run.log"]


async def test_a_path_that_nobody_could_check_out_is_left_out(source: Path, state: Path) -> None:
    """What a command made deeper than a path may be long is told, and what is kept can be opened again."""
    workspace, base = await opened(state, source)
    folder = os.open(workspace.root, os.O_RDONLY)
    for _ in range(25):
        os.mkdir("d" * 200, dir_fd=folder)
        inner = os.open("d" * 200, os.O_RDONLY, dir_fd=folder)
        os.close(os.open("f", os.O_CREAT | os.O_WRONLY, dir_fd=inner))
        os.close(folder)
        folder = inner
    os.close(folder)
    kept = await workspace.checkpoint(None, "deep", AT)
    (left_out,) = workspace.left_out.items()
    assert len(left_out[0]) > 4_096
    assert left_out[1] == "a path longer than 4096 bytes"
    assert len(entries(workspace.git_dir, kept)) == len(entries(workspace.git_dir, base)) + 20
    await (await GitWorkspaces(state).open("t1", local(source), "main", commit=kept)).workspace.restore(kept)
