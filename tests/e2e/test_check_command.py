"""The checks without a model: asked for by a command, and run on what people push, each on its own head."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.testing.hub.records import CheckRun, Issue
from tests.e2e.door import tasks
from tests.e2e.scripts import FILES, GREETING
from tests.e2e.stage import Stage, until

pytestmark = pytest.mark.e2e
NAME = "issuewright/evidence"
ROW = "| greeting | `sh check.sh` | {} | not counted | "


@pytest.fixture
def stage(folder: Path) -> Iterator[Stage]:
    """The greeting's repository."""
    with Stage(folder, GREETING, FILES).open() as opened, opened.serving():
        yield opened
        assert opened.model.problems == []


def shown(stage: Stage, sha: str) -> CheckRun:
    """Wait for our check run of a commit; there is one."""

    def look() -> CheckRun | None:
        with stage.hub.lock:
            runs = [run for run in stage.repository.check_runs if run.head_sha == sha and run.name == NAME]
        assert len(runs) <= 1
        return runs[0] if runs else None

    return until(look, f"the checks of {sha}; the server said: {stage.log()}")


def checked(stage: Stage, number: int) -> str:
    """Wait for the comment that shows the checks."""

    def look() -> str | None:
        return next((body for body in stage.bot_comments(number) if ":check." in body), None)

    return until(look, f"the checks of #{number}; the server said: {stage.log()}")


def push(stage: Stage, branch: str, greeting: str) -> str:
    """Let Maria push another greeting to a branch."""
    head = stage.branches()[branch]
    made = stage.hub.write_commit(
        stage.repository, {"greet.txt": greeting}, message="Greet", by=stage.maria, parent=head
    )
    stage.hub.move_ref(stage.repository, stage.maria, f"refs/heads/{branch}", made)
    return made


def asked(stage: Stage) -> int:
    """Count the requests to the model."""
    return sum(request.path == "/v1/messages" for request in stage.model.requests)


def test_what_people_push_is_checked_and_the_checks_are_there_on_demand(stage: Stage) -> None:
    """Our head is green; a person breaks it, the new head is red and the text says that its table is of another."""
    issue = stage.labelled()
    assert stage.story_ends(issue.number).startswith("**Done**")
    (made,) = stage.pulls()
    assert made.pull is not None
    branch, ours, turns = made.pull.head_ref, made.pull.head_sha, asked(stage)
    green = shown(stage, ours)
    assert (green.conclusion, green.title) == ("success", "1 of 1 checks pass")
    assert "| greeting | `sh check.sh` | 1 | 0 |" in (green.summary or "")
    text = made.body or ""
    assert "**Stale:**" not in text

    theirs = push(stage, branch, "Helo, world\n")
    red = shown(stage, theirs)
    assert (red.conclusion, red.title) == ("failure", "0 of 1 checks pass")
    assert ROW.format(1) in (red.summary or "")
    marked = made.body or ""
    mark = f"**Stale:** recorded on `{ours[:8]}`; the head is `{theirs[:8]}` by now"
    assert marked.partition("### Evidence\n\n")[2].startswith(mark)
    assert stage.bot_comments(made.number) == []

    until_idle(stage)
    stage.hub.comment(made, stage.maria, "/agent check")
    told = checked(stage, made.number)
    assert told.startswith(f"**0 of 1 checks pass** on `{theirs[:8]}`.")
    assert ROW.format(1) in told
    assert shown(stage, theirs).id == red.id
    assert stage.branches()[branch] == theirs
    assert (made.body, asked(stage)) == (marked, turns)

    until_idle(stage)
    mended = push(stage, branch, "Hello, world!\n")
    assert shown(stage, mended).conclusion == "success"
    until_idle(stage)
    stage.hub.comment(made, stage.maria, "/agent fix Greet the whole world.")
    assert stage.story_ends(made.number).startswith("**Done**")
    assert "**Stale:**" not in (made.body or "")
    assert shown(stage, stage.branches()[branch]).conclusion == "success"


def until_idle(stage: Stage) -> None:
    """Wait until no run is open: a command joins none."""

    def look() -> bool | None:
        return None if re.search(r"'state': '(queued|running)'", str(tasks(stage))) else True

    until(look, "the end of all runs")


def test_the_checks_of_a_persons_pull_request(stage: Stage) -> None:
    """Nobody worked there: one comment and one check run on the head, from the checks of the default branch."""
    stage.write(stage.repository, "Hello\n", stage.maria)
    opened: Issue = stage.hub.open_pull(stage.repository, stage.maria, "Greet", head="topic", body="Mine.")
    stage.hub.comment(opened, stage.maria, "/agent check")
    told, head = checked(stage, opened.number), stage.branches()["topic"]
    assert told.startswith(f"**1 of 1 checks pass** on `{head[:8]}`.")
    assert ROW.format(0) in told
    assert shown(stage, head).conclusion == "success"
    assert (opened.body, stage.branches()["topic"], asked(stage)) == ("Mine.", head, 0)
    assert len(stage.bot_comments(opened.number)) == 1
