"""CI of a person's pull request is red: the model asks what failed, reads the log, and mends it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.testing.model.reply import Call
from bot.testing.model.script import Condition, Conversation, Script, Turn
from tests.e2e.scripts import FILES
from tests.e2e.stage import Stage, until

pytestmark = pytest.mark.e2e

LOG = """\
##[group]Run sh check.sh
sh check.sh
##[endgroup]
greet.txt: nobody is greeted
##[error]Process completed with exit code 1.
"""
TURNS = (
    Turn("What is red?", calls=[Call("ci_status", {})]),
    Turn(
        "I read what it says.",
        calls=[Call("ci_logs", {"job": "test"})],
        expect=[Condition(tool="ci_status", matches="1 failed[\\s\\S]*failure test \\(github-actions, job \\d+\\)")],
    ),
    Turn(
        "I mend it.",
        calls=[Call("edit", {"path": "greet.txt", "old": "Helo", "new": "Hello"}), Call("checks", {})],
        expect=[Condition(tool="ci_logs", matches="data of CI[\\s\\S]*nobody is greeted\\n##\\[error\\]Process")],
    ),
    Turn("Done.", calls=[Call("finish", {"summary": "Somebody is greeted again."})]),
)


@pytest.fixture
def red(folder: Path) -> Iterator[Stage]:
    """A stage whose scripted model looks at CI first."""
    with Stage(folder, Script([Conversation("ci", TURNS, match="the CI")], name="ci"), FILES).open() as opened:
        yield opened
        assert opened.model.problems == []


def test_the_red_ci_of_a_persons_pull_request_is_mended(red: Stage) -> None:
    """One command; the log reaches the model by way of the server, and the commit lands on the person's branch."""
    red.write(red.repository, "Helo, everybody\n", red.maria)
    pull = red.hub.open_pull(red.repository, red.maria, "Greet everybody", head="topic", body="Mine.")
    assert pull.pull is not None
    (job,) = red.hub.run_workflow(red.repository, red.maria, pull.pull.head_sha, ["test"]).jobs
    red.hub.finish_job(job, "failure", LOG)
    before = pull.pull.head_sha
    with red.serving():
        red.hub.comment(pull, red.maria, "/agent fix the CI")
        told = red.story_ends(pull.number)
        assert told.startswith("**Done**"), told + red.log()
        assert red.git("show", "topic:greet.txt") == "Hello, everybody"
        assert red.git("rev-list", "--count", f"{before}..topic") == "1"
        until(lambda: pull.pull.head_sha != before or None, "the new head")  # type: ignore[union-attr]
        assert pull.body == "Mine."
