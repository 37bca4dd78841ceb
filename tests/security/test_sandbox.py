"""S64 to S77: what each level keeps from commands, looked at from outside."""

import asyncio
import contextlib
import os
import re
import shutil
import subprocess
import sys
import textwrap
import time
from dataclasses import replace
from pathlib import Path

import pytest

from bot.sandbox.landlock import Landlock
from bot.sandbox.limits import ResourceLimits
from bot.sandbox.process import ProcessSandbox
from bot.sandbox.selftest.run import attacked
from tests.security.conftest import ORDINARY, ROOT, Answering, Ground, Make, both, running, shared

pytestmark = pytest.mark.security

WAYS_OUT = """
echo x > $OUT/m; echo x >> $OUT/theirs; ln -s $OUT away; echo x > away/m; ln $OUT/theirs hard; mv $OUT/theirs stolen
cp -a $OUT/theirs theirs && mv theirs $OUT/m; rm -f $OUT/theirs; truncate -s 0 $OUT/theirs; mkdir $OUT/m; mkfifo $OUT/m
python3 -c 'import os; os.truncate(os.environ["OUT"] + "/theirs", 0)'
exec 9< $OUT; echo x > /proc/self/fd/9/m; cd -P /proc/self/cwd/../out && echo x > m
echo x > /tmp/../$OUT/m; echo x > //$OUT//m; echo evil >> SERVERS/.bashrc; true
"""


async def test_write_outside(sandbox: ProcessSandbox, ground: Ground) -> None:
    """S64: by no way does a command change anything beside its work tree."""
    home = ground.base / "home"
    home.mkdir()
    (home / ".bashrc").write_text("mine")
    (home / ".bashrc").chmod(0o666)
    output = await both(ground, sandbox, WAYS_OUT.replace("SERVERS", str(home)))
    assert ground.harm(output) == []
    assert (home / ".bashrc").read_text() == "mine"
    assert "m" not in os.listdir("/tmp")  # noqa: PTH208 - it takes no time


async def test_write_outside_as_ordinary(ordinary: ProcessSandbox, ordinary_ground: Ground) -> None:
    """S64: neither where the files outside have the same owner."""
    assert ordinary_ground.harm(await both(ordinary_ground, ordinary, WAYS_OUT)) == []


async def test_modes_of_files_outside(ordinary: ProcessSandbox, ordinary_ground: Ground) -> None:
    """S64: modes of files outside with the same owner are safe at `bubblewrap`; `landlock` says that it lacks this."""
    await both(ordinary_ground, ordinary, "chmod 600 $OUT/theirs")
    changed = ordinary_ground.harm() == ["changed a file"]
    verdict = await attacked(Landlock(), None)
    assert changed == (ordinary.level == "landlock")
    assert verdict.missing == ("mode, owner or times of a file outside could be changed",)


SECRETS = (".ssh/id_ed25519", "state/tasks.db", "keys/app.pem", ".config/gh/hosts.yml", ".netrc", "docker.sock.txt")


def put_secrets(place: Ground) -> None:
    """Put the server's files beside a work tree."""
    for name in SECRETS:
        path = place.base / "home" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(place.secret)
        path.chmod(0o644)


async def unread(place: Ground, acting: ProcessSandbox) -> None:
    """Look for the server's files in every way."""
    put_secrets(place)
    paths = " ".join(f"{place.base}/home/{name}" for name in SECRETS)
    output = await both(
        place,
        acting,
        f"cat {paths} /etc/shadow; for f in {paths}; do ln -s $f l; cat l; rm l; cp -l $f hard && cat hard; done\n"
        f"ls -R {place.base}/home; find {place.base} -type f -exec cat {{}} +; tar -cf - {place.base} | strings",
    )
    assert place.harm(output) == []


async def test_read_secrets(sandbox: ProcessSandbox, ground: Ground) -> None:
    """S65: of the server's files none is read, listed or linked, though everybody may read them."""
    await unread(ground, sandbox)


async def test_read_secrets_as_ordinary(ordinary: ProcessSandbox, ordinary_ground: Ground) -> None:
    """S65: neither where they have the same owner."""
    await unread(ordinary_ground, ordinary)


