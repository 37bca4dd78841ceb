"""The helper's life: it makes itself ready, answers what it is asked, and leaves nothing behind."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Callable
from contextlib import suppress
from types import FrameType

from bot.sandbox.helper.changes import apply
from bot.sandbox.helper.children import Door, Surroundings, end_all, run
from bot.sandbox.helper.files import check, delete, explained, folder, inside, move, read, replace
from bot.sandbox.helper.frames import Broken, Gone, Head, Refusal, receive, send
from bot.sandbox.helper.kernel import (
    SET_CHILD_SUBREAPER,
    SET_DUMPABLE,
    SET_NO_NEW_PRIVS,
    SET_PDEATHSIG,
    open_beneath,
    prctl,
)
from bot.sandbox.helper.landlock import TRUNCATES_FROM, fence, restrict
from bot.sandbox.helper.listing import entries, hits
from bot.sandbox.helper.seccomp import INET, INET6, UNIX, install
from bot.sandbox.helper.source import complaint
from bot.sandbox.helper.watch import Watch, forget, threads_of_user

LINE = 0
"""The descriptor on which the server speaks; it hears on 1."""
_SHELLS = ("/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash")
_SHARED_MEMORY = "/dev/shm"  # noqa: S108 - it is looked through, not written to
_OTHERS = 4
"""Times the limit of processes: as many may all workspaces of one uid have together."""
_LOWER_PRIORITY = 10
"""Added to the niceness: the server goes first."""
_FAMILIES = {
    # In namespaces of its own a command finds nothing but itself.
    "namespace": (UNIX, INET, INET6),
    "proxy": (INET, INET6),
    "none": (),
}


class Helper:
    """Answers for one workspace."""

    def __init__(self, settings: Head) -> None:
        self._top = str(settings["root"])
        self._home = str(settings["home"])
        # Whether all that can be seen of this uid is ours to end.
        self.alone = settings["alone"] is True
        self._largest = int(str(settings["file_bytes"]))
        self._devices = _texts(settings["devices"])
        self._pid = os.getpid()
        watched = settings["watch"]
        limits = watched if isinstance(watched, dict) else {}
        self.watch = Watch([self._top, self._home, *_texts(settings["writable"])], **limits)
        self.around = Surroundings()
        self._answers: dict[str, Callable[[Head, bytes], tuple[Head, bytes]]] = {
            "open": self._open,
            "replace": self._replace,
            "apply": lambda ask, body: apply(self._top, ask["changes"], body, self._largest),
            "delete": lambda ask, _: delete(self._top, str(ask["path"])),
            "move": lambda ask, _: move(self._top, str(ask["path"]), str(ask["target"])),
            "python": lambda _, body: ({"complaint": complaint(body)}, b""),
            "list": self._list,
            "search": self._search,
            "run": self._run,
        }

    def answer(self, ask: Head, body: bytes) -> tuple[Head, bytes]:
        """Do what is asked; what cannot be is part of the answer."""
        try:
            return self._answers[str(ask["op"])](ask, body)
        except Refusal as refusal:
            return {"refused": str(refusal)}, b""
        except (Broken, OSError, MemoryError) as error:
            return {"broken": f"{type(error).__name__}: {error}"}, b""

    def end(self) -> None:
        """End everything that was started."""
        with suppress(Broken):
            end_all({}, own_uid=self.alone)
        if self.alone and _SHARED_MEMORY in self._devices:
            forget(_SHARED_MEMORY)

    def become_keeper(self) -> Callable[[Head, bytes], tuple[Head, bytes]]:
        """Answer for one request, in a fork of the helper; what runs beside it is none of its business."""
        self.alone = False
        self.around = Surroundings(fence=self.around.fence)
        prctl(SET_CHILD_SUBREAPER, 1)
        _die_with(self._pid, self)
        return self.answer

    def _open(self, ask: Head, _: bytes) -> tuple[Head, bytes]:
        return read(self._top, str(ask["path"]), int(str(ask["limit"])), self._largest)

    def _replace(self, ask: Head, body: bytes) -> tuple[Head, bytes]:
        expected = ask["expected"]
        known = expected if isinstance(expected, str) else None
        return replace(self._top, str(ask["path"]), body, known, self._largest)

    def _list(self, ask: Head, _: bytes) -> tuple[Head, bytes]:
        return entries(self._top, self._home, str(ask["pattern"]), int(str(ask["limit"])), LINE)

    def _search(self, ask: Head, _: bytes) -> tuple[Head, bytes]:
        glob = ask["glob"]
        settings: Head = {"limit": ask["limit"], "line": LINE}
        return hits(self._top, self._home, str(ask["pattern"]), glob if isinstance(glob, str) else None, settings)

    def _run(self, ask: Head, _: bytes) -> tuple[Head, bytes]:
        shell = next((path for path in _SHELLS if os.access(path, os.X_OK)), None)
        if shell is None:
            raise Broken("bash is not installed where the workspace is; install it")
        place = str(ask["cwd"])
        check(place)
        with explained(place), folder(self._top) as root:
            fd = open_beneath(root, place, os.O_RDONLY | os.O_DIRECTORY)
            try:
                inside(root, fd, place)
                os.fchdir(fd)
            finally:
                os.close(fd)
        try:
            argv = [shell, "-c", str(ask["command"])]
            return run(argv, ask, LINE, own_uid=self.alone, watch=self.watch, around=self.around)
        finally:
            os.chdir("/")


def _texts(value: object) -> list[str]:
    return [str(one) for one in value] if isinstance(value, list) else []


def _prepare(settings: Head) -> None:
    """Give up what a tool must not have, before the first request."""
    groups = (*os.getresgid(), *os.getgroups()) if settings["own_uid"] else ()
    if 0 in (*os.getresuid(), *groups):
        raise Broken("refusing to run tools as uid 0")
    prctl(SET_NO_NEW_PRIVS, 1)
    prctl(SET_CHILD_SUBREAPER, 1)
    # Commands have the same uid: they must not get at this memory or these descriptors.
    prctl(SET_DUMPABLE, 0)
    os.nice(_LOWER_PRIORITY)
    limits = settings["limits"]
    for name, value in limits.items() if isinstance(limits, dict) else ():
        kind = getattr(resource, name)
        hard = resource.getrlimit(kind)[1]
        if name == "RLIMIT_NPROC" and not settings["alone"]:
            # Others of this uid count too, and there may be more of them later.
            value = _OTHERS * value + threads_of_user()  # noqa: PLW2901
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)  # noqa: PLW2901
        # A process whose time is up is told so by a signal of its own before it is killed.
        more = 1 if name == "RLIMIT_CPU" and (hard == resource.RLIM_INFINITY or value < hard) else 0
        resource.setrlimit(kind, (value, value + more))


def _shut_in(settings: Head) -> Surroundings:
    """Give up what the sandbox's level forbids; return what commands have around them from now on."""
    network = str(settings["network"])
    port, control = int(str(settings["port"])), int(str(settings["control"]))
    if network == "namespace" and control >= 0:
        from bot.sandbox.helper.network import offer  # noqa: PLC0415 - sent only where there is a network

        offer(control, port)
    truncates, barrier = True, None
    if settings["landlock"] is not None:
        writable = [str(settings["root"]), str(settings["home"]), *_texts(settings["writable"])]
        newest = int(str(settings["landlock"]))
        found = restrict([*writable, *_texts(settings["devices"])], _texts(settings["readable"]), at_most=newest)
        truncates, barrier = found >= TRUNCATES_FROM, fence(found)
    if not settings["seccomp"]:
        return Surroundings(fence=barrier)
    families = _FAMILIES[network]
    listener = install(families, watched=network == "proxy", shared=network != "namespace", truncates=truncates)
    if listener is None:
        return Surroundings(fence=barrier)
    from bot.sandbox.helper.network import Doorkeeper  # noqa: PLC0415 - as above

    return Surroundings(Door(listener, Doorkeeper(listener, control, port).answer), barrier)


