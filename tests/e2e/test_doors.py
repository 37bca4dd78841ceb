"""The other doors: `run` on a repository of this machine, `receive` with a saved payload, `serve` before set-up."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from bot.testing.model.server import ScriptedModel
from tests.e2e.scripts import FILES, GREETING
from tests.e2e.stage import ROOT, Stage, free_port, until

pytestmark = pytest.mark.e2e
PERSON = 1777
"""No uid that another test gives to a work tree: all processes of such a one are ended after each command."""


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    """The greeting's scripted model."""
    served = ScriptedModel(GREETING)
    served.start()
    yield served
    served.stop()
    assert served.problems == []


def git(repo: Path, *args: str) -> str:
    """Ask the person's repository."""
    command = ["git", "-c", "safe.directory=*", "-C", str(repo), *args]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def repo(folder: Path) -> Path:
    """A person's repository; as root it belongs to somebody else, as on any machine."""
    made = folder / "mine"
    made.mkdir()
    for name, text in FILES.items():
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_text(str(text))
    git(made, "init", "-qb", "main")
    git(made, "config", "user.name", "Maria")
    git(made, "config", "user.email", "maria@example.org")
    git(made, "add", ".")
    git(made, "commit", "-qm", "first")
    return made


def run(repo: Path, model: ScriptedModel, *options: str, person: bool) -> subprocess.CompletedProcess[str]:
    """Start `issuewright run` as the person, or as who the tests are."""
    folder = repo.parent
    prefix: list[str] = []
    if person and os.geteuid() == 0:
        shutil.chown(folder, PERSON, PERSON)
        for path in folder.rglob("*"):
            os.chown(path, PERSON, PERSON, follow_symlinks=False)
        prefix = ["setpriv", f"--reuid={PERSON}", f"--regid={PERSON}", "--clear-groups"]
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
        "HOME": str(folder),
        "ANTHROPIC_API_KEY": "scripted-key-that-is-long-enough",
        "ISSUEWRIGHT_ANTHROPIC__BASE_URL": model.url,
    }
    command = [sys.executable, "-m", "bot", "run", "--repo", str(repo), "--model", f"anthropic:{model.model_id}"]
    return subprocess.run(
        [*prefix, *command, "--state", str(folder / "state"), *options],
        capture_output=True,
        text=True,
        cwd="/",
        env=environment,
        stdin=subprocess.DEVNULL,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("person", [True, False])
def test_run_leaves_a_branch(repo: Path, model: ScriptedModel, *, person: bool) -> None:
    """The work is one commit by the person on a branch of its own; checkout and index stay as they were."""
    (repo / "notes.txt").write_text("mine")
    done = run(repo, model, "--task", "The greeting is wrong", "--approve", "all", person=person)
    assert done.returncode == 0, done.stderr
    assert "1 uncommitted changes" in done.stderr
    (branch,) = [line.strip("* ") for line in git(repo, "branch").splitlines() if "agent/" in line]
    assert git(repo, "show", f"{branch}:greet.txt") == "Hello, world"
    assert git(repo, "log", "-1", "--format=%an <%ae>", branch) == "Maria <maria@example.org>"
    assert git(repo, "diff", "--name-only", "main", branch) == "greet.txt"
    assert git(repo, "status", "--porcelain") == "?? notes.txt"
    assert branch in done.stderr


def test_run_in_place_changes_the_checkout(repo: Path, model: ScriptedModel) -> None:
    """`--in-place` leaves the change in the work tree, beside what was not committed, and makes no branch."""
    if os.geteuid() != 0:
        pytest.skip("as an ordinary user the other cases cover the same; here the checkout is given to another uid")
    (repo / "notes.txt").write_text("mine")
    issue = repo.parent / "issue.md"
    issue.write_text("# The greeting is wrong\n\nIt says Helo.\n")
    done = run(repo, model, "--issue", str(issue), "--in-place", "--approve", "all", "--json", person=True)
    assert done.returncode == 0, done.stderr
    assert (repo / "greet.txt").read_text() == "Hello, world\n"
    assert sorted(git(repo, "status", "--porcelain").splitlines()) == ["?? notes.txt", "M greet.txt"]
    assert git(repo, "branch", "--list", "agent/*") == ""
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert [event["kind"] for event in events][-1] == "run.finished"
    assert events[-1]["outcome"] == "done"


def test_run_asks_and_takes_silence_for_no(repo: Path) -> None:
    """Where nobody can be asked, what needs a yes is not done, and the model hears why."""
    served = ScriptedModel(GREETING)
    served.start()
    try:
        done = run(repo, served, "--task", "The greeting is wrong", "--approve", "never", person=True)
    finally:
        served.stop()
    assert done.returncode == 1
    assert git(repo, "branch", "--list", "agent/*") == ""
    told = json.dumps([request.body for request in served.requests])
    assert "Nobody can be asked here" in told


def test_receive_plays_a_saved_delivery_once(folder: Path) -> None:
    """A saved payload goes the way of a webhook without one; the same file played again begins nothing new."""
    with Stage(folder, GREETING, FILES).open() as stage:
        issue = stage.labelled()
        until(lambda: stage.hub.deliveries("issues", "labeled") or None, "the payload")
        (delivery,) = stage.hub.deliveries("issues", "labeled")
        payload = folder / "payload.json"
        payload.write_bytes(delivery.body)
        command = [sys.executable, "-m", "bot", "receive", "issues", str(payload)]
        for _ in range(2):
            played = subprocess.run(
                command, capture_output=True, text=True, cwd=ROOT, env=stage.environment(), timeout=60, check=False
            )
            assert played.returncode == 0, played.stderr
        assert len(stage.pulls()) == 1
        assert len(stage.bot_comments(issue.number)) == 1
        payload.write_text("{")
        broken = subprocess.run(
            command, capture_output=True, text=True, cwd=ROOT, env=stage.environment(), timeout=60, check=False
        )
        assert broken.returncode == 4
        assert str(payload) in broken.stderr


def test_serve_before_it_is_set_up(folder: Path) -> None:
    """Without an App it listens on this machine only, says what is missing, and takes no delivery."""
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HOME": str(folder)}
    environment |= {"ISSUEWRIGHT_STATE_DIR": str(folder / "state")}
    port = free_port()
    command = [sys.executable, "-m", "bot", "serve", "--port", str(port)]
    open_wide = subprocess.run(
        [*command, "--host", "0.0.0.0"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=environment,
        timeout=60,
        check=False,
    )
    assert open_wide.returncode == 4
    assert "127.0.0.1 only" in open_wide.stderr
    url = f"http://127.0.0.1:{port}"
    with subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True) as process:
        try:
            until(lambda: _answer(f"{url}/healthz"), "the server")
            ready = httpx.get(f"{url}/readyz")
            assert ready.status_code == 503
            assert "ISSUEWRIGHT_GITHUB__APP_ID" in ready.text
            assert httpx.post(f"{url}/webhook", content=b"{}").status_code == 503
        finally:
            process.terminate()
            process.wait(20)
    assert process.returncode == 0


def test_serve_refuses_to_run_commands_without_a_sandbox_unasked(folder: Path) -> None:
    """`sandbox.kind: none` is not enough: the environment has to agree, and the server says how."""
    with Stage(folder, GREETING, FILES).open() as stage:
        environment = stage.environment(ISSUEWRIGHT_SANDBOX__KIND="none")
        command = [sys.executable, "-m", "bot", "serve"]
        done = subprocess.run(
            command, capture_output=True, text=True, cwd=ROOT, env=environment, timeout=60, check=False
        )
    assert done.returncode == 4
    assert "ISSUEWRIGHT_NO_SANDBOX=accepted" in done.stderr


def _answer(url: str) -> httpx.Response | None:
    try:
        return httpx.get(url, timeout=2)
    except httpx.TransportError:
        return None
