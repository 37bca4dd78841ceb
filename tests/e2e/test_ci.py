"""The main job in a GitHub Actions job, as its runner starts it: an event file, an environment and its own token."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from bot.testing.hub.records import Issue, User
from bot.testing.model.reply import Call
from bot.testing.model.script import Condition, Conversation, Script, Turn
from tests.e2e.scripts import CONFIG, FILES, FIRST, SECOND
from tests.e2e.stage import ROOT, Stage

pytestmark = pytest.mark.e2e

NOBODY = 65_534
MODEL_KEY = "scripted-key-that-is-long-enough"
LOOK = """\
env; tr '\\0' '\\n' < /proc/self/environ
for p in /proc/[0-9]*; do tr '\\0' '\\n' < $p/environ; tr '\\0' ' ' < $p/cmdline; done 2>/dev/null
echo looked
"""
CURIOUS = (
    Turn("I look around.", calls=[Call("run", {"command": LOOK})]),
    Turn(
        "I mend it.",
        calls=[
            Call("edit", {"path": "greet.txt", "old": "Helo", "new": "Hello"}),
            Call("run", {"command": "sh check.sh"}),
        ],
        expect=[Condition(tool="run", matches="looked")],
    ),
    Turn("Done.", calls=[Call("finish", {"summary": "Looked."})]),
)
AGAIN = (
    Turn("I note it.", calls=[Call("run", {"command": "echo noted >> notes.txt; sed -i s/Helo/Hello/ greet.txt"})]),
    Turn("Done.", calls=[Call("finish", {"summary": "Noted."})]),
)
SCRIPT = Script(
    [
        # A job has no memory: the second one is told of the pull request, whose title is the issue's.
        Conversation("more", SECOND, match="Greet the whole world"),
        Conversation("again", AGAIN, match="Note it"),
        Conversation("curious", CURIOUS, match="Look around"),
        Conversation("fix", FIRST, match="greeting is wrong"),
    ],
    name="ci",
)
PERMISSIONS = {"contents": "write", "issues": "write", "pull_requests": "write"}


@dataclass(frozen=True, slots=True)
class Ran:
    """What one job left."""

    code: int
    said: str
    outputs: dict[str, str]
    summary: str
    token: str
    folder: Path


class Runner:
    """Starts jobs as a GitHub Actions runner does: each on a clean machine."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._jobs = 0

    def job(self, event: str, action: str, *, token: bool = True, uid: int | None = None, **environment: str) -> Ran:
        """Run a job for the last happening of this kind."""
        self._jobs += 1
        folder = self._stage.folder / f"runner{self._jobs}"
        for made in (folder, folder / "workspace", folder / "temp"):
            made.mkdir()
            made.chmod(0o711)
        payload = json.loads(self._stage.hub.deliveries(event, action)[-1].body)
        # The event of a workflow comes from no App.
        payload.pop("installation", None)
        (folder / "event.json").write_text(json.dumps(payload))
        for name in ("output", "summary"):
            (folder / name).touch()
        for path in (folder, *folder.iterdir()) if uid is not None else ():
            os.chown(path, uid or 0, uid or 0)
        value = self._stage.hub.create_job_token(self._stage.repository, PERMISSIONS).value
        command = [sys.executable, "-m", "bot", "ci"]
        done = subprocess.run(
            command,
            cwd=folder / "workspace",
            env=self._environment(event, folder) | ({"GITHUB_TOKEN": value} if token else {}) | environment,
            capture_output=True,
            text=True,
            user=uid,
            group=uid,
            extra_groups=None if uid is None else [],
            timeout=90,
            check=False,
        )
        outputs = dict(line.split("=", 1) for line in (folder / "output").read_text().splitlines())
        said = done.stdout + done.stderr
        return Ran(done.returncode, said, outputs, (folder / "summary").read_text(), value, folder)

    def _environment(self, event: str, folder: Path) -> dict[str, str]:
        stage = self._stage
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        return kept | {
            "PYTHONPATH": str(ROOT),
            "HOME": str(folder),
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "GITHUB_EVENT_NAME": event,
            "GITHUB_EVENT_PATH": str(folder / "event.json"),
            "GITHUB_REPOSITORY": stage.repository.full_name,
            "GITHUB_API_URL": stage.hub.api_url,
            "GITHUB_SERVER_URL": stage.hub.base_url,
            "GITHUB_OUTPUT": str(folder / "output"),
            "GITHUB_STEP_SUMMARY": str(folder / "summary"),
            "GITHUB_WORKSPACE": str(folder / "workspace"),
            "RUNNER_TEMP": str(folder / "temp"),
            "ANTHROPIC_API_KEY": MODEL_KEY,
            "ISSUEWRIGHT_ANTHROPIC__BASE_URL": stage.model.url,
            "ISSUEWRIGHT_MODELS__ACT": f"anthropic:{stage.model.model_id}",
            "ISSUEWRIGHT_GITHUB__CONTENT_INTERVAL_S": "0",
            "ISSUEWRIGHT_PROGRESS__INTERVAL_S": "1",
        }