def _die_with(server: int, helper: Helper) -> None:
    """Follow the server when it is killed; a TERM from anybody else, as from a command, means nothing."""

    def follow(_: int, __: FrameType | None) -> None:
        if os.getppid() != server:
            helper.end()
            os._exit(0)

    signal.signal(signal.SIGTERM, follow)
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)
    prctl(SET_PDEATHSIG, signal.SIGTERM)
    follow(signal.SIGTERM, None)


def serve(settings: Head) -> None:
    """Answer until the server closes the line."""
    server = os.getppid()
    helper = Helper(settings)
    try:
        _prepare(settings)
        _die_with(server, helper)
        helper.around = _shut_in(settings)
        with folder(str(settings["root"])) as root:
            os.close(open_beneath(root, ".", os.O_PATH))
    except (Broken, OSError) as error:
        send(1, {"broken": str(error)})
        return
    helper.end()
    send(1, {"ready": os.getuid()})
    try:
        if settings["parallel"]:
            from bot.sandbox.helper.keepers import Keepers  # noqa: PLC0415 - sent only where it is wished

            Keepers(helper.become_keeper, helper.around, helper.watch, own_uid=helper.alone).serve()
        while True:
            ask, body = receive(LINE)
            if ask["op"] != "cancel":
                head, data = helper.answer(ask, body)
                send(1, {**head, "id": ask["id"]}, data)
    except (Gone, BrokenPipeError, ConnectionResetError):
        pass
    finally:
        helper.end()
