"""Steps record values, errors and stops, and a replay sees exactly what the first life saw."""

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable
from typing import cast

import pytest

from bot import errors
from bot.errors import BotError, Cancelled, GitHubError, ModelUnavailable, RateLimited
from bot.tasks.engines.base import Action, Json
from bot.tasks.steps import ENVELOPE_CHARS, PATIENCE_S, Steps
from tests.unit.tasks.made import World


class Journal:
    """An engine's records, as JSON text."""

    def __init__(self) -> None:
        self.kept: dict[str, str] = {}
        self.made: list[str] = []

    async def __call__(self, name: str, action: Action) -> Json:
        """Return what is recorded, or make it."""
        if name not in self.kept:
            self.made.append(name)
            self.kept[name] = json.dumps(await action(), ensure_ascii=False).encode().decode()
        return cast("Json", json.loads(self.kept[name]))


def steps(world: World, journal: Journal, stop: asyncio.Event | None = None) -> Steps:
    """Make the steps of one life."""
    return Steps(journal, world.store, stop or asyncio.Event())


def gives(value: Json) -> Callable[[], Awaitable[Json]]:
    """Make an action."""

    async def action() -> Json:
        return value

    return action


def fails(error: Exception) -> Callable[[], Awaitable[Json]]:
    """Make an action that fails."""

    async def action() -> Json:
        raise error

    return action


async def never() -> Json:
    """Fail where a recorded step is made again."""
    raise AssertionError("made again")


def all_errors() -> list[BotError]:
    """Make one of each error that we raise on purpose."""
    made: list[BotError] = []
    for _, kind in inspect.getmembers(errors, inspect.isclass):
        if not issubclass(kind, BotError):
            continue
        if issubclass(kind, ModelUnavailable):
            made += [kind("away", retry_after_s=7.5), kind("away")]
        elif issubclass(kind, RateLimited):
            made.append(kind("slow down", retry_after_s=61.0, status=429))
        elif issubclass(kind, GitHubError):
            made += [kind("no", status=404), kind("no")]
        else:
            made.append(kind("it broke: `x`"))
    return made


@pytest.mark.parametrize("value", [None, 7, "text", [1, [2]], {"a": {"b": None}}, False, ""])
async def test_a_value_comes_back_and_again_from_the_record(world: World, value: Json) -> None:
    """A value comes back, and a replay gives it without running the action."""
    journal = Journal()
    assert await steps(world, journal).do("model/1", gives(value)) == value
    assert await steps(world, journal).do("model/1", never) == value
    assert journal.made == ["model/1"]


@pytest.mark.parametrize("error", all_errors(), ids=lambda error: type(error).__name__)
async def test_an_error_is_raised_again_as_itself(world: World, error: BotError) -> None:
    """An error on purpose is raised at a replay as the same class, with its text and its fields."""
    journal = Journal()
    for action in (fails(error), never):
        with pytest.raises(type(error)) as caught:
            await steps(world, journal).do("pull", action)
        assert type(caught.value) is type(error)
        assert str(caught.value) == str(error)
        assert vars(caught.value) == vars(error)
        assert caught.value.retryable == error.retryable


async def test_a_fault_of_ours_is_not_recorded(world: World) -> None:
    """What was not raised on purpose is no result: the engine sees it, and a replay tries again."""
    journal = Journal()
    with pytest.raises(ZeroDivisionError):
        await steps(world, journal).do("push", fails(ZeroDivisionError()))
    assert await steps(world, journal).do("push", gives(1)) == 1


async def test_a_stop_is_recorded_too(world: World) -> None:
    """A stop that was heard in a step is heard again at a replay."""
    journal = Journal()
    for action in (fails(Cancelled("now")), never):
        with pytest.raises(Cancelled):
            await steps(world, journal).do("inbox/1", action)


@pytest.mark.parametrize(("length", "spilled"), [(ENVELOPE_CHARS - 2, False), (ENVELOPE_CHARS - 1, True)])
async def test_a_large_value_goes_into_a_blob(world: World, length: int, *, spilled: bool) -> None:
    """Beyond 64,000 characters of JSON the record holds a hash, and a replay still gives the value."""
    journal, text = Journal(), "x" * length
    assert await steps(world, journal).do("model/1", gives(text)) == text
    assert await steps(world, journal).do("model/1", never) == text
    record = json.loads(journal.kept["model/1"])
    assert list(record) == (["blob"] if spilled else ["value"])
    if spilled:
        assert json.loads(await world.store.blob(record["blob"])) == text


