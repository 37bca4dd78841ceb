"""A call that waits is asked about on the line that it would change, over real HTTP, git and processes."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.testing.hub.records import Issue, Thread
from bot.testing.model.reply import Call
from bot.testing.model.script import Condition, Conversation, Script, Turn
from tests.e2e.scripts import FILES
from tests.e2e.stage import Stage, until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

RULES = "version: 1\nrules: [{tool: edit, path: greet.txt, verdict: ask, why: it is what customers read}]\n"
TEXT = "one\ntwo\nHelo, world\n"
FIRST = (
    Turn("I mend it.", calls=[Call("run", {"command": "sed -i s/Helo/Hello/ greet.txt; sh check.sh"})]),
    Turn("Done.", calls=[Call("finish", {"summary": "It says Hello."})]),
)
LOUDER = (
    Turn("I read it.", calls=[Call("read", {"path": "greet.txt"})]),
    Turn("I change it.", calls=[Call("edit", {"path": "greet.txt", "old": "two\nHello", "new": "two\nHELLO"})]),
)
APPROVED = (
    Turn("I check.", calls=[Call("run", {"command": "cat greet.txt; ls"})]),
    Turn(
        "Done.",
        calls=[Call("finish", {"summary": "It is loud."})],
        expect=[Condition(tool="run", matches="one\ntwo\nHELLO, world")],
    ),
)
SCRIPT = Script(
    [
        Conversation("approved", APPROVED, match_last="was approved by maria. The harness carried it out, once"),
        Conversation("louder", LOUDER, match_last="Say it louder"),
        Conversation("fix", FIRST, match="greeting is wrong"),
    ],
    name="gates-on-lines",
)


@pytest.fixture
def stage(folder: Path) -> Iterator[Stage]:
    """The greeting's repository, with a rule of its own."""
    files = FILES | {"greet.txt": TEXT, ".github/issuewright.yml": RULES}
    with Stage(folder, SCRIPT, files).open() as opened, opened.serving():
        yield opened
        assert opened.model.problems == []


def threads_of(stage: Stage, pull: Issue) -> list[Thread]:
    """Return the threads on lines of a pull request."""
    assert pull.pull is not None
    with stage.hub.lock:
        return list(pull.pull.threads)


def status_of(stage: Stage, pull: Issue) -> str | None:
    """Return what our check run says of the task on the head of a pull request."""
    assert pull.pull is not None
    with stage.hub.lock:
        runs = [one for one in stage.repository.check_runs if one.head_sha == pull.pull.head_sha]
        return next((one.conclusion for one in runs if one.name == "issuewright/task"), None)


def test_a_decision_in_the_requests_own_thread(stage: Stage) -> None:
    """A stranger's yes is refused; the maintainer's needs no hash, and the edit is made once."""
    issue = stage.labelled()
    assert (told := stage.story_ends(issue.number)).startswith("**Done**"), f"{told}\n{stage.log()}"
    [pull] = stage.pulls()
    assert pull.pull is not None
    stage.hub.comment(pull, stage.maria, "/agent fix Say it louder")
    [thread] = until(lambda: threads_of(stage, pull) or None, f"a request; the server said: {stage.log()}")
    assert (thread.path, thread.line) == ("greet.txt", 3)
    [request] = thread.comments
    assert request.body.startswith("@maria: **a call of `edit` waits for approval**")
    assert "it is what customers read" in request.body
    until(
        lambda: any(body.startswith("**Waiting for approval**") for body in stage.bot_comments(pull.number)) or None,
        f"the wait; the server said: {stage.log()}",
    )
    until(lambda: status_of(stage, pull) == "action_required" or None, "the check run")
    assert not any("waits for approval**" in body for body in stage.bot_comments(pull.number))
    stage.hub.reply(thread, stage.stranger, "/agent approve")
    until(
        lambda: any("may not use `approve`" in body for body in stage.bot_comments(pull.number)) or None, "the refusal"
    )
    assert len(thread.comments) == 2
    stage.hub.reply(thread, stage.maria, "/agent approve")
    assert (told := stage.story_ends(pull.number)).startswith("**Done**"), f"{told}\n{stage.log()}"
    assert stage.git("show", f"{pull.pull.head_ref}:greet.txt") == "one\ntwo\nHELLO, world"
    until(lambda: status_of(stage, pull) == "success" or None, "the check run's end")
    assert request.body.startswith("**Approved** by `maria`.")
    assert thread.is_resolved
    assert len(threads_of(stage, pull)) == 1
