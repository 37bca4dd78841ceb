"""Which tasks of the terminal can go on, and which one a person means."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.cli.unfinished import NEWEST, Left, left_in, meant
from bot.domain.task import Outcome, Task
from bot.errors import OperatorError
from bot.tasks.liveness import Liveness
from tests.unit.tasks.made import World


@pytest.fixture
def liveness(tmp_path: Path) -> Iterator[Liveness]:
    """Whose processes live: `alive` does."""
    one = Liveness(tmp_path)
    one.hold("alive")
    yield one
    one.release()


async def made(world: World, number: int, state: str) -> Task:
    """Make a task that is so far."""
    accepted = await world.store.accept(world.request(f"key {number}", number=number), world.clock())
    world.clock.move(1)
    if state in {"alive", "dead"}:
        await world.store.claim(accepted.run, state)
    elif state != "queued":
        outcome: Outcome = state  # type: ignore[assignment]  # one of them
        await world.store.finish(accepted.task.id, 1, outcome, "", world.clock())
    return accepted.task


async def find(world: World, liveness: Liveness, task: Task, name: str) -> Left:
    """Ask for a task of the repository of another."""
    return await meant(world.store, liveness, task.repository.id, name, Path("/town"))


async def test_the_newest_that_is_not_done_is_meant(world: World, liveness: Liveness) -> None:
    """What is done, and what another process works on, is passed by."""
    states = {"failed": "failed", "stopped": "stopped", "queued": "new", "dead": "cut off", "alive": "alive"}
    tasks = [await made(world, number, state) for number, state in enumerate([*states, "done"], 1)]
    found = [left async for left in left_in(world.store, liveness, tasks[0].repository.id)]
    assert [left.standing for left in found] == ["done", *reversed(states.values())]
    assert [left.task.id for left in found] == [task.id for task in reversed(tasks)]
    assert (await find(world, liveness, tasks[0], NEWEST)).task.id == tasks[3].id
    assert (await find(world, liveness, tasks[0], tasks[0].id.upper())).standing == "failed"
    with pytest.raises(OperatorError, match="another process works on task"):
        await find(world, liveness, tasks[0], tasks[4].id)
    with pytest.raises(OperatorError, match="begins the ids of 6 tasks"):
        await find(world, liveness, tasks[0], "")


async def test_what_is_there_is_told(world: World, liveness: Liveness) -> None:
    """Where nothing fits, the sentence lists what would."""
    task = await made(world, 1, "done")
    with pytest.raises(OperatorError, match="nothing to go on with in /town: no task of it is unfinished"):
        await find(world, liveness, task, NEWEST)
    left = await made(world, 2, "budget")
    with pytest.raises(OperatorError, match=rf"has no task `zz`: there is {left.id[:8]} \(.*: ended at a limit\)"):
        await find(world, liveness, task, "zz")
    with pytest.raises(OperatorError, match=rf"has no task `{left.id}`, but `.*` has; name that repository"):
        await meant(world.store, liveness, 99, left.id, Path("/elsewhere"))
