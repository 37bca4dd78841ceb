"""A commit of one file, with real git."""

from pathlib import Path

import pytest

from bot.errors import WorkspaceError
from bot.workspace.base import Identity
from tests.unit.workspace.helpers import AT, add, git, opened

US = Identity("wright[bot]", "1+wright[bot]@users.noreply.github.com")


async def test_one_file_is_another_and_all_else_stays(source: Path, state: Path) -> None:
    """It is put, replaced and taken away, each on top of the one before; the same again gives the same id."""
    add(source, {"a.py": "old\n", "docs/b.md": "b\n"})
    workspace, base = await opened(state, source)
    put = await workspace.with_file(base, "PLAN.md", b"one\n", US, AT, "Plan")
    assert put == await workspace.with_file(base, "PLAN.md", b"one\n", US, AT, "Plan")
    other = await workspace.with_file(put, "PLAN.md", b"two\n", US, AT, "Plan")
    gone = await workspace.with_file(other, "PLAN.md", None, US, AT, "Gone")
    assert git(workspace.git_dir, "diff", "--name-status", base, put) == "A\tPLAN.md"
    assert git(workspace.git_dir, "diff", "--name-status", put, other) == "M\tPLAN.md"
    assert await workspace.read_at(other, "PLAN.md") == b"two\n"
    assert await workspace.tree_of(gone) == await workspace.tree_of(base)
    assert git(workspace.git_dir, "rev-list", gone).split() == [
        gone,
        other,
        put,
        *git(source, "rev-list", base).split(),
    ]
    assert git(workspace.git_dir, "log", "-1", "--format=%an %s", put) == "wright[bot] Plan"
    git(workspace.git_dir, "fsck", "--strict")
    assert not (workspace.root / "PLAN.md").exists()
    assert await workspace.checkpoint(None, "again", AT) == base


@pytest.mark.parametrize("path", ["../outside", "/etc/passwd", "."])
async def test_no_path_leads_outside(source: Path, state: Path, path: str) -> None:
    """Only files of the repository."""
    workspace, base = await opened(state, source)
    with pytest.raises(WorkspaceError, match="no path inside"):
        await workspace.with_file(base, path, b"x", US, AT, "No")
