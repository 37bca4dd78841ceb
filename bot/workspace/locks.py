"""Keeps tasks and processes of this machine out of each other's way, by locked files."""

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

_PAUSE_S = 0.02


@asynccontextmanager
async def locked(path: Path) -> AsyncIterator[None]:
    """Hold a file's lock; it goes with the process, so a killed one leaves none behind."""
    path.parent.mkdir(mode=0o711, parents=True, exist_ok=True)
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        # Polled, not waited for in a thread: a cancelled task must not take the lock later.
        while not _taken(fd):  # noqa: ASYNC110 another process sets no event
            await asyncio.sleep(_PAUSE_S)
        yield
    finally:
        os.close(fd)


def _taken(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
