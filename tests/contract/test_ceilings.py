"""Daily ceilings hold on both databases."""

from dataclasses import replace
from datetime import UTC, datetime

from bot.domain.ceilings import Ceilings, Reached
from bot.domain.events import ModelReplied, RunFinished
from bot.store.base import TaskStore
from tests.unit.store.made import REPOSITORY, numbers, queue, request
from tests.unit.store.places import Place


def over(usd: float | None) -> RunFinished:
    """End a run that cost so much."""
    return RunFinished("done", "", "", turns=1, tokens=1, cost_usd=usd, seconds=1.0)


def priced(turn: int, usd: float | None, text: str = "") -> ModelReplied:
    """Make a reply that cost so much."""
    return ModelReplied(turn, text, 0, 1, 0, 0, 1, usd, "scripted-1")


async def spend(store: TaskStore, place: Place, word: str, usd: float | None, *replies: ModelReplied) -> None:
    """Let a run begin, reply and end at the clock's time."""
    await queue(store, place.clock, word)
    [run] = await store.admit("e", slots=1, per_installation=9)
    for reply in replies:
        await store.record(run.task_id, run.seq, f"model/{reply.turn}", reply, place.clock())
    await store.record(run.task_id, run.seq, "finished", over(usd), place.clock())
    await store.finish(run.task_id, run.seq, "done", "", place.clock())


async def kept(store: TaskStore, **usd: float) -> list[tuple[int, str]]:
    """Return the issues of the runs that ceilings keep waiting, and whose ceiling each is."""
    return [(run.number, reached.whose) for run, reached in await store.held(Ceilings(**usd))]


async def test_a_ceiling_keeps_runs_in_the_queue(store: TaskStore, place: Place) -> None:
    """Where a day's spending reaches a ceiling nothing starts; a cent below it, runs start."""
    await spend(store, place, "a1", 0.75)
    await spend(store, place, "b2", 0.25)
    await queue(store, place.clock, "a3 b4")
    reached = Ceilings(server=1.0)
    assert await store.admit("e", slots=9, per_installation=9, ceilings=reached) == []
    until = datetime(2026, 12, 1, tzinfo=UTC)
    assert [one for _, one in await store.held(reached)] == [Reached("server", 1.0, until)] * 2
    assert numbers([run for run, _ in await store.held(reached)]) == [3, 4]
    assert await kept(store, server=1.01) == []
    assert numbers(await store.admit("e", slots=9, per_installation=9, ceilings=Ceilings(server=1.01))) == [3, 4]


async def test_ceilings_of_installations_and_repositories(store: TaskStore, place: Place) -> None:
    """Each installation and each repository has its own; the widest that is reached is named."""
    await spend(store, place, "a1", 0.75)
    await spend(store, place, "b2", 0.25)
    await queue(store, place.clock, "a3 b4")
    await store.accept(request("far", number=5, repository=replace(REPOSITORY, id=6)), place.clock())
    assert await kept(store, installation=0.5) == [(3, "installation")]
    assert await kept(store, repository=0.5) == [(3, "repository"), (4, "repository")]
    assert await kept(store, installation=0.5, repository=0.5) == [(3, "installation"), (4, "repository")]
    assert await kept(store, server=1.0, repository=0.5) == [(3, "server"), (4, "server"), (5, "server")]
    one = Ceilings(installation=0.5)
    assert sorted(numbers(await store.admit("e", slots=9, per_installation=9, ceilings=one))) == [4, 5]


async def test_a_day_begins_anew(store: TaskStore, place: Place) -> None:
    """A run counts on the UTC day on which it ended, to the microsecond."""
    place.clock.at = datetime(2026, 11, 30, 23, 59, tzinfo=UTC)
    await spend(store, place, "a1", 5.0)
    await queue(store, place.clock, "a2")
    place.clock.at = datetime(2026, 12, 1, tzinfo=UTC) - 2 * place.clock.step
    assert await kept(store, server=5.0) == [(2, "server")]
    assert await kept(store, server=5.0) == []


async def test_what_runs_counts_with_its_replies(store: TaskStore, place: Place) -> None:
    """A run that goes on counts with what its replies cost so far, also where one was very long."""
    await queue(store, place.clock, "a1")
    [run] = await store.admit("e", slots=1, per_installation=9)
    for fact in (priced(1, 0.1), priced(2, None), priced(3, 0.2, "x" * 200_000)):
        await store.record(run.task_id, run.seq, f"model/{fact.turn}", fact, place.clock())
    await queue(store, place.clock, "a2")
    assert await kept(store, server=0.3) == [(2, "server")]
    assert await kept(store, server=0.31) == []


async def test_an_unknown_price_counts_as_nothing(store: TaskStore, place: Place) -> None:
    """Where the end of a run names no price, those of its replies that have one count."""
    await spend(store, place, "a1", None, priced(1, 0.25), priced(2, None))
    # What the end says counts alone: its replies are in it.
    await spend(store, place, "a2", 0.5, priced(1, 0.5))
    await queue(store, place.clock, "a3")
    assert await kept(store, server=0.75) == [(3, "server")]
    assert await kept(store, server=0.76) == []
