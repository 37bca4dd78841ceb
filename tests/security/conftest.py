"""The grounds of the sandbox's tests: a work tree, what must stay out of reach beside it, and both levels over it."""

import asyncio
import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from bot.sandbox.base import Place, Proxy
from bot.sandbox.bubblewrap import Bubblewrap
from bot.sandbox.confinement import Confinement
from bot.sandbox.helper.kernel import hide
from bot.sandbox.landlock import Landlock
from bot.sandbox.limits import ResourceLimits
from bot.sandbox.process import ProcessSandbox
from bot.sandbox.selftest.run import attacked
from bot.sandbox.unconfined import Unconfined

LEVELS = ("bubblewrap", "landlock")
ROOT = os.geteuid() == 0
# Of this run of the tests: whoever has one of these uids is ended with its sandbox.
_FIRST = 61000 + os.getpid() % 12 * 8
OWN, OTHER, ORDINARY, ATTACKER, THROWN_AWAY = range(_FIRST, _FIRST + 5)
THEIRS = "theirs"
"""A file outside that everybody may write to."""


def confinement(level: str) -> Confinement:
    """Make a level by its name."""
    levels: tuple[Confinement, ...] = (Bubblewrap(), Landlock(), Unconfined())
    return next(one for one in levels if one.level == level)


class Contacts:
    """Listens as the machine's services do, and notes who was reached."""

    def __init__(self, folder: Path) -> None:
        """Listen; what is of files stands in the folder, open to everybody."""
        self.reached: set[str] = set()
        self.abstract = f"issuewright-test-{secrets.token_hex(6)}"
        tcp = socket.create_server(("127.0.0.1", 0))
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        udp.bind(("127.0.0.1", 0))
        stream, datagrams, hidden, hidden_datagrams = (
            socket.socket(socket.AF_UNIX, kind)
            for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_STREAM, socket.SOCK_DGRAM)
        )
        for line, address in (
            (stream, str(folder / "sock")), (datagrams, str(folder / "dgram")),
            (hidden, f"\0{self.abstract}"), (hidden_datagrams, f"\0{self.abstract}-d"),
        ):  # fmt: skip
            line.bind(address)
        for name in ("sock", "dgram"):
            (folder / name).chmod(0o777)
        for line in (stream, hidden):
            line.listen()
        self.port: int = tcp.getsockname()[1]
        self.udp: int = udp.getsockname()[1]
        self._lines = {
            "tcp": tcp, "udp": udp, "socket": stream, "datagrams": datagrams, "abstract socket": hidden,
            "abstract datagrams": hidden_datagrams,
        }  # fmt: skip
        for line in self._lines.values():
            line.setblocking(False)  # noqa: FBT003 - the name of the method says it

    def look(self) -> set[str]:
        """Take who has come meanwhile, and send them away."""
        for name, line in self._lines.items():
            with contextlib.suppress(BlockingIOError):
                while True:
                    if line.type == socket.SOCK_DGRAM:
                        line.recv(100)
                    else:
                        line.accept()[0].close()
                    self.reached.add(name)
        found, self.reached = self.reached, set()
        return found

    async def attend(self) -> None:
        """Look for callers until cancelled, so that none has to wait."""
        while True:
            self.reached |= self.look()
            await asyncio.sleep(0.02)

    def close(self) -> None:
        """Listen no more."""
        for line in self._lines.values():
            line.close()


