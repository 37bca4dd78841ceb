"""A conversation that outgrows the model's window goes on, over real HTTP, git and processes."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.testing.model.reply import Call
from bot.testing.model.script import Choose, Condition, Conversation, Script, Turn
from tests.e2e.stage import Stage

pytestmark = pytest.mark.e2e

WINDOW = 40_000
"""Tokens; the scripted model refuses longer requests as the real ones do."""
CHAPTERS = 12
NOTE = "I read the chapters one after the other; none of them says Helo but the last."
FILES = {f"chapter{number}.txt": f"line of chapter {number}\n" * 1200 for number in range(CHAPTERS)}


def asked_or(turn: Turn) -> Choose:
    """Answer with a note where the model is asked for one, else as the story goes."""
    return Choose([Turn(NOTE, when=Condition(said="about to outgrow your window")), turn])


def script(*, notes: bool) -> Script:
    """Read all chapters, then mend the greeting."""
    turns = [Turn("On.", calls=[Call("read", {"path": f"chapter{number}.txt"})]) for number in range(CHAPTERS)]
    turns += [
        Turn("I mend it.", calls=[Call("edit", {"path": "greet.txt", "old": "Helo", "new": "Hello"})]),
        Turn("Done.", calls=[Call("finish", {"summary": "The greeting was misspelt."})]),
    ]
    steps = [asked_or(turn) for turn in turns] if notes else turns
    return Script([Conversation("long", steps, match="greeting is wrong")], name="long", window=WINDOW)


@pytest.fixture(params=["a note", "no note"])
def stage(folder: Path, request: pytest.FixtureRequest) -> Iterator[Stage]:
    """A repository with long files, and a model that writes a note when it is asked for one, or goes on calling."""
    played = script(notes=request.param == "a note")
    with Stage(folder, played, {"greet.txt": "Helo, world\n", **FILES}).open() as opened:
        yield opened
        assert opened.model.problems == []


def test_the_work_goes_on_and_people_are_told(stage: Stage) -> None:
    """No request is ever refused; a note of the model, or a shorter transcript without one, stands for what is gone."""
    catalogue = stage.folder / "models.yaml"
    catalogue.write_text(
        f"version: 1\nmodels:\n  - {{name: '{'anthropic:' + stage.model.model_id}', window: {WINDOW}, output: 2000}}\n"
    )
    with stage.serving(ISSUEWRIGHT_MODELS__CATALOGUE=str(catalogue)):
        issue = stage.labelled()
        told = stage.story_ends(issue.number)
    assert told.startswith("**Done**: [#2]"), told
    assert "The conversation was made shorter: " in told
    assert "ctx " in told
    (pull,) = stage.pulls()
    assert pull.pull is not None
    assert stage.git("show", f"{pull.pull.head_ref}:greet.txt") == "Hello, world"
    assert [request.status for request in stage.model.requests if request.path == "/v1/messages"].count(200) > CHAPTERS
    assert all(request.status == 200 for request in stage.model.requests)
