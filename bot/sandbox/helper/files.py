"""Files of the workspace, reached only through descriptors that the kernel keeps inside it."""

# Importing pathlib would take longer than all the rest of the start.
# ruff: noqa: PTH115

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from bot.sandbox.helper.frames import Head, Refusal
from bot.sandbox.helper.kernel import open_beneath, rename_new

FOLDER = os.O_PATH | os.O_DIRECTORY
_NEW_MODE = 0o644
_CHUNK = 1 << 20
PASSING = ".issuewright-*.tmp"
"""Names of files on their way to their own name."""
# Code points that HFS+ ignores in names.
_UNSEEN = dict.fromkeys([*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF])

_REASONS = {
    errno.ENOENT: "not_found: no such file",
    errno.ENOTDIR: "not_found: a part of the path is no folder",
    errno.EISDIR: "not_regular_file: this is a folder",
    errno.ENXIO: "not_regular_file: this is a socket or a device",
    errno.EXDEV: "path_outside_workspace: the path leaves the workspace",
    errno.ELOOP: "path_outside_workspace: the links on the path go round or leave the workspace",
    errno.EACCES: "permission_denied: the file or its folder cannot be used",
    errno.EPERM: "permission_denied: the file or its folder cannot be used",
    errno.ENAMETOOLONG: "bad_path: the name is too long",
    errno.EEXIST: "exists: there is something of this name already",
    errno.ENOTEMPTY: "not_regular_file: this is a folder",
    errno.ENOSPC: "no_space: the disk is full",
    errno.EDQUOT: "no_space: the quota is used up",
    errno.EFBIG: "too_large: the file would be larger than allowed",
    errno.EROFS: "permission_denied: the place is read-only",
    errno.EAGAIN: "busy: the folders are being renamed; try again",
}


@contextmanager
def explained(path: str) -> Iterator[None]:
    """Turn what the kernel refuses into words for the model."""
    try:
        yield
    except OSError as error:
        reason = _REASONS.get(error.errno or 0, f"failed: {error.strerror}")
        raise Refusal(f"{reason}: {path}") from error


def protected(path: str) -> bool:
    """Whether a part of the path is git's own folder, in any spelling that a file system may take for it."""
    plain = path.translate(_UNSEEN).replace("\\", "/")
    names = (part.partition(":")[0].rstrip(". ").casefold() for part in plain.split("/"))
    return any(name in {".git", "git~1"} for name in names)


def check(path: str) -> None:
    """Refuse what no kernel call should see."""
    if not path or "\0" in path:
        raise Refusal("bad_path: the path is empty or has a NUL character")
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        raise Refusal("bad_path: the path is no valid text") from None
    drive = path[1:2] == ":" and path[:1].isalpha() and path[2:3] in {"/", "\\"}
    if path.startswith(("/", "\\", "~/")) or drive or path == "~":
        raise Refusal(f"path_outside_workspace: give the path relative to the workspace: {path}")
    if protected(path):
        raise Refusal(f"protected_path: the harness alone touches .git: {path}")


def inside(root: int, fd: int, path: str) -> str:
    """Say where an open file really is, relative to the workspace; refuse git's own folder behind a link."""
    top = os.readlink(f"/proc/self/fd/{root}")
    real = os.readlink(f"/proc/self/fd/{fd}")
    if real == top:
        return "."
    if not real.startswith(top.rstrip("/") + "/"):
        raise Refusal(f"path_outside_workspace: the path leaves the workspace: {path}")
    found = real[len(top.rstrip("/")) + 1 :]
    if protected(found):
        raise Refusal(f"protected_path: the harness alone touches .git: {path}")
    return found


@contextmanager
def folder(path: str) -> Iterator[int]:
    """Open the workspace itself."""
    fd = os.open(path, FOLDER | os.O_CLOEXEC)
    try:
        yield fd
    finally:
        os.close(fd)


