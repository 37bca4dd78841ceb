"""What a daily ceiling keeps waiting is told once, hears a stop, and starts on the next day."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.domain.ceilings import Ceilings
from bot.domain.events import RunFinished, RunHeld
from bot.errors import Forbidden, GitHubUnavailable
from tests.unit.tasks.made import World
from tests.unit.tasks.test_admission import Worker, queue

DAY_S = 24 * 3600


class Bound(Worker):
    """A worker whose day may cost a dollar; it looks at the queue only when it is told to."""

    def __init__(self, world: World, folder: Path) -> None:
        super().__init__(world, folder, ceilings=Ceilings(server=1.0))

    async def settle(self) -> None:
        """Look once, and tell what there is to tell."""
        await super().settle()
        await self.admission._end_held()
        if self.admission._waiting._telling is not None:
            await self.admission._waiting._telling


@pytest.fixture
async def bound(world: World, tmp_path: Path) -> AsyncIterator[Bound]:
    """A worker on a day on which a dollar is spent."""
    made = Bound(world, tmp_path)
    await made.engine.launch(made.admission._body)
    [one] = await queue(world, 1)
    await world.store.admit("them", slots=1, per_installation=9)
    fact = RunFinished("done", "", "", turns=1, tokens=1, cost_usd=1.0, seconds=1.0)
    await world.store.record(one[:32], 1, "run/1/finished", fact, world.clock())
    await world.store.finish(one[:32], 1, "done", "", world.clock())
    yield made
    await made.admission._waiting.close()


async def holds(world: World, run_id: str) -> list[RunHeld]:
    """Return what the run's stream says of ceilings."""
    return [event.fact for event in await world.store.events(run_id[:32]) if isinstance(event.fact, RunHeld)]


async def test_a_run_waits_for_the_next_day_and_says_so_once(world: World, bound: Bound) -> None:
    """Nothing starts; one comment says why and until when, and becomes the run's own when it starts."""
    [two] = await queue(world, 2)
    for _ in range(3):
        await bound.settle()
    assert bound.engine.started == []
    assert await holds(world, two) == [RunHeld("server", 1.0, "2026-12-01T00:00:00+00:00")]
    [told] = world.github.bodies(2)
    assert told.startswith("**Queued**, next in turn. The daily ceiling of this server, 1.00 US dollars, is reached.")
    assert world.github.calls.count("comment") == 1
    assert "edit_comment" not in world.github.calls
    world.clock.move(DAY_S)
    await bound.settle()
    assert bound.engine.started == [two]
    await bound.run(two)
    [told] = world.github.bodies(2)
    assert told.startswith("**Done**")


async def test_a_second_worker_says_nothing_again(world: World, bound: Bound, tmp_path: Path) -> None:
    """Of several workers the one that wrote it down tells it."""
    await queue(world, 2)
    await bound.settle()
    other = Bound(world, tmp_path / "other")
    await other.settle()
    assert (world.github.calls.count("comment"), world.github.calls.count("edit_comment")) == (1, 0)


async def test_what_could_not_be_said_is_said_later(world: World, bound: Bound) -> None:
    """Where GitHub is away, the next look says it; where it refuses, nobody insists."""
    await queue(world, 2, 3)
    world.github.faults["comment"] = [GitHubUnavailable("away")]
    await bound.settle()
    assert world.github.bodies(2) == world.github.bodies(3) == []
    world.github.faults["comment"] = [Forbidden("locked", status=403)]
    await bound.settle()
    await bound.settle()
    assert (len(world.github.bodies(2)), len(world.github.bodies(3))) == (0, 1)
    assert world.github.calls.count("comment") == 3


async def test_a_stop_ends_what_waits(world: World, bound: Bound) -> None:
    """A run that was stopped while it waits starts only to end, without asking a model; the other one waits on."""
    two, _ = await queue(world, 2, 3)
    await bound.settle()
    await world.store.post(two[:32], "stop", author="flora", text="asked", event_key="s")
    await bound.settle()
    assert bound.engine.started == [two]
    await bound.run(two)
    ended = await world.store.run(two[:32], 1)
    assert ended is not None
    assert (ended.state, ended.outcome) == ("finished", "stopped")
    [fact] = [event.fact for event in await world.store.events(two[:32]) if isinstance(event.fact, RunFinished)]
    assert (fact.turns, fact.tokens) == (0, 0)
    assert "**Stopped**" in world.github.bodies(2)[0]


async def test_a_worker_looks_by_itself(world: World, bound: Bound) -> None:
    """The worker's own round tells of what waits."""
    await queue(world, 2)
    await bound.admission.start()
    await bound.until(lambda: bool(world.github.bodies(2)))
    await bound.admission.stop(grace_s=1.0)
    assert bound.engine.started == []
