"""Commands: what they get, what they give, and that nothing of them stays."""

import asyncio
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bot.errors import SandboxError, ToolError
from bot.sandbox.base import Place as Where
from bot.sandbox.limits import ResourceLimits
from bot.sandbox.process import ProcessSandbox


async def test_result(sandbox: ProcessSandbox, place: Any) -> None:
    """Exit code, both streams and the time come apart; a failure is a result."""
    result = await sandbox.run("echo out; echo err >&2; exit 3", timeout_s=5)
    assert (result.exit_code, result.stdout, result.stderr, result.timed_out) == (3, "out\n", "err\n", False)
    assert 0 < result.seconds < 5
    assert (await sandbox.run("kill -9 $$", timeout_s=5)).exit_code == 137
    assert (await sandbox.run("no-such-program", timeout_s=5)).exit_code == 127
    assert (await sandbox.run("id -u; umask; pwd", timeout_s=5)).stdout.split() == [
        str(place.owner), "0022", str(place.root),
    ]  # fmt: skip


async def test_folder(sandbox: ProcessSandbox, place: Any) -> None:
    """A command runs in any folder of the workspace, and in none outside."""
    place.put("sub/x")
    place.link("out", "..")
    assert (await sandbox.run("pwd", timeout_s=5, cwd="sub")).stdout == f"{place.root}/sub\n"
    for cwd, code in {
        "..": "path_outside",
        "out": "path_outside",
        "/": "path_outside",
        "sub/x": "not_found",
        "no": "not_found",
        ".git": "protected",
    }.items():
        with pytest.raises(ToolError, match=code):
            await sandbox.run("pwd", timeout_s=5, cwd=cwd)


async def test_odd_commands(sandbox: ProcessSandbox) -> None:
    """A NUL or a command of a megabyte is refused, an empty one does nothing; text of any script arrives."""
    for command in ("echo a\0b", "true " + "x" * (1 << 20)):
        with pytest.raises(ToolError, match="cannot be started"):
            await sandbox.run(command, timeout_s=5)
    assert (await sandbox.run("", timeout_s=5)).exit_code == 0
    assert (await sandbox.run("echo 'ünï ☃'", timeout_s=5)).stdout == "ünï ☃\n"


async def test_edit_right_after_a_run(sandbox: ProcessSandbox, place: Any) -> None:
    """Python sees a change of the same size in the same second: what a check says is true of the tree as it is."""
    module = place.root / "counted.py"
    for digit in "12":
        place.put("counted.py", f"ONE = {digit}\n".encode())
        os.utime(module, (1_700_000_000, 1_700_000_000))
        result = await sandbox.run('python3 -c "import counted; print(counted.ONE)"', timeout_s=10)
        assert (result.exit_code, result.stdout) == (0, f"{digit}\n")


async def test_hang_on_input(sandbox: ProcessSandbox) -> None:
    """S76: reading, paging, editing and asking for a password end at once."""
    command = "cat; read x; git --paginate help -a | head -1; (echo pw < /dev/tty) 2>&1; test -t 0 || echo no terminal"
    result = await sandbox.run(command, timeout_s=10)
    assert not result.timed_out
    assert "no terminal" in result.stdout
    assert (await sandbox.run("cat", timeout_s=10)).stdout == ""


async def test_owner_of_the_tree(sandbox: ProcessSandbox) -> None:
    """Git trusts the tree whoever owns it."""
    result = await sandbox.run("git init -q . && git status --porcelain && git config safe.directory", timeout_s=10)
    assert (result.exit_code, result.stdout) == (0, "*\n")


SERVER = """
import asyncio, os, sys
from pathlib import Path
from bot.sandbox.base import Place as Where
from bot.sandbox.process import ProcessSandbox

async def main():
    uid = int(sys.argv[2]) or None
    sandbox = ProcessSandbox(Where(Path(sys.argv[1]), uid=uid, environment={"ALLOWED": "yes"}))
    await sandbox.start()
    print("ready", flush=True)
    result = await sandbox.run(sys.argv[3], timeout_s=60, output_chars=2_000_000)
    print(result.stdout + result.stderr)
    await sandbox.close()

os.open("/etc/hostname", os.O_RDONLY)
os.set_inheritable(os.open(sys.argv[1] + "/open-db", os.O_RDWR | os.O_CREAT), True)
asyncio.run(main())
"""