@pytest.fixture
def stage(folder: Path) -> Iterator[Stage]:
    """The greeting's repository; nobody listens for deliveries, which are only read as event files."""
    with Stage(folder, SCRIPT, FILES).open() as opened:
        yield opened
        assert opened.model.problems == []


@pytest.fixture
def runner(stage: Stage) -> Runner:
    """The runner of the stage's repository."""
    return Runner(stage)


def actions_bot(stage: Stage) -> User:
    """Who acts with a job's token."""
    return stage.hub.actions_app().bot


def may_become(uid: int) -> bool:
    """Whether this process can start the project as another user."""
    if os.geteuid() != 0:
        return False
    command = [sys.executable, "-c", "import bot"]
    done = subprocess.run(
        command, cwd="/", env={"PYTHONPATH": str(ROOT)}, user=uid, group=uid, extra_groups=[], check=False
    )
    return done.returncode == 0


def comments_of(issue: Issue, user: User) -> list[str]:
    """The comments that somebody made on a thread."""
    return [comment.body for comment in issue.comments if comment.user is user]


def test_a_label_becomes_a_pull_request_and_a_comment_a_further_commit(stage: Stage, runner: Runner) -> None:
    """Two jobs on two clean machines: the first opens the pull request, the second brings it forward."""
    issue = stage.labelled()
    first = runner.job("issues", "labeled")
    assert first.code == 0, first.said
    (pull,) = stage.pulls()
    assert pull.pull is not None
    assert pull.user is actions_bot(stage)
    assert pull.user.login == "github-actions[bot]"
    assert pull.body is not None
    assert pull.body.startswith(f"Closes #{issue.number}")
    assert "| greeting | `sh check.sh` | 1 | 0 |" in pull.body
    assert first.outputs["conclusion"] == "done"
    assert first.outputs["branch"] == pull.pull.head_ref
    assert first.outputs["pr-url"].endswith(f"/{stage.repository.full_name}/pull/{pull.number}")
    assert re.fullmatch(r"[0-9a-f]{32}", first.outputs["task-id"])
    assert int(first.outputs["tokens"]) > 0
    assert set(first.outputs) == {"conclusion", "pr-url", "branch", "task-id", "cost-usd", "tokens"}
    assert first.summary.startswith("**Done**")
    (told,) = comments_of(issue, actions_bot(stage))
    assert told.startswith("**Done**")

    stage.hub.comment(pull, stage.maria, "/agent fix Greet the whole world, please.")
    second = runner.job("issue_comment", "created")
    assert second.code == 0, second.said
    assert second.outputs["conclusion"] == "done"
    branch = pull.pull.head_ref
    assert second.outputs["branch"] == branch
    assert stage.git("show", f"{branch}:greet.txt") == "Hello, whole world"
    assert stage.git("rev-list", "--count", f"main..{branch}") == "2"
    assert len(stage.pulls()) == 1


def test_the_same_job_run_again_makes_nothing_twice(stage: Stage, runner: Runner) -> None:
    """A job that is run again goes on with its comment, its branch and its pull request."""
    issue = stage.labelled("Note it", "Each time.")
    first = runner.job("issues", "labeled")
    again = runner.job("issues", "labeled")
    assert first.code == 0, first.said
    assert again.code == 0, again.said
    assert again.outputs["task-id"] == first.outputs["task-id"]
    assert len(stage.pulls()) == 1
    assert len(comments_of(issue, actions_bot(stage))) == 1
    assert len([name for name in stage.branches() if name.startswith("agent/")]) == 1
    assert len([reaction for reaction in issue.reactions if reaction.content == "eyes"]) == 1


