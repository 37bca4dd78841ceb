import os
import shutil
from dataclasses import replace
from pathlib import Path

from bot.domain.changes import FileChange
from tests.unit.workspace.helpers import AT, BOT, git, opened, seed


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