def serve(place: Any, command: str, *, python: str = sys.executable, **environment: str) -> subprocess.Popen[str]:
    """Start a server of its own that runs one command."""
    argv = [python, "-c", textwrap.dedent(SERVER), str(place.root), str(place.uid or 0), command]
    clean = {"PATH": os.environ["PATH"], "TMPDIR": str(place.base), "PYTHONPATH": str(Path.cwd()), **environment}
    return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=clean)


CANARIES = [
    "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GITHUB_TOKEN", "GH_TOKEN", "AWS_SECRET_ACCESS_KEY", "SSH_AUTH_SOCK",
    "DATABASE_URL", "ISSUEWRIGHT_WEBHOOK_SECRET", "BASH_ENV", "LD_PRELOAD_CANARY", "PYTHONSTARTUP", "XDG_CONFIG_HOME",
]  # fmt: skip


def test_environment(place: Any) -> None:
    """S66: of twelve secrets in the server's environment none reaches a command, however it looks for them."""
    secrets = {name: f"canary-{number}" for number, name in enumerate(CANARIES)}
    command = "env; declare -x; cat /proc/self/environ /proc/$PPID/environ; ps auxe"
    if place.uid is not None:
        command += "; cat /proc/[0-9]*/environ"
    with serve(place, command, **secrets) as server:
        text, _ = server.communicate(timeout=30)
    assert "ALLOWED=yes" in text
    found = re.findall(r"canary-\d+", text)
    # With one uid for both, only the server's own PR_SET_DUMPABLE hides its environment from `ps`.
    assert place.uid is None or found == []
    own = text.partition("declare -x")[0]
    assert not re.search("canary", own)
    names = {line.partition("=")[0] for line in own.splitlines() if "=" in line}
    assert names <= {
        "ALLOWED", "CI", "DEBIAN_FRONTEND", "GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_0",
        "GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_VALUE_0", "GIT_EDITOR",
        "GIT_PAGER", "GIT_TERMINAL_PROMPT", "HOME", "ISSUEWRIGHT_SANDBOX", "LANG", "LC_ALL", "LESS", "MANPAGER",
        "NONINTERACTIVE", "NO_COLOR", "PAGER", "PATH", "PIP_PROGRESS_BAR", "PWD",
        "PYTHONDONTWRITEBYTECODE", "SHLVL", "TERM", "TMPDIR", "TQDM_DISABLE", "_",
    }  # fmt: skip


def test_descriptors(place: Any) -> None:
    """S67: a descriptor that the server left inheritable reaches neither the helper nor a command."""
    command = "ls -l /proc/self/fd; ls -l /proc/$PPID/fd; cat /proc/$PPID/mem; true"
    with serve(place, command) as server:
        text, _ = server.communicate(timeout=30)
    assert "open-db" not in text
    assert "/etc/hostname" not in text
    assert len(re.findall(r" -> ", text)) <= 5, text
    assert text.count("Permission denied") == 2, text


@pytest.mark.skipif(not Path("/usr/bin/python3").exists(), reason="there is no other interpreter")
def test_interpreter_out_of_reach(place: Any) -> None:
    """Where the server's own interpreter is closed to the workspace's uid, that of the machine is taken."""
    if place.uid is None:
        pytest.skip("the server's interpreter is open to itself")
    private = place.base / "private"
    private.mkdir(mode=0o700)
    python = shutil.copy(Path(sys.executable).resolve(), private / "python")
    with serve(place, "readlink /proc/$PPID/exe; tr '\\0' ' ' < /proc/$PPID/cmdline", python=str(python)) as server:
        text, _ = server.communicate(timeout=30)
    assert "/usr/bin/python3 -I -S -X utf8 -c" in text


async def test_no_way_back(sandbox: ProcessSandbox) -> None:
    """S69: no new privileges, no capabilities."""
    status = (await sandbox.run("cat /proc/self/status", timeout_s=5)).stdout
    assert re.search(r"NoNewPrivs:\s+1", status)
    assert re.search(r"CapEff:\s+0+\n", status)
    assert re.search(r"CapPrm:\s+0+\n", status)


