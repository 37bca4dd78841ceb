"""A yes that does not count, for who says it, about what, or when: conversations on one server."""

import json
import re
import signal
import sqlite3
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from bot.store.opening import TASKS_FILE
from bot.testing.hub.records import Comment, Issue
from bot.testing.model.reply import Call
from bot.testing.model.script import Condition, Conversation, Script, Turn
from tests.e2e.door import settled
from tests.e2e.scripts import FILES
from tests.e2e.stage import Stage, until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

COUNT = "echo once >> count.txt"
ASKS = Turn("A person should see this.", calls=[Call("run", {"command": COUNT, "requires_approval": True})])
EDIT = Turn("I mend it.", calls=[Call("edit", {"path": "greet.txt", "old": "Helo", "new": "Hello"})])
APPROVED = (
    Turn("I look.", calls=[Call("run", {"command": "cat count.txt; sh check.sh"})]),
    Turn(
        "Done.",
        calls=[Call("finish", {"summary": "It is counted."})],
        expect=[Condition(tool="run", matches="^(?:(?!once)[\\s\\S])*once(?:(?!once)[\\s\\S])*$")],
    ),
)
FIRST_PLAN, SECOND_PLAN = "Mend the spelling in `greet.txt`.", "Mend one letter, and no more."
MENDS = (EDIT, Turn("Done.", calls=[Call("run", {"command": "sh check.sh"}), Call("finish", {"summary": "Mended."})]))


def proposes(plan: str) -> Turn:
    """Propose a plan."""
    return Turn("A plan.", calls=[Call("propose_plan", {"plan": plan, "files": ["greet.txt"], "turns": 3})])


SCRIPT = Script(
    [
        Conversation("approved", APPROVED, match_last="was approved by maria. The harness carried it out, once"),
        Conversation(
            "moved", [ASKS], match_last="was not carried out: the files are not those that it was asked about"
        ),
        Conversation("edited", [ASKS], match_last="was not carried out: the comment that asked for approval is not as"),
        Conversation("goes on", [ASKS], match_last="You are asked to go on with the task"),
        Conversation("work", MENDS, match=f"/planned[\\s\\S]*This plan was made for it[\\s\\S]*{SECOND_PLAN}/"),
        Conversation("change", [proposes(SECOND_PLAN)], match="A person wants it changed"),
        Conversation("plan", [proposes(FIRST_PLAN)], match="The greeting is wrong: planned"),
        Conversation("asks", (EDIT, ASKS), match="The greeting is wrong"),
    ],
    name="gates-void",
)


@dataclass(slots=True)
class Play:
    """A stage whose server can be ended and started anew."""

    stage: Stage
    server: "subprocess.Popen[str]"

    def ends(self) -> None:
        """End the server as an operator does."""
        self.server.send_signal(signal.SIGTERM)
        self.server.wait(20)


@pytest.fixture(scope="module")
def play() -> Iterator[Play]:
    """One server for all conversations; each has an issue of its own."""
    with (
        tempfile.TemporaryDirectory(prefix="stage-", ignore_cleanup_errors=True) as folder,
        Stage(Path(folder), SCRIPT, FILES).open() as stage,
    ):
        made = Play(stage, stage.spawn())
        try:
            yield made
        finally:
            made.server.kill()
            made.server.wait()
        assert stage.model.problems == []


@pytest.fixture(scope="module")
def other(play: Play) -> Issue:
    """An issue that waits while people decide about the first one."""
    return play.stage.labelled()


def asked(stage: Stage, issue: Issue, count: int = 1) -> tuple[Comment, str]:
    """Wait until the task of an issue waits for the last of so many requests; return its comment and short hash."""

    def waiting() -> tuple[Comment, str] | None:
        with stage.hub.lock:
            ours = [one for one in issue.comments if one.user is stage.app.bot]
        shown = sum(one.body.startswith("**Waiting for approval**") for one in ours)
        requests = [one for one in ours if "waits for approval**" in one.body]
        if shown < count or len(requests) < count:
            return None
        found = re.search(r"`/agent approve ([0-9a-f]{8})`", requests[-1].body)
        return (requests[-1], found[1]) if found else None

    return until(waiting, f"request {count} on #{issue.number}; the server said: {stage.log()}")


