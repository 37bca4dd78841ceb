"""What the kernel offers and Python does not: openat2, prctl, and calls by their number."""

from __future__ import annotations

import ctypes
import errno
import os

OPENAT2 = 437
"""The number is the same on every architecture."""
NO_MAGICLINKS = 0x02
NO_SYMLINKS = 0x04
BENEATH = 0x08

SET_PDEATHSIG = 1
SET_DUMPABLE = 4
SET_CHILD_SUBREAPER = 36
SET_NO_NEW_PRIVS = 38

_NO_REPLACE = 1
_TRIES = 5
"""The kernel answers EAGAIN while somebody renames folders on the way."""
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long


class _How(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


def open_beneath(root: int, path: str, flags: int, *, follow: bool = True) -> int:
    """Open a path that the kernel itself keeps under `root`, and return the descriptor.

    Args:
        root: descriptor of a folder.
        path: relative to it.
        flags: as for `os.open`.
        follow: whether links that stay inside may be on the way.

    Raises:
        OSError: EXDEV where the path leaves the folder.

    Source: https://man7.org/linux/man-pages/man2/openat2.2.html
    """
    how = _How(flags | os.O_CLOEXEC, 0, BENEATH | NO_MAGICLINKS | (0 if follow else NO_SYMLINKS))
    name = ctypes.c_char_p(os.fsencode(path))
    size = ctypes.c_size_t(ctypes.sizeof(how))
    code = errno.EAGAIN
    tries = 0
    while code == errno.EINTR or (code == errno.EAGAIN and tries < _TRIES):
        tries += 1
        fd: int = libc.syscall(ctypes.c_long(OPENAT2), ctypes.c_int(root), name, ctypes.byref(how), size)
        if fd >= 0:
            return fd
        code = ctypes.get_errno()
    raise OSError(code, os.strerror(code), path)


def rename_new(old_folder: int, old: str, new_folder: int, new: str) -> None:
    """Rename at once what must not overwrite anything; where that is not offered, by way of a second name.

    Raises:
        OSError: EEXIST where there is something of the new name.

    Source: https://man7.org/linux/man-pages/man2/rename.2.html
    """
    names = ctypes.c_char_p(os.fsencode(old)), ctypes.c_char_p(os.fsencode(new))
    # Older C libraries have no such function, some file systems no such flag.
    rename = getattr(libc, "renameat2", None)
    if rename is not None:
        if rename(old_folder, names[0], new_folder, names[1], ctypes.c_uint(_NO_REPLACE)) == 0:
            return
        code = ctypes.get_errno()
        if code not in (errno.EINVAL, errno.ENOSYS):
            raise OSError(code, os.strerror(code), old)
    os.link(old, new, src_dir_fd=old_folder, dst_dir_fd=new_folder, follow_symlinks=False)
    os.unlink(old, dir_fd=old_folder)


def prctl(option: int, value: int) -> None:
    """Set one property of this process."""
    numbers = [ctypes.c_ulong(number) for number in (value, 0, 0, 0)]
    if libc.prctl(ctypes.c_int(option), *numbers) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def hide() -> None:
    """Close this process to others of its own uid: its memory, and the environment that it was started with.

    Taking a variable out of the environment does not take it out of `/proc/PID/environ`.
    """
    prctl(SET_DUMPABLE, 0)


def syscall(number: int, *arguments: object) -> int:
    """Make a call that the C library has no function for; integers are passed as the kernel's long.

    Raises:
        OSError: as the kernel answers.
    """
    passed = [ctypes.c_long(one) if isinstance(one, int) else one for one in arguments]
    answer: int = libc.syscall(ctypes.c_long(number), *passed)
    if answer < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return answer