async def test_write_outside(sandbox: ProcessSandbox, place: Any) -> None:
    """S64 as far as the level goes: with a uid of its own a command cannot write beside the workspace."""
    if place.uid is None:
        pytest.skip("level none keeps a command of the server's uid out of nothing")
    command = f"echo x > {place.base}/made; echo x >> {place.base}/secret.txt; ln {place.base}/secret.txt hard; true"
    await sandbox.run(command, timeout_s=5)
    assert sorted(path.name for path in place.base.iterdir()) == ["secret.txt", "tree"]
    assert (place.base / "secret.txt").read_text() == "secret beside the workspace"


async def test_signals(sandbox: ProcessSandbox, place: Any) -> None:
    """S68: a command that signals everybody ends neither the server nor, with TERM, its helper."""
    if place.uid is None:
        pytest.skip("it would end the tests themselves")
    result = await sandbox.run(
        f"kill -9 {os.getpid()}; trap '' TERM; kill -TERM -1; kill -TERM $PPID; echo on", timeout_s=5
    )
    assert result.stdout == "on\n"
    assert "not permitted" in result.stderr


SURVIVORS = {
    "background": "sleep {n} &",
    "setsid": "setsid sleep {n} & sleep 0.05",
    "nohup": "nohup sleep {n} >/dev/null 2>&1 & disown; sleep 0.05",
    "double fork": "(setsid bash -c '(sleep {n} >/dev/null 2>&1 </dev/null &) ; exit') >/dev/null 2>&1",
    "ignores TERM": "(trap '' TERM HUP; exec sleep {n}) >/dev/null 2>&1 & sleep 0.05",
    "coprocess": "coproc sleep {n}",
    "many": "for i in $(seq 30); do setsid bash -c 'sleep {n} & sleep {n}' & done; sleep 0.1",
    "forks on": "f() {{ setsid bash -c 'while :; do sleep 0.01 & done' {n} & }}; f; f; sleep 0.1",
}


@pytest.mark.parametrize("way", SURVIVORS)
async def test_survivors(sandbox: ProcessSandbox, alive: Callable[[str], list[str]], way: str) -> None:
    """S75: however a process hides, none is left after the return."""
    number = 7_000_000 + os.getpid() * 10
    result = await sandbox.run(SURVIVORS[way].format(n=number), timeout_s=10)
    assert not result.timed_out
    assert alive(str(number)) == []


async def test_survivors_of_a_timeout(sandbox: ProcessSandbox, alive: Callable[[str], list[str]]) -> None:
    """S75: all of them together, and a shell that does not mind TERM, are gone when the time is up."""
    number = 7_000_001 + os.getpid() * 10
    ways = "\n".join(way.format(n=number) for way in SURVIVORS.values())
    result = await sandbox.run(f"{ways}\ntrap '' TERM\nwhile :; do sleep 0.05; done", timeout_s=1)
    assert (result.timed_out, result.exit_code) == (True, None)
    assert alive(str(number)) == []


async def test_zombies(sandbox: ProcessSandbox) -> None:
    """S75: after many commands the helper has no child, dead or alive."""
    for _ in range(30):
        await sandbox.run("sleep 0 & setsid true & true", timeout_s=5)
    result = await sandbox.run("cat /proc/$PPID/task/$PPID/children; echo; echo $$", timeout_s=5)
    children, own = result.stdout.split("\n")[:2]
    assert children.split() == [own]


async def test_time_is_up(sandbox: ProcessSandbox) -> None:
    """A command that ends at TERM may still tidy up and say so; one that does not is killed after two seconds."""
    result = await sandbox.run("trap 'echo tidy; exit 0' TERM; while :; do sleep 0.05; done", timeout_s=0.3)
    assert (result.exit_code, result.timed_out, result.stdout) == (None, True, "tidy\n")
    assert result.seconds < 2
    result = await sandbox.run("trap '' TERM; echo stays; while :; do sleep 0.05; done", timeout_s=0.3)
    assert (result.exit_code, result.stdout) == (None, "stays\n")
    assert 2 < result.seconds < 4


async def test_late_output(sandbox: ProcessSandbox) -> None:
    """What a process substitution writes just after the end is kept; one that goes on for ever is ended."""
    assert (await sandbox.run("echo late > >(sleep 0.03; cat)", timeout_s=5)).stdout == "late\n"
    result = await sandbox.run("while :; do echo x; sleep 0.02; done & echo first", timeout_s=20)
    assert result.exit_code == 0
    assert result.seconds < 4