def said(stage: Stage, issue: Issue, words: str) -> str:
    """Wait until the bot says something on a thread."""

    def found() -> str | None:
        return next((body for body in stage.bot_comments(issue.number) if words in body), None)

    return until(found, f"{words!r} on #{issue.number}; the server said: {stage.log()}")


def answers(stage: Stage, issue: Issue) -> list[str]:
    """Return what the server said on a thread, apart from what a test says in its name."""
    return [body for body in stage.bot_comments(issue.number) if not body.startswith("/agent")]


def branch_of(stage: Stage, issue: Issue) -> str:
    """Return the branch of an issue's task."""
    [branch] = [name for name in stage.branches() if name.startswith(f"agent/{issue.number}-")]
    return branch


def counted(stage: Stage, issue: Issue) -> str | None:
    """Return what the file that counts holds on an issue's branch; None where it is not there."""
    branch = branch_of(stage, issue)
    names = stage.git("ls-tree", "--name-only", branch).split()
    return stage.git("show", f"{branch}:count.txt") if "count.txt" in names else None


def is_done(stage: Stage, issue: Issue) -> None:
    """Wait until an issue's task is done, and see that the command ran once."""
    assert (told := stage.story_ends(issue.number)).startswith("**Done**"), f"{told}\n{stage.log()}"
    assert counted(stage, issue) == "once"


def handled(stage: Stage, comment: Comment) -> tuple[str, str]:
    """Wait until the server has handled a comment's delivery, and return state and note."""
    created = stage.hub.deliveries("issue_comment", "created")
    [guid] = [one.guid for one in created if json.loads(one.body)["comment"]["id"] == comment.id]
    assert stage.hub.hooks.wait_idle(30)
    return settled(stage, guid)


def voters(stage: Stage) -> list[str]:
    """Return who approved something, as the server keeps it."""
    with closing(sqlite3.connect(f"file:{stage.folder / 'state' / TASKS_FILE}?mode=ro", uri=True)) as database:
        return [actor for (actor,) in database.execute("select actor from votes order by at")]


def test_strangers_bots_and_hashes_of_other_tasks_decide_nothing(play: Play, other: Issue) -> None:
    """One polite line, no answer at all, and a refusal; the call goes on waiting for who may."""
    stage, issue = play.stage, play.stage.labelled()
    _, short = asked(stage, issue)
    _, foreign = asked(stage, other)
    assert foreign != short
    stage.hub.comment(issue, stage.stranger, f"/agent approve {short}")
    assert said(stage, issue, "may not use `approve`").startswith("`stranger` may not use `approve` here")
    told = len(answers(stage, issue))
    robot = stage.hub.create_user("robot[bot]", kind="Bot")
    stage.hub.add_collaborator(stage.repository, robot, "write")
    for account in (robot, stage.app.bot):
        comment = stage.hub.comment(issue, account, f"/agent approve {short}")
        assert handled(stage, comment)[0] == "ignored"
    stage.hub.comment(issue, stage.maria, f"/agent approve {foreign}")
    said(stage, issue, f"Nothing in this task has the hash `{foreign}`")
    assert len(answers(stage, issue)) == told + 1
    assert voters(stage) == []
    assert counted(stage, issue) is None
    stage.hub.comment(issue, stage.maria, f"/agent approve {short}")
    is_done(stage, issue)
    assert voters(stage) == ["maria"]
    assert counted(stage, other) is None


def test_an_edited_request_is_void(play: Play, other: Issue) -> None:
    """Whoever edits it may have shown people another call; even its very maintainer has to be asked anew."""
    stage, issue = play.stage, other
    request, short = asked(stage, issue)
    stage.hub.edit_comment(request, stage.maria, request.body.replace(COUNT, "ls"))
    stage.hub.comment(issue, stage.maria, f"/agent approve {short}")
    told = said(stage, issue, "is void: its comment is not as it was posted")
    assert "Nothing was decided: `/agent fix` lets the work go on" in told
    assert counted(stage, issue) is None
    stage.hub.comment(issue, stage.maria, "/agent fix")
    again, short = asked(stage, issue, 2)
    assert again is not request
    assert f"```sh\n{COUNT}\n```" in again.body
    assert counted(stage, issue) is None
    stage.hub.comment(issue, stage.maria, f"/agent approve {short}")
    is_done(stage, issue)


