"""The person at the terminal is asked where they chose to be, and sees what they allow."""

import asyncio
import os
import sys
from collections.abc import Iterator, Sequence

import pytest

from bot.cli.approval import SHOWN_CHARS, Approval, Asking, Mode
from bot.cli.screen import Screen
from bot.settings.repository import Check
from bot.tools.checks import Checks
from tests.unit.agent.made import Tools, answer

TESTS, LINT = Check(name="tests", run="pytest -q"), Check(name="lint", run="ruff check")


class Writers(Tools):
    """Tools of which only `read` changes nothing."""

    def reads_only(self, name: str) -> bool:
        """Say which."""
        return name in {"read", "finish"}


@pytest.fixture
def person(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A person at a real terminal: what is written here is what they type."""
    keyboard, terminal = os.openpty()
    with os.fdopen(terminal, "r") as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        yield keyboard
    os.close(keyboard)


def asking(mode: Mode) -> tuple[Asking, Writers]:
    """Put an approval around tools."""
    tools = Writers({name: answer("did it") for name in ("read", "write", "run")})
    return Asking(tools, Approval(mode, Screen(as_json=False))), tools


@pytest.mark.parametrize(
    ("mode", "asked"), [("never", {"write", "run", "checks"}), ("edits", {"run", "checks"}), ("all", set())]
)
def test_each_mode_asks_about_what_it_says(mode: Mode, asked: set[str]) -> None:
    """`never` asks about everything that changes, `edits` about commands, `all` about nothing."""
    approval = Approval(mode, Screen(as_json=False))
    tools = Writers()
    names = ("read", "write", "run", "checks", "finish")
    assert {name for name in names if approval.needed(name, reads_only=tools.reads_only(name))} == asked


@pytest.mark.parametrize("mode", ["never", "edits"])
async def test_where_nobody_can_be_asked_the_answer_is_no(mode: Mode, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a terminal the call is not made, and the model is told how to go on."""
    with open(os.devnull) as nothing:  # noqa: ASYNC230, PTH123 - the closed door itself
        monkeypatch.setattr(sys, "stdin", nothing)
        tools, inner = asking(mode)
        output = await tools.call(1, 0, "run", '{"command": "ls"}')
    assert output.is_error
    assert not output.malformed
    assert "Nobody can be asked" in output.text
    assert f"--approve {mode}" in output.text
    assert inner.called == []


async def test_what_the_policy_asks_about_is_refused_for_its_reason_where_nobody_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is not what was chosen at the start that keeps the call from being made."""
    with open(os.devnull) as nothing:  # noqa: ASYNC230, PTH123 - the closed door itself
        monkeypatch.setattr(sys, "stdin", nothing)
        approval = Approval("all", Screen(as_json=False))
        why_not = await approval.permits("run", '{"command": "git push"}', "it pushes")
    assert "(it pushes)" in why_not
    assert "--approve" not in why_not


@pytest.mark.parametrize(
    ("typed", "allowed", "text"),
    [
        ("y", True, "did it"),
        ("YES", True, "did it"),
        ("n", False, "The person did not allow this call."),
        ("", False, "The person did not allow this call."),
        ("use make", False, "The person did not allow this call: use make."),
    ],
)
async def test_the_answer_counts(person: int, typed: str, text: str, *, allowed: bool) -> None:
    """Only a yes is a yes; other words go to the model."""
    os.write(person, f"{typed}\n".encode())
    tools, inner = asking("edits")
    output = await tools.call(1, 0, "run", '{"command": "ls"}')
    assert (output.text, bool(inner.called)) == (text, allowed)


@pytest.mark.parametrize(("typed", "asked"), [("y", 1), ("n", 0)])
async def test_what_the_policy_asks_about_is_asked_once(person: int, typed: str, asked: int) -> None:
    """Whatever was chosen at the start; a yes counts for this very call, once."""
    tools = Writers({"run": answer("did it")})
    approval = Approval("all" if typed == "n" else "edits", Screen(as_json=False))
    os.write(person, f"{typed}\n".encode())
    why_not = await approval.permits("run", '{"command": "ls"}', "it pushes")
    assert bool(why_not) is (typed == "n")
    if not why_not:
        asking = Asking(tools, approval)
        assert (await asking.call(1, 0, "run", '{"command": "ls"}')).text == "did it"
        os.write(person, b"n\n")
        assert (await asking.call(1, 1, "run", '{"command": "ls"}')).is_error
    assert len(tools.called) == asked


async def test_who_wants_the_end_is_not_waited_for(person: int) -> None:
    """A question that stands then is answered with no, and the thread of the loop is free."""
    tools = Writers({"run": answer("did it")})
    approval = Approval("edits", Screen(as_json=False))
    asked = asyncio.ensure_future(Asking(tools, approval).call(1, 0, "run", '{"command": "ls"}'))
    os.write(person, b"y")
    await asyncio.sleep(0)
    approval.stop.set()
    assert "did not answer" in (await asyncio.wait_for(asked, 10)).text
    assert tools.called == []


async def test_a_terminal_that_is_closed_says_no(monkeypatch: pytest.MonkeyPatch) -> None:
    """The end of what is typed is the end of the question."""
    keyboard, terminal = os.openpty()
    with os.fdopen(terminal, "r") as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        tools, inner = asking("edits")
        asked = asyncio.ensure_future(tools.call(1, 0, "run", '{"command": "ls"}'))
        await asyncio.sleep(0.1)
        os.close(keyboard)
        assert "did not allow" in (await asyncio.wait_for(asked, 10)).text
    assert inner.called == []


@pytest.mark.usefixtures("person")
async def test_what_needs_no_approval_is_not_asked() -> None:
    """Reading asks nobody."""
    tools, inner = asking("never")
    assert (await tools.call(1, 0, "read", "{}")).text == "did it"
    assert inner.called == [(1, 0, "read")]
    assert [spec.name for spec in tools.specs] == ["finish", "read", "run", "write"]


@pytest.mark.parametrize(
    "arguments",
    ['{"command": "ls \\u001b[2K\\u009b1A\\u202e\\r x"}', "no json \x1b[2K \x9b \u202e \r \x07", '["\\u001b]0;x"]'],
)
async def test_a_models_control_characters_do_not_reach_the_terminal(
    person: int, capsys: pytest.CaptureFixture[str], arguments: str
) -> None:
    """What could move the cursor or turn the text around is shown as what it is."""
    os.write(person, b"n\n")
    await asking("edits")[0].call(1, 0, "run", arguments)
    shown = capsys.readouterr().err
    assert all(char.isprintable() or char in "\n\t" for char in shown)
    assert "x" in shown or "json" in shown


@pytest.mark.parametrize(
    ("own", "arguments", "seen", "unseen"),
    [
        ((TESTS, LINT), "{}", ("tests: pytest -q", "lint: ruff check"), ()),
        ((TESTS, LINT), '{"names": ["lint"]}', ("lint: ruff check",), ("pytest",)),
        ((), "{}", ("checks (those that the repository's files tell of)",), ()),
    ],
)
async def test_who_allows_checks_sees_what_would_run(
    person: int,
    capsys: pytest.CaptureFixture[str],
    own: Sequence[Check],
    arguments: str,
    seen: Sequence[str],
    unseen: Sequence[str],
) -> None:
    """The repository's own by name and command, and else where they come from."""
    os.write(person, b"n\n")
    tools = Asking(Writers({"checks": answer("ran")}), Approval("edits", Screen(as_json=False)), [Checks(own)])
    await tools.call(1, 0, "checks", arguments)
    shown = capsys.readouterr().err
    assert all(text in shown for text in seen)
    assert not any(text in shown for text in unseen)


async def test_a_long_call_says_how_much_is_not_shown(person: int, capsys: pytest.CaptureFixture[str]) -> None:
    """Who allows a long command is told that there is more of it."""
    os.write(person, b"n\n")
    await asking("edits")[0].call(1, 0, "run", '{"command": "' + "x" * SHOWN_CHARS + ' && rm -r ."}')
    shown = capsys.readouterr().err
    assert "rm -r" not in shown
    assert "more characters are not shown" in shown


@pytest.mark.parametrize("typed", ["y", "n"])
async def test_a_model_may_want_the_person_asked(person: int, typed: str) -> None:
    """A call that asks for approval gets the question in every mode, and goes on without that wish."""
    os.write(person, f"{typed}\n".encode())
    tools, inner = asking("all")
    await tools.call(1, 0, "run", '{"command": "ls", "requires_approval": true}')
    assert bool(inner.called) == (typed == "y")
    assert (await tools.call(1, 1, "run", '{"command": "ls", "requires_approval": false}')).text == "did it"
