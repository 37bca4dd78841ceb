"""Others push while a run works, and the base branch is brought in: with real git, and nothing of theirs is lost."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bot.testing.hub.records import Issue
from bot.testing.model.reply import Call, Reply
from bot.testing.model.request import Request, Text
from bot.testing.model.script import Condition, Conversation, Script, Turn
from tests.e2e.scripts import FILES, FIRST
from tests.e2e.stage import Stage
from tests.e2e.test_check_command import asked, shown, until_idle

pytestmark = pytest.mark.e2e

DONE = Turn("Done.", calls=[Call("finish", {"summary": "It is greeted."})])
EDIT = Turn("More.", calls=[Call("edit", {"path": "greet.txt", "old": "world", "new": "whole world"})])
READ = Turn("I look.", calls=[Call("read", {"path": "greet.txt"})])
CHECK = Turn("I run it.", calls=[Call("run", {"command": "sh check.sh"})])
BOTH = Call("write", {"path": "greet.txt", "content": "Hello, dear world\n"})
MERGE = (
    Turn("I am done.", calls=DONE.calls, expect=[Condition(said="both sides changed the same lines")]),
    Turn("I look.", calls=READ.calls, expect=[Condition(said="conflict markers are left in these files")]),
    Turn("Both.", calls=[BOTH], expect=[Condition(tool="read", matches=r"<<<<<<< [0-9a-f]{40}\n[^|]*\|{7} ")]),
    DONE,
)
"""Says that it is done while markers are left, and resolves the conflict when that is refused."""


class Play:
    """A stage on which somebody does something at a turn of the model."""

    def __init__(self) -> None:
        self.stage: Stage | None = None
        self.act: Callable[[Stage], object] = lambda _: None

    def turn(self, _: Request) -> Reply:
        """Let them, and say that the work is done."""
        assert self.stage is not None
        self.act(self.stage)
        return Reply((Text("Done."), DONE.calls[0]))


def story(play: Play) -> Script:
    """What the model says: an issue, more of it while others push, and a conflict."""
    return Script(
        [
            Conversation("fix", FIRST, match="greeting is wrong"),
            Conversation("more", (READ, EDIT, CHECK, play.turn), match_last="whole world"),
            Conversation("merge", MERGE, match_last="merges the base branch"),
        ],
        name="update",
    )


def pushes(stage: Stage, branch: str, files: dict[str, bytes | str]) -> str:
    """Let Maria push to a branch."""
    head = stage.branches()[branch]
    made = stage.hub.write_commit(stage.repository, files, message="Hers", by=stage.maria, parent=head)
    stage.hub.move_ref(stage.repository, stage.maria, f"refs/heads/{branch}", made)
    return made


@pytest.fixture
def play(folder: Path) -> Iterator[tuple[Stage, Play, Issue]]:
    """A pull request of ours."""
    made = Play()
    with Stage(folder, story(made), FILES).open() as stage, stage.serving():
        made.stage = stage
        assert stage.story_ends(stage.labelled().number).startswith("**Done**"), stage.log()
        until_idle(stage)
        (pull,) = stage.pulls()
        yield stage, made, pull
        assert stage.model.problems == []


def branch_of(pull: Issue) -> str:
    """The branch of a pull request."""
    assert pull.pull is not None
    return pull.pull.head_ref


def says(stage: Stage, pull: Issue, words: str, count: int) -> str:
    """Let Maria comment, and wait for the end of the run."""
    stage.hub.comment(pull, stage.maria, words)
    told = stage.story_ends(pull.number, count)
    until_idle(stage)
    return told


def test_a_push_while_a_run_works(play: tuple[Stage, Play, Issue]) -> None:
    """What does not conflict goes on top of theirs and says so; what does goes beside it."""
    stage, acts, pull = play
    branch, theirs = branch_of(pull), list[str]()
    acts.act = lambda stage: theirs.append(pushes(stage, branch, {"hers.txt": "hers\n"}))
    assert says(stage, pull, "/agent fix Greet the whole world.", 1).startswith("**Done**")
    head = stage.branches()[branch]
    assert stage.git("log", "-1", "--format=%P", head) == theirs[0]
    assert stage.git("diff", "--name-only", theirs[0], head) == "greet.txt"
    assert stage.git("show", f"{head}:greet.txt") == "Hello, whole world"
    body = pull.body or ""
    assert "The work is rebased over a commit that was pushed meanwhile." in body
    assert f"Recorded on `{head[:8]}`" not in body
    acts.act = lambda stage: theirs.append(pushes(stage, branch, {"greet.txt": "Hi, world\n"}))
    told = says(stage, pull, "/agent fix Greet the whole world, twice.", 2)
    assert stage.branches()[branch] == theirs[1]
    (beside,) = [name for name in stage.branches() if name.startswith(branch) and name != branch]
    assert f"so the work is beside it, on `{beside}`" in told
    assert stage.git("log", "-1", "--format=%P", stage.branches()[beside]) == head


def test_the_base_branch_comes_in(play: tuple[Stage, Play, Issue]) -> None:
    """Without a conflict no model is asked; with one it has to resolve all of it, and there is one commit of both."""
    stage, _, pull = play
    branch, turns = branch_of(pull), asked(stage)
    ours, base = stage.branches()[branch], pushes(stage, "main", {"new.txt": "new\n"})
    told = says(stage, pull, "/agent update", 1)
    assert told.startswith("**Done**")
    assert f"`main` is merged in, as of `{base[:8]}`." in told
    head = stage.branches()[branch]
    assert stage.git("log", "-1", "--format=%P", head) == f"{ours} {base}"
    assert stage.git("diff", "--name-only", base, head) == "greet.txt"
    assert asked(stage) == turns
    green = shown(stage, head)
    assert (green.conclusion, green.title) == ("success", "1 of 1 checks pass")
    assert "new.txt" not in (green.summary or "")
    assert "The greeting was misspelt." in (pull.body or "")

    again = says(stage, pull, "/agent update", 2)
    assert "The branch has all that is on `main` already; nothing was pushed." in again
    assert stage.branches()[branch] == head

    base = pushes(stage, "main", {"greet.txt": "Helo, dear world\n"})
    resolved = says(stage, pull, "/agent update", 3)
    assert "Of what conflicted, `greet.txt` was resolved by the model." in resolved, resolved
    merged = stage.branches()[branch]
    assert stage.git("log", "-1", "--format=%P", merged) == f"{head} {base}"
    assert stage.git("show", f"{merged}:greet.txt") == "Hello, dear world"
    assert shown(stage, merged).conclusion == "success"
