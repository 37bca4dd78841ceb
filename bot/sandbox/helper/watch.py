"""What a command uses up together with all its children, looked at while it runs: no limit of one process says it."""

# Importing pathlib would take longer than all the rest of the start.
# ruff: noqa: PTH101, PTH106, PTH108, PTH116, PTH123, PTH208

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress

PERIOD_S = 0.25
"""Between two looks."""
_SUSPICIOUS = 64 << 20
"""Bytes by which the disk has to fill before the folders are counted."""
_SUSPICIOUS_FILES = 20_000
_LARGEST_SHARE = 0.2
"""Of the time that counting folders may take."""
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Watch:
    """Says which limit is broken, if any."""

    def __init__(self, folders: Sequence[str], *, memory: int, processes: int, disk: int, files: int) -> None:
        """Watch until the helper ends.

        Args:
            folders: everything that commands may write to.
            memory: bytes of all processes, pages of files not counted; and bytes by which the shared memory of the
                machine may grow, since that belongs to no process.
            processes: how many at once, their threads counted.
            disk: bytes of all files in the folders.
            files: how many there may be.
        """
        self._folders = folders
        self._memory, self._processes, self._disk, self._files = memory, processes, disk, files
        self._free: list[tuple[int, int]] = []
        self._shared = 0
        self._next = 0.0
        self._next_count = 0.0

    def begin(self) -> None:
        """Begin with a command; one that is short is not looked at."""
        if not self._free:
            self._free, self._shared = _free(self._folders), _shared_memory()
        self._next = time.monotonic() + PERIOD_S

    def due(self, now: float) -> float:
        """Seconds until the next look."""
        return max(0.0, self._next - now)

    def complaint(self, running: Callable[[], Sequence[int]]) -> str | None:
        """Look at what runs, where it is time to: `memory`, `processes`, `disk` or nothing."""
        now = time.monotonic()
        if now < self._next:
            return None
        self._next = now + PERIOD_S
        pids = running()
        if sum(map(_threads_of, pids)) > self._processes:
            return "processes"
        if max(sum(map(_memory_of, pids)), _shared_memory() - self._shared) > self._memory:
            return "memory"
        return "disk" if self.full() else None

    def full(self) -> bool:
        """Whether the folders hold too much; they are counted only where the disk has filled by much."""
        if all(
            before[0] - after[0] < _SUSPICIOUS and before[1] - after[1] < _SUSPICIOUS_FILES
            for before, after in zip(self._free, _free(self._folders))  # noqa: B905 - Python 3.9
        ):
            return False
        now = time.monotonic()
        if now < self._next_count:
            return False
        held = files = 0
        for folder in self._folders:
            size, count = _count(folder, self._disk - held, self._files - files)
            held, files = held + size, files + count
        took = time.monotonic() - now
        self._next_count = now + took / _LARGEST_SHARE
        return held > self._disk or files > self._files


def _free(folders: Sequence[str]) -> list[tuple[int, int]]:
    """Bytes and files that the file system of each folder has room for."""
    found = []
    for folder in folders:
        facts = os.statvfs(folder)
        found.append((facts.f_bavail * facts.f_frsize, facts.f_favail))
    return found


def _count(folder: str, bytes_left: int, files_left: int) -> tuple[int, int]:
    """Count bytes and files below a folder, up to just over what is left; links are not followed."""
    held = files = 0
    waiting = [folder]
    while waiting and held <= bytes_left and files <= files_left:
        place = waiting.pop()
        try:
            with _listed(place) as entries:
                for entry in entries:
                    with suppress(FileNotFoundError):
                        held += entry.stat(follow_symlinks=False).st_blocks * 512
                        files += 1
                        if entry.is_dir(follow_symlinks=False):
                            waiting.append(entry.path)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:
            # Too deep, or shut for good: what cannot be counted counts as too much.
            return bytes_left + 1, files_left + 1
    return held, files


def _listed(folder: str) -> AbstractContextManager[Iterator[os.DirEntry[str]]]:
    """List a folder, also one that was shut to hide what is in it."""
    try:
        return os.scandir(folder)
    except PermissionError:
        os.chmod(folder, 0o700)
        return os.scandir(folder)


def _threads_of(pid: int) -> int:
    """How many a process has; 1 where it has just ended."""
    with suppress(OSError):
        # Two of the links are those that each folder has.
        return max(1, os.stat(f"/proc/{pid}/task").st_nlink - 2)
    return 1


def threads_of_user() -> int:
    """How many all processes of this uid have."""
    found = 0
    for name in os.listdir("/proc"):
        with suppress(OSError):
            if name.isdigit() and os.stat(f"/proc/{name}").st_uid == os.getuid():
                found += _threads_of(int(name))
    return found


def _shared_memory() -> int:
    """Bytes of the machine that are in no file of a disk and in no single process."""
    with suppress(OSError), open("/proc/meminfo", "rb") as file:
        return next((int(line.split()[1]) << 10 for line in file if line.startswith(b"Shmem:")), 0)
    return 0


def _memory_of(pid: int) -> int:
    """Bytes that a process has for itself."""
    with suppress(OSError, ValueError), open(f"/proc/{pid}/statm", "rb") as file:
        _, resident, shared, *_ = map(int, file.read().split())
        return (resident - shared) * _PAGE
    return 0


def forget(folder: str) -> None:
    """Remove what this uid left in a folder that it shares with others, and nothing of theirs."""
    waiting, emptied = [folder], []
    while waiting:
        with suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                with suppress(OSError):
                    if entry.stat(follow_symlinks=False).st_uid != os.getuid():
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                        emptied.append(entry.path)
                    else:
                        os.unlink(entry.path)
    for path in reversed(emptied):
        with suppress(OSError):
            os.rmdir(path)