def test_an_approval_of_other_files_is_void(play: Play) -> None:
    """A person pushes to the draft's branch: what was asked about is not what is there, so it is asked anew."""
    stage, issue = play.stage, play.stage.labelled()
    _, short = asked(stage, issue)
    stage.hub.commit_files(stage.repository, stage.maria, branch_of(stage, issue), {"mine.txt": "mine\n"})
    stage.hub.comment(issue, stage.maria, f"/agent approve {short}")
    said(stage, issue, "was not carried out: the files are not those that it was asked about")
    _, other = asked(stage, issue, 2)
    assert other != short
    assert counted(stage, issue) is None
    stage.hub.comment(issue, stage.maria, f"/agent approve {other}")
    is_done(stage, issue)
    assert stage.git("show", f"{branch_of(stage, issue)}:mine.txt") == "mine"


def test_a_bare_approval_means_the_plan_that_stood_there(play: Play) -> None:
    """Written before a newer plan and heard behind it: it names the newer one, and begins nothing."""
    stage = play.stage
    issue = stage.hub.open_issue(stage.repository, stage.maria, "The greeting is wrong: planned", "It says Helo.")
    stage.hub.comment(issue, stage.maria, "/agent plan")
    said(stage, issue, "waits for you.**")
    stage.hub.hooks.modes.drop = True
    late = stage.hub.comment(issue, stage.maria, "/agent approve")
    assert stage.hub.hooks.wait_idle(30)
    stage.hub.hooks.modes.drop = False
    stage.hub.comment(issue, stage.maria, "/agent plan One letter, please.")
    said(stage, issue, "**Superseded.**")
    found = re.search(r"plan `([0-9a-f]{8})` waits for you", said(stage, issue, "waits for you.**"))
    assert found is not None
    requests, branches = len(stage.model.requests), stage.branches()
    [lost] = [one for one in stage.hub.deliveries("issue_comment") if json.loads(one.body)["comment"]["id"] == late.id]
    stage.hub.hooks.redeliver(stage.app, lost.id)
    told = said(stage, issue, "The plan that stood here when you wrote that")
    assert f"is superseded by plan `{found[1]}`" in told
    assert "Nothing was approved." in told
    assert (len(stage.model.requests), stage.branches()) == (requests, branches)
    stage.hub.comment(issue, stage.maria, "/agent approve")
    assert (end := stage.story_ends(issue.number)).startswith("**Done**"), f"{end}\n{stage.log()}"
    assert stage.git("show", f"{branch_of(stage, issue)}:greet.txt") == "Hello, world"


def test_a_request_of_last_week_is_asked_anew(play: Play) -> None:
    """The server is away while the days go by, and says so to who comes too late."""
    stage, issue = play.stage, play.stage.labelled()
    request, short = asked(stage, issue)
    play.ends()
    with closing(sqlite3.connect(stage.folder / "state" / TASKS_FILE)) as database, database:
        [(number, question, at)] = database.execute(
            "select id, question, asked_at from decisions where hash like ?", (f"{short}%",)
        ).fetchall()
        kept = json.loads(question)
        week = timedelta(days=8)
        kept["request"]["asked_at"] = (datetime.fromisoformat(kept["request"]["asked_at"]) - week).isoformat()
        before = str(datetime.fromisoformat(at) - week)
        changed = (json.dumps(kept), before, number)
        database.execute("update decisions set question = ?, asked_at = ? where id = ?", changed)
    play.server = stage.spawn()
    stage.hub.comment(issue, stage.maria, f"/agent approve {short}")
    told = said(stage, issue, "was asked more than 7 days ago")
    assert "Nothing was decided: `/agent fix` lets the work go on" in told
    assert counted(stage, issue) is None
    stage.hub.comment(issue, stage.maria, "/agent fix")
    again, same = asked(stage, issue, 2)
    assert (again is request, same) == (False, short)