SERVER = """
import asyncio, os, sys
from pathlib import Path
from bot.sandbox.base import Place
from bot.sandbox.bubblewrap import Bubblewrap
from bot.sandbox.helper.kernel import hide
from bot.sandbox.landlock import Landlock
from bot.sandbox.process import ProcessSandbox

async def main():
    level = {"bubblewrap": Bubblewrap, "landlock": Landlock}[sys.argv[1]]()
    sandbox = ProcessSandbox(Place(Path(sys.argv[2]), uid=int(sys.argv[3]) or None), level)
    await sandbox.start()
    print("ready", flush=True)
    result = await sandbox.run(sys.argv[4], timeout_s=60, output_chars=2_000_000)
    print(result.stdout + result.stderr)
    await sandbox.close()

hide()
held = "memory-canary-" + "77"
os.set_inheritable(os.open(sys.argv[2] + "/../out/secret", os.O_RDONLY), True)
asyncio.run(main())
"""


def serve(ground: Ground, level: str, command: str, *, own: bool, **environment: str) -> subprocess.Popen[str]:
    """Start a server that runs one command; as root with the workspace's uid, or wholly as an ordinary user."""
    user = None if own or not ROOT else ORDINARY
    if user is not None:
        for path in (ground.base, *ground.base.rglob("*")):
            os.chown(path, user, user)
    uid = str(ground.uid or 0) if own else "0"
    argv = [sys.executable, "-c", textwrap.dedent(SERVER), level, str(ground.tree), uid, command]
    clean = {"PATH": os.environ["PATH"], "PYTHONPATH": str(Path.cwd()), "TMPDIR": str(ground.base), **environment}
    return subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=clean, user=user, group=user,
        extra_groups=None if user is None else [],
    )  # fmt: skip


CANARIES = (
    "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GITHUB_TOKEN", "GH_TOKEN", "AWS_SECRET_ACCESS_KEY", "SSH_AUTH_SOCK",
    "DATABASE_URL", "ISSUEWRIGHT_WEBHOOK_SECRET", "BASH_ENV", "LD_AUDIT_CANARY", "PYTHONSTARTUP", "XDG_CONFIG_HOME",
)  # fmt: skip
LOOK = r"""
env; declare -x; cat /proc/self/environ /proc/[0-9]*/environ; ps auxewww; ls -l /proc/self/fd /proc/$PPID/fd
S=$(awk '/^PPid/ {print $2}' /proc/$PPID/status)
for p in $PPID $S; do cat /proc/$p/environ; head -c 1 /proc/$p/mem; cat /proc/$p/maps; ls -l /proc/$p/fd/; done
gdb -q -batch -p $S -ex 'info proc'; strace -qq -p $S -o t & sleep 0.2; kill $! 2>/dev/null
python3 - $S $PPID <<'E'
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
for pid in map(int, sys.argv[1:]):
    for number, *more in ((101, 16, pid, 0, 0), (438, os.pidfd_open(pid) if pid else -1, 0, 0)):
        print("gra" "nted" if libc.syscall(number, *more) >= 0 else "refused")
E
"""


@pytest.mark.parametrize("own", [True, False], ids=["own", "ordinary"])
def test_server_process(ground: Ground, level: str, *, own: bool) -> None:
    """S66, S67: none of twelve secrets of the environment, no memory and no descriptor of the server is got at."""
    secrets = {name: f"canary-{number}" for number, name in enumerate(CANARIES)}
    with serve(ground, level, LOOK, own=own, **secrets) as server:
        text, _ = server.communicate(timeout=60)
    assert text.startswith("ready\n"), text
    assert "refused" in text
    assert re.findall(r"canary-\w+|granted", text.replace(ground.secret, "canary-secret")) == []
    assert not re.search(r"-> \S*/out/secret|\[heap\].*\n.*Permission", text)
    names = {line.partition("=")[0] for line in text.partition("declare -x")[0].splitlines()[1:] if "=" in line}
    assert names <= {
        "CI", "DEBIAN_FRONTEND", "GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_0", "GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_VALUE_0",
        "GIT_EDITOR", "GIT_PAGER", "GIT_TERMINAL_PROMPT", "HOME", "ISSUEWRIGHT_SANDBOX", "LANG", "LC_ALL", "LESS",
        "MANPAGER", "NONINTERACTIVE", "NO_COLOR", "PAGER", "PATH", "PIP_PROGRESS_BAR", "PWD",
        "PYTHONDONTWRITEBYTECODE", "SHLVL", "TERM", "TMPDIR", "TQDM_DISABLE", "_",
    }  # fmt: skip