@dataclass
class Ground:
    """One test's place: the work tree `tree`, and beside it `out`."""

    base: Path
    uid: int | None
    contacts: Contacts
    secret: str = field(default_factory=lambda: f"canary-{secrets.token_hex(8)}")
    sleep: str = field(default_factory=lambda: f"{86400 + secrets.randbelow(10**6)}.{secrets.randbelow(10**9):09}")
    victim: subprocess.Popen[bytes] | None = None

    @property
    def tree(self) -> Path:
        """The work tree."""
        return self.base / "tree"

    @property
    def out(self) -> Path:
        """The folder outside."""
        return self.base / "out"

    @property
    def variables(self) -> dict[str, str]:
        """Tell where everything is, as the corpus names it."""
        return {
            "OUT": str(self.out), "SECRET": str(self.out / "secret"), "PORT": str(self.contacts.port),
            "UDP": str(self.contacts.udp), "SOCK": str(self.out / "sock"), "DGRAM": str(self.out / "dgram"),
            "ABSTRACT": self.contacts.abstract, "PID": str(os.getpid()), "SLEEP": self.sleep,
        }  # fmt: skip

    def renew(self) -> None:
        """Put everything outside as it was, with a victim that lives."""
        for entry in self.out.iterdir():
            if entry.name not in {"secret", THEIRS, "sock", "dgram"}:
                shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
        (self.out / THEIRS).unlink(missing_ok=True)
        (self.out / THEIRS).write_text("theirs")
        (self.out / THEIRS).chmod(0o666)
        (self.out / "secret").write_text(self.secret)
        self.tree.joinpath("gained").unlink(missing_ok=True)
        self.seed("corpus.txt", "a\n")
        if self.victim is None or self.victim.poll() is not None:
            # With the server's uid: everything that has a workspace's own is that workspace's to end.
            self.victim = subprocess.Popen(["/bin/sleep", "86400"], env={"VICTIM": "1"}, start_new_session=True)
        self.contacts.look()

    def seed(self, name: str, text: str) -> Path:
        """Make a file of the work tree."""
        path = self.tree / name
        path.unlink(missing_ok=True)
        path.write_text(text)
        if self.uid is not None:
            os.chown(path, self.uid, self.uid)
        return path

    def harm(self, output: str = "") -> list[str]:
        """Tell what happened outside since it was as it should be."""
        found = sorted(f"made {name}" for name in {*os.listdir(self.out)} - {"secret", THEIRS, "sock", "dgram"})  # noqa: PTH208
        theirs = self.out / THEIRS
        if not theirs.exists() or (theirs.read_text(), theirs.stat().st_mode & 0o777) != ("theirs", 0o666):
            found.append("changed a file")
        if self.secret in output:
            found.append("read the secret")
        if os.path.lexists(self.tree / "gained"):
            found.append("gained")
        if self.victim is not None and self.victim.poll() is not None:
            found.append("ended the victim")
        if running(self.sleep):
            found.append("left a process")
        return found + sorted(f"reached {name}" for name in self.contacts.look())

    def close(self) -> None:
        """End and remove everything."""
        if self.victim is not None:
            self.victim.kill()
            self.victim.wait()
        for pid in running(self.sleep):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.contacts.close()
        shutil.rmtree(self.base, ignore_errors=True)


def running(word: str) -> list[int]:
    """Find the processes that have a word among their arguments."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if word.encode() in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
    return found


def _ground(uid: int | None) -> Ground:
    base = Path(tempfile.mkdtemp(prefix="iw-security-", dir="/tmp"))
    base.chmod(0o755)
    for name in ("tree", "out"):
        (base / name).mkdir()
    (base / "out").chmod(0o777)
    made = Ground(base, uid, Contacts(base / "out"))
    if uid is not None:
        os.chown(made.tree, uid, uid)
    (made.out / "secret").write_text(made.secret)
    (made.out / "secret").chmod(0o644)
    made.renew()
    return made


@pytest.fixture
def ground() -> Iterator[Ground]:
    """Grounds for a workspace with a uid of its own, where root starts it."""
    made = _ground(OWN if ROOT else None)
    yield made
    made.close()


@pytest.fixture
def other_ground() -> Iterator[Ground]:
    """Grounds for a second workspace."""
    made = _ground(OTHER if ROOT else None)
    yield made
    made.close()


@pytest.fixture
def throwaway_ground() -> Iterator[Ground]:
    """Grounds for commands that nothing shuts in."""
    if not ROOT:
        pytest.skip("only root can give away a uid that owns nothing")
    made = _ground(THROWN_AWAY)
    yield made
    made.close()


@contextlib.contextmanager
def ordinary_user(uid: int) -> Iterator[None]:
    """Be an ordinary user for a while, as root; the kernel hides us meanwhile, as the server hides itself."""
    groups = os.getgroups()
    os.setgroups([])
    os.setresgid(uid, uid, 0)
    os.setresuid(uid, uid, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)
        os.setresgid(0, 0, 0)
        os.setgroups(groups)


@pytest.fixture
def ordinary_ground() -> Iterator[Ground]:
    """Grounds for a workspace with the server's own uid, which is an ordinary one."""
    if not ROOT:
        made = _ground(None)
        yield made
        made.close()
        return
    made = _ground(ORDINARY)
    for path in (made.base, *made.base.rglob("*")):
        os.chown(path, ORDINARY, ORDINARY)
    made.uid = None
    with ordinary_user(ORDINARY):
        yield made
    made.close()


