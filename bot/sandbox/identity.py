"""Whom a helper acts as; never root."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from bot.errors import SandboxError


@dataclass(frozen=True, slots=True)
class Identity:
    """Whom the helper acts as."""

    uid: int
    gid: int
    own: bool
    """Whether the uid is another than the server's."""
    alone: bool
    """Whether nobody else has the uid, so that every process of it is the workspace's."""


def identify(uid: int | None, gid: int | None, *, alone: bool = True) -> Identity:
    """Decide whom the helper acts as; never uid 0.

    Args:
        uid: None is the server's own.
        gid: None is the number of the uid, or the server's own.
        alone: whether nobody else has a uid that is not the server's.

    Raises:
        SandboxError: it would be root, or this process may not take that uid.
    """
    mine = os.geteuid()
    wanted = mine if uid is None else uid
    group = gid if gid is not None else (os.getegid() if uid is None else uid)
    if wanted == 0 or (group == 0 and mine == 0):
        raise SandboxError(
            "refusing to run tools as uid 0 or gid 0: root in a workspace is root on the machine; "
            "start the server as an ordinary user, or give each workspace a uid of its own"
        )
    if mine not in (wanted, 0):
        raise SandboxError(
            f"uid {mine} cannot start tools as uid {wanted}; start the server as root or leave the workspace's uid out"
        )
    return Identity(wanted, group, own=wanted != mine, alone=alone and wanted != mine)


def interpreters() -> list[str]:
    """List the interpreters to try; one in a virtual environment or a home may be out of the uid's reach."""
    base = getattr(sys, "_base_executable", None) or sys.executable
    found = [os.path.realpath(base), os.path.realpath(sys.executable), "/usr/bin/python3", "/usr/local/bin/python3"]
    return list(dict.fromkeys(path for path in found if Path(path).exists()))