async def test_output_limit(sandbox: ProcessSandbox) -> None:
    """S74: of a long output a quarter of the limit is its head, the rest its tail, with the missing bytes counted."""
    result = await sandbox.run("seq 100000", timeout_s=10, output_chars=1000)
    head, note, tail = result.stdout.partition("\n[… 587,895 bytes left out …]\n")
    assert note
    assert (len(head), len(tail)) == (250, 750)
    assert head.startswith("1\n2\n")
    assert tail.endswith("\n100000\n")
    assert (await sandbox.run("seq 200 >&2", timeout_s=10, output_chars=1000)).stderr == "\n".join(
        [*map(str, range(1, 201)), ""]
    )


async def test_output_memory(make: Any) -> None:
    """S74: 64 MB of output make neither the server nor the helper grow."""
    sandbox = make()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    command = "head -c 64000000 /dev/zero | tr '\\0' x; grep VmHWM /proc/$PPID/status >&2"
    result = await sandbox.run(command, timeout_s=60)
    peak = int(result.stderr.split()[1])
    assert len(result.stdout) < 16_100
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 8_000
    assert peak < 40_000


async def test_flood(make: Any) -> None:
    """S74: an endless output is ended at the limit, with both ends and the reason."""
    sandbox = make(limits=ResourceLimits(output_bytes=4 << 20))
    result = await sandbox.run("yes", timeout_s=60)
    assert (result.exit_code, result.timed_out) == (137, False)
    assert result.stderr.strip() == "[ended: it printed more than 4,194,304 bytes]"


async def test_escapes(sandbox: ProcessSandbox) -> None:
    """S74: colours, titles, links, overwritten lines, NUL and broken UTF-8 do not get through."""
    text = r"\033[31mred\033[0m \033]0;title\007t \033]8;;http://x\033\\link\033]8;;\033\\"
    text += r" 10%%\r20%%\n\0a\xff\010b\r\n\302\2331m"
    result = await sandbox.run(f"printf '{text}'", timeout_s=5)
    assert result.stdout == "20%\na�b\n1m"


async def test_limits(make: Any) -> None:
    """The kernel's limits reach commands."""
    sandbox = make(limits=ResourceLimits(open_files=77, file_bytes=1024 * 1000))
    text = (await sandbox.run("ulimit -n; ulimit -c; ulimit -f; ulimit -Hn", timeout_s=5)).stdout
    assert text.split() == ["77", "0", "1000", "77"]
    result = await sandbox.run("head -c 2000000 /dev/zero > big; stat -c %s big", timeout_s=5)
    assert result.stdout == "1024000\n"


@pytest.mark.security
async def test_fork_bomb(make: Any, place: Any, alive: Callable[[str], list[str]]) -> None:
    """S73: a fork bomb ends with its command."""
    if place.uid is None:
        pytest.skip("the number of processes is limited for a uid of its own")
    sandbox = make(limits=ResourceLimits(processes=200))
    result = await sandbox.run("b() { b 4242424 | b 4242424 & }; b; sleep 1", timeout_s=3)
    assert result.seconds < 12
    assert (await sandbox.run("echo on", timeout_s=5)).stdout == "on\n"
    assert alive("4242424") == []


async def test_cancel(sandbox: ProcessSandbox, alive: Callable[[str], list[str]]) -> None:
    """Cancelling the call ends the command; the helper goes on."""
    number = 8_000_000 + os.getpid()
    for pause in (0.0, 0.15):
        task = asyncio.ensure_future(sandbox.run(f"setsid sleep {number} & sleep {number}", timeout_s=60))
        await asyncio.sleep(pause)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert alive(str(number)) == []
        assert (await sandbox.run("echo on", timeout_s=5)).stdout == "on\n"


async def test_concurrent(sandbox: ProcessSandbox) -> None:
    """Calls at the same time go one after the other and get their own answers."""
    results = await asyncio.gather(*(sandbox.run(f"echo {number}", timeout_s=5) for number in range(10)))
    assert [result.stdout for result in results] == [f"{number}\n" for number in range(10)]


