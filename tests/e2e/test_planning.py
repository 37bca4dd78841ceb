"""Plans and questions on GitHub, over real HTTP, git, databases and processes: what waits holds nothing."""

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.testing.model.reply import Call
from bot.testing.model.script import Condition, Conversation, Script, Turn
from tests.e2e.scripts import FILES, FIRST
from tests.e2e.stage import Stage, until
from tests.e2e.terminal import person_with

pytestmark = pytest.mark.e2e

WAITS = ("**A plan waits**", "**Waiting for an answer**")
READ = Turn("I read it.", calls=[Call("read", {"path": "greet.txt"})])
PLAN = Turn(
    "The cause is plain.",
    calls=[
        Call("propose_plan", {"plan": "Mend the spelling in `greet.txt`.", "files": ["greet.txt"], "turns": 3}),
    ],
    expect=[Condition(tool="read", matches="Helo")],
)
AGAIN = Turn(
    "As you say.",
    calls=[Call("propose_plan", {"plan": "Mend one letter of it.", "files": ["greet.txt"], "turns": 3})],
    expect=[Condition(said="A person wants the plan changed[\\s\\S]*Less of it, please.")],
)
ASKED = (
    READ,
    Turn(
        "I begin.",
        calls=[
            Call("edit", {"path": "greet.txt", "old": "Helo", "new": "Hello"}),
            Call("ask_person", {"question": "Shall the whole world be greeted?"}),
        ],
    ),
)
ANSWERED = (
    Turn("Again.", calls=[Call("read", {"path": "greet.txt"})]),
    Turn(
        "As you say.",
        calls=[
            Call("edit", {"path": "greet.txt", "old": "world", "new": "whole world"}),
            Call("run", {"command": "sh check.sh"}),
        ],
        expect=[Condition(tool="read", matches="Hello, world")],
    ),
    Turn("Done.", calls=[Call("finish", {"summary": "The whole world is greeted."})]),
)
SCRIPT = Script(
    [
        Conversation("work", FIRST, match="/greeting is wrong[\\s\\S]*This plan was made for it/"),
        Conversation("plan", (READ, PLAN, AGAIN), match="greeting is wrong"),
        Conversation("answered", ANSWERED, match_last="A person answers your question"),
        Conversation("asks", ASKED, match="half a greeting"),
    ],
    name="planning",
)


@pytest.fixture
def stage(folder: Path) -> Iterator[Stage]:
    """The greeting's repository."""
    with Stage(folder, SCRIPT, FILES).open() as opened:
        yield opened
        assert opened.model.problems == []


def waits(stage: Stage, number: int) -> str:
    """Wait until the task of a thread waits for people."""

    def waiting() -> str | None:
        return next((body for body in stage.bot_comments(number) if body.startswith(WAITS)), None)

    return until(waiting, f"#{number} to wait; the server said: {stage.log()}")


def test_under_auto_a_labelled_issue_is_planned_and_worked_on(stage: Stage) -> None:
    """One run: the plan stands as a comment of its own, and the pull request follows by itself."""
    with stage.serving(ISSUEWRIGHT_MODE="auto"):
        issue = stage.labelled()
        assert stage.story_ends(issue.number).startswith("**Done**")
        _, plan = stage.bot_comments(issue.number)
        assert plan.startswith("**Plan.** The work goes on.")
        assert "> Mend the spelling in `greet.txt`." in plan
        (pull,) = stage.pulls()
        assert pull.pull is not None
        assert stage.git("show", f"{pull.pull.head_ref}:greet.txt") == "Hello, world"
        assert len(stage.model.requests) == len(FIRST) + 2


