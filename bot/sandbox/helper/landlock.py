"""Landlock: the files that a process and all its children may use, and nothing else."""

# Importing pathlib would take longer than all the rest of the start.
# ruff: noqa: PTH112

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Sequence

from bot.sandbox.helper.frames import Broken
from bot.sandbox.helper.kernel import syscall

CREATE, ADD_RULE, RESTRICT = 444, 445, 446
"""The numbers are the same on every architecture."""
_VERSION = 1
_BENEATH = 1
_BIND_AND_CONNECT = 3
_ABSTRACT_AND_SIGNALS = 3
_SIGNALS = 2

_EXECUTE, _WRITE, _READ, _LIST = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_REFER = 1 << 13
_TRUNCATE, _IOCTL = 1 << 14, 1 << 15
_READING = _EXECUTE | _READ | _LIST
_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1}
"""What each version of the interface can forbid; from 5 on also the control of devices."""
TRUNCATES_FROM = 3
"""Before that version it leaves `truncate` to whoever may write to the file."""
_PORTS_FROM, _SCOPES_FROM = 4, 6


def version() -> int:
    """Ask the kernel which version of the interface it has; 0 where it has none.

    Source: https://docs.kernel.org/userspace-api/landlock.html
    """
    try:
        return syscall(CREATE, None, ctypes.c_size_t(0), _VERSION)
    except OSError:
        return 0


def restrict(writable: Sequence[str], readable: Sequence[str], *, at_most: int) -> int:
    """Shut this process in for good, with no port and no signal to the outside; return the version that was used.

    Args:
        writable: files and folders that may be changed; what is not there is left out.
        readable: files and folders that may be read and executed.
        at_most: the newest version to use, for tests; the kernel's own may be lower.

    Raises:
        Broken: the kernel has no Landlock.
    """
    found = min(version(), at_most)
    if not found:
        raise Broken("the kernel has no Landlock, or it is switched off (`lsm=` on the kernel's command line)")
    rights = _RIGHTS.get(found, (1 << 16) - 1)
    fields = [rights]
    if found >= _PORTS_FROM:
        fields.append(_BIND_AND_CONNECT)
    if found >= _SCOPES_FROM:
        fields.append(_ABSTRACT_AND_SIGNALS)
    text = struct.pack(f"{len(fields)}Q", *fields)
    ruleset = syscall(CREATE, text, ctypes.c_size_t(len(text)), 0)
    try:
        for paths, granted in ((writable, rights), (readable, _READING)):
            for path in paths:
                _beneath(ruleset, path, granted, rights)
        syscall(RESTRICT, ruleset, 0)
    finally:
        os.close(ruleset)
    return found


def fence(version: int) -> int | None:
    """Make rules for a command alone, which keep it from signalling the helper; None before they were invented.

    Args:
        version: of the interface, as it was used.
    """
    if version < _SCOPES_FROM:
        return None
    # Rules that do not name renames between folders forbid them.
    text = struct.pack("3Q", _REFER, 0, _SIGNALS)
    ruleset = syscall(CREATE, text, ctypes.c_size_t(len(text)), 0)
    _beneath(ruleset, "/", _REFER, _REFER)
    return ruleset


def climb(ruleset: int) -> None:
    """Go behind a fence for good."""
    syscall(RESTRICT, ruleset, 0)


def _beneath(ruleset: int, path: str, granted: int, rights: int) -> None:
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not os.path.isdir(path):
            granted &= _EXECUTE | _WRITE | _READ | _TRUNCATE | _IOCTL
        syscall(ADD_RULE, ruleset, _BENEATH, struct.pack("=Qi", granted & rights, fd), 0)
    finally:
        os.close(fd)
