"""People end what goes on, let it go on, and begin it anew: conversations on one server, each on its own issue."""

import json
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path

import pytest

from bot.store.opening import DELIVERIES_FILE, TASKS_FILE
from bot.testing.hub.records import Comment, Issue
from bot.testing.model.reply import Call
from bot.testing.model.script import Condition, Conversation, Script, Turn
from tests.e2e.stage import Stage, until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

CONFIG = "version: 1\nlimits: {turns: 4}\nchecks: [{name: greeting, run: sh check.sh}]\n"
FILES: dict[str, bytes | str] = {
    "greet.txt": "Helo, world\n",
    "check.sh": "test -s greet.txt\n",
    ".github/issuewright.yml": CONFIG,
}
EDIT = Turn("I mend it.", calls=[Call("edit", {"path": "greet.txt", "old": "Helo", "new": "Hello"})])
LOOK = Turn("I look.", calls=[Call("run", {"command": "sh check.sh; cat greet.txt"})])
KEPT = Turn(
    "Done.",
    calls=[Call("finish", {"summary": "It says Hello."})],
    expect=[Condition(tool="run", matches="Hello, world")],
)
GOES_ON = "You are asked to go on with the task"
WORDS = "Say Hello, and no more."


def sleeps(seconds: str) -> Turn:
    """Run a command for longer than any test lasts; its argument says which one it is."""
    return Turn("I wait.", calls=[Call("run", {"command": f"sleep {seconds}", "timeout_s": 600})])


STOPPED, UNLABELLED, CLOSED = "600.0417", "600.0418", "600.0419"
SCRIPT = Script(
    [
        Conversation("closed", [sleeps(CLOSED)], match_last="Wait a little"),
        Conversation("goes on", (LOOK, KEPT), match_last=GOES_ON),
        Conversation("again", (LOOK, KEPT), match_last=WORDS),
        Conversation("stopped", (EDIT, sleeps(STOPPED)), match="The greeting is wrong: stopped"),
        Conversation("unlabelled", (EDIT, sleeps(UNLABELLED)), match="The greeting is wrong: unlabelled"),
        Conversation("afresh", (EDIT, LOOK, KEPT), match="The greeting is wrong: afresh"),
        Conversation(
            "budget",
            (
                EDIT,
                Turn("I look.", calls=[Call("read", {"path": "check.sh"})]),
                Turn("I look.", calls=[Call("run", {"command": "ls"})]),
                Turn("I look.", calls=[Call("run", {"command": "cat check.sh"})]),
            ),
            match="The greeting is wrong: budget",
        ),
        Conversation(
            "nothing",
            (
                Turn("I look.", calls=[Call("run", {"command": "sh check.sh; cat greet.txt"})]),
                Turn("It is right.", calls=[Call("finish", {"summary": "It is right as it is."})]),
            ),
            match="The greeting is wrong: nothing",
        ),
    ],
    name="stop-retry-budget",
)


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    """One server for all conversations."""
    with (
        tempfile.TemporaryDirectory(prefix="stage-", ignore_cleanup_errors=True) as folder,
        Stage(Path(folder), SCRIPT, FILES).open() as opened,
        opened.serving(),
    ):
        yield opened
        assert opened.model.problems == []


def running(seconds: str) -> bool:
    """Whether a process of this machine sleeps for so long."""
    wanted = b"sleep\0" + seconds.encode() + b"\0"
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if process.read_bytes() == wanted:
                return True
        except OSError:
            # It ended meanwhile.
            continue
    return False


def sleeping(stage: Stage, seconds: str) -> None:
    """Wait until a command sleeps."""
    until(lambda: running(seconds) or None, f"sleep {seconds}; the server said: {stage.log()}")


def gone(seconds: str) -> float:
    """Wait until a command is gone; return when that was seen, in seconds of the epoch."""
    until(lambda: None if running(seconds) else True, f"the end of sleep {seconds}")
    return time.time()


def branches_of(stage: Stage, issue: Issue) -> list[str]:
    """Return the branches of an issue's task."""
    return sorted(name for name in stage.branches() if name.startswith(f"agent/{issue.number}-"))


def pulls_of(stage: Stage, issue: Issue) -> list[Issue]:
    """Return the pull requests of an issue's task, oldest first."""
    ours = branches_of(stage, issue)
    return [one for one in stage.pulls() if one.pull is not None and one.pull.head_ref in ours]


def said(stage: Stage, issue: Issue, words: str) -> str:
    """Wait until the bot says something on a thread."""

    def found() -> str | None:
        return next((body for body in stage.bot_comments(issue.number) if words in body), None)

    return until(found, f"{words!r} on #{issue.number}; the server said: {stage.log()}")


def ends(stage: Stage, issue: Issue, how: str, count: int = 1) -> str:
    """Wait until so many runs ended on a thread, the last one in this way."""
    told = stage.story_ends(issue.number, count)
    assert told.startswith(f"**{how}"), f"{told}\n{stage.log()}"
    return told


def one_time(file: Path, query: str, *values: object) -> float:
    """Wait until a query has a time for an answer, and return it in seconds of the epoch."""

    def found() -> float | None:
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as database:
            [(value,)] = database.execute(query, values).fetchall()
        return None if value is None else datetime.fromisoformat(f"{value}+00:00").timestamp()

    return until(found, query)