async def test_a_stop_cuts_a_stoppable_step_short(world: World) -> None:
    """A stop cancels what a stoppable step does, waits until it let go, and is recorded."""
    stop, let_go = asyncio.Event(), []

    async def long() -> Json:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            let_go.append("yes")
            raise
        return None

    journal = Journal()
    doing = asyncio.ensure_future(steps(world, journal, stop).do("tool/1/0", long, stoppable=True))
    await asyncio.sleep(0)
    stop.set()
    with pytest.raises(Cancelled):
        await doing
    assert let_go == ["yes"]
    with pytest.raises(Cancelled):
        await steps(world, journal).do("tool/1/0", never, stoppable=True)


async def test_a_stop_does_not_touch_other_steps(world: World) -> None:
    """A step that is not stoppable runs to its end though the stop is there."""
    stop = asyncio.Event()
    stop.set()
    assert await steps(world, Journal(), stop).do("commit", gives("sha")) == "sha"


async def test_what_is_done_wins_over_the_stop(world: World) -> None:
    """Where action and stop come at once, the action's value is kept."""
    stop = asyncio.Event()

    async def both() -> Json:
        stop.set()
        return "done"

    assert await steps(world, Journal(), stop).do("tool/1/0", both, stoppable=True) == "done"


async def test_a_failure_of_a_stoppable_step_is_raised(world: World) -> None:
    """An error of a stoppable step is an error and no stop."""
    with pytest.raises(ModelUnavailable):
        await steps(world, Journal()).do("model/1", fails(ModelUnavailable("away")), stoppable=True)


async def test_a_cancelled_process_leaves_no_record(world: World) -> None:
    """Where the process goes down in a step, its action is cancelled and nothing is recorded."""
    journal, begun = Journal(), asyncio.Event()
    let_go = []

    async def long() -> Json:
        begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            let_go.append("yes")
        return None

    doing = asyncio.ensure_future(steps(world, journal).do("tool/1/0", long, stoppable=True))
    await begun.wait()
    doing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await doing
    assert (journal.kept, let_go) == ({}, ["yes"])


class Waits:
    """A sleep that notes how long and returns at once."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        """Note it."""
        self.seconds.append(seconds)


def in_turn(*given: Exception | Json) -> Callable[[], Awaitable[Json]]:
    """Make an action that gives or raises one thing after another."""
    left = list(given)

    async def action() -> Json:
        one = left.pop(0)
        if isinstance(one, Exception):
            raise one
        return one

    return action


async def test_a_patient_step_tries_again_what_may_help(world: World) -> None:
    """A patient step waits longer from try to try, and its last value is the record."""
    waits, journal = Waits(), Journal()
    patient = Steps(journal, world.store, asyncio.Event(), sleep=waits)
    away = errors.GitHubUnavailable("502", status=502)
    assert await patient.do("pull", in_turn(away, away, 5), patient=True) == 5
    assert waits.seconds == list(PATIENCE_S[:2])
    assert journal.made == ["pull"]


async def test_a_patient_step_waits_as_long_as_github_asks(world: World) -> None:
    """A rate limit says itself how long to wait; an hour and more is too long."""
    waits = Waits()
    patient = Steps(Journal(), world.store, asyncio.Event(), sleep=waits)
    assert await patient.do("pull", in_turn(RateLimited("slow", retry_after_s=100.0), 5), patient=True) == 5
    assert waits.seconds == [100.0]
    with pytest.raises(RateLimited):
        await patient.do("push", in_turn(RateLimited("slow", retry_after_s=9_999.0)), patient=True)


async def test_patience_has_an_end(world: World) -> None:
    """After all tries the error is the result; what cannot succeed later is tried once."""
    waits = Waits()
    patient = Steps(Journal(), world.store, asyncio.Event(), sleep=waits)
    with pytest.raises(errors.GitHubUnavailable):
        await patient.do("pull", fails(errors.GitHubUnavailable("502")), patient=True)
    assert waits.seconds == list(PATIENCE_S)
    with pytest.raises(errors.NotFound):
        await patient.do("push", in_turn(errors.NotFound("gone")), patient=True)
    assert len(waits.seconds) == len(PATIENCE_S)


async def test_names_that_are_no_text_are_recorded(world: World) -> None:
    """Git's names of files are bytes: what stands for them survives the record, and ends no run."""
    journal, odd = Journal(), {"paths": ["tests/test_\udcff.py", "\U0001f339", "\\ud83d"]}
    assert await steps(world, journal).do("check/definitions", gives(odd)) == odd
    assert await steps(world, journal).do("check/definitions", never) == odd
    with pytest.raises(BotError, match=r"no file a\\udcff"):
        await steps(world, journal).do("commit", fails(BotError("no file a\udcff")))
