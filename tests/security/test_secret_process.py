"""The server's environment is closed to those beside it, and to the commands that it runs (S66, S103, S108)."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from bot.testing.model.reply import Call
from bot.testing.model.script import Condition, Conversation, Script, Turn
from bot.testing.model.server import ScriptedModel
from tests.e2e.conftest import folder  # noqa: F401 - a fixture
from tests.e2e.stage import ROOT, free_port, until

pytestmark = pytest.mark.security

PERSON = 1778
"""No uid that another test gives to a work tree."""
CANARIES = {
    "ISSUEWRIGHT_GITHUB__WEBHOOK_SECRET": "canary-webhook-8fQ2",
    "ISSUEWRIGHT_GITHUB__WEBHOOK_SECRET_PREVIOUS": "canary-previous-8fQ2",
    "ISSUEWRIGHT_NETWORK__HTTPS_PROXY_LOGIN": "canary:canary-proxy-8fQ2",
    "ANTHROPIC_API_KEY": "canary-anthropic-8fQ2",
    "OPENAI_API_KEY": "canary-openai-8fQ2",
    "GITHUB_TOKEN": "canary-token-8fQ2",
    "ACTIONS_RUNTIME_TOKEN": "canary-runtime-8fQ2",
    "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "canary-oidc-8fQ2",
    "AWS_SECRET_ACCESS_KEY": "canary-aws-8fQ2",
    "DATABASE_URL": "postgresql://me:canary-database-8fQ2@db/x",
    "SSH_AUTH_SOCK": "/run/canary-ssh-8fQ2",
    "NETRC": "/home/canary-netrc-8fQ2",
}
RUNNER = {
    "GITHUB_ENV": "/runner/env",
    "GITHUB_OUTPUT": "/runner/output",
    "GITHUB_PATH": "/runner/path",
    "GITHUB_STEP_SUMMARY": "/runner/summary",
    "RUNNER_TEMP": "/runner/temp",
    "ACTIONS_CACHE_URL": "https://cache.example.org/",
}
LOOK = """\
env; declare -x; tr '\\0' '\\n' < /proc/self/environ
for p in /proc/[0-9]*; do tr '\\0' '\\n' < $p/environ; tr '\\0' ' ' < $p/cmdline; done 2>/dev/null
echo '::set-output name=x::1'; echo '  ::add-mask::x'; echo '##[command]rm'; echo looked
"""
PLACES = ("environ", "mem", "maps", "fd", "cwd", "root", "auxv", "stack")
SPY = """\
import os, sys
for place in sys.argv[2:]:
    path = f"/proc/{sys.argv[1]}/{place}"
    try:
        if place in {"cwd", "root"}:
            print(place, os.readlink(path))
        elif place == "fd":
            print(place, os.listdir(path))
        else:
            print(place, open(path, "rb").read(16))
    except PermissionError:
        pass
    except OSError as error:
        print(place, error)
print(open(f"/proc/{sys.argv[1]}/cmdline", "rb").read())
"""


def as_person(place: Path) -> list[str]:
    """Give a folder to an ordinary user and return what starts a command as they; nothing where we are one."""
    if os.geteuid() != 0:
        return []
    for path in (place, *place.rglob("*")):
        os.chown(path, PERSON, PERSON, follow_symlinks=False)
    return ["setpriv", f"--reuid={PERSON}", f"--regid={PERSON}", "--clear-groups"]


def environment(place: Path, **more: str) -> dict[str, str]:
    """An operator's or a runner's environment, full of canaries."""
    usual = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HOME": str(place)}
    return usual | CANARIES | RUNNER | more


@pytest.fixture
def server(folder: Path) -> Iterator["subprocess.Popen[str]"]:  # noqa: F811
    """A server in set-up mode, as an ordinary user's process."""
    port = free_port()
    more = {"ISSUEWRIGHT_PORT": str(port), "ISSUEWRIGHT_STATE_DIR": str(folder / "state")}
    process = subprocess.Popen(
        [*as_person(folder), sys.executable, "-m", "bot", "serve"],
        cwd=folder,
        env=environment(folder, **more),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )

    def answers() -> bool | None:
        assert process.poll() is None, process.stderr.read() if process.stderr else ""
        try:
            httpx.get(f"http://127.0.0.1:{port}/healthz", timeout=2)
        except httpx.TransportError:
            return None
        return True

    try:
        until(answers, "the server")
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_the_server_is_closed_to_its_own_user(server: "subprocess.Popen[str]", folder: Path) -> None:  # noqa: F811
    """Another process of the same uid reads neither environment nor memory nor descriptors; no argument is secret."""
    spied = subprocess.run(
        [*as_person(folder), sys.executable, "-c", SPY, str(server.pid), *PLACES],
        capture_output=True,
        text=True,
        check=True,
    )
    assert len(spied.stdout.splitlines()) == 1, spied.stdout
    assert "canary" not in spied.stdout


def git(repo: Path, *args: str) -> None:
    """Act as the person."""
    command = ["git", "-c", "safe.directory=*", "-c", "user.name=M", "-c", "user.email=m@example.org", "-C", str(repo)]
    subprocess.run([*command, *args], check=True, capture_output=True)


def test_a_command_finds_no_canary(folder: Path) -> None:  # noqa: F811
    """Nothing of the environment reaches commands, and nothing that they print commands a job's runner."""
    turns = (
        Turn("I look around.\n::warning::mine", calls=[Call("run", {"command": LOOK})]),
        Turn(
            "Done.",
            calls=[
                Call("write", {"path": "b.txt", "content": "x\n"}),
                Call("finish", {"summary": "::error::no\n##[x]"}),
            ],
            expect=[Condition(tool="run", matches="looked")],
        ),
    )
    model = ScriptedModel(Script([Conversation("look", turns, match="/./")], name="look"))
    model.start()
    repo = folder / "mine"
    repo.mkdir()
    (repo / "a.txt").write_text("a\n")
    git(repo, "init", "-qb", "main")
    git(repo, "add", ".")
    git(repo, "commit", "-qm", "first")
    command = [sys.executable, "-m", "bot", "run", "--repo", str(repo), "--model", f"anthropic:{model.model_id}"]
    try:
        done = subprocess.run(
            [*as_person(folder), *command, "--state", str(folder / "state"), "--task", "Look", "--approve", "all"],
            capture_output=True,
            text=True,
            cwd="/",
            env=environment(folder, ISSUEWRIGHT_ANTHROPIC__BASE_URL=model.url),
            stdin=subprocess.DEVNULL,
            timeout=100,
            check=False,
        )
    finally:
        model.stop()
    assert done.returncode == 0, done.stderr
    assert model.problems == []
    told = json.dumps([request.body for request in model.requests])
    assert "ISSUEWRIGHT_SANDBOX" in told
    assert [name for name in (*CANARIES, *RUNNER) if f"{name}=" in told] == []
    for out in (told, done.stdout, done.stderr):
        assert "8fQ2" not in out
    lines = [line.strip() for line in (done.stdout + done.stderr).splitlines()]
    assert [line for line in lines if line.startswith("::") or "##[" in line] == []
    kept = b"".join(path.read_bytes() for path in (folder / "state").rglob("*") if path.is_file())
    assert b"8fQ2" not in kept
    shutil.rmtree(folder / "state", ignore_errors=True)