def status_of(pid: int) -> str:
    """What the kernel says of a process."""
    return Path(f"/proc/{pid}/status").read_text("utf-8", "replace")


def state_of(pid: int) -> list[str]:
    """What a process is and may."""
    stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return [stat[0], stat[16], *Path(f"/proc/{pid}/limits").read_text().splitlines()]


async def test_other_processes(ordinary: ProcessSandbox, ordinary_ground: Ground) -> None:
    """S68: a process outside with the same uid is not ended, stopped, slowed or limited; nor is the server."""
    ordinary_ground.renew()
    assert ordinary_ground.victim is not None
    pids = (ordinary_ground.victim.pid, os.getpid())
    before = [state_of(pid)[1:] for pid in pids]
    for pid in pids:
        await ordinary.run(
            f"for s in STOP TERM HUP USR1 KILL; do kill -$s {pid}; kill -$s -{pid}; done; renice -n 19 -p {pid}\n"
            f"renice -n 19 -u {os.geteuid()}; prlimit --nofile=9:9 --cpu=1:1 -p {pid}; chrt -i -p 0 {pid}\n"
            f"ionice -c 3 -p {pid}; kill -KILL -1; sleep 0.05",
            timeout_s=10,
        )
    assert ordinary_ground.harm() == []
    assert [state_of(pid)[1:] for pid in pids] == before
    assert state_of(pids[0])[0] == "S"
    assert (await ordinary.run("echo on", timeout_s=5)).stdout == "on\n"


async def test_privileges(sandbox: ProcessSandbox, ground: Ground) -> None:
    """S69: seen from outside, a command has no capability, no way to a new one, a filter, and is not root."""
    task = asyncio.ensure_future(sandbox.run(f"sleep {ground.sleep} & wait", timeout_s=20))
    while not (found := running(ground.sleep)):  # noqa: ASYNC110 - another process is waited for
        await asyncio.sleep(0.01)
    text = "\n".join(status_of(pid) for pid in found)
    task.cancel()
    await asyncio.wait([task])
    for name, value in (("NoNewPrivs", "1"), ("Seccomp", "2"), ("CapEff", "0" * 16), ("CapPrm", "0" * 16)):
        assert set(re.findall(rf"^{name}:\s+(\w+)$", text, re.MULTILINE)) == {value}, name
    ids = re.findall(r"^[UG]id:\s+(.*)$", text, re.MULTILINE)
    assert ids
    assert not any("0" in line.split() for line in ids)
    assert running(ground.sleep) == []


TOUCH = Path("/usr/bin/touch").resolve()


@pytest.mark.skipif(not ROOT, reason="only root can make such a file")
async def test_setuid(sandbox: ProcessSandbox, ground: Ground) -> None:
    """S69: a program of root's with the setuid bit makes nobody root."""
    program = ground.tree / "touch"
    shutil.copy(TOUCH, program)
    os.chown(program, 0, 0)
    program.chmod(0o6755)
    await sandbox.run("./touch made", timeout_s=5)
    made = (ground.tree / "made").stat()
    assert (made.st_uid, made.st_gid) == (ground.uid, ground.uid)


async def test_devices(sandbox: ProcessSandbox) -> None:
    """S69: nothing can be made among the devices but in `/dev/shm`, and there are no others than harmless ones."""
    result = await sandbox.run("echo x > /dev/x; mkdir /dev/y; mknod /dev/z p; ls /dev/x /dev/y /dev/z", timeout_s=5)
    assert result.stdout == ""
    found = (await sandbox.run("for d in /dev/*; do [ -b $d ] && head -c 1 $d && echo $d; done", timeout_s=5)).stdout
    assert found == ""


async def test_refused_address(make: Make, ground: Ground, level: str) -> None:
    """S70: with a way out to a proxy, another address of the machine is not just not reached but refused."""
    sandbox = make(ground, level, proxy=Answering)
    result = await sandbox.run("(: > /dev/tcp/127.0.0.1/$PORT) 2>&1; : > /dev/tcp/127.0.0.1/$PROXY", timeout_s=5)
    assert "refused" in result.stdout or "unreachable" in result.stdout
    assert result.exit_code == 0
    assert ground.harm() == []


LOOPBACK = """
python3 - <<'E'
import socket
server = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(server.getsockname(), 2)
server.accept()[0].sendall(b"loop")
print(client.recv(9).decode())
E
"""


