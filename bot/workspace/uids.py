"""Gives each task an unprivileged uid of its own, where the server is root."""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

from bot.errors import OperatorError, WorkspaceError
from bot.workspace import atomic
from bot.workspace.locks import locked

POOL = range(60_000, 60_064)
"""Between Debian's ordinary users and `nobody`; nothing else gives these out."""
_RECORD = "uid"


async def allocate(tasks: Path, task: str, pool: Sequence[int]) -> int | None:
    """Return the task's uid, the same after a restart; None where the server is not root.

    Args:
        tasks: the folder of all tasks.
        task: the name of the task's folder in it, which exists.
        pool: uids to choose from.

    Raises:
        WorkspaceError: every uid belongs to a task.
        OperatorError: the pool holds root.
    """
    if os.geteuid() != 0:
        return None
    if not pool or min(pool) <= 0:
        raise OperatorError("the pool of uids for work trees must hold uids above 0 only")
    async with locked(tasks / ".uids.lock"):
        return await asyncio.to_thread(_choose, tasks, tasks / task / _RECORD, pool)


def _choose(tasks: Path, record: Path, pool: Sequence[int]) -> int:
    if record.exists():
        return int(record.read_text())
    used = {int(path.read_text()) for path in tasks.glob(f"*/{_RECORD}")}
    free = next((uid for uid in pool if uid not in used), None)
    if free is None:
        raise WorkspaceError(f"all {len(pool)} uids belong to tasks; forget finished ones or enlarge the pool")
    atomic.replace(record, f"{free}\n".encode())
    return free


def require_passable(state: Path) -> None:
    """Refuse a state folder that other users cannot reach, where the server is root.

    Raises:
        OperatorError: with the folder that is closed, and what to do.
    """
    if os.geteuid() != 0:
        return
    closed = next((parent for parent in state.absolute().parents if not parent.stat().st_mode & 0o001), None)
    if closed is not None:
        raise OperatorError(
            f"{closed} is closed to other users, to whom the work trees in {state} belong when the server is root: "
            f"set `state_dir` to a folder elsewhere, as /var/lib/issuewright, or `chmod o+x {closed}`"
        )
