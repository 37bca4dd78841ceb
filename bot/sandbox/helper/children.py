"""Processes that the helper starts, and the end of everything that they started."""

# Importing pathlib would take longer than all the rest of the start.
# ruff: noqa: PTH123, PTH208

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from bot.sandbox.helper.frames import Broken, Head, Refusal, receive
from bot.sandbox.helper.landlock import climb
from bot.sandbox.helper.watch import Watch

GRACE_S = 2.0
"""Between TERM and KILL, and for output that still comes after the end."""
QUIET_S = 0.1
"""So long may a writer in the background be silent after the end before it is ended."""
END_S = 5.0
"""Within this time a killed process must be gone."""
_CHUNK = 1 << 16
_DEFAULTS = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""Signals that mean something else to the helper."""


class Kept:
    """The first and the last bytes of a stream; what lies between is only counted."""

    def __init__(self, head: int, tail: int) -> None:
        self.total = 0
        self._head = bytearray()
        self._tail = bytearray()
        self._limits = head, tail

    def add(self, data: bytes) -> None:
        """Take the next bytes."""
        self.total += len(data)
        head, tail = self._limits
        room = head - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        self._tail += data[-tail:]
        if len(self._tail) > 2 * tail:
            del self._tail[:-tail]

    @property
    def parts(self) -> tuple[bytes, bytes]:
        """Head and tail; together they are all of it where nothing was cut."""
        return bytes(self._head), bytes(self._tail[-self._limits[1] :])


def spawn(
    argv: list[str], environment: Mapping[str, str], streams: tuple[int, int], *, fence: int | None = None
) -> int:
    """Start a program in a session of its own, reading nothing; return its process id.

    Args:
        argv: program with its full path, and its arguments.
        environment: all of it.
        streams: descriptors for what it writes.
        fence: Landlock rules for it alone, for which there must be a fork.
    """
    out, err = streams
    if fence is not None:
        return _fork(argv, environment, streams, fence)
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
        (os.POSIX_SPAWN_DUP2, out, 1),
        (os.POSIX_SPAWN_DUP2, err, 2),
    ]
    try:
        return os.posix_spawn(argv[0], argv, environment, file_actions=actions, setsid=True, setsigdef=_DEFAULTS)
    except OSError as error:
        raise Refusal(f"failed: the command cannot be started: {error.strerror}") from error
    except ValueError as error:
        raise Refusal(f"failed: the command cannot be started: {error}") from error


def _fork(argv: list[str], environment: Mapping[str, str], streams: tuple[int, int], fence: int) -> int:
    """Do as `spawn`, and put the program behind the fence before it begins."""
    reader, writer = os.pipe()
    # A signal for the helper must not be taken for one of the child's meanwhile.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        pid = os.fork()
        if not pid:
            _become(argv, environment, (os.open("/dev/null", os.O_RDONLY), *streams), (fence, writer))
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        os.close(writer)
    with os.fdopen(reader, "rb") as said:
        why = said.read()
    if why:
        os.waitpid(pid, 0)
        raise Refusal(f"failed: the command cannot be started: {why.decode()}")
    return pid


def _become(
    argv: list[str], environment: Mapping[str, str], streams: tuple[int, int, int], held: tuple[int, int]
) -> None:
    """Be the program, or say why not and end."""
    fence, writer = held
    try:
        os.setsid()
        for number, fd in enumerate(streams):
            os.dup2(fd, number)
        for number in _DEFAULTS:
            signal.signal(number, signal.SIG_DFL)
        climb(fence)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.execve(argv[0], argv, environment)  # noqa: S606 - running commands is its job
    except (OSError, ValueError) as error:
        os.write(writer, str(getattr(error, "strerror", error)).encode())
    finally:
        os._exit(127)


def descendants() -> list[int]:
    """Find every process below this one."""
    below: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
                # The name in parentheses may hold anything, even parentheses.
                parent = int(file.read().rpartition(b")")[2].split()[1])
                below.setdefault(parent, []).append(int(name))
    found: list[int] = []
    waiting = [os.getpid()]
    while waiting:
        children = below.get(waiting.pop(), [])
        found += children
        waiting += children
    return found


def children(parents: Sequence[int]) -> list[int]:
    """Find the children of a few processes; much faster than to look at all that there are.

    Source: https://docs.kernel.org/filesystems/proc.html (needs CONFIG_PROC_CHILDREN, else nothing is found)
    """
    found: list[int] = []
    for parent in parents:
        with suppress(OSError):
            for thread in os.listdir(f"/proc/{parent}/task"):
                with open(f"/proc/{parent}/task/{thread}/children", "rb") as file:
                    found += map(int, file.read().split())
    return found


def tell(pids: Sequence[int], number: int) -> None:
    """Send a signal to each of them."""
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def reap(statuses: dict[int, int]) -> bool:
    """Collect whoever has ended; False where no child is left at all.

    The helper is a subreaper: what loses its parent becomes its child, so that no child means no descendant.
    """
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False
        if pid == 0:
            return True
        statuses[pid] = status


def end_all(statuses: dict[int, int], *, own_uid: bool) -> None:
    """Kill and reap every descendant, however it hid itself; with a uid of its own, everything of that uid too."""
    give_up = time.monotonic() + END_S
    if own_uid:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(-1, signal.SIGKILL)
    while reap(statuses):
        if time.monotonic() > give_up:
            raise Broken("processes of a command cannot be ended; restart the machine or the container")
        # Stopped first, so that nobody can fork while the others are killed; and then their children, faster than they
        # can fork: whoever looks at all processes each time is always late.
        stopped: set[int] = set()
        fresh = descendants()
        while fresh and len(stopped) < 1 << 16:
            tell(fresh, signal.SIGSTOP)
            stopped.update(fresh)
            fresh = [pid for pid in children([*fresh, os.getpid()]) if pid not in stopped]
        tell(sorted(stopped), signal.SIGKILL)
        if own_uid:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(-1, signal.SIGKILL)
        if reap(statuses):
            time.sleep(0.001)


@dataclass(frozen=True)
class Door:
    """Something else that has to be answered while a program runs."""

    fd: int
    answer: Callable[[], None]


@dataclass(frozen=True)
class Surroundings:
    """What a level puts around each command."""

    door: Door | None = None
    fence: int | None = None
    """Landlock rules for commands alone; without them they can signal the helper."""


class Running:
    """One program with its two streams, from its start until nothing of it is left."""

    def __init__(
        self,
        argv: list[str],
        environment: Mapping[str, str],
        sinks: Sequence[Callable[[bytes], None]],
        *,
        fence: int | None = None,
    ) -> None:
        self._statuses: dict[int, int] = {}
        pipes = [os.pipe(), os.pipe()]
        try:
            self.pid = spawn(argv, environment, (pipes[0][1], pipes[1][1]), fence=fence)
        except BaseException:
            for reader, _ in pipes:
                os.close(reader)
            raise
        finally:
            for _, writer in pipes:
                os.close(writer)
        self._sinks = {reader: sink for (reader, _), sink in zip(pipes, sinks)}  # noqa: B905 - Python 3.9
        self._poll = select.poll()
        for reader in self._sinks:
            os.set_blocking(reader, False)
            self._poll.register(reader, select.POLLIN)
        self._exit = os.pidfd_open(self.pid)
        self._poll.register(self._exit, select.POLLIN)
        self._kill_at: float | None = None
        self._heard = self._ended = 0.0

    @property
    def _status(self) -> int | None:
        return self._statuses.get(self.pid)

    def wait(
        self,
        timeout_s: float,
        line: int,
        *,
        stop: Callable[[], str | None],
        own_uid: bool,
        watch: Watch | None = None,
        door: Door | None = None,
    ) -> str:
        """Run to the end; say why it ended: `exit`, `timeout`, `cancel`, or what `stop` or the watch says.

        Args:
            timeout_s: until TERM.
            line: the server's; a frame there means cancel.
            stop: asked after each output; what it says ends the program at once.
            own_uid: whether everything of this uid is to be ended.
            watch: looks at what is used up; what it says ends the program too.
            door: answered meanwhile.
        """
        self._poll.register(line, select.POLLIN)
        if door is not None:
            self._poll.register(door.fd, select.POLLIN)
        why = "exit"
        deadline = time.monotonic() + timeout_s
        try:
            while not self._over():
                now = time.monotonic()
                if self._status is None and self._kill_at is None and now >= deadline:
                    why = "timeout"
                    self._terminate()
                patience = self._patience(now, deadline)
                if watch is not None:
                    patience = min(patience, watch.due(now))
                ready = {fd for fd, _ in self._poll.poll(patience * 1000)}
                if line in ready:
                    receive(line)
                    why = "cancel"
                    break
                if door is not None and door.fd in ready:
                    door.answer()
                self._listen(ready)
                if reason := stop() or (watch and watch.complaint(descendants)):
                    why = reason
                    break
        finally:
            self._finish(own_uid=own_uid)
        return why

    @property
    def code(self) -> int:
        """Exit code; 128 + n where signal n ended it."""
        code = os.waitstatus_to_exitcode(self._status or 0)
        return code if code >= 0 else 128 - code

    def _terminate(self) -> None:
        tell(descendants(), signal.SIGTERM)
        self._kill_at = time.monotonic() + GRACE_S

    def _over(self) -> bool:
        now = time.monotonic()
        if self._kill_at is not None:
            return now >= self._kill_at or not reap(self._statuses)
        if self._status is None:
            return False
        return not self._sinks or now >= self._ended + GRACE_S or now >= self._heard + QUIET_S

    def _patience(self, now: float, deadline: float) -> float:
        """Seconds until something has to be done."""
        if self._kill_at is not None:
            return 0.02 if self._status is not None else max(0.0, self._kill_at - now)
        if self._status is None:
            return max(0.0, deadline - now)
        return max(0.0, self._heard + QUIET_S - now)

    def _listen(self, ready: set[int]) -> None:
        for fd in ready & self._sinks.keys():
            self._heard = time.monotonic()
            self._read(fd)
        if self._exit in ready:
            self._poll.unregister(self._exit)
            self._heard = self._ended = time.monotonic()
            reap(self._statuses)

    def _read(self, fd: int) -> bool:
        """Take what is there; False at the end or where there is nothing now."""
        try:
            data = os.read(fd, _CHUNK)
        except BlockingIOError:
            return False
        if data:
            self._sinks[fd](data)
            return True
        self._poll.unregister(fd)
        del self._sinks[fd]
        os.close(fd)
        return False

    def _finish(self, *, own_uid: bool) -> None:
        try:
            end_all(self._statuses, own_uid=own_uid)
        finally:
            for fd in list(self._sinks):
                while self._read(fd):
                    pass
            for fd in [*self._sinks, self._exit]:
                os.close(fd)


def run(
    argv: list[str], settings: Head, line: int, *, own_uid: bool, watch: Watch, around: Surroundings
) -> tuple[Head, bytes]:
    """Run one command where we stand.

    Args:
        argv: program with its full path, and its arguments.
        settings: `timeout` in seconds, `keep` in bytes of each stream, `flood` in bytes of both.
        line: the server's.
        own_uid: whether everything of this uid is to be ended.
        watch: over what it uses up.
        around: what the level puts around it.
    """
    keep, flood = int(str(settings["keep"])), int(str(settings["flood"]))
    streams = [Kept(keep // 4, keep - keep // 4) for _ in range(2)]
    started = time.monotonic()
    watch.begin()
    running = Running(argv, os.environ, [stream.add for stream in streams], fence=around.fence)

    def stop() -> str | None:
        return "flood" if sum(stream.total for stream in streams) > flood else None

    timeout_s = float(str(settings["timeout"]))
    why = running.wait(timeout_s, line, stop=stop, own_uid=own_uid, watch=watch, door=around.door)
    if why == "exit" and watch.full():
        why = "disk"
    body = b"".join(part for stream in streams for part in stream.parts)
    head: Head = {
        "why": why,
        "code": running.code,
        "seconds": time.monotonic() - started,
        "lengths": [len(part) for stream in streams for part in stream.parts],
        "totals": [stream.total for stream in streams],
    }
    return head, body
