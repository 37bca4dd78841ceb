"""S70: the way out to a proxy opens to nothing else, and what stands at its door cannot be tricked or harmed."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from bot.errors import SandboxError
from bot.sandbox.landlock import Landlock
from tests.security.conftest import ROOT, Answering, Ground, Make, both, running

pytestmark = pytest.mark.security

HELLO = 'curl -s -m 3 --noproxy "" -x "$http_proxy" http://example.com/'
TRICKS = r"""
import ctypes, errno, os, resource, signal, socket, struct, sys, threading, time
PROXY, OTHER = int(os.environ["PROXY"]), int(os.environ["PORT"])
libc = ctypes.CDLL(None, use_errno=True)

def address(port, host="127.0.0.1"):
    return struct.pack("=H2s4s8x", 2, port.to_bytes(2, "big"), socket.inet_aton(host))

def call(fd, where, length=16):
    return libc.connect(ctypes.c_int(fd), ctypes.c_void_p(where), ctypes.c_uint(length))

def swapped_address():
    buffer = ctypes.create_string_buffer(address(PROXY), 16)
    done = []
    def swap():
        while not done:
            ctypes.memmove(buffer, address(OTHER), 16)
            ctypes.memmove(buffer, address(PROXY), 16)
    thread = threading.Thread(target=swap)
    thread.start()
    for _ in range(400):
        with socket.socket() as line:
            call(line.fileno(), ctypes.addressof(buffer))
    done.append(1)
    thread.join()

def swapped_descriptor():
    buffer = ctypes.create_string_buffer(address(PROXY), 16)
    done = []
    spare, null = socket.socket(), os.open("/dev/null", os.O_RDONLY)
    target = os.dup(spare.fileno())
    def swap():
        while not done:
            os.dup2(null, target)
            os.dup2(spare.fileno(), target)
            with socket.socket() as fresh:
                os.dup2(fresh.fileno(), target)
    thread = threading.Thread(target=swap)
    thread.start()
    for _ in range(300):
        call(target, ctypes.addressof(buffer))
    done.append(1)
    thread.join()

def odd_arguments():
    good = ctypes.create_string_buffer(address(PROXY), 16)
    place = ctypes.addressof(good)
    line = socket.socket()
    for fd, where, length in (
        (line.fileno(), 0, 16), (line.fileno(), 2**64 - 1, 16), (line.fileno(), 2**63, 16), (line.fileno(), place, 0),
        (line.fileno(), place, 2**32 - 1), (-1, place, 16), (2**31 - 1, place, 16), (9999, place, 16), (0, place, 16),
        (os.open("/dev/null", os.O_PATH), place, 16), (os.memfd_create("x"), place, 16), (os.pipe()[0], place, 16),
    ):
        call(fd, where, length)
    for number in (2**32 + line.fileno(), 2**63 + line.fileno()):
        libc.syscall(42, ctypes.c_ulong(number), ctypes.c_void_p(place), 16)

def other_ways():
    tries = [
        lambda s: s.connect(("127.0.0.1", OTHER)), lambda s: s.connect_ex(("0.0.0.0", OTHER)),
        lambda s: s.sendto(b"x", 0x20000000, ("127.0.0.1", OTHER)),
        lambda s: s.sendmsg([b"x"], [], 0x20000000, ("127.0.0.1", OTHER)),
        lambda s: (s.setsockopt(6, 30, 1), s.connect(("127.0.0.1", OTHER)), s.send(b"x")),
        lambda s: (s.connect(("127.0.0.1", PROXY)), s.connect(("127.0.0.1", OTHER))),
        lambda s: (s.connect(("127.0.0.1", PROXY)), call(s.fileno(), ctypes.addressof(
            ctypes.create_string_buffer(struct.pack("=H14x", 0), 16))), s.connect(("127.0.0.1", OTHER))),
        lambda s: socket.socket(10).connect(("::ffff:127.0.0.1", OTHER)),
        lambda s: socket.socket(2, 1, 262).connect(("127.0.0.1", OTHER)),
        lambda s: socket.socket(2, 1, 132).connect(("127.0.0.1", OTHER)),
        lambda s: socket.socket(2, 5).connect(("127.0.0.1", OTHER)),
        lambda s: socket.socket(2, 3, 6).sendto(b"x", ("127.0.0.1", OTHER)),
        lambda s: libc.syscall(317, 1, 8, ctypes.byref(ctypes.create_string_buffer(16))),
        lambda s: (s.bind(("127.0.0.1", 0)), s.listen(), print("listens")),
    ]
    for one in tries:
        with socket.socket() as line:
            line.settimeout(1)
            try:
                one(line)
            except (OSError, AttributeError):
                pass

def duplicates():
    line = socket.socket()
    twin = socket.socket(fileno=os.dup(line.fileno()))
    twin.connect(("127.0.0.1", PROXY))
    try:
        line.connect(("127.0.0.1", OTHER))
    except OSError:
        pass

