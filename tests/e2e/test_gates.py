"""Calls that people decide about, over real HTTP, git, databases and processes: what waits holds nothing."""

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.testing.hub.records import Issue
from bot.testing.model.reply import Call
from bot.testing.model.script import Condition, Conversation, Script, Turn
from tests.e2e.scripts import FILES
from tests.e2e.stage import Stage, until
from tests.e2e.terminal import person_with

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

COUNT = "echo once >> count.txt"
FIRST = (
    Turn("I mend it.", calls=[Call("edit", {"path": "greet.txt", "old": "Helo", "new": "Hello"})]),
    Turn("A person should see this.", calls=[Call("run", {"command": COUNT, "requires_approval": True})]),
)
APPROVED = (
    Turn("I look.", calls=[Call("run", {"command": "cat count.txt; sh check.sh"})]),
    Turn(
        "Done.",
        calls=[Call("finish", {"summary": "It is counted."})],
        expect=[Condition(tool="run", matches="^(?:(?!once)[\\s\\S])*once(?:(?!once)[\\s\\S])*$")],
    ),
)
DENIED = (
    Turn("I check.", calls=[Call("run", {"command": "sh check.sh; ls"})]),
    Turn("Done.", calls=[Call("finish", {"summary": "It is not counted."})]),
)
LOST = (
    Turn("I look.", calls=[Call("run", {"command": "sh check.sh; ls"})]),
    Turn("Done.", calls=[Call("finish", {"summary": "It may be counted."})]),
)
SCRIPT = Script(
    [
        Conversation("approved", APPROVED, match_last="was approved by maria. The harness carried it out, once"),
        Conversation("denied", DENIED, match_last="/was denied by maria, who says why:[\\s\\S]*Do not count/"),
        Conversation("lost", LOST, match_last="it may have been carried out. It is not repeated"),
        Conversation("asks", FIRST, match="greeting is wrong"),
    ],
    name="gates",
)


@pytest.fixture
def stage(folder: Path) -> Iterator[Stage]:
    """The greeting's repository."""
    with Stage(folder, SCRIPT, FILES).open() as opened:
        yield opened
        assert opened.model.problems == []


def waits(stage: Stage, issue: Issue) -> str:
    """Wait until a call waits, and return its short hash."""

    def waiting() -> str | None:
        bodies = stage.bot_comments(issue.number)
        shown = any(body.startswith("**Waiting for approval**") for body in bodies)
        request = next((body for body in bodies if "waits for approval**" in body), "")
        found = re.search(r"`/agent approve ([0-9a-f]{8})`", request)
        return found[1] if shown and found else None

    return until(waiting, f"a request; the server said: {stage.log()}")


def counted(stage: Stage) -> str | None:
    """Return what the only pull request has in the file that counts; None where it is not there."""
    (pull,) = stage.pulls()
    assert pull.pull is not None
    branch = pull.pull.head_ref
    names = stage.git("ls-tree", "--name-only", branch).split()
    return stage.git("show", f"{branch}:count.txt") if "count.txt" in names else None


def test_an_approved_command_is_run_once(stage: Stage) -> None:
    """A stranger's yes is refused, the maintainer's carries out exactly what was asked."""
    with stage.serving():
        issue = stage.labelled()
        short = waits(stage, issue)
        assert counted(stage) is None
        request = stage.bot_comments(issue.number)[-1]
        assert f"```sh\n{COUNT}\n```" in request
        stage.hub.comment(issue, stage.stranger, f"/agent approve {short}")
        until(lambda: True if "may not use `approve`" in stage.bot_comments(issue.number)[-1] else None, "the refusal")
        assert counted(stage) is None
        stage.hub.comment(issue, stage.maria, "/agent approve")
        assert stage.story_ends(issue.number).startswith("**Done**")
        assert counted(stage) == "once"
        stage.hub.comment(issue, stage.maria, f"/agent approve {short}")
        until(
            lambda: True if any("was approved before" in one for one in stage.bot_comments(issue.number)) else None,
            "the second answer",
        )
        assert counted(stage) == "once"


def test_a_denied_command_is_not_run(stage: Stage) -> None:
    """The model hears why, and ends without it."""
    with stage.serving():
        issue = stage.labelled()
        short = waits(stage, issue)
        stage.hub.comment(issue, stage.maria, f"/agent deny {short} Do not count.")
        assert stage.story_ends(issue.number).startswith("**Done**")
        assert counted(stage) is None


def test_an_approval_waits_over_a_killed_server_and_is_carried_out_once(stage: Stage) -> None:
    """Nothing runs while it waits; the next server knows what was asked, and the approval that came meanwhile."""
    process = stage.spawn()
    try:
        issue = stage.labelled()
        waits(stage, issue)
        asked = len(stage.model.requests)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    with stage.serving():
        assert len(stage.model.requests) == asked
        stage.hub.comment(issue, stage.maria, "/agent approve")
        assert stage.story_ends(issue.number).startswith("**Done**")
        assert counted(stage) == "once"
        assert sum("waits for approval**" in body for body in stage.bot_comments(issue.number)) == 1


@pytest.mark.parametrize("moment", ["before", "inside"])
def test_a_server_killed_while_it_carries_out_repeats_nothing(stage: Stage, folder: Path, moment: str) -> None:
    """Before the step the next server runs the command; in its midst nobody knows, and it is not run again."""
    deadly = {"KILL_AT": f"approved/1:{moment}", "KILL_RUN": "2", "KILLED": str(folder / "killed")}
    process = stage.spawn(**deadly)
    try:
        issue = stage.labelled()
        waits(stage, issue)
        stage.hub.comment(issue, stage.maria, "/agent approve")
        until(process.poll, f"the death; the server said: {stage.log()}")
    finally:
        process.kill()
        process.wait()
    with stage.serving(**deadly):
        assert stage.story_ends(issue.number).startswith("**Done**")
        assert counted(stage) == ("once" if moment == "before" else None)
        told = "\n".join(stage.bot_comments(issue.number))
        assert ("it may have been carried out" in told) is (moment == "inside")


def test_at_the_terminal_the_person_is_asked_at_once(folder: Path) -> None:
    """Whatever `--approve` says: one question, and a yes runs the command once."""
    counts = Conversation("counts", (*FIRST, *DENIED), match="greeting is wrong")
    with person_with(folder, Script([counts], name="gates"), FILES) as person:
        with person.running(*person.begin("--approve", "all")) as running:
            assert COUNT in running.shows("Allow? [y]es")
            running.press(b"y\n")
            assert running.ends() == 0
        assert person.git("show", f"{person.branch()}:count.txt") == "once"
        assert person.model.problems == []
