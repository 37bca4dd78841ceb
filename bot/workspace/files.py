"""Touches a work tree through open folders only and follows no link: others may change it at any moment."""

import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bot.errors import WorkspaceError

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# O_NONBLOCK: opening a pipe that somebody put there must not wait for a writer.
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_PATIENCE = 5


@contextmanager
def opened_root(path: Path) -> Iterator[int]:
    """Open a folder that we trust to be where its path says."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield fd
    finally:
        os.close(fd)


@contextmanager
def opened(parent: int, name: bytes) -> Iterator[int]:
    """Open a folder below an open one.

    Raises:
        OSError: it is a link, no folder, or gone.
    """
    fd = _open(parent, name, _FOLDER, 0o700)
    try:
        yield fd
    finally:
        os.close(fd)


@contextmanager
def readable(parent: int, name: bytes, owner: int | None) -> Iterator[tuple[int, os.stat_result]]:
    """Open a regular file for reading.

    Args:
        parent: its folder.
        name: its name there.
        owner: the uid that it has to belong to where it has several names: a hard link may lead out of the tree.

    Raises:
        OSError: it is none, or gone.
    """
    fd = _open(parent, name, _READ, 0o600)
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(f"{os.fsdecode(name)} is no regular file")
        if owner is not None and status.st_nlink > 1 and status.st_uid != owner:
            raise OSError(f"{os.fsdecode(name)} is a hard link to a file of another user")
        yield fd, status
    finally:
        os.close(fd)


def _open(parent: int, name: bytes, flags: int, needed: int) -> int:
    try:
        return os.open(name, flags, dir_fd=parent)
    except PermissionError:
        # Only a server that is not root comes here; it owns the tree, so a link put here gains nothing.
        if os.geteuid() == 0:
            raise
        os.chmod(name, needed, dir_fd=parent)
        return os.open(name, flags, dir_fd=parent)


def read_all(fd: int, limit: int) -> bytes:
    """Read a file to its end, at most `limit` + 1 bytes."""
    chunks: list[bytes] = []
    left = limit + 1
    while left > 0 and (chunk := os.read(fd, min(left, 1 << 20))):
        chunks.append(chunk)
        left -= len(chunk)
    return b"".join(chunks)


def unlock(fd: int) -> None:
    """Give ourselves the right to write in a folder of ours; root has it anyway."""
    mode = os.fstat(fd).st_mode
    if os.geteuid() != 0 and not mode & 0o200:
        os.fchmod(fd, stat.S_IMODE(mode) | 0o700)


def status_of(parent: int, name: bytes) -> os.stat_result:
    """Return the status of an entry itself, never of what it points to."""
    return os.stat(name, dir_fd=parent, follow_symlinks=False)


def names_in(fd: int) -> list[bytes]:
    """List a folder."""
    return [os.fsencode(name) for name in os.listdir(fd)]


def make_folder(parent: int, name: bytes, owner: int | None) -> None:
    """Make a folder, replacing whatever else has the name; one that is there stays."""
    for _ in range(_PATIENCE):
        try:
            os.mkdir(name, 0o755, dir_fd=parent)
        except FileExistsError:
            if stat.S_ISDIR(status_of(parent, name).st_mode):
                return
            remove(parent, name)
            continue
        with opened(parent, name) as fd:
            os.fchmod(fd, 0o755)
            if owner is not None:
                os.fchown(fd, owner, owner)
        return
    raise WorkspaceError(f"the folder `{os.fsdecode(name)}` changes while it is written")


def write_file(parent: int, name: bytes, mode: int, chunks: Iterable[bytes], owner: int | None) -> os.stat_result:
    """Write a new file in place of whatever has the name and return its status."""
    with suppress(FileNotFoundError):
        remove(parent, name)
    fd = os.open(name, _CREATE, 0o600, dir_fd=parent)
    try:
        for chunk in chunks:
            view = memoryview(chunk)
            while view:
                view = view[os.write(fd, view) :]
        os.fchmod(fd, 0o755 if mode & 0o100 else 0o644)
        if owner is not None:
            os.fchown(fd, owner, owner)
        return os.fstat(fd)
    finally:
        os.close(fd)


def write_link(parent: int, name: bytes, target: bytes, owner: int | None) -> None:
    """Write a symbolic link in place of whatever has the name."""
    with suppress(FileNotFoundError):
        remove(parent, name)
    os.symlink(target, name, dir_fd=parent)
    if owner is not None:
        os.chown(name, owner, owner, dir_fd=parent, follow_symlinks=False)


def remove(parent: int, name: bytes) -> None:
    """Remove an entry with all that is in it, however deep, with two open folders at most.

    Raises:
        FileNotFoundError: there is none.
        WorkspaceError: something keeps adding to it.
    """
    if not stat.S_ISDIR(status_of(parent, name).st_mode):
        os.unlink(name, dir_fd=parent)
        return
    pending = [name]
    while pending:
        folder = pending.pop()
        for _ in range(_PATIENCE):
            pending += _emptied(parent, folder)
            with suppress(OSError):
                os.rmdir(folder, dir_fd=parent)
                break
        else:
            raise WorkspaceError(f"the folder `{os.fsdecode(name)}` cannot be removed: something keeps writing to it")


def _emptied(parent: int, folder: bytes) -> list[bytes]:
    """Unlink a folder's files and move its folders beside it; return their new names."""
    moved: list[bytes] = []
    with opened(parent, folder) as fd:
        if os.geteuid() != 0:
            os.fchmod(fd, 0o700)
        for name in names_in(fd):
            with suppress(FileNotFoundError):
                if not stat.S_ISDIR(status_of(fd, name).st_mode):
                    os.unlink(name, dir_fd=fd)
                    continue
                if os.geteuid() != 0:
                    os.chmod(name, 0o700, dir_fd=fd)
                aside = f".removed-{secrets.token_hex(8)}".encode()
                os.rename(name, aside, src_dir_fd=fd, dst_dir_fd=parent)
                moved.append(aside)
    return moved
