"""What the terminal shows: lines for people, or one JSON object a line."""

import asyncio
import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import get_args

import pytest

from bot.cli.screen import EXIT_CODES, Screen, exit_code
from bot.domain.events import KINDS, Fact, Notice, RunEvent, RunFinished, ToolFinished, from_data
from bot.domain.task import Outcome, Run
from tests.unit.tasks.made import World

AT = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
FINISHED = RunFinished("done", "", "My words.", 1, 15, None, 6.5)


def event(fact: Fact, seq: int = 1) -> RunEvent:
    """Make an event."""
    return RunEvent("t" * 32, seq, 1, AT, fact)


def test_json_is_one_object_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    """Each event is one line of JSON on standard output: where, when, what, and the fact's own fields."""
    screen = Screen(as_json=True)
    evil = "two\nlines \x1b[2K \u2028"
    screen.event(event(Notice(evil)))
    screen.event(event(FINISHED, 2))
    said = capsys.readouterr()
    first, second = said.out.splitlines()
    assert json.loads(first) == {
        "task": "t" * 32,
        "seq": 1,
        "run": 1,
        "at": "2026-11-30T12:00:00+00:00",
        "kind": "notice",
        "text": evil,
    }
    found = json.loads(second)
    kind = found.pop("kind")
    assert [found.pop(name) for name in ("task", "seq", "run", "at")][1:3] == [2, 1]
    assert from_data(kind, found) == FINISHED
    assert said.err == ""


def test_people_read_lines_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    """Lines for people go to standard error, with the time before them; control characters do not."""
    screen = Screen(as_json=False)
    screen.event(event(Notice("All is well.")))
    command = "make\x1b[2K\x9b\n12:00:00  done"
    screen.event(event(ToolFinished(1, 0, "run", command, is_error=False, seconds=1.0, command=command, exit_code=0)))
    screen.say("The model says: \x1b]0;gotcha\x07")
    said = capsys.readouterr()
    assert said.out == ""
    lines = said.err.splitlines()
    assert lines[0] == "12:00:00  All is well."
    assert len(lines) == 3
    assert all(char.isprintable() for line in lines for char in line)


@pytest.mark.parametrize(
    ("known", "said"),
    [
        ({"cost_usd": 0.0123, "window": 200_000}, "turn 1 · ctx 4K/200K · ≈ $0.0123"),
        ({"cost_usd": None}, "turn 1 · ctx 4K · cost unknown"),
    ],
)
def test_each_turn_shows_the_meter(capsys: pytest.CaptureFixture[str], known: dict[str, object], said: str) -> None:
    """How full the window is and what it cost; a record of an earlier version knows no window."""
    names = ("input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens")
    values = {"turn": 1, "text": "x", "calls": 1, "model": "m", **dict.fromkeys(names, 1000), **known}
    Screen(as_json=False).event(event(from_data("model.replied", values)))
    assert capsys.readouterr().err.rstrip().endswith(said)
    assert "model.replied" in KINDS


def test_nothing_commands_the_runner_of_a_job(capsys: pytest.CaptureFixture[str]) -> None:
    """In a job's log, a model's words and a command's are no commands of the runner; JSON stays what it was."""
    evil = "::set-output name=x::1\n  ::add-mask::y\nso ##[error]z"
    Screen(as_json=False).say(f"The model says:\n{evil}")
    Screen(as_json=False).event(event(Notice(evil)))
    Screen(as_json=True).event(event(Notice(evil)))
    said = capsys.readouterr()
    lines = (said.err + said.out).splitlines()
    assert [line for line in lines if line.strip().startswith("::") or "##[" in line] == []
    assert json.loads(said.out)["text"] == evil


def test_secrets_are_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """Tokens are masked for people and in JSON."""
    token = "ghs_" + "aB3" * 12
    for as_json in (False, True):
        Screen(as_json=as_json).event(event(Notice(f"see {token}.")))
        Screen(as_json=as_json).say(f"see {token}")
    said = capsys.readouterr()
    assert (said.err + said.out).count("see ***") == 4
    assert token not in said.err + said.out


async def test_a_run_is_followed_to_its_end(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    """All events of the run are shown, those of other runs are not, and its end ends it."""
    task, one = await world.begin()
    await world.store.record(task.id, 1, "finished", FINISHED, AT)
    await world.store.finish(task.id, 1, "done", "", AT)
    _, again = await world.begin("second")
    await world.store.record(task.id, 2, "finished/2", FINISHED, AT)
    for run in (one, again):
        await asyncio.wait_for(Screen(as_json=True).follow(world.store, run), 10)
        shown = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert [(line["run"], line["kind"]) for line in shown] == [(run.seq, "run.queued"), (run.seq, "run.finished")]


async def test_each_outcome_has_its_exit_code(world: World) -> None:
    """The exit code says how it ended, as the help text promises."""
    assert {**EXIT_CODES} == {"done": 0, "failed": 1, "waiting": 3, "budget": 5, "stopped": 130}
    assert set(EXIT_CODES) == set(get_args(Outcome))
    _, one = await world.begin()
    finished: Run = replace(one, state="finished", outcome="budget")
    assert (exit_code(finished), exit_code(replace(one, outcome=None))) == (5, 1)