def test_a_plan_waits_over_a_killed_server_and_a_command_carries_it_out(stage: Stage) -> None:
    """Nothing runs while it waits, no branch is there, and the next server knows the plan."""
    process = stage.spawn(ISSUEWRIGHT_MODE="plan")
    try:
        issue = stage.labelled()
        assert "Work begins when somebody says so." in waits(stage, issue.number)
        assert set(stage.branches()) == {"main"}
        asked = len(stage.model.requests)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    with stage.serving(ISSUEWRIGHT_MODE="plan"):
        stage.hub.comment(issue, stage.maria, "/agent fix")
        assert stage.story_ends(issue.number).startswith("**Done**")
        assert len(stage.model.requests) == asked + len(FIRST)
        plans = [body for body in stage.bot_comments(issue.number) if "Mend the spelling" in body]
        assert len(plans) == 1
        assert re.match(r"@maria: \*\*plan `[0-9a-f]{8}` waits for you\.\*\*", plans[0])


def test_a_question_waits_for_its_answer(stage: Stage) -> None:
    """What was done is on a draft; the answer goes on with the same conversation and the same pull request."""
    with stage.serving():
        issue = stage.labelled("This is half a greeting")
        assert "Shall the whole world be greeted?" in waits(stage, issue.number)
        (pull,) = stage.pulls()
        assert pull.pull is not None
        assert pull.pull.draft
        assert pull.body is not None
        assert "**Unfinished.** The model asks: Shall the whole world be greeted?" in pull.body
        question = stage.bot_comments(issue.number)[-1]
        assert question.startswith("@maria: **a question**")
        stage.hub.comment(issue, stage.stranger, "/agent answer Yes, and delete it all.")
        until(lambda: True if "may not use `answer`" in stage.bot_comments(issue.number)[-1] else None, "the refusal")
        stage.hub.comment(issue, stage.maria, "/agent answer Yes, all of it.")
        assert stage.story_ends(issue.number).startswith("**Done**")
        assert stage.git("show", f"{pull.pull.head_ref}:greet.txt") == "Hello, whole world"
        assert len(stage.pulls()) == 1
        assert "**Unfinished.**" not in pull.body


def test_at_the_terminal_a_plan_is_talked_about_and_a_question_answered(folder: Path) -> None:
    """The person reads the plan, changes it, says yes; the checkout stays as it is and a branch arrives."""
    with person_with(folder, SCRIPT, FILES) as person:
        before = person.fingerprint()
        with person.running(*person.begin("--mode", "plan", "--approve", "all")) as running:
            shown = running.shows("or say what to change:")
            assert "Mend the spelling in `greet.txt`." in shown
            running.press(b"Less of it, please.\n")
            running.shows("Mend one letter of it.")
            running.press(b"y\n")
            assert running.ends() == 0
        assert person.fingerprint() == before
        assert person.git("show", f"{person.branch()}:greet.txt") == "Hello, world"
        assert person.model.problems == []


def test_where_nobody_is_at_the_terminal_a_question_waits_for_the_next_call(folder: Path) -> None:
    """Exit code 3 and how to answer; the answer goes on with the same conversation."""
    with person_with(folder, SCRIPT, FILES) as person:
        model = ("--model", f"anthropic:{person.model.model_id}")
        done = person.run("--task", "This is half a greeting", *model, "--approve", "all")
        assert done.code == 3, done.err
        assert "Shall the whole world be greeted?" in done.err
        assert "--task '…'` answers" in done.err
        done = person.run("--resume", "--task", "Yes, all of it.", "--approve", "all")
        assert done.code == 0, done.err
        assert person.git("show", f"{person.branch()}:greet.txt") == "Hello, whole world"
        assert person.model.problems == []


def test_where_nobody_is_at_the_terminal_a_plan_waits_and_is_carried_out_by_the_next_call(folder: Path) -> None:
    """The plan is shown all the same, and `--resume` is the yes."""
    with person_with(folder, SCRIPT, FILES) as person:
        done = person.run(*person.begin("--mode", "plan", "--approve", "all"))
        assert done.code == 3, done.err
        assert "Mend the spelling in `greet.txt`." in done.err
        assert "` carries the plan out; `" in done.err
        done = person.run("--resume", "--approve", "all")
        assert done.code == 0, done.err
        assert person.git("show", f"{person.branch()}:greet.txt") == "Hello, world"
        assert person.model.problems == []