async def test_loopback(sandbox: ProcessSandbox, ground: Ground) -> None:
    """S70: servers on a loopback of its own work at `bubblewrap`; at `landlock` no socket is to be had at all."""
    result = await sandbox.run(LOOPBACK, timeout_s=10)
    assert ("loop" in result.stdout) == (sandbox.level == "bubblewrap")
    assert ground.harm() == []


MIB = 1 << 20
LIMITS = ResourceLimits(
    open_files=64, file_bytes=32 * MIB, processes=150, memory_bytes=160 * MIB, cpu_s=1, disk_bytes=96 * MIB,
    files=5_000, output_bytes=4 * MIB,
)  # fmt: skip
HUNGRY: dict[str, tuple[str, str]] = {
    "fork bomb": ("b() { b | b & }; b; sleep 5", r"more than 150 processes|fork"),
    "chain": ("echo 'sh ./c & wait' > c; sh ./c", r"more than 150 processes|fork"),
    "threads": (
        "python3 -c 'import threading as t, time\nfor _ in range(999): t.Thread(target=time.sleep, args=(2,)).start()'",
        r"more than 150 processes|can't start new thread",
    ),
    "memory of one": ("python3 -c 'x = bytearray(600 << 20); import time; time.sleep(5)'", "MemoryError|160 MiB"),
    "memory of many": (
        "for i in 1 2 3 4; do python3 -c 'x = b\"x\" * (64 << 20); import time; time.sleep(5)' & done; wait",
        "more than 160 MiB of memory",
    ),
    "shared memory": (
        "python3 -c 'import mmap, time; m = mmap.mmap(-1, 1 << 29)\nwhile 1: m.write(bytes(1 << 20))'; sleep 5",
        "more than 160 MiB of memory",
    ),
    "file in memory": (
        (
            'for i in $(seq 12); do python3 -c \'import os, time; os.write(os.memfd_create("x"), bytes(30 << 20)); '
            "time.sleep(5)' & done; wait"
        ),
        "more than 160 MiB of memory",
    ),
    "/dev/shm": ("for i in $(seq 20); do head -c 30M /dev/zero > /dev/shm/iw-$$-$i; done; sleep 5", "160 MiB|No space"),
    "CPU": ("while :; do :; done", "more than 1 s of processor time"),
    "descriptors": ("python3 -c 'f = [open(\"/dev/null\") for _ in range(99)]'", "Too many open files"),
    "one file": ("head -c 99M /dev/zero > big; ls -s big", "File size limit exceeded"),
    "many files": ("for i in $(seq 20); do head -c 16M /dev/zero > f$i; done", "more than 96 MiB or 5,000 files"),
    "names": (
        "python3 -c 'import os\nfor n in range(30000): os.mknod(str(n))'; sleep 1",
        "more than 96 MiB or 5,000 files",
    ),
    "output": ("yes", "more than 4,194,304 bytes"),
}


async def hungry(sandbox: ProcessSandbox, name: str) -> None:
    """Run what takes all of something: it is ended soon with the limit's name, and the server keeps going."""
    command, words = HUNGRY[name]
    late = 0.0

    async def beat() -> None:
        nonlocal late
        while True:
            due = time.monotonic() + 0.01
            await asyncio.sleep(0.01)
            late = max(late, time.monotonic() - due)

    heart = asyncio.create_task(beat())
    result = await sandbox.run(command, timeout_s=12)
    heart.cancel()
    assert re.search(words, result.stdout[-4000:] + result.stderr), result.stderr[-500:]
    assert result.seconds < 16
    assert late < 3.0
    await sandbox.close()
    assert (await sandbox.run("echo on", timeout_s=5)).stdout == "on\n"


@pytest.mark.parametrize("name", HUNGRY)
async def test_hungry(make: Make, ground: Ground, level: str, name: str) -> None:
    """S73: whatever a command takes all of, it is contained; the limit is named and the place works again."""
    limits = replace(LIMITS, cpu_s=60) if name == "names" else LIMITS
    await hungry(make(ground, level, limits=limits), name)
    left = shared()
    for path in left:
        path.unlink()
    # What is in the machine's shared memory with the server's own uid could be the server's.
    assert not left or (level, ROOT) == ("landlock", False)


