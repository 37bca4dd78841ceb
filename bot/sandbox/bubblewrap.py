"""Level `bubblewrap`: namespaces of its own, a root that holds only what is named, and a filter of system calls."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from bot.errors import SandboxError
from bot.sandbox.base import Level, Place
from bot.sandbox.confinement import Layout
from bot.sandbox.identity import Identity, interpreters
from bot.sandbox.system import CONFIGURATION, FOLDERS, OWN, present, visible

HOME = "/home/agent"
_SHARED_MEMORY_BYTES = 512 << 20
_TEMPORARY = ("/tmp", "/var/tmp")  # noqa: S108 - they are the sandbox's own
_NAME = "issuewright"
"""Of the machine, as commands see it."""
_HOSTS = f"127.0.0.1 localhost {_NAME}\n::1 localhost {_NAME}\n".encode()


class Bubblewrap:
    """Shuts in by the program `bwrap`.

    One instance of it holds the helper for as long as a workspace is open, so that a command costs no more than a
    process; the helper is the first process of its namespace, so that no command can end it and nothing outlives it.
    """

    @property
    def level(self) -> Level:
        """`bubblewrap`."""
        return "bubblewrap"

    def layout(self, place: Place, identity: Identity, home: str) -> Layout:
        """Build a root from what is named."""
        program = shutil.which("bwrap", path="/usr/local/bin:/usr/bin:/bin")
        if program is None:
            raise SandboxError("`bwrap` is not installed; install the package `bubblewrap`")
        root = place.at or str(place.root)
        paths = (*place.readable, *place.writable)
        arguments = [*_namespaces(), *_system(), *_texts(), *_mounts(place, root, home), "--chdir", "/"]
        return Layout(
            root=root,
            home=HOME,
            temporary="/tmp",  # noqa: S108 - it is the sandbox's own
            command=[program, *arguments, "--"],
            data={"passwd": _passwd(identity), "group": _group(identity), "hosts": _HOSTS},
            network="namespace",
            alone=True,
            interpreters=[path for path in interpreters() if visible(path, paths)],
        )


def _namespaces() -> Iterator[str]:
    yield from ("--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts")
    yield from ("--unshare-cgroup-try", "--hostname", _NAME, "--as-pid-1")
    yield from ("--die-with-parent", "--new-session", "--cap-drop", "ALL")


def _system() -> Iterator[str]:
    for path in present(FOLDERS):
        if Path(path).is_symlink():
            yield from ("--symlink", os.readlink(path), path)  # noqa: PTH115 - as text, as it stands
        else:
            yield from ("--ro-bind", path, path)
    for path in present(CONFIGURATION):
        if path not in OWN:
            yield from ("--ro-bind-try", path, path)
    yield from ("--proc", "/proc", "--dev", "/dev")
    yield from ("--size", str(_SHARED_MEMORY_BYTES), "--tmpfs", "/dev/shm")  # noqa: S108 - it is the sandbox's own
    # Else it would be a file system in memory without a limit.
    yield from ("--remount-ro", "/dev")


def _texts() -> Iterator[str]:
    for path in OWN:
        yield from ("--ro-bind-data", f"{{{Path(path).name}}}", path)


def _mounts(place: Place, root: str, home: str) -> Iterator[str]:
    # Before what may lie below them.
    for temporary in _TEMPORARY:
        yield from ("--bind", f"{home}/tmp", temporary)  # noqa: S108 - below the home
    yield from ("--bind", home, HOME)
    for path in place.readable:
        yield from ("--ro-bind", str(path), str(path))
    for path in place.writable:
        yield from ("--bind", str(path), str(path))
    yield from ("--bind", str(place.root), root)
    for path in place.guarded:
        yield from ("--ro-bind", str(path), f"{root}/{path.relative_to(place.root)}")
    yield from ("--remount-ro", "/")


def _passwd(identity: Identity) -> bytes:
    return (
        "root:x:0:0:root:/root:/usr/sbin/nologin\n"
        f"agent:x:{identity.uid}:{identity.gid}::{HOME}:/bin/bash\n"
        "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
    ).encode()


def _group(identity: Identity) -> bytes:
    return f"root:x:0:\nagent:x:{identity.gid}:\nnogroup:x:65534:\n".encode()