def interrupted():
    signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, 0.002, 0.0007)
    for _ in range(60):
        with socket.socket() as line:
            line.connect_ex(("127.0.0.1", PROXY))
    signal.setitimer(signal.ITIMER_REAL, 0)

def killed():
    for round in range(40):
        pid = os.fork()
        if not pid:
            while True:
                with socket.socket() as line:
                    line.connect_ex(("127.0.0.1", PROXY))
        time.sleep(0.003 + round / 20000)
        os.kill(pid, 9)
        os.waitpid(pid, 0)

def many():
    good = []
    def one():
        with socket.create_connection(("127.0.0.1", PROXY), 10) as line:
            line.sendall(b"GET http://x/ HTTP/1.0\r\n\r\n")
            data = b""
            while chunk := line.recv(999):
                data += chunk
            good.append(data.endswith(b"hello"))
    threads = [threading.Thread(target=one) for _ in range(100)]
    [one.start() for one in threads]
    [one.join() for one in threads]
    print("many", good.count(True))

globals()[sys.argv[1]]()
print("done")
"""
NAMES = (
    "swapped_address", "swapped_descriptor", "odd_arguments", "other_ways", "duplicates", "interrupted", "killed",
    "many",
)  # fmt: skip


@contextlib.asynccontextmanager
async def attended(ground: Ground) -> AsyncIterator[None]:
    """Answer whoever calls past the proxy, meanwhile."""
    task = asyncio.create_task(ground.contacts.attend())
    yield
    task.cancel()


async def test_tricks(make: Make, ground: Ground, level: str) -> None:
    """Whatever a command does while it connects, it gets to the proxy or nowhere, and the helper goes on."""
    made: list[Answering] = []

    def proxy() -> Answering:
        made.append(Answering())
        return made[-1]

    sandbox = make(ground, level, proxy=proxy)
    assert (await sandbox.run(HELLO, timeout_s=10)).stdout == "hello"
    ground.renew()
    ground.seed("tricks.py", TRICKS)
    async with attended(ground):
        for name in NAMES:
            result = await sandbox.run(f"python3 tricks.py {name}", timeout_s=40)
            assert result.stdout.endswith("done\n"), (name, result)
            assert ground.harm() == [], name
            assert name != "many" or "many 100\n" in result.stdout
            assert ("listens" in result.stdout) == (name == "other_ways" and level == "bubblewrap")
            assert (await sandbox.run(HELLO, timeout_s=10)).stdout == "hello", name
    # It was one helper all the time.
    assert len(made) == 1
    assert made[0].called > 100


async def test_broken_proxy(make: Make, ground: Ground, level: str) -> None:
    """Where the proxy is gone commands are told that nobody answers, soon, and everything else goes on."""
    made: list[Answering] = []

    def proxy() -> Answering:
        made.append(Answering())
        return made[-1]

    sandbox = make(ground, level, proxy=proxy)
    await sandbox.start()
    await made[0].close()
    result = await sandbox.run(f"{HELLO}; echo $?", timeout_s=10)
    assert result.stdout in {"7\n", "28\n", "56\n"}
    assert result.seconds < 6
    assert (await sandbox.run("echo on", timeout_s=5)).stdout == "on\n"


HARM = """
for s in KILL STOP SEGV ABRT TERM HUP XCPU; do kill -$s $PPID; done; cat /proc/$PPID/mem /proc/$PPID/environ
ls -l /proc/$PPID/fd/; echo x > /proc/$PPID/fd/1; gdb -q -batch -p $PPID; prlimit -p $PPID --cpu=1:1 --nofile=3:3
for i in 1 2 3; do (head -c 3M /dev/zero >&$((i % 2 + 1))) & done; ulimit -n 20; exec 1>&- 2>&-; wait; sleep 0.2
"""


@pytest.mark.parametrize("own", [True, False], ids=["own", "ordinary"])
async def test_helper(request: pytest.FixtureRequest, make: Make, level: str, *, own: bool) -> None:
    """No command ends, stops, reads or limits the helper that runs it."""
    ground: Ground = request.getfixturevalue("ground" if own else "ordinary_ground")
    sandbox = make(ground, level)
    first = (await sandbox.run("echo $PPID; stat -c %Y /proc/$PPID", timeout_s=5)).stdout
    await both(ground, sandbox, HARM)
    assert (await sandbox.run("echo $PPID; stat -c %Y /proc/$PPID", timeout_s=5)).stdout == first
    assert ground.harm() == []


async def test_helper_of_an_old_kernel(make: Make, ground: Ground) -> None:
    """Before version 6 of Landlock's interface a helper can be ended: it is told, and all goes on.

    With a uid of its own nothing stays; with the server's a process that threw its environment away is not found.
    """
    sandbox = make(ground, Landlock(at_most=5))
    with pytest.raises(SandboxError, match="helper ended"):
        await sandbox.run("env -i setsid sleep $SLEEP & kill -9 $PPID; env -i sleep $SLEEP", timeout_s=10)
    assert not ROOT or running(ground.sleep) == []
    assert (await sandbox.run("echo on", timeout_s=5)).stdout == "on\n"
