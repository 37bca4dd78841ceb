import asyncio
import os
from pathlib import Path

import pytest

from bot.errors import OperatorError, WorkspaceError
from bot.workspace import files
from bot.workspace.clone import GitWorkspaces
from tests.unit.workspace.helpers import AT, add, below, local

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives uids away")


async def test_each_task_has_its_own(source: Path, state: Path) -> None:
    """Live tasks never share a uid, keep it over restarts, and give it back when they are forgotten."""
    pool = range(61_000, 61_003)
    workspaces = GitWorkspaces(state, uids=pool)
    opened = await asyncio.gather(*(workspaces.open(f"t{n}", local(source), "main") for n in range(3)))
    owners = {f"t{n}": made.owner_uid for n, made in enumerate(opened)}
    assert set(owners.values()) == set(pool)
    again = await GitWorkspaces(state, uids=pool).open("t1", local(source), "main")
    assert again.owner_uid == owners["t1"]
    with pytest.raises(WorkspaceError, match="all 3 uids"):
        await workspaces.open("t3", local(source), "main")
    await workspaces.forget("t1")
    assert (await workspaces.open("t4", local(source), "main")).owner_uid == owners["t1"]


async def test_owner_of_everything(source: Path, state: Path) -> None:
    """Every entry of the tree belongs to its uid, also after a restore; git's side is root's alone."""
    (source / "link").symlink_to("/etc/passwd")
    add(source, {"deep/er/x": "x"})
    made = await GitWorkspaces(state).open("t1", local(source), "main")
    uid = made.owner_uid
    assert uid
    root = made.workspace.root
    (root / "src" / "app.py").unlink()
    (root / "deep" / "er" / "x").unlink()
    (root / "deep" / "er").rmdir()
    (root / "link").unlink()
    await made.workspace.restore(made.base)
    assert await made.workspace.checkpoint(None, "m", AT) == made.base
    assert {path.lstat().st_uid for path in [root, *below(root)]} == {uid}
    assert files.status_of(0, b"/etc/passwd").st_uid == 0
    task = root.parent
    assert (task.stat().st_uid, task.stat().st_mode & 0o777) == (0, 0o711)
    assert ((task / "repository.git").stat().st_uid, (task / "repository.git").stat().st_mode & 0o777) == (0, 0o700)
    assert root.stat().st_mode & 0o777 == 0o700


async def test_root_is_never_given(source: Path, state: Path) -> None:
    """A pool that holds root is the operator's mistake."""
    with pytest.raises(OperatorError, match="above 0"):
        await GitWorkspaces(state, uids=[0, 1]).open("t1", local(source), "main")