@contextmanager
def regular(root: int, path: str) -> Iterator[int]:
    """Open a regular file for reading."""
    fd = open_beneath(root, path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        facts = os.fstat(fd)
        if stat.S_ISDIR(facts.st_mode):
            raise Refusal(f"not_regular_file: this is a folder: {path}")
        if not stat.S_ISREG(facts.st_mode):
            raise Refusal(f"not_regular_file: this is a pipe or a device: {path}")
        if facts.st_nlink > 1 and facts.st_uid != os.getuid():
            raise Refusal(f"permission_denied: this is a hard link to a file of somebody else: {path}")
        yield fd
    finally:
        os.close(fd)


def _content(fd: int, limit: int, path: str) -> bytes:
    """Read a file whole; a larger one than `limit` is refused, also where it grows meanwhile."""
    size = os.fstat(fd).st_size
    data = bytearray()
    while size <= limit and len(data) <= limit:
        chunk = os.read(fd, _CHUNK)
        if not chunk:
            return bytes(data)
        data += chunk
    raise Refusal(f"too_large: {max(size, len(data))} bytes, at most {limit} can be read; use a command: {path}")


def _facts(fd: int, data: bytes) -> Head:
    mode = stat.S_IMODE(os.fstat(fd).st_mode)
    return {"size": len(data), "mode": mode, "sha256": hashlib.sha256(data).hexdigest()}


def read(top: str, path: str, limit: int, largest: int) -> tuple[Head, bytes]:
    """Read a regular file: its facts, and at most `limit` bytes of it."""
    check(path)
    with explained(path), folder(top) as root, regular(root, path) as fd:
        inside(root, fd, path)
        data = _content(fd, largest, path)
        return _facts(fd, data), data[:limit]


def split(path: str) -> tuple[str, str]:
    """Take a file's name from its folder's path."""
    parent, _, name = path.rpartition("/")
    if name in {"", ".", ".."}:
        raise Refusal(f"not_regular_file: the path names a folder: {path}")
    return parent or ".", name


@contextmanager
def parent_of(root: int, path: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
    """Open the folder of a file, made where it is missing."""
    parent, name = split(path)
    fd = _made(root, parent) if make else open_beneath(root, parent, FOLDER)
    try:
        inside(root, fd, path)
        yield fd, name
    finally:
        os.close(fd)


def _made(root: int, path: str) -> int:
    """Open a folder, making what is missing; every part is looked up from the root, so that inner links work."""
    try:
        return open_beneath(root, path, FOLDER)
    except FileNotFoundError:
        parent, _, name = path.rstrip("/").rpartition("/")
        if name in {"", ".", ".."}:
            raise
    above = _made(root, parent or ".")
    try:
        inside(root, above, path)
        with suppress(FileExistsError):
            os.mkdir(name, 0o755, dir_fd=above)
    finally:
        os.close(above)
    return open_beneath(root, path, FOLDER)


def replace(top: str, path: str, data: bytes, expected: str | None, largest: int) -> tuple[Head, bytes]:
    """Write a file whole: beside it first, then in its place."""
    check(path)
    with explained(path), folder(top) as root:
        try:
            with regular(root, path) as old:
                real = inside(root, old, path)
                mode = agreed(old, path, expected, largest)
        except FileNotFoundError:
            if expected is not None:
                raise Refusal(f"stale_file: the file is no longer there: {path}") from None
            with parent_of(root, path, make=True) as (fd, name):
                return _placed(fd, name, data, None), b""
        parent, name = split(real)
        fd = open_beneath(root, parent, FOLDER, follow=False)
        try:
            return _placed(fd, name, data, mode), b""
        finally:
            os.close(fd)


def agreed(fd: int, path: str, expected: str | None, largest: int) -> int:
    """Compare a file with what the caller knows of it; return its permission bits."""
    if expected is None:
        raise Refusal(f"exists: the file exists; read it to its end before overwriting it, or edit it: {path}")
    facts = _facts(fd, _content(fd, largest, path))
    if facts["sha256"] != expected:
        raise Refusal(f"stale_file: the file changed since it was last read; read it again: {path}")
    return stat.S_IMODE(os.fstat(fd).st_mode) & 0o777


def stage(folder_fd: int, data: bytes, mode: int | None) -> tuple[str, Head]:
    """Write bytes under a passing name, which is returned with the facts; None as mode is that of any new file."""
    passing = passing_name()
    fd = os.open(passing, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=folder_fd)
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(fd, rest) :]
        os.fchmod(fd, _NEW_MODE if mode is None else mode)
        return passing, _facts(fd, data)
    except BaseException:
        forget(folder_fd, passing)
        raise
    finally:
        os.close(fd)


def passing_name() -> str:
    """Choose a name that no commit takes up, no listing shows, whatever is left of it."""
    return PASSING.replace("*", os.urandom(6).hex())


def forget(folder_fd: int, name: str) -> None:
    """Remove a passing name, where it is there."""
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder_fd)


def install(folder_fd: int, passing: str, name: str, *, new: bool) -> None:
    """Give what was staged its name at once; a new one overwrites nothing."""
    if new:
        os.link(passing, name, src_dir_fd=folder_fd, dst_dir_fd=folder_fd, follow_symlinks=False)
    else:
        os.replace(passing, name, src_dir_fd=folder_fd, dst_dir_fd=folder_fd)


def _placed(folder_fd: int, name: str, data: bytes, mode: int | None) -> Head:
    """Write bytes under a passing name and give them their name at once; None as mode means that it must be new."""
    passing, facts = stage(folder_fd, data, mode)
    try:
        install(folder_fd, passing, name, new=mode is None)
    finally:
        forget(folder_fd, passing)
    return facts


def delete(top: str, path: str) -> tuple[Head, bytes]:
    """Remove one file or link; a folder is refused."""
    check(path)
    with explained(path), folder(top) as root, parent_of(root, path) as (fd, name):
        if stat.S_ISDIR(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode):
            raise Refusal(f"not_regular_file: this is a folder; remove it by a command: {path}")
        os.unlink(name, dir_fd=fd)
    return {}, b""


def move(top: str, source: str, target: str) -> tuple[Head, bytes]:
    """Rename one file; nothing is ever overwritten."""
    check(source)
    check(target)
    with folder(top) as root, explained(source), parent_of(root, source) as (old, name):
        if stat.S_ISDIR(os.stat(name, dir_fd=old, follow_symlinks=False).st_mode):
            raise Refusal(f"not_regular_file: this is a folder; move it by a command: {source}")
        with explained(target), parent_of(root, target, make=True) as (new, wanted):
            rename_new(old, name, new, wanted)
    return {}, b""
