"""Runs the attacks against one level of confinement, and looks from outside at what they did."""

import asyncio
import contextlib
import json
import os
import secrets
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bot.errors import BotError
from bot.sandbox.base import Place
from bot.sandbox.confinement import Confinement
from bot.sandbox.identity import identify
from bot.sandbox.process import ProcessSandbox

WITHIN_S = 30.0
_ATTACK = Path(__file__).with_name("attack.py")
_SECRET = "secret"  # noqa: S105 - it is only called so
_WORDS = {
    "write_outside": "a file outside the workspace was written",
    "read_secret": "a file outside the workspace was read",
    "hard_link": "a file outside the workspace got a second name inside",
    "server_process": "the server's environment, memory or descriptors could be read",
    "signals": "a process outside was ended",
    "limits": "limits or priority of a process outside were changed",
    "metadata": "mode, owner or times of a file outside could be changed",
    "tcp": "a service of this machine was reached by TCP",
    "udp": "a service of this machine was reached by UDP",
    "unix_sockets": "a socket of this machine was reached",
    "privileges": "a command has privileges or can get them",
    "namespaces": "a command can make namespaces or mount",
    "kernel": "a command can use keys, io_uring, tracing, devices or settings of the kernel",
    "survivors": "a process outlived its command",
}
CHECKS = tuple(_WORDS)
"""The names of the attacks."""
TOLERATED = {"landlock": frozenset({"signals", "metadata"})}
"""What a level may lack: Landlock guards the contents of files but not their modes and times, and before version 6 of
its interface no signals. Both matter only where the uid is the server's."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the attacks on one level gave."""

    usable: bool
    reason: str
    """Why it cannot be used; empty where it can."""
    missing: tuple[str, ...] = ()
    """What a usable level lacks, in words for people."""


async def attacked(confinement: Confinement, uid: int | None) -> Verdict:
    """Attack a level.

    Args:
        confinement: the level.
        uid: a free one for the attacker where the server is root; None where it is the server's own.
    """
    try:
        async with asyncio.timeout(WITHIN_S):
            succeeded = await _attack(confinement, uid)
    except TimeoutError:
        return Verdict(usable=False, reason=f"the self-test took longer than {WITHIN_S:g} s")
    except (BotError, OSError, ValueError) as error:
        return Verdict(usable=False, reason=str(error))
    tolerated = TOLERATED.get(confinement.level, frozenset())
    fatal = [_WORDS[name] for name in succeeded if name not in tolerated]
    lacking = tuple(_WORDS[name] for name in succeeded if name in tolerated)
    return Verdict(usable=not fatal, reason="; ".join(fatal), missing=lacking)


async def _attack(confinement: Confinement, uid: int | None) -> list[str]:
    """Run all attacks and return the names of those that succeeded."""
    # Other servers may test themselves on this machine at the same time.
    survivor = f"600.{secrets.randbelow(10**9):09}"
    with _grounds(uid) as base, _victim(uid) as victim:
        async with _services(base) as (services, reached):
            target = {
                "folder": str(base / "outside"), "secret": str(base / "outside" / "secret"), "pid": str(os.getpid()),
                "victim": str(victim.pid), "survivor": survivor, **services,
            }  # fmt: skip
            sandbox = ProcessSandbox(Place(base / "tree", uid=uid, at="/work/tree"), confinement)
            try:
                inside = await _inside(sandbox, target)
                survived = await asyncio.to_thread(_alive, survivor)
            finally:
                await sandbox.close()
            cut = (base / "outside" / "secret").read_text() != _SECRET
            outside = {
                "write_outside": cut or (base / "outside" / "written").exists() or (base / "written").exists(),
                "signals": victim.poll() is not None,
                "survivors": survived,
            }
            outside |= dict.fromkeys(reached, True)
        return [name for name in CHECKS if name in inside or outside.get(name)]


