"""Requests that are answered side by side, each by a keeper: a fork of the helper that ends what it started itself.

A process that hides from its parents falls to the nearest reaper above it. With one reaper for each request, what a
command leaves behind is its own, and can be ended while the commands beside it go on.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass

from bot.sandbox.helper.children import Surroundings, descendants, end_all, tell
from bot.sandbox.helper.frames import Broken, Gone, Head, receive, send
from bot.sandbox.helper.watch import Watch

Answer = Callable[[Head, bytes], "tuple[Head, bytes]"]
LINE = 0
"""As in `main`; in a keeper it leads to the helper."""
_KILLED: Head = {"why": "killed", "code": 0, "seconds": 0.0, "lengths": [0] * 4, "totals": [0] * 2}
_SPOILED: Head = {"refused": "failed: a command that ran beside this one killed it; send it again"}


@dataclass
class _Keeper:
    """One request while it is answered."""

    pid: int
    line: socket.socket
    ask: Head
    why: str | None = None
    """Why we ended it, where the server did not ask for that."""

    def end(self) -> None:
        """Let it end what it does; its answer comes as ever."""
        with suppress(OSError):
            send(self.line.fileno(), {"op": "cancel"})


class Keepers:
    """Takes requests from the server as they come, and gives each answer back once it is there."""

    def __init__(self, become: Callable[[], Answer], around: Surroundings, watch: Watch, *, own_uid: bool) -> None:
        """Take no request yet.

        Args:
            become: makes a fork of this process a keeper; called in it while no signal can arrive.
            around: its door is answered here, for all.
            watch: over what all of them use up together; each looks at its own besides.
            own_uid: whether everything of this uid is to be ended once none is left.
        """
        self._become = become
        self._door = around.door
        self._watch = watch
        self._own_uid = own_uid
        self._all: dict[int, _Keeper] = {}
        self._poll = select.poll()
        for fd in (LINE, *([self._door.fd] if self._door else ())):
            self._poll.register(fd, select.POLLIN)

    def serve(self) -> None:
        """Answer until the server closes the line, which raises Gone."""
        while True:
            patience = self._watch.due(time.monotonic()) * 1000 if self._all else None
            ready = {fd for fd, _ in self._poll.poll(patience)}
            if LINE in ready:
                self._take()
            if self._door is not None and self._door.fd in ready:
                self._door.answer()
            for keeper in [one for one in self._all.values() if one.line.fileno() in ready]:
                self._pass_on(keeper)
            if self._all and (why := self._watch.complaint(descendants)):
                self._end_commands(why)

    def _take(self) -> None:
        """Take one frame of the server."""
        ask, body = receive(LINE)
        number = int(str(ask["id"]))
        if ask["op"] == "cancel":
            # One that has answered meanwhile has nothing to end.
            if number in self._all:
                self._all[number].end()
            return
        if not self._all:
            self._watch.begin()
        try:
            self._all[number] = self._begin(ask, body)
        except OSError as error:
            send(1, {"refused": f"failed: it cannot be started: {error.strerror}", "id": number})

    def _begin(self, ask: Head, body: bytes) -> _Keeper:
        ours, theirs = socket.socketpair()
        # A signal for the helper must not be taken for one of the keeper's meanwhile.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            with theirs:
                pid = os.fork()
                if not pid:
                    self._keep([ours, *(one.line for one in self._all.values())], theirs, (ask, body))
        except OSError:
            ours.close()
            raise
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        self._poll.register(ours, select.POLLIN)
        return _Keeper(pid, ours, ask)

    def _keep(self, others: Iterable[socket.socket], line: socket.socket, asked: tuple[Head, bytes]) -> None:
        """Be a keeper: answer one request, and end."""
        try:
            for other in others:
                # Only if nobody else holds the helper's end is the helper's death seen there.
                other.close()
            for fd in (LINE, 1):
                os.dup2(line.fileno(), fd)
            answer = self._become()
            signal.pthread_sigmask(signal.SIG_SETMASK, ())
            send(1, *answer(*asked))
        finally:
            os._exit(0)

    def _pass_on(self, keeper: _Keeper) -> None:
        """Give the server what a keeper says, and see that nothing of it is left."""
        number = int(str(keeper.ask["id"]))
        killed = False
        try:
            head, body = receive(keeper.line.fileno())
        except (Gone, OSError, ValueError):
            head, body, killed = (_KILLED if keeper.ask["op"] == "run" else _SPOILED), b"", True
        self._poll.unregister(keeper.line)
        keeper.line.close()
        del self._all[number]
        # It has nothing more to do, and nobody may hold it back.
        tell([keeper.pid], signal.SIGKILL)
        os.waitpid(keeper.pid, 0)
        if killed:
            # What it started has fallen to us, and is ended with the others.
            self._end_commands("killed")
        if not self._all:
            try:
                end_all({}, own_uid=self._own_uid)
            except Broken as error:
                head, body = {"broken": str(error)}, b""
        if head.get("why") == "cancel" and keeper.why:
            head = {**head, "why": keeper.why}
        send(1, {**head, "id": number}, body)

    def _end_commands(self, why: str) -> None:
        """End all commands; what lists or searches beside them ends by itself."""
        for keeper in self._all.values():
            if keeper.ask["op"] == "run" and keeper.why is None:
                keeper.why = why
                keeper.end()