@pytest.mark.parametrize("name", ["fork bomb", "chain", "threads"])
async def test_hungry_as_ordinary(make: Make, ordinary_ground: Ground, level: str, name: str) -> None:
    """S73: processes are contained too where the uid has others."""
    await hungry(make(ordinary_ground, level, limits=LIMITS), name)


async def test_output(make: Make, ground: Ground, level: str) -> None:
    """S74: long, binary and full of escapes: both ends are kept, and nothing for a terminal is left."""
    sandbox = make(ground, level)
    result = await sandbox.run("echo first; head -c 48M /dev/urandom; echo; echo last", timeout_s=60)
    assert (result.stdout[:6], result.stdout[-6:]) == ("first\n", "\nlast\n")
    assert len(result.stdout) < 16_200
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", result.stdout)
    odd = await sandbox.run(r"printf 'a\0b\033]8;;http://x\033\\c\r10%%\r20%%\n\377\033[2J'", timeout_s=5)
    assert odd.stdout == "20%\n�"


SURVIVORS = """
setsid sleep $SLEEP & nohup sleep $SLEEP >/dev/null 2>&1 & disown -a
(trap '' TERM HUP INT; exec setsid sleep $SLEEP) >/dev/null 2>&1 </dev/null &
env -i setsid sleep $SLEEP & (env -i setsid bash -c "(env -i sleep $SLEEP &)" &)
coproc env -i sleep $SLEEP; sleep 0.1
"""
ENDS = {
    "return": "true",
    "timeout": "trap '' TERM; while :; do sleep 0.1; done",
    "helper": "kill -9 $PPID; kill -STOP $PPID",
}


@pytest.mark.parametrize("end", ENDS)
async def test_survivors(sandbox: ProcessSandbox, ground: Ground, end: str) -> None:
    """S75: nothing outlives its command, however it ends: by itself, in time, or with an attack on its helper."""
    await sandbox.run(SURVIVORS + ENDS[end], timeout_s=1)
    assert running(ground.sleep) == []


@pytest.mark.parametrize("end", ENDS)
async def test_survivors_as_ordinary(ordinary: ProcessSandbox, ordinary_ground: Ground, end: str) -> None:
    """S75: nor where the uid tells nothing; from version 6 of Landlock's interface a helper cannot be attacked."""
    await ordinary.run(SURVIVORS + ENDS[end], timeout_s=1)
    assert running(ordinary_ground.sleep) == []


def zombies(uid: int) -> list[str]:
    """List the dead processes of a uid that nobody has waited for."""
    texts = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                texts.append(status_of(int(entry.name)))
    return [text for text in texts if f"\nUid:\t{uid}\t" in text and "\nState:\tZ" in text]


async def test_no_zombies(sandbox: ProcessSandbox) -> None:
    """S75: after many commands no dead process is left behind."""
    for _ in range(40):
        await sandbox.run("sleep 0 & setsid true & true", timeout_s=5)
    assert zombies(sandbox._identity.uid) == []


async def test_nobody_answers(sandbox: ProcessSandbox) -> None:
    """S76: what waits for a person ends at once, with and without a terminal."""
    result = await sandbox.run(
        "cat; read x; git --paginate help -a | head -1; (echo pw </dev/tty) 2>&1; ssh-keygen -q -f k\n"
        "python3 -c 'input()'; git clone -q https://user@127.0.0.1:1/x y; less corpus.txt\n"
        "man man | head -1; test -t 0 || echo none",
        timeout_s=15,
    )
    assert not result.timed_out
    assert result.stdout.endswith("none\n")


@pytest.mark.parametrize("own", [True, False], ids=["own", "ordinary"])
def test_killed_server(ground: Ground, level: str, *, own: bool) -> None:
    """S77: two seconds after the server was killed neither helper nor command is left, even if they tried to stay."""
    command = f"SLEEP={ground.sleep}; kill -STOP $PPID; trap '' TERM; {SURVIVORS} sleep $SLEEP"
    server = serve(ground, level, command, own=own)
    assert server.stdout is not None
    assert server.stdout.readline() == "ready\n"
    until = time.monotonic() + 5
    while time.monotonic() < until and len(running(ground.sleep)) < 6:
        time.sleep(0.02)
    assert len(running(ground.sleep)) >= 6
    server.kill()
    server.wait()
    server.stdout.close()
    until = time.monotonic() + 2
    while time.monotonic() < until and running(ground.sleep):
        time.sleep(0.02)
    assert running(ground.sleep) == []
