"""What follows from a run is queued as it ends: a process that dies right behind that loses nothing."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import cast

import pytest

from bot.domain.messages import Reply
from bot.domain.task import Run, Task
from bot.settings.server import ServerSettings
from bot.store.base import Effect, TaskStore
from bot.tasks.workflow import Workflow
from tests.unit.tasks.made import Script, World
from tests.unit.tasks.test_checking import synchronize
from tests.unit.tasks.test_intake import Door
from tests.unit.tasks.test_orders import taken
from tests.unit.tasks.test_planning import WORKED
from tests.unit.tasks.test_workflow import Death, Mortal, ended, whole

Late = Callable[[], Awaitable[object]]


class Dying:
    """A store whose process dies as soon as a run has ended."""

    def __init__(self, store: TaskStore, *, late: Late | None = None) -> None:
        self._store = store
        self._late = late

    def __getattr__(self, name: str) -> object:
        """Do all else as the store does."""
        return getattr(self._store, name)

    async def hand_over(self, *ended: object, **changes: object) -> bool:
        """End the run, and die."""
        if self._late is not None:
            late, self._late = self._late, None
            await late()
        if await self._store.hand_over(*ended, **changes):  # type: ignore[arg-type]
            raise Death
        return False


async def dies(world: World, run: Run, *replies: Reply, late: Late | None = None) -> None:
    """Play a run whose process dies as it has ended; something may come at the last moment."""
    desk = world.desk(Script(*replies))
    desk = replace(desk, store=cast("TaskStore", Dying(world.store, late=late)))
    with pytest.raises(Death):
        await Workflow(desk)(run.id, Mortal(world, run))


async def behind(world: World, task: Task) -> Run:
    """Return what is queued, and see that it is queued once however often the end is played."""
    run = await world.store.open_run(task.id)
    assert run is not None
    assert run.state == "queued"
    one = await world.store.run(task.id, run.seq - 1)
    assert one is not None
    cursor = Effect("inbox", "cursor", "99")
    assert await world.store.hand_over(task.id, one.seq, "done", "", world.clock(), cursor=cursor, behind=None)
    assert await world.store.open_run(task.id) == run
    kept = await world.store.effect(task.id, "inbox")
    assert kept != cursor
    return run


async def test_words_that_came_at_the_end_are_a_run(world: World) -> None:
    """Also those that came as the inbox had been looked through."""
    door = Door(world, ServerSettings())
    run = await taken(world, await door.comment("/agent fix"))
    await dies(world, run, *WORKED, late=lambda: door.comment("/agent fix And the tulips."))
    task = (await world.store.tasks())[0]
    assert (await ended(world, task)).outcome == "done"
    assert (await behind(world, task)).request == "And the tulips."


async def test_a_push_that_came_meanwhile_is_checked(world: World) -> None:
    """By a run of its own, which is queued once."""
    door = Door(world, ServerSettings())
    await whole(world, await taken(world, await door.comment("/agent fix")), *WORKED)
    [number] = world.github.pulls
    run = await taken(world, await door.comment("/agent fix Wetter."))
    assert (await synchronize(door, number, "c" * 40)).accepted is None
    await dies(world, run, *WORKED)
    task = (await world.store.tasks())[0]
    check = await behind(world, task)
    assert check.intent == "check"
    await world.store.admit("us", slots=9, per_installation=9)
    await whole(world, check)
    assert await world.store.open_run(task.id) is None
