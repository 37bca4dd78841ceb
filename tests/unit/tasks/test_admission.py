"""Runs start where there is room, and those of dead workers are taken over."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from bot.domain.ceilings import Ceilings
from bot.domain.events import RunFinished
from bot.domain.task import Run
from bot.tasks.admission import FRUITLESS, Admission
from bot.tasks.engines.base import Body
from bot.tasks.engines.inline import _Steps
from bot.tasks.liveness import Liveness
from tests.unit.tasks.made import Script, World, finish, reply, write


class Noting:
    """An engine that notes what it is asked, and runs a body only when told."""

    def __init__(self) -> None:
        self.body: Body | None = None
        self.started: list[str] = []
        self.recovered: list[tuple[str, str]] = []
        self.cancelled: list[str] = []
        self.drained: list[float] = []
        self.steps = 0
        self.faults: list[Exception] = []

    async def launch(self, body: Body) -> None:
        """Remember the body."""
        self.body = body

    async def start(self, run: Run) -> None:
        """Note it, or fail."""
        if self.faults:
            raise self.faults.pop(0)
        self.started.append(run.id)

    async def recover(self, run: Run, dead_executor: str) -> None:
        """Note it, or fail."""
        if self.faults:
            raise self.faults.pop(0)
        self.recovered.append((run.id, dead_executor))

    async def cancel(self, run: Run) -> None:
        """Note it."""
        self.cancelled.append(run.id)

    async def recorded(self, run: Run) -> int:
        """Say how many steps there are."""
        return self.steps

    async def drain(self, *, grace_s: float) -> None:
        """Note it."""
        self.drained.append(grace_s)


class Worker:
    """One worker on a world."""

    def __init__(
        self,
        world: World,
        folder: Path,
        name: str = "us",
        *,
        slots: int = 2,
        per_installation: int = 9,
        ceilings: Ceilings | None = None,
    ) -> None:
        self.world = world
        self.engine = Noting()
        script = Script(reply(write("new.txt", "a")), reply(finish()))
        self.liveness = Liveness(folder / "executors")
        self.admission = Admission(
            world.desk(script),
            self.engine,
            self.liveness,
            name,
            slots=slots,
            per_installation=per_installation,
            ceilings=ceilings,
        )

    async def run(self, run_id: str) -> None:
        """Let the engine work on a run to its end."""
        assert self.engine.body is not None
        await self.engine.body(run_id, _Steps(self.world.store, run_id))

    async def until(self, what: Callable[[], bool]) -> None:
        """Wake the worker until something is so."""
        async with asyncio.timeout(10):
            while not what():
                self.admission.wake()
                await asyncio.sleep(0.01)

    async def settle(self) -> None:
        """Let the worker look at the queue once."""
        await self.admission._take_over()
        await self.admission._take_new()


async def queue(world: World, *numbers: int, installation: int = 11) -> list[str]:
    """Queue runs in order."""
    ids = []
    for number in numbers:
        world.clock.move(1)
        accepted = await world.store.accept(
            world.request(f"k{number}", number=number, installation_id=installation), world.clock()
        )
        ids.append(accepted.run.id)
    return ids


@pytest.fixture
async def worker(world: World, tmp_path: Path) -> AsyncIterator[Worker]:
    """A worker with two slots that runs."""
    made = Worker(world, tmp_path)
    await made.admission.start()
    yield made
    await made.admission.stop(grace_s=3.0)
    assert made.engine.drained == [3.0]
    assert made.liveness.is_dead("us")


async def test_as_many_start_as_there_are_slots(world: World, worker: Worker) -> None:
    """Two slots take two runs, the oldest first; the third starts when one is over."""
    one, two, three = await queue(world, 1, 2, 3)
    await worker.until(lambda: len(worker.engine.started) == 2)
    await worker.settle()
    assert worker.engine.started == [one, two]
    await worker.run(one)
    await worker.until(lambda: len(worker.engine.started) == 3)
    assert worker.engine.started == [one, two, three]


async def test_what_is_over_leaves_nothing_behind(world: World, worker: Worker) -> None:
    """A run that is over has neither a stop signal nor a bell."""
    [one] = await queue(world, 1)
    await worker.until(lambda: bool(worker.engine.started))
    await worker.run(one)
    assert worker.admission._desk.stops == {}
    assert worker.admission._desk.bells == {}
    run = await world.store.run(one[:32], 1)
    assert run is not None
    assert (run.state, run.outcome) == ("finished", "done")


async def test_a_body_that_breaks_gives_its_slot_back(world: World, worker: Worker) -> None:
    """A run whose body raises holds no slot."""
    await queue(world, 1, 2, 3)
    await worker.until(lambda: len(worker.engine.started) == 2)
    with pytest.raises(Exception, match="unknown to the store"):
        await worker.run(f"{'e' * 32}-1")
    worker.admission._active.discard(worker.engine.started[0])
    await worker.until(lambda: len(worker.engine.started) == 3)


async def test_a_living_workers_run_is_left_alone(world: World, worker: Worker, tmp_path: Path) -> None:
    """What another living worker has is not taken; when it dies it is, once."""
    [one] = await queue(world, 1)
    other = Liveness(tmp_path / "executors")
    other.hold("them")
    await world.store.admit("them", slots=1, per_installation=9)
    await worker.settle()
    assert worker.engine.recovered == []
    other.release()
    await worker.until(lambda: bool(worker.engine.recovered))
    await worker.settle()
    assert worker.engine.recovered == [(one, "them")]
    [(run, executor)] = await world.store.running()
    assert (run.id, executor) == (one, "us")


async def test_nothing_is_taken_over_without_a_slot(world: World, worker: Worker) -> None:
    """A full worker takes over nothing."""
    await queue(world, 1)
    await world.store.admit("dead", slots=1, per_installation=9)
    worker.admission._active |= {"a", "b"}
    await worker.settle()
    assert worker.engine.recovered == []


async def take_over(world: World, folder: Path, times: int, *, steps: Callable[[int], int]) -> list[Noting]:
    """Let workers die and take over, one after another."""
    engines = []
    for count in range(times):
        made = Worker(world, folder, f"w{count}")
        made.engine.steps = steps(count)
        await made.settle()
        engines.append(made.engine)
    return engines


async def test_a_run_at_which_workers_die_is_given_up(world: World, tmp_path: Path) -> None:
    """After five fruitless takeovers the run ends, people are told, and it is never started again."""
    [one] = await queue(world, 1)
    await world.store.admit("dead", slots=1, per_installation=9)
    engines = await take_over(world, tmp_path, FRUITLESS + 1, steps=lambda _: 4)
    assert [len(engine.recovered) for engine in engines] == [1] * FRUITLESS + [0]
    assert engines[-1].cancelled == [one]
    run = await world.store.run(one[:32], 1)
    assert run is not None
    assert (run.state, run.outcome) == ("finished", "failed")
    assert "died 5 times" in run.reason
    [fact] = [event.fact for event in await world.store.events(one[:32]) if isinstance(event.fact, RunFinished)]
    assert fact.reason == run.reason
    assert "died 5 times" in world.github.bodies(1)[0]
    assert await world.store.running() == []


async def test_a_run_that_gets_on_is_never_given_up(world: World, tmp_path: Path) -> None:
    """Workers that die while the run gets on do not count against it."""
    await queue(world, 1)
    await world.store.admit("dead", slots=1, per_installation=9)
    engines = await take_over(world, tmp_path, 3 * FRUITLESS, steps=lambda count: count // 4)
    assert all(len(engine.recovered) == 1 for engine in engines)


async def test_two_installations_take_turns(world: World, tmp_path: Path) -> None:
    """One installation's many runs do not keep another's one waiting."""
    await queue(world, 1, 2, 3)
    [theirs] = await queue(world, 9, installation=12)
    made = Worker(world, tmp_path, slots=2)
    await made.settle()
    assert theirs in made.engine.started


async def test_one_installation_has_its_own_bound(world: World, tmp_path: Path) -> None:
    """An installation runs no more at once than it may."""
    await queue(world, 1, 2, 3)
    made = Worker(world, tmp_path, slots=3, per_installation=1)
    await made.settle()
    assert len(made.engine.started) == 1


async def test_a_start_that_failed_is_tried_again(world: World, tmp_path: Path) -> None:
    """Where the engine's database was away for a moment, the run starts at the next look, and those behind it too."""
    ids = await queue(world, 1, 2)
    made = Worker(world, tmp_path)
    made.engine.faults = [ConnectionError("away")]
    with pytest.raises(ConnectionError):
        await made.settle()
    await made.settle()
    assert sorted(made.engine.started) == sorted(ids)


async def test_a_takeover_that_failed_is_tried_again(world: World, tmp_path: Path) -> None:
    """Where the engine's database was away for a moment, the takeover happens at the next look."""
    [one] = await queue(world, 1)
    await world.store.admit("dead", slots=1, per_installation=9)
    made = Worker(world, tmp_path)
    made.engine.faults = [ConnectionError("away")]
    with pytest.raises(ConnectionError):
        await made.settle()
    await made.settle()
    assert [run_id for run_id, _ in made.engine.recovered] == [one]
