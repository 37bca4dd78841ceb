import os
import shutil
from dataclasses import replace
from pathlib import Path

from bot.domain.changes import FileChange
from tests.unit.workspace.helpers import AT, BOT, add, git, opened, seed


async def test_modes_sizes_and_targets(state: Path, tmp_path: Path) -> None:
    """Each path that differs with what it was and is, sorted; and how many files there were."""
    source = tmp_path / "many"
    seed(source, {"a": "a\n", "b": "b\n", "c/d": "d\n", "e": "e\n", "same": "s\n"})
    workspace, base = await opened(state, source)
    root = workspace.root
    (root / "a").write_text("longer\n")
    (root / "b").chmod(0o755)
    shutil.rmtree(root / "c")
    (root / "e").unlink()
    (root / "e").symlink_to("../x")
    (root / "caf\u00e9\n").write_text("")
    (root / os.fsdecode(b"\xff")).symlink_to(os.fsdecode(b"to \xff"))
    made = await workspace.commit("Change", BOT, AT, parent=base)
    assert made is not None
    found, there = await workspace.changes(base, made)
    assert there == 5
    assert [replace(one, sha="", was="") for one in found] == sorted(
        [
            FileChange("a", 0o100644, 0o100644, 7, was_size=2),
            FileChange("b", 0o100644, 0o100755, 2, was_size=2),
            FileChange("c/d", 0o100644, 0, was_size=2),
            FileChange("caf\u00e9\n", 0, 0o100644, 0),
            FileChange("e", 0o100644, 0o120000, 4, "../x", was_size=2),
            FileChange(os.fsdecode(b"\xff"), 0, 0o120000, 4, os.fsdecode(b"to \xff")),
        ],
        key=lambda one: one.path,
    )
    assert await workspace.links(base) == {}
    assert await workspace.links(made) == {"e": "../x", os.fsdecode(b"\xff"): os.fsdecode(b"to \xff")}
    assert found[0].seal == "100644 " + git(root, "hash-object", "--no-filters", "a")
    assert next(one for one in found if one.path == "c/d").seal == f"0 {'0' * 40}"


async def test_a_submodule_has_no_size_and_nothing_may_differ(state: Path, tmp_path: Path) -> None:
    """What it names is a commit of another repository."""
    source = tmp_path / "many"
    base = seed(source, {"a": "a\n"})
    git(source, "update-index", "--add", "--cacheinfo", f"160000,{base},module")
    git(source, "commit", "--quiet", "--message=module")
    head = git(source, "rev-parse", "HEAD")
    workspace, _ = await opened(state, source)
    assert await workspace.changes(base, head) == ([FileChange("module", 0, 0o160000, 0, "", base, "0" * 40)], 1)
    assert await workspace.changes(head, head) == ([], 2)
    shown = await workspace.diff(base, head, limit_chars=1_000, paths=["module"])
    assert shown.endswith(f"+Subproject commit {base}\n")


async def test_too_many_paths_for_one_command_are_all(state: Path, tmp_path: Path) -> None:
    """The kernel takes a command of two MiB."""
    source = tmp_path / "many"
    base = seed(source, {"a": "a\n"})
    head = add(source, {"a": "b\n"})
    workspace, _ = await opened(state, source)
    paths = [f"{number:04}{'x' * 4_000}" for number in range(2_000)]
    assert "+b\n" in await workspace.diff(base, head, limit_chars=1_000, paths=paths)
