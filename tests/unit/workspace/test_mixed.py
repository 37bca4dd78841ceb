"""A commit of two others' files, with real git."""

import os
from pathlib import Path

import pytest

from bot.errors import WorkspaceError
from tests.unit.workspace.helpers import AT, add, git, opened


async def test_paths_are_as_another_commit_has_them(source: Path, state: Path) -> None:
    """Files, links, modes and what is not there come from the other one; all else stays, and the work tree too."""
    add(source, {"a.py": "old\n", "tests/t.py": "old\n", "gone.py": "x\n", "run.sh": "#!/bin/sh\n"})
    (source / "run.sh").chmod(0o755)
    (source / "link").symlink_to("a.py")
    old = add(source, {})
    workspace, base = await opened(state, source)
    assert base == old
    for path in ("gone.py", "link", "run.sh"):
        (workspace.root / path).unlink()
    (workspace.root / "run.sh").write_text("true\n")
    (workspace.root / "new.py").write_text("new\n")
    (workspace.root / "tests/t.py").write_text("new\n")
    (workspace.root / "a.py").write_text("new\n")
    work = await workspace.checkpoint(None, "work", AT)
    paths = ["tests/t.py", "gone.py", "link", "run.sh", "new.py", "never/there.py"]
    mixed = await workspace.mixed(work, old, paths, AT)
    assert mixed == await workspace.mixed(work, old, paths, AT)
    assert git(workspace.git_dir, "diff", "--name-only", old, mixed) == "a.py"
    assert (workspace.root / "new.py").exists()
    git(workspace.git_dir, "fsck", "--strict")
    await workspace.restore(mixed)
    assert (workspace.root / "tests/t.py").read_text() == "old\n"
    assert os.access(workspace.root / "run.sh", os.X_OK)
    assert not (workspace.root / "new.py").exists()
    await workspace.restore(work)
    assert await workspace.checkpoint(None, "again", AT) == work
    assert await workspace.tree_of(mixed) == git(workspace.git_dir, "rev-parse", f"{mixed}^{{tree}}")


@pytest.mark.parametrize("path", ["../outside", "/etc/passwd", "."])
async def test_no_path_leads_outside(source: Path, state: Path, path: str) -> None:
    """Paths come from a diff, and are looked at all the same."""
    workspace, base = await opened(state, source)
    with pytest.raises(WorkspaceError, match="no path inside"):
        await workspace.mixed(base, base, [path], AT)
