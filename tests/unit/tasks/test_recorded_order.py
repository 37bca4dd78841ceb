"""Calls side by side leave behind what they would have one after another, in every life."""

import asyncio
import json
from collections.abc import Mapping

import pytest

from bot.domain.messages import ToolSpec
from bot.errors import SandboxError
from bot.tasks.engines.base import Step
from bot.tasks.opening import prepare
from bot.tasks.recorded import RecordedToolset
from bot.tools.base import ToolContext, ToolOutput
from tests.unit.tasks.made import World

CALLS = 4


class Teach:
    """Reads, and leaves its number in the ledger; the first call ends last."""

    spec = ToolSpec("teach", "Teach.", {"type": "object"})
    reads_only = True

    async def call(self, arguments: Mapping[str, object], context: ToolContext) -> ToolOutput:
        """Teach, or break."""
        number = int(str(arguments["number"]))
        await asyncio.sleep(0.02 * (CALLS - number))
        context.ledger.seen |= {"last": str(number), f"of {number}": str(number)}
        if "broken" in arguments:
            raise SandboxError(f"broken {number}")
        return ToolOutput(f"taught {number}", "teach")


async def lives(world: World, *, times: int, broken: int | None = None) -> list[tuple[list[object], dict[str, str]]]:
    """Return what the calls gave and what the ledger holds behind them, life by life."""
    task, one = await world.begin()
    ends: list[tuple[list[object], dict[str, str]]] = []

    async def body(_: str, step: Step) -> None:
        scene = await world.scene(task, one, step)
        scene.lease.tools = [Teach()]
        await prepare(scene)
        tools = RecordedToolset(scene, scene.lease.tools)
        arguments = [{"number": number} | ({"broken": 1} if number == broken else {}) for number in range(CALLS)]
        calls = [tools.call(1, index, "teach", json.dumps(each)) for index, each in enumerate(arguments)]
        given = await asyncio.gather(*calls, return_exceptions=True)
        ends.append(([str(one) if isinstance(one, Exception) else one for one in given], dict(scene.lease.ledger.seen)))
        await scene.lease.close()

    for _ in range(times):
        await world.live(one, body)
    return ends


async def test_what_calls_leave_behind_is_taken_over_in_their_order(world: World) -> None:
    """The last call has the last word, though it ended first; a replay comes out with the same."""
    first, second = await lives(world, times=2)
    assert first[1] == {"last": str(CALLS - 1), **{f"of {number}": str(number) for number in range(CALLS)}}
    assert second == first


@pytest.mark.parametrize("broken", range(CALLS))
async def test_a_call_that_raises_holds_nobody_up(world: World, broken: int) -> None:
    """The others give their results all the same."""
    first, second = await lives(world, times=2, broken=broken)
    assert first[0][broken] == f"broken {broken}"
    assert [isinstance(one, ToolOutput) for one in first[0]] == [number != broken for number in range(CALLS)]
    assert second[0] == first[0]
