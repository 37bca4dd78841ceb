"""A plan on GitHub that is a draft pull request: reviewed on its lines, revised, approved at its head, carried out."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.testing.hub.records import Issue
from bot.testing.hub.state.reviews import LineComment
from bot.testing.model.reply import Call
from bot.testing.model.script import Condition, Conversation, Script, Turn
from tests.e2e.door import all_settled
from tests.e2e.scripts import FILES, FIRST
from tests.e2e.stage import Stage, until
from tests.e2e.test_approvals import said

pytestmark = pytest.mark.e2e

NAME = "issuewright/independent-review"
PLAN = "Mend the spelling in `greet.txt`."
CHANGED = "Mend one letter, and no more."
SHORT = r"plan `([0-9a-f]{8})` waits for you"


def proposes(plan: str, *sees: str) -> Turn:
    """Propose a plan."""
    call = Call("propose_plan", {"plan": plan, "files": ["greet.txt"], "turns": 3})
    return Turn("A plan.", calls=[call], expect=[Condition(said=part) for part in sees])


ANSWER = Turn("So.", calls=[Call("finish", {"summary": "An l is missing, in line 1."})])
SCRIPT = Script(
    [
        Conversation("work", FIRST, match=f"/This plan was made for it[\\s\\S]*{CHANGED}/"),
        Conversation("question", (ANSWER,), match="/A person asks:[\\s\\S]*What is wrong with it/"),
        Conversation(
            "change",
            (
                proposes(
                    CHANGED,
                    "Smaller, please",
                    "Only one letter",
                    "comment in T\\d by maria \\(writer\\)\n[^\n]*No word more",
                ),
            ),
            match="A person wants it changed",
        ),
        Conversation("plan", (proposes(PLAN, "greeting is wrong"),), match="greeting is wrong"),
    ],
    name="plan-pull",
)


@pytest.fixture
def stage(folder: Path) -> Iterator[Stage]:
    """The greeting's repository, where plans wait as pull requests."""
    where = {"ISSUEWRIGHT_MODE": "plan", "ISSUEWRIGHT_PLAN_AS": "pull"}
    with Stage(folder, SCRIPT, FILES).open() as opened, opened.serving(**where):
        yield opened
        assert opened.model.problems == []


def head_of(stage: Stage, pull: Issue) -> str:
    """Return where the pull request stands."""
    assert pull.pull is not None
    return stage.branches()[pull.pull.head_ref]


def file_of(stage: Stage, pull: Issue) -> str:
    """Return the plan as the branch has it."""
    return stage.git("show", f"{head_of(stage, pull)}:PLAN.md")


def verdict(stage: Stage, head: str) -> str | None:
    """Return what the check run of an independent review says of a commit."""
    with stage.hub.lock:
        [run] = [run for run in stage.repository.check_runs if run.head_sha == head and run.name == NAME]
        return run.conclusion


def test_a_plan_is_reviewed_on_its_lines_and_approved_at_its_head(stage: Stage) -> None:
    """Questions are answered there, a review revises the file, and only one of the present head begins the work."""
    issue = stage.labelled()
    first = said(stage, issue.number, SHORT)[1]
    (pull,) = stage.pulls()
    assert pull.pull is not None
    assert (pull.title, pull.pull.draft) == ("Plan: The greeting is wrong", True)
    assert stage.git("diff", "--name-status", "main", pull.pull.head_ref) == "A\tPLAN.md"
    assert file_of(stage, pull).startswith(f"# Plan `{first}`")
    old = head_of(stage, pull)

    stage.hub.comment(pull, stage.maria, "/agent ask What is wrong with it?")
    said(stage, pull.number, r"\A> What is wrong with it\?[\s\S]*> An l is missing, in line 1\.")
    assert head_of(stage, pull) == old

    lines = [LineComment("PLAN.md", 5, "Only one letter."), LineComment("PLAN.md", 1, "No word more.")]
    stage.hub.review(pull, stage.maria, "CHANGES_REQUESTED", "Smaller, please.", lines)
    second = said(stage, pull.number, SHORT)[1]
    said(stage, issue.number, rf"\A\*\*Superseded\.\*\* Plan `{first}`")
    assert f"> {CHANGED}" in file_of(stage, pull)
    assert stage.git("rev-parse", f"{head_of(stage, pull)}^") == old

    asked = len(stage.model.requests)
    stage.hub.review(pull, stage.maria, "APPROVED", "", commit=old)
    said(
        stage, pull.number, f"That review approves `{old[:12]}`, and the present head is `{head_of(stage, pull)[:12]}`"
    )
    stage.hub.review(pull, stage.stranger, "APPROVED", "")
    stage.hub.review(pull, stage.stranger, "COMMENTED", "/agent approve")
    said(stage, pull.number, "`stranger` may not use `approve` here: it needs write access")
    all_settled(stage)
    assert len(stage.model.requests) == asked
    assert second in file_of(stage, pull)

    plan = head_of(stage, pull)
    stage.hub.review(pull, stage.maria, "APPROVED", "")
    assert stage.story_ends(pull.number).startswith("**Done**")
    head = head_of(stage, pull)
    assert stage.git("show", f"{head}:greet.txt") == "Hello, world"
    assert stage.git("diff", "--name-only", "main", head) == "greet.txt"
    assert stage.git("rev-parse", f"{head}~2") == plan
    assert stage.git("diff", "--name-status", f"{head}~2", f"{head}~1") == "D\tPLAN.md"
    assert pull.title == "The greeting is wrong"
    assert (pull.body or "").startswith(f"Closes #{issue.number}")
    assert len(stage.pulls()) == 1

    otto = stage.hub.create_user("otto")
    stage.hub.add_collaborator(stage.repository, otto, "write")
    assert verdict(stage, head) == "action_required"
    stage.hub.review(pull, stage.maria, "APPROVED", "")
    stage.hub.review(pull, otto, "APPROVED", "", commit=plan)
    all_settled(stage)
    assert verdict(stage, head) == "action_required"
    stage.hub.review(pull, otto, "APPROVED", "")
    until(lambda: verdict(stage, head) == "success" or None, f"a green check; the server said: {stage.log()}")
