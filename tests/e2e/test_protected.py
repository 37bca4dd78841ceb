"""What people decide about before it is pushed, from the issue to the branch on GitHub."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.testing.hub.records import Issue
from bot.testing.model.reply import Call
from bot.testing.model.script import Condition, Conversation, Script, Turn
from tests.e2e.scripts import FILES
from tests.e2e.stage import Stage, until

pytestmark = pytest.mark.e2e

WORKFLOW = ".github/workflows/x.yml"
# No rule of the policy sees through this.
WRITES = (
    "python3 -c \"import pathlib as p; f = p.Path('.git' 'hub/workflows'); f.mkdir(parents=True, exist_ok=True); {}\""
)
MAKES = WRITES.format("(f / 'x.yml').write_text('on: push\\n')")
REMOVES = WRITES.format("(f / 'x.yml').unlink(missing_ok=True)")
SCRIPT = Script(
    [
        Conversation(
            "workflow",
            [
                Turn("I act.", calls=[Call("run", {"command": MAKES})]),
                Turn("Done.", calls=[Call("finish", {"summary": "There is a workflow."})]),
            ],
            match="Add a workflow",
        ),
        Conversation(
            "denied",
            [
                Turn(
                    "I take it out.",
                    calls=[
                        Call("run", {"command": REMOVES}),
                        Call("write", {"path": "ci.md", "content": "Run sh check.sh\n"}),
                    ],
                    expect=[Condition(said="We have no runners")],
                ),
                Turn("Done.", calls=[Call("finish", {"summary": "A page instead."})]),
            ],
            match_last="We have no runners",
        ),
        Conversation(
            "lock",
            [
                Turn("I lock.", calls=[Call("write", {"path": "uv.lock", "content": "version = 2\n"})]),
                Turn("Done.", calls=[Call("finish", {"summary": "Locked."})]),
            ],
            match="Lock it",
        ),
    ],
    name="protected",
)


@pytest.fixture
def stage(folder: Path) -> Iterator[Stage]:
    """The greeting's repository without checks, and a model that adds a workflow."""
    files = {name: text for name, text in FILES.items() if not name.startswith(".github")}
    with Stage(folder, SCRIPT, files).open() as opened:
        yield opened
        assert opened.model.problems == []


def asked(stage: Stage, issue: Issue) -> str:
    """Wait until a push waits, and return its hash as people write it."""

    def look() -> str | None:
        found = [re.search(r"`/agent approve ([0-9a-f]{8})` pushes", body) for body in stage.bot_comments(issue.number)]
        return next((match[1] for match in reversed(found) if match), None)

    short = until(look, "the request")
    until(lambda: True if any("Waiting" in body for body in stage.bot_comments(issue.number)) else None, "the wait")
    return short


def may_write_workflows(stage: Stage) -> None:
    """Let the organisation grant the App what a changed workflow needs."""
    stage.app.permissions["workflows"] = "write"
    stage.installation.permissions["workflows"] = "write"


def test_a_workflow_waits_for_a_person_and_is_pushed_once(stage: Stage) -> None:
    """Nothing is on GitHub before the approval; then exactly the tree that was put to people, without a model."""
    may_write_workflows(stage)
    with stage.serving():
        issue = stage.labelled("Add a workflow")
        short = asked(stage, issue)
        assert list(stage.branches()) == ["main"]
        assert stage.pulls() == []
        (body,) = [body for body in stage.bot_comments(issue.number) if "pushes exactly this" in body]
        assert f"- `{WORKFLOW}`" in body
        tree = re.search(r"git tree `([0-9a-f]{40})`", body)
        assert tree is not None
    requests = len(stage.model.requests)
    # The wait outlives the server.
    with stage.serving():
        stage.hub.comment(issue, stage.stranger, f"/agent approve {short}")
        stage.hub.comment(issue, stage.maria, f"/agent approve {short}")
        told = stage.story_ends(issue.number)
        assert told.startswith("**Done**"), told
        (pull,) = stage.pulls()
        assert pull.pull is not None
        branch = pull.pull.head_ref
        assert stage.git("rev-parse", f"{branch}^{{tree}}") == tree[1]
        assert stage.git("rev-list", "--count", f"main..{branch}") == "1"
        assert stage.git("diff", "--name-only", "main", branch) == WORKFLOW
        assert len(stage.model.requests) == requests
        assert pull.body is not None
        assert "`maria` approved that this is pushed" in pull.body
        stage.hub.comment(issue, stage.maria, f"/agent approve {short}")
        until(lambda: True if "approved before" in "".join(stage.bot_comments(issue.number)) else None, "the refusal")
        assert stage.git("rev-list", "--count", f"main..{branch}") == "1"


def test_what_is_denied_never_reaches_github(stage: Stage) -> None:
    """The model hears the reason and goes on from its work; only what it makes then is pushed."""
    with stage.serving():
        issue = stage.labelled("Add a workflow")
        short = asked(stage, issue)
        stage.hub.comment(issue, stage.maria, f"/agent deny {short} We have no runners.")
        told = stage.story_ends(issue.number)
        assert told.startswith("**Done**"), told
        (pull,) = stage.pulls()
        assert pull.pull is not None
        assert stage.git("diff", "--name-only", "main", pull.pull.head_ref) == "ci.md"
        assert WORKFLOW not in stage.git("log", "--all", "--name-only", "--format=")


def test_without_the_permission_nothing_is_half_pushed(stage: Stage) -> None:
    """An approved workflow that the App may not push names the permission; once it is granted the same is pushed."""
    with stage.serving():
        issue = stage.labelled("Add a workflow")
        short = asked(stage, issue)
        stage.hub.comment(issue, stage.maria, f"/agent approve {short}")
        told = stage.story_ends(issue.number)
        assert told.startswith("**Failed**"), told
        assert "needs the permission `workflows: write`; nothing was pushed" in told
        assert list(stage.branches()) == ["main"]
        may_write_workflows(stage)
        stage.hub.comment(issue, stage.maria, "/agent fix")
        told = stage.story_ends(issue.number, 2)
        assert told.startswith("**Done**"), told
        (pull,) = stage.pulls()
        assert pull.pull is not None
        assert stage.git("diff", "--name-only", "main", pull.pull.head_ref) == WORKFLOW


def test_a_lock_file_is_pushed_and_marked(stage: Stage) -> None:
    """It waits for nobody; the pull request says what to look at."""
    with stage.serving():
        issue = stage.labelled("Lock it")
        assert stage.story_ends(issue.number).startswith("**Done**")
        (pull,) = stage.pulls()
        assert pull.body is not None
        assert "Look at this with care: the change changes lock files: `uv.lock`." in pull.body
