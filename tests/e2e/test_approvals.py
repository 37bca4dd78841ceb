"""A conversation about a plan on GitHub: asked about, changed, approved by its hash, carried out."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.testing.model.reply import Call
from bot.testing.model.script import Condition, Conversation, Script, Turn
from tests.e2e.door import all_settled
from tests.e2e.scripts import FILES, FIRST
from tests.e2e.stage import Stage, until

pytestmark = pytest.mark.e2e

PLAN = "Mend the spelling in `greet.txt`."
CHANGED = "Mend one letter, and no more."
SHORT = re.compile(r"plan `([0-9a-f]{8})` waits for you")


def proposes(plan: str, *, sees: str) -> Turn:
    """Propose a plan."""
    call = Call("propose_plan", {"plan": plan, "files": ["greet.txt"], "turns": 3})
    return Turn("A plan.", calls=[call], expect=[Condition(said=sees)])


SCRIPT = Script(
    [
        Conversation("work", FIRST, match=f"/This plan was made for it[\\s\\S]*{CHANGED}/"),
        Conversation(
            "question",
            (
                Turn("I look.", calls=[Call("read", {"path": "greet.txt"})]),
                Turn("So.", calls=[Call("finish", {"summary": "An l is missing, in line 1."})]),
            ),
            match=f"/{PLAN}[\\s\\S]*A person asks:[\\s\\S]*What is wrong with it/",
        ),
        Conversation(
            "change",
            (proposes(CHANGED, sees=f"{PLAN}[\\s\\S]*A person wants it changed:[\\s\\S]*One letter, please"),),
            match="A person wants it changed",
        ),
        Conversation("plan", (proposes(PLAN, sees="greeting is wrong"),), match="greeting is wrong"),
    ],
    name="approvals",
)


@pytest.fixture
def stage(folder: Path) -> Iterator[Stage]:
    """The greeting's repository, where plans wait."""
    with Stage(folder, SCRIPT, FILES).open() as opened, opened.serving(ISSUEWRIGHT_MODE="plan"):
        yield opened
        assert opened.model.problems == []


def said(stage: Stage, number: int, pattern: str) -> re.Match[str]:
    """Wait until the bot says something on a thread."""

    def found() -> re.Match[str] | None:
        return next(filter(None, (re.search(pattern, body) for body in stage.bot_comments(number))), None)

    return until(found, f"{pattern!r} on #{number}; the server said: {stage.log()}")


def test_a_plan_is_asked_about_changed_approved_and_carried_out(stage: Stage) -> None:
    """The old plan is marked and approves nothing; no word but the command of a writer begins the work."""
    issue = stage.labelled()
    first = said(stage, issue.number, SHORT.pattern)[1]

    stage.hub.comment(issue, stage.maria, "/agent ask What is wrong with it?")
    said(stage, issue.number, r"\A> What is wrong with it\?[\s\S]*> An l is missing, in line 1\.")
    assert said(stage, issue.number, SHORT.pattern)[1] == first

    stage.hub.comment(issue, stage.maria, "/agent plan One letter, please.")
    said(stage, issue.number, rf"\A\*\*Superseded\.\*\* Plan `{first}`")
    second = said(stage, issue.number, SHORT.pattern)[1]
    assert second != first

    stage.hub.comment(issue, stage.stranger, f"/agent approve {second}")
    said(stage, issue.number, r"`stranger` may not use `approve` here: it needs write access")
    stage.hub.comment(issue, stage.maria, f"/agent approve {first}")
    said(stage, issue.number, rf"Plan `{first}` is superseded by plan `{second}`")
    stage.hub.comment(issue, stage.maria, "/agent approve 0badc0de")
    said(stage, issue.number, "Nothing in this task has the hash `0badc0de`")
    stage.hub.comment(issue, stage.maria, "approve")
    all_settled(stage)
    assert set(stage.branches()) == {"main"}
    assert len(stage.model.requests) == 4

    stage.hub.comment(issue, stage.maria, f"/agent approve {second}")
    assert stage.story_ends(issue.number).startswith("**Done**")
    (pull,) = stage.pulls()
    assert pull.pull is not None
    assert stage.git("show", f"{pull.pull.head_ref}:greet.txt") == "Hello, world"
    stage.hub.comment(issue, stage.maria, f"/agent approve {second}")
    said(stage, issue.number, "Nothing waits for a decision here")
    assert len(stage.model.requests) == 4 + len(FIRST)
