"""Who is alive: each worker holds a lock for as long as it lives, so that no heartbeat can lie."""

import fcntl
import os
from pathlib import Path
from typing import IO


class Liveness:
    """Locks in a folder that all workers of this state share."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._folder = folder
        self._held: IO[str] | None = None

    def hold(self, executor: str) -> None:
        """Hold the lock of this process until it ends, however it ends."""
        self._held = (self._folder / f"{executor}.lock").open("w")
        fcntl.flock(self._held, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def release(self) -> None:
        """Give the lock back and remove its file."""
        if self._held is not None:
            Path(self._held.name).unlink(missing_ok=True)
            self._held.close()
            self._held = None

    def is_dead(self, executor: str) -> bool:
        """Say whether nobody holds the lock of an executor."""
        try:
            descriptor = os.open(self._folder / f"{executor}.lock", os.O_RDWR)
        except FileNotFoundError:
            return True
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        finally:
            os.close(descriptor)
        return True