async def _inside(sandbox: ProcessSandbox, target: dict[str, str]) -> list[str]:
    await sandbox.replace("attack.py", await asyncio.to_thread(_ATTACK.read_bytes), expected_sha256=None)
    start = f"[ -x $p ] && exec $p -I attack.py {shlex.quote(json.dumps(target))}"
    command = f"for p in /usr/bin/python3 /usr/local/bin/python3; do {start}; done; exit 99"
    result = await sandbox.run(command, timeout_s=WITHIN_S / 2)
    if result.exit_code != 0:
        raise ValueError(f"the self-test could not run ({result.exit_code}): {result.stderr.strip()[-300:]}")
    answer = json.loads(result.stdout)
    if answer["broken"] or answer["tried"] != len(CHECKS):
        raise ValueError(f"the self-test could not be made whole: {answer['broken']}")
    return [str(name) for name in answer["succeeded"]]


@contextmanager
def _grounds(uid: int | None) -> Iterator[Path]:
    """Make a work tree, and beside it what must stay out of reach."""
    base = Path(tempfile.mkdtemp(prefix="issuewright-selftest-"))
    try:
        base.chmod(0o755)
        outside, tree = base / "outside", base / "tree"
        outside.mkdir()
        outside.chmod(0o777)
        (outside / "secret").write_text(_SECRET)
        (outside / "secret").chmod(0o644)
        tree.mkdir()
        if uid is not None:
            os.chown(tree, uid, uid)
        yield base
    finally:
        shutil.rmtree(base, ignore_errors=True)


@contextmanager
def _victim(uid: int | None) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process outside, as the server's user: with the attacker's uid only where that is the same."""
    identify(uid, None)
    process = subprocess.Popen(["/bin/sleep", "60"], stdin=subprocess.DEVNULL)
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGKILL)
        process.wait()


@asynccontextmanager
async def _services(base: Path) -> AsyncIterator[tuple[dict[str, str], set[str]]]:
    """Serve on TCP, UDP and both kinds of Unix sockets, and note which of them was reached."""
    reached: set[str] = set()

    def came(name: str) -> None:
        reached.add(name)

    async def called(name: str, writer: asyncio.StreamWriter) -> None:
        came(name)
        writer.close()

    class Datagrams(asyncio.DatagramProtocol):
        def __init__(self, name: str) -> None:
            self._name = name

        def datagram_received(self, _: bytes, __: object) -> None:
            came(self._name)

    loop = asyncio.get_running_loop()
    abstract, path = f"issuewright-selftest-{secrets.token_hex(6)}", base / "outside" / "socket"
    async with contextlib.AsyncExitStack() as stack:
        tcp = await asyncio.start_server(lambda _, writer: called("tcp", writer), "", 0, family=socket.AF_INET)
        await stack.enter_async_context(tcp)
        for address in (str(path), "\0" + abstract):
            server = await asyncio.start_unix_server(lambda _, writer: called("unix_sockets", writer), address)
            await stack.enter_async_context(server)
        path.chmod(0o777)
        transport, _ = await loop.create_datagram_endpoint(lambda: Datagrams("udp"), ("127.0.0.1", 0))
        stack.callback(transport.close)
        datagrams = path.with_name("datagrams")
        local, _ = await loop.create_datagram_endpoint(
            lambda: Datagrams("unix_sockets"), str(datagrams), family=socket.AF_UNIX
        )
        stack.callback(local.close)
        datagrams.chmod(0o777)
        services = {
            "tcp": str(tcp.sockets[0].getsockname()[1]), "udp": str(transport.get_extra_info("sockname")[1]),
            "unix": str(path), "abstract": abstract, "datagrams": str(datagrams),
            "address": _own_address(),
        }  # fmt: skip
        yield services, reached


def _own_address() -> str:
    """Find the address under which others see this machine; nothing is sent."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        line.connect(("192.0.2.1", 9))
        return str(line.getsockname()[0])
    return "127.0.0.1"


def _alive(word: str) -> bool:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if word.encode() in (entry / "cmdline").read_bytes().split(b"\0"):
                    return True
    return False
