"""Replies without a call are answered, and a model does not finish before the checks have run."""

import pytest

from bot.agent.conduct import Finishing, Silence
from bot.domain.messages import Message, Reply, StopReason, TextPart, ThinkingPart
from bot.projects.checks import FoundCheck
from bot.tools.base import ToolOutput
from tests.unit.agent.made import call, reply, say

EDIT = ToolOutput("edited", "a.py", changed=("a.py",))
LOOK = ToolOutput("text", "a.py")


def ran(command: str, exit_code: int = 0) -> ToolOutput:
    """Make what a command gave."""
    return ToolOutput("exit code: 0", command, changed=None, command=command, exit_code=exit_code)


def judged(*replies: Reply) -> list[str]:
    """Judge replies of one run."""
    silence = Silence()
    return [silence.judge(one) for one in replies]


def test_two_texts_are_nudged_and_the_third_is_the_answer() -> None:
    """A model that calls nothing is asked twice."""
    assert judged(say("One."), say("Two."), say("Three.")) == ["nudge", "nudge", "done"]


def test_a_call_forgets_the_texts_before_it() -> None:
    """A reply with a call begins the count anew."""
    replies = (say("One."), say("Two."), reply(call("look")), say("Three."), say("Four."), say("Five."))
    assert judged(*replies) == ["nudge", "nudge", "act", "nudge", "nudge", "done"]


@pytest.mark.parametrize("stop", ["length", "pause", "error"])
def test_a_text_that_broke_off_is_no_answer(stop: StopReason) -> None:
    """What was cut off is nudged as often as it comes."""
    assert judged(*(say("And", stop=stop) for _ in range(4))) == ["nudge"] * 4


def test_an_empty_reply_is_asked_for_again() -> None:
    """Nothing, blanks or thoughts alone: twice the same is asked, then the model is told, and in the end it is over."""
    empty = (reply(), say(" \n"), Reply(Message("assistant", (ThinkingPart("hm"),)), "end"))
    assert judged(*empty, *empty, *empty) == ["again", "again", "nudge"] * 2 + ["again", "again", "done"]
    assert judged(reply(), say("One."), reply(), reply(TextPart("Two."), call("look"))) == [
        "again", "nudge", "again", "act",
    ]  # fmt: skip


def test_finishing_without_the_checks_is_refused_once() -> None:
    """Behind an edit the checks have to run; a model that insists is believed."""
    finishing = Finishing(["pytest -q", "ruff check"])
    finishing.acted(EDIT)
    finishing.acted(ran("ruff  check"))
    refusal = finishing.refusal()
    assert "you have not run `pytest -q`." in refusal
    assert finishing.refusal() == ""
    finishing.acted(EDIT)
    assert finishing.refusal() == ""


@pytest.mark.parametrize("command", ["pytest -q", "cd x && pytest  -q\n", "pytest -q --lf 2>&1 | tail"])
def test_checks_that_ran_since_the_last_edit_are_enough(command: str) -> None:
    """As part of a longer command too, and whatever they say: the model has seen it."""
    finishing = Finishing(["pytest -q"])
    for output in (EDIT, ran(command, 1), LOOK):
        finishing.acted(output)
    assert finishing.refusal() == ""


def test_an_edit_behind_the_checks_makes_them_due_again() -> None:
    """What passed before the last edit says nothing of it."""
    finishing = Finishing(["pytest -q"])
    for output in (EDIT, ran("pytest -q"), EDIT):
        finishing.acted(output)
    assert finishing.refusal() != ""


@pytest.mark.parametrize(
    ("checks", "outputs"), [((), (EDIT,)), (("pytest -q",), ()), (("pytest -q",), (LOOK, ran("ls")))]
)
def test_without_checks_or_edits_nothing_is_due(checks: tuple[str, ...], outputs: tuple[ToolOutput, ...]) -> None:
    """A repository without checks, and a run that edited nothing, may finish at once."""
    finishing = Finishing(checks)
    for output in outputs:
        finishing.acted(output)
    assert finishing.refusal() == ""


FOUND = FoundCheck("tests", "pytest", "python3 -m pytest -q", "pytest.ini", "python3", r"\bpytest\b")


def refused(*outputs: ToolOutput) -> bool:
    """Say whether a run may not finish yet, where the tests were only found."""
    finishing = Finishing((), [FOUND])
    for output in outputs:
        finishing.acted(output)
    refusal = finishing.refusal()
    assert not refusal or "you have not run `python3 -m pytest -q`. Call `checks`" in refusal
    return bool(refusal)


def test_tests_that_were_found_are_due_too() -> None:
    """Behind an edit; what runs some of them, or all checks in one go, is enough."""
    assert refused(EDIT)
    assert refused(EDIT, ran("ruff check ."))
    assert refused(EDIT, ran("python3 -m pytest -q"), EDIT)
    assert not refused(EDIT, ran("ruff check .; python3 -m pytest -q", 1))
    assert not refused(EDIT, ran("uv run pytest tests/test_a.py"))
    assert not refused(LOOK)


def test_an_edit_of_texts_alone_needs_no_tests_that_were_found() -> None:
    """They were not named for that; what the repository names is due behind any edit."""
    prose = ToolOutput("edited", "README.md", changed=("README.md", "docs/a.rst"))
    both = ToolOutput("edited", "README.md", changed=("README.md", "a.py"))
    assert not refused(prose)
    assert refused(both)
    assert refused(EDIT, prose)
    finishing = Finishing(["pytest -q"])
    finishing.acted(prose)
    assert finishing.refusal()
