"""CI of our own pull request: red is mended twice at most, then people take over; green is ready for their review."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from bot.testing.hub.records import Issue
from bot.testing.model.reply import Call
from bot.testing.model.script import Condition, Conversation, Script, Turn
from tests.e2e.door import all_settled, tasks
from tests.e2e.scripts import FILES, FIRST
from tests.e2e.stage import Stage, until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

LOG = """\
##[group]Run sh everybody.sh
sh everybody.sh
##[endgroup]
greet.txt: somebody is left out
##[error]Process completed with exit code 1.
"""
MEND = (
    Turn("What is red?", calls=[Call("ci_status", {})]),
    Turn(
        "I read what it says.",
        calls=[Call("ci_logs", {"job": "test"})],
        expect=[Condition(tool="ci_status", matches="1 failed[\\s\\S]*failure test \\(github-actions, job \\d+\\)")],
    ),
    Turn(
        "I mend it.",
        calls=[Call("run", {"command": "echo everybody >> greet.txt; sh check.sh"})],
        expect=[Condition(tool="ci_logs", matches="data of CI[\\s\\S]*somebody is left out")],
    ),
    Turn("Done.", calls=[Call("finish", {"summary": "Everybody is greeted."})]),
)
SCRIPT = Script(
    [
        Conversation("first", FIRST, match="greeting is wrong"),
        Conversation("mend", MEND, match_last="Mend what failed on the pull request"),
    ],
    name="repairs",
)


@pytest.fixture
def stage(folder: Path) -> Iterator[Stage]:
    """A repository that CI checks: its base branch says so."""
    with Stage(folder, SCRIPT, FILES).open() as opened:
        ci(opened, opened.branches()["main"], "success")
        yield opened
        assert opened.model.problems == []


def ci(stage: Stage, sha: str, conclusion: str) -> None:
    """Let a workflow of one job run on a commit, from its beginning to its end."""
    (job,) = stage.hub.run_workflow(stage.repository, stage.maria, sha, ["test"]).jobs
    stage.hub.finish_job(job, conclusion, LOG if conclusion != "success" else "well\n")


def head(pull: Issue) -> str:
    """Return where a pull request stands."""
    assert pull.pull is not None
    return pull.pull.head_sha


def opened(stage: Stage) -> Issue:
    """Let the first run open a pull request."""
    stage.labelled()
    told = stage.story_ends(1)
    assert told.startswith("**Done**"), told + stage.log()
    (pull,) = stage.pulls()
    assert pull.pull is not None
    assert pull.pull.draft
    return pull


def mended(stage: Stage, pull: Issue, rounds: int) -> None:
    """Let CI fail on the head, and wait for the end of the run that this begins."""
    before = head(pull)
    ci(stage, before, "failure")
    told = stage.story_ends(pull.number, rounds)
    assert told.startswith("**Done**"), told + stage.log()
    assert head(pull) != before


def runs(stage: Stage) -> int:
    """Count the runs of the one task."""
    (task,) = tasks(stage)
    return len(task["runs"])  # type: ignore[arg-type]  # a list, as the API has it


def handed_over(stage: Stage, pull: Issue) -> list[str]:
    """Return the comments that hand over."""
    return [body for body in stage.bot_comments(pull.number) if body.startswith("@maria: **over to you**")]


@contextmanager
def dying(stage: Stage, folder: Path) -> Iterator[None]:
    """Serve until the first delivery is answered, and nobody has looked at it."""
    process = stage.spawn(KILL_AT="delivery:after", KILLED=str(folder / "killed"))
    try:
        yield
        until(process.poll, f"the death; the server said: {stage.log()}")
        assert process.returncode == -signal.SIGKILL, stage.log()
    finally:
        process.kill()
        process.wait()


def test_red_is_mended_and_green_is_ready(stage: Stage) -> None:
    """The run reads the log, adds a commit, and when that is green the person who asked is asked for a review."""
    with stage.serving():
        pull = opened(stage)
        old = head(pull)
        mended(stage, pull, 1)
        assert pull.pull is not None
        assert pull.pull.draft
        assert stage.git("show", f"{head(pull)}:greet.txt") == "Hello, world\neverybody"
        assert stage.git("rev-list", "--count", f"{old}..{head(pull)}") == "1"
        # What is still said of the old head changes nothing.
        stage.hub.set_status(stage.repository, stage.maria, old, "failure", context="late")
        ci(stage, head(pull), "success")
        until(lambda: pull.pull.requested_reviewers or None, f"the request; {stage.log()}")  # type: ignore[union-attr]
        assert not pull.pull.draft
        assert pull.pull.requested_reviewers == [stage.maria]
        until(lambda: [one for one in stage.bot_comments(pull.number) if "All checks are green" in one] or None, "word")
        all_settled(stage)
        assert runs(stage) == 2
        assert handed_over(stage, pull) == []
        assert "Mend what failed" not in (pull.body or "")


def test_red_three_times_is_handed_over(stage: Stage) -> None:
    """Two runs, one comment with what is red and what was tried, no third run; `/agent fix` goes on."""
    with stage.serving():
        pull = opened(stage)
        tried = []
        for number in (1, 2):
            mended(stage, pull, number)
            tried.append(head(pull))
        ci(stage, head(pull), "failure")
        until(lambda: handed_over(stage, pull) or None, f"the word; {stage.log()}")
        all_settled(stage)
        (told,) = handed_over(stage, pull)
        assert f"checks still fail on {tried[1]}, and two runs" in told
        assert "| `test` (github-actions) | failure |" in told
        assert all(f"- {sha} " in told for sha in tried)
        assert "Everybody is greeted." in told
        assert runs(stage) == 3
        assert pull.pull is not None
        assert pull.pull.draft


def test_a_commit_status_counts_and_an_old_head_does_not(stage: Stage) -> None:
    """An older kind of CI is heard as well; what it says of a commit behind the head begins nothing."""
    with stage.serving():
        pull = opened(stage)
        stage.hub.set_status(stage.repository, stage.maria, stage.branches()["main"], "failure", context="old")
        stage.hub.set_status(stage.repository, stage.maria, head(pull), "pending", context="build")
        all_settled(stage)
        assert runs(stage) == 1
        stage.hub.set_status(stage.repository, stage.maria, head(pull), "success", context="build")
        until(lambda: pull.pull.requested_reviewers or None, f"the request; {stage.log()}")  # type: ignore[union-attr]
        all_settled(stage)
        assert runs(stage) == 1


def test_a_server_killed_between_event_and_run_begins_one_run(stage: Stage, folder: Path) -> None:
    """What was answered is handled by the next life; the other events of the same head begin no second run."""
    with stage.serving():
        pull = opened(stage)
        before = head(pull)
    with dying(stage, folder):
        ci(stage, before, "failure")
    assert len((folder / "killed").read_text().split()) == 1
    with stage.serving():
        for delivery in stage.hub.deliveries():
            if delivery.status_code != httpx.codes.ACCEPTED:
                stage.hub.hooks.redeliver(stage.app, delivery.id)
        stage.story_ends(pull.number)
        all_settled(stage)
        assert runs(stage) == 2
        assert stage.git("rev-list", "--count", f"{before}..{head(pull)}") == "1"
