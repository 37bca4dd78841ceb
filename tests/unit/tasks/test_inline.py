"""The inline engine keeps one synced row a step."""

import asyncio

import pytest

from bot.tasks.engines.base import Json, Step
from bot.tasks.engines.inline import InlineEngine
from tests.unit.tasks.made import World


async def test_a_body_is_needed(world: World) -> None:
    """An engine that was not launched starts nothing."""
    _, one = await world.begin()
    with pytest.raises(RuntimeError, match="launch"):
        await InlineEngine(world.store).start(one)


async def test_what_a_body_raises_comes_out_of_the_wait(world: World) -> None:
    """Whoever waits for a run hears what broke it."""

    async def body(_run_id: str, _step: Step) -> None:
        raise ZeroDivisionError

    _, one = await world.begin()
    with pytest.raises(ZeroDivisionError):
        await world.live(one, body)


async def test_steps_of_different_runs_do_not_mix(world: World) -> None:
    """A step's name is unique in its run alone."""
    values: list[Json] = []

    async def body(run_id: str, step: Step) -> None:
        async def action() -> Json:
            return run_id

        values.append(await step("model/1", action))

    _, one = await world.begin()
    _, two = await world.begin("other", number=8)
    await world.live(one, body)
    await world.live(two, body)
    await world.live(one, body)
    assert values == [one.id, two.id, one.id]


async def test_a_drain_ends_what_runs(world: World) -> None:
    """Draining cancels what runs; what was recorded is enough to go on."""
    engine, begun = InlineEngine(world.store), asyncio.Event()
    did: list[str] = []

    async def body(_: str, step: Step) -> None:
        async def first() -> Json:
            did.append("first")
            return 1

        async def second() -> Json:
            begun.set()
            await asyncio.sleep(60)
            return 2

        await step("a", first)
        await step("b", second)

    _, one = await world.begin()
    await engine.launch(body)
    await engine.start(one)
    await begun.wait()
    await engine.drain(grace_s=0)
    with pytest.raises(asyncio.CancelledError):
        await engine.wait(one)
    assert await world.store.steps(one.id) == {"a": "1"}