async def test_dead_helper(sandbox: ProcessSandbox, alive: Callable[[str], list[str]]) -> None:
    """A command that kills its helper is told as a broken place, leaves nothing, and the next call works."""
    number = 9_000_000 + os.getpid()
    with pytest.raises(SandboxError, match="ended"):
        await sandbox.run(f"setsid sleep {number} & kill -9 $PPID; sleep {number}", timeout_s=20)
    assert alive(str(number)) == []
    assert (await sandbox.run("echo on", timeout_s=5)).stdout == "on\n"


def folders() -> set[str]:
    """List the homes of all workspaces."""
    return {str(path) for path in Path(tempfile.gettempdir()).glob("issuewright-*")}


async def test_close(make: Any) -> None:
    """Closing removes the passing home; the next call starts anew."""
    sandbox = make()
    home = (await sandbox.run("echo $HOME; touch ~/x; ls -ld $TMPDIR", timeout_s=5)).stdout.split()[0]
    assert home in folders()
    await sandbox.close()
    assert home not in folders()
    assert (await sandbox.run("echo on", timeout_s=5)).stdout == "on\n"


@pytest.mark.parametrize("moment", ["idle", "command"])
def test_killed_server(place: Any, alive: Callable[[str], list[str]], moment: str) -> None:
    """S77: within two seconds after the server is killed neither its helper nor a command is left."""
    number = 6_000_000 + os.getpid()
    command = f"setsid sleep {number} >/dev/null 2>&1 & sleep {number}" if moment == "command" else "true"
    server = serve(place, command)
    assert server.stdout is not None
    assert server.stdout.readline() == "ready\n"
    time.sleep(0.3 if moment == "command" else 0.0)
    (helper,) = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()
    assert moment == "idle" or len(alive(str(number))) == 4
    server.kill()
    server.wait()
    server.stdout.close()
    until = time.monotonic() + 2
    while time.monotonic() < until and (Path(f"/proc/{helper}/cmdline").exists() or alive(str(number))):
        time.sleep(0.02)
    assert alive(str(number)) == []
    assert not Path(f"/proc/{helper}/cmdline").exists()


async def test_refuses_root(place: Any) -> None:
    """S78: uid 0 is refused, said so, with what to do."""
    for uid in {0, None} if os.geteuid() == 0 else {0}:
        with pytest.raises(SandboxError, match=r"refusing to run tools as uid 0 .*ordinary user"):
            ProcessSandbox(Where(place.root, uid=uid))
    if place.uid is None:
        with pytest.raises(SandboxError, match="cannot start tools as uid"):
            ProcessSandbox(Where(place.root, uid=os.geteuid() + 1))
    else:
        with pytest.raises(SandboxError, match="refusing to run tools as uid 0 or gid 0"):
            ProcessSandbox(Where(place.root, uid=place.uid, gid=0))


async def test_missing_workspace(place: Any) -> None:
    """A workspace that the uid cannot enter is told at the start."""
    sandbox = ProcessSandbox(Where(place.root / "missing", uid=place.uid))
    with pytest.raises(SandboxError, match="cannot be used as uid"):
        await sandbox.start()
    await sandbox.close()


async def test_overhead(sandbox: ProcessSandbox) -> None:
    """`true` takes a few milliseconds; the alarm here is far above."""
    times = []
    for _ in range(20):
        started = time.perf_counter()
        await sandbox.run("true", timeout_s=5)
        times.append(time.perf_counter() - started)
    assert sorted(times)[10] < 0.05


def test_temporary_folder() -> None:
    """The tests' workspaces stand where every uid can reach them."""
    assert Path(tempfile.gettempdir()).stat().st_mode & 0o001


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as somebody else")
async def test_others_of_a_shared_uid_are_left_alone(place: Any, alive: Callable[[str], list[str]]) -> None:
    """Where the uid is a person's, as in their own checkout, what they run goes on when the sandbox ends its own."""
    if place.uid is None:
        pytest.skip("the server's own uid")
    own = {"user": place.uid, "group": place.uid, "extra_groups": []}
    theirs = await asyncio.create_subprocess_exec("sleep", "300.0913", **own)
    try:
        sandbox = ProcessSandbox(Where(place.root, uid=place.uid, alone=False))
        assert (await sandbox.run("sleep 301.0913 & true", timeout_s=10)).exit_code == 0
        await sandbox.close()
        assert theirs.returncode is None
        assert len(alive("300.0913")) == 1
        assert alive("301.0913") == []
    finally:
        theirs.kill()
        await theirs.wait()