def required() -> frozenset[str]:
    """Read which levels must be usable, from `REQUIRE_SANDBOX`: names with commas between them."""
    names = frozenset(filter(None, os.environ.get("REQUIRE_SANDBOX", "").split(",")))
    if not names <= {*LEVELS}:
        raise pytest.UsageError(f"REQUIRE_SANDBOX names {', '.join(LEVELS)}, not {', '.join(names)}")
    return names


def unusable(level: str, reason: str) -> None:
    """Skip, or fail where the level must be usable."""
    if level in required():
        pytest.fail(f"REQUIRE_SANDBOX={level}, but it cannot be used here: {reason}")
    pytest.skip(f"{level} cannot be used here: {reason}")


@pytest.fixture(scope="session")
def reasons() -> Mapping[str, str]:
    """Why each level cannot be used on this machine; empty where it can."""
    uid = ATTACKER if ROOT else None
    if not ROOT:
        # As the server does at its start.
        hide()
    return {level: asyncio.run(attacked(confinement(level), uid)).reason for level in LEVELS}


@pytest.fixture(params=LEVELS)
def level(request: pytest.FixtureRequest, reasons: Mapping[str, str]) -> str:
    """Each level in turn."""
    name = str(request.param)
    if reasons[name]:
        unusable(name, reasons[name])
    return name


Make = Callable[..., ProcessSandbox]


@pytest.fixture
async def make() -> AsyncIterator[Make]:
    """Make sandboxes; all are closed at the end."""
    made: list[ProcessSandbox] = []

    def build(
        ground: Ground,
        shut_in: str | Confinement,
        *,
        limits: ResourceLimits | None = None,
        proxy: Callable[[], Proxy] | None = None,
        readable: Sequence[Path] = (),
        parallel: bool = False,
    ) -> ProcessSandbox:
        chosen = confinement(shut_in) if isinstance(shut_in, str) else shut_in
        place = Place(ground.tree, uid=ground.uid, environment=ground.variables, proxy=proxy, readable=readable)
        place = replace(place, parallel=parallel)
        made.append(ProcessSandbox(place, chosen, limits=limits))
        return made[-1]

    yield build
    for one in made:
        await one.close()


@pytest.fixture
async def sandbox(make: Make, ground: Ground, level: str) -> ProcessSandbox:
    """A started sandbox over the grounds, with a uid of its own."""
    built = make(ground, level)
    await built.start()
    return built


@pytest.fixture
async def ordinary(make: Make, ordinary_ground: Ground, level: str) -> ProcessSandbox:
    """A started sandbox with the server's own, ordinary uid."""
    built = make(ordinary_ground, level)
    await built.start()
    return built


async def both(ground: Ground, sandbox: ProcessSandbox, command: str) -> str:
    """Run a command on grounds that are as they should be, and return what it printed."""
    ground.renew()
    assert ground.victim is not None
    result = await sandbox.run(f"export VICTIM={ground.victim.pid}\n{command}", timeout_s=20, output_chars=200_000)
    return result.stdout + result.stderr


def shared() -> list[Path]:
    """List what the tests' commands left in the machine's shared memory."""
    return list(Path("/dev/shm").glob("iw-*"))


class Answering:
    """The smallest proxy: says hello to everybody, and counts them."""

    def __init__(self) -> None:
        """Be reached by nobody yet."""
        self.called = 0
        self._server: asyncio.Server | None = None

    async def start(self, listener: socket.socket) -> None:
        """Answer."""
        self._server = await asyncio.start_server(self._answer, sock=listener)

    async def close(self) -> None:
        """Answer no more."""
        if self._server is not None:
            self._server.close()

    def environment(self, url: str) -> Mapping[str, str]:
        """Name the proxy, and its port by itself."""
        return {"http_proxy": url, "https_proxy": url, "PROXY": url.rpartition(":")[2]}

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.called += 1
        with contextlib.suppress(OSError, EOFError):
            await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello")
        with contextlib.suppress(OSError):
            await writer.drain()
        writer.close()