def times(stage: Stage, issue: Issue, comment: Comment) -> tuple[float, float, float]:
    """Return when the server got a comment, when the command was over, and when the run was; seconds of the epoch."""
    [guid] = [
        one.guid
        for one in stage.hub.deliveries("issue_comment", "created")
        if json.loads(one.body)["comment"]["id"] == comment.id
    ]
    state = stage.folder / "state"
    task = "task_id = (select id from tasks where number = ?)"
    event = f"select at from events where {task} and kind = ?"
    return (
        one_time(state / DELIVERIES_FILE, "select received_at from deliveries where guid = ?", guid),
        one_time(state / TASKS_FILE, event, issue.number, "run.finished"),
        one_time(state / TASKS_FILE, f"select finished_at from runs where {task}", issue.number),
    )


def test_stop_kills_the_command_and_keeps_the_work_and_retry_goes_on(stage: Stage) -> None:
    """What sleeps is gone at once; what was mended before stands on the branch, and the next run has it."""
    issue = stage.hub.open_issue(stage.repository, stage.maria, "The greeting is wrong: stopped", "It says Helo.")
    stage.hub.comment(issue, stage.maria, f"/agent fix {WORDS}")
    sleeping(stage, STOPPED)
    comment = stage.hub.comment(issue, stage.maria, "/agent stop")
    killed = gone(STOPPED)
    told = ends(stage, issue, "Stopped")
    received, finished, closed = times(stage, issue, comment)
    print(  # noqa: T201 - a measure for who looks
        f"\nafter the delivery of `stop`: the command was gone in {killed - received:.2f} s, the end recorded in"
        f" {finished - received:.2f} s, the run closed in {closed - received:.2f} s"
    )
    assert killed - received < 10
    [branch] = branches_of(stage, issue)
    assert f"What was done so far is on the branch `{branch}`" in told
    assert stage.git("show", f"{branch}:greet.txt") == "Hello, world"
    assert pulls_of(stage, issue) == []

    stage.hub.comment(issue, stage.maria, "/agent retry")
    ends(stage, issue, "Done", 2)
    assert branches_of(stage, issue) == [branch]
    [pull] = pulls_of(stage, issue)
    assert pull.body is not None
    assert f"> {WORDS}" in pull.body
    assert "holds other files" not in pull.body
    assert stage.git("diff", "--name-only", "main", branch) == "greet.txt"


def test_the_label_stops_and_tries_again(stage: Stage) -> None:
    """Taken away it ends the run, put back it goes on with what was done."""
    issue = stage.labelled("The greeting is wrong: unlabelled")
    sleeping(stage, UNLABELLED)
    stage.hub.remove_label(issue, stage.maria, "agent")
    gone(UNLABELLED)
    ends(stage, issue, "Stopped")
    [branch] = branches_of(stage, issue)
    stage.hub.add_label(issue, stage.maria, "agent")
    ends(stage, issue, "Done", 2)
    assert branches_of(stage, issue) == [branch]
    assert len(pulls_of(stage, issue)) == 1


def test_a_run_that_changes_nothing_fails_plainly(stage: Stage) -> None:
    """Nobody has to look for a pull request that is not there."""
    issue = stage.labelled("The greeting is wrong: nothing")
    told = ends(stage, issue, "Failed")
    assert "No file was changed, so there is nothing to review." in told
    assert branches_of(stage, issue) == []
    assert pulls_of(stage, issue) == []


def test_a_run_at_its_limit_waits_for_a_budget(stage: Stage) -> None:
    """What there is stands in a draft; the budget of a person lets it go on, and the pull request says what applied."""
    issue = stage.labelled("The greeting is wrong: budget")
    told = ends(stage, issue, "Budget reached")
    assert "A limit was reached: turns: 4 of 4." in told
    assert "/agent budget" in told
    [pull] = pulls_of(stage, issue)
    assert pull.pull is not None
    assert pull.pull.draft
    assert pull.body is not None
    assert "**Unfinished.**" in pull.body
    asked = len(stage.model.requests)
    stage.hub.comment(issue, stage.stranger, "/agent budget 1.50")
    said(stage, issue, "may not use `budget`")
    assert len(stage.model.requests) == asked
    stage.hub.comment(issue, stage.maria, "/agent budget 1.50")
    ends(stage, issue, "Done", 2)
    assert pulls_of(stage, issue) == [pull]
    assert "**Unfinished.**" not in pull.body
    assert "| `limits.usd` | `1.5 (command)` |" in pull.body
    assert "| `limits.turns` | `4 (repository)` |" in pull.body
    assert "holds other files" not in pull.body
    stage.hub.comment(issue, stage.maria, "/agent budget 1.50")
    said(stage, issue, "No run of this task waits for a budget")


def test_afresh_is_another_pull_request_and_closing_it_ends_the_task(stage: Stage) -> None:
    """The first pull request stays as it is; on the second one a run goes on until somebody closes that."""
    issue = stage.labelled("The greeting is wrong: afresh")
    ends(stage, issue, "Done")
    [first] = pulls_of(stage, issue)
    [branch] = branches_of(stage, issue)
    head = stage.branches()[branch]
    stage.hub.comment(issue, stage.maria, "/agent retry --fresh")
    ends(stage, issue, "Done", 2)
    [old, second] = pulls_of(stage, issue)
    assert (old, stage.branches()[branch]) == (first, head)
    assert second.pull is not None
    assert second.pull.head_ref == f"{branch}-2"
    assert stage.git("rev-list", "--count", f"main..{branch}-2") == "1"

    stage.hub.comment(second, stage.maria, "/agent fix Wait a little.")
    sleeping(stage, CLOSED)
    stage.hub.close_issue(first, stage.maria)
    stage.hub.close_issue(second, stage.maria)
    gone(CLOSED)
    ends(stage, second, "Stopped")
    asked = len(stage.model.requests)
    stage.hub.comment(second, stage.maria, "/agent fix Go on.")
    said(stage, second, "This thread is closed.")
    assert len(stage.model.requests) == asked