def test_a_job_waits_for_nobody(stage: Stage, runner: Runner) -> None:
    """Under `plan` the run is refused with the reason; else there is no plan and no question."""

    def say_mode(mode: str) -> None:
        files = {".github/issuewright.yml": f"{CONFIG}mode: {mode}\n"}
        stage.hub.commit_files(stage.repository, stage.maria, "main", files)

    issue = stage.labelled()
    refused = runner.job("issues", "labeled", ISSUEWRIGHT_MODE="plan")
    assert (refused.code, refused.outputs["conclusion"]) == (1, "failed")
    (told,) = comments_of(issue, actions_bot(stage))
    assert told.startswith("**Failed**. `mode: plan` applies here, and plans need the server")
    assert stage.model.requests == []
    say_mode("plan")
    assert runner.job("issues", "labeled").outputs["conclusion"] == "failed"
    say_mode("auto")
    assert runner.job("issues", "labeled", ISSUEWRIGHT_MODE="auto").code == 0
    assert len(stage.pulls()) == 1
    offered = {tool["name"] for one in stage.model.requests for tool in json.loads(one.raw).get("tools", ())}
    assert "finish" in offered
    assert not offered & {"ask_person", "propose_plan"}


def test_a_stranger_is_told_and_nothing_is_begun(stage: Stage, runner: Runner) -> None:
    """Without write access there is one line in answer, no model request, and the job is green."""
    issue = stage.hub.open_issue(stage.repository, stage.stranger, "The greeting is wrong", "x")
    stage.hub.comment(issue, stage.stranger, "/agent fix")
    ran = runner.job("issue_comment", "created")
    assert ran.code == 0, ran.said
    assert ran.outputs == {"conclusion": "ignored"}
    (said,) = comments_of(issue, actions_bot(stage))
    assert "needs write access" in said
    assert stage.model.requests == []
    assert stage.pulls() == []


def test_other_comments_start_nothing(stage: Stage, runner: Runner) -> None:
    """A comment without the command word ends the job in silence."""
    issue = stage.hub.open_issue(stage.repository, stage.maria, "The greeting is wrong", "x")
    stage.hub.comment(issue, stage.maria, "I agree.")
    ran = runner.job("issue_comment", "created")
    assert (ran.code, ran.outputs) == (0, {"conclusion": "ignored"}), ran.said
    assert comments_of(issue, actions_bot(stage)) == []


def test_what_is_missing_is_named(stage: Stage, runner: Runner) -> None:
    """Without a token, or with no sandbox that only one side agreed to, the job ends with 4 and one line."""
    stage.labelled()
    ran = runner.job("issues", "labeled", token=False)
    assert ran.code == 4
    assert "GITHUB_TOKEN" in ran.said
    assert "Traceback" not in ran.said
    ran = runner.job("issues", "labeled", ISSUEWRIGHT_SANDBOX__KIND="none")
    assert ran.code == 4
    assert "ISSUEWRIGHT_NO_SANDBOX=accepted" in ran.said
    assert stage.model.requests == []


@pytest.mark.parametrize("uid", [None, NOBODY], ids=["mine", "nobody's"])
def test_no_command_of_the_model_sees_the_token_or_the_key(stage: Stage, runner: Runner, uid: int | None) -> None:
    """Neither secret is in what commands see of environments and command lines, in a kept file or in what is shown."""
    if uid is not None and not may_become(uid):
        pytest.skip("only root can become somebody else, and only where the project is open to others")
    issue = stage.labelled("Look around", "And mend the greeting.")
    ran = runner.job("issues", "labeled", uid=uid)
    assert ran.code == 0, ran.said
    heard = "".join(str(request.body) for request in stage.model.requests)
    assert "looked" in heard
    for secret in (ran.token, MODEL_KEY):
        assert secret not in heard
        assert secret not in ran.said + ran.summary + str(ran.outputs)
        assert secret not in "".join(comments_of(issue, actions_bot(stage)))
        kept = [path for path in ran.folder.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]
        assert kept == []
