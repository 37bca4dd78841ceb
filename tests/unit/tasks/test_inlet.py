"""Stored deliveries are handled until each is settled, however often that fails."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import cast

import pytest

from bot.errors import BotError, Forbidden, GitHubUnavailable, RateLimited
from bot.store.base import Accepted, Delivery
from bot.tasks.inlet import AT_ONCE, FIRST_WAIT_S, TRIES, Inlet
from bot.tasks.intake import Intake
from bot.tasks.orders import Handled
from tests.unit.tasks.made import START, World


class Answers:
    """Stands where intake stands: answers each delivery by its guid."""

    def __init__(self) -> None:
        self.faults: dict[str, Exception] = {}
        self.handled: list[str] = []
        self.at_once = 0
        self.most = 0
        self.accepted: Accepted | None = None

    async def handle(self, delivery: Delivery) -> Handled:
        """Note it and answer."""
        self.handled.append(delivery.guid)
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        await asyncio.sleep(0)
        self.at_once -= 1
        if delivery.guid in self.faults:
            raise self.faults[delivery.guid]
        return Handled("done", "well", self.accepted)


class Door:
    """An inlet on the real store."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.answers = Answers()
        self.woken = 0
        self.inlet = Inlet(world.deliveries, cast("Intake", self.answers), world.clock, queued=self._queued)

    def _queued(self) -> None:
        self.woken += 1

    async def keep(self, *guids: str) -> None:
        """Keep deliveries, oldest first."""
        for index, guid in enumerate(guids):
            await self.world.deliveries.add(Delivery(guid, "issues", guid, b"{}", START + timedelta(seconds=index)))

    async def state(self, guid: str) -> tuple[str, str]:
        """Say what became of one."""
        found = await self.world.deliveries.get(guid)
        assert found is not None
        return found.state, found.note

    async def until(self, what: Callable[[], bool]) -> None:
        """Wait for something that the running inlet does."""
        async with asyncio.timeout(10):
            while not what():  # noqa: ASYNC110 - whoever is waited for tells nobody
                await asyncio.sleep(0.005)


@pytest.fixture
def door(world: World) -> Door:
    """An inlet that does not run by itself."""
    return Door(world)


async def test_what_was_kept_is_handled_and_settled(door: Door) -> None:
    """Deliveries of an earlier life and new ones are handled, each once."""
    await door.keep("a", "b")
    door.inlet.start()
    await door.until(lambda: len(door.answers.handled) == 2)
    await door.keep("c")
    door.inlet.wake()
    await door.until(lambda: len(door.answers.handled) == 3)
    await door.inlet.stop()
    assert door.answers.handled == ["a", "b", "c"]
    assert await door.state("a") == ("done", "well")
    assert door.woken == 0


async def test_a_new_run_wakes_the_queue(door: Door) -> None:
    """What became a run wakes whoever admits runs."""
    door.answers.accepted = await door.world.store.accept(door.world.request("first"), START)
    await door.keep("a")
    await door.inlet._round()
    assert door.woken == 1


async def test_a_failed_one_is_tried_again_after_a_growing_wait(door: Door) -> None:
    """Each try waits twice as long as the one before it, and nothing is tried sooner."""
    door.answers.faults["a"] = GitHubUnavailable("502")
    await door.keep("a")
    for tries in range(1, 5):
        await door.inlet._round()
        assert len(door.answers.handled) == tries
        wait = FIRST_WAIT_S * 2 ** (tries - 1)
        door.world.clock.move(wait - 0.001)
        await door.inlet._round()
        assert len(door.answers.handled) == tries
        door.world.clock.move(0.001)
    del door.answers.faults["a"]
    await door.inlet._round()
    assert await door.state("a") == ("done", "well")


@pytest.mark.parametrize(
    ("fault", "text"), [(GitHubUnavailable("502"), "GitHubUnavailable: 502"), (KeyError("x"), "internal error")]
)
async def test_it_gives_up_after_ten_tries(door: Door, fault: Exception, text: str) -> None:
    """After ten tries a delivery is settled as failed, and the operator finds why."""
    door.answers.faults["a"] = fault
    await door.keep("a")
    for _ in range(TRIES + 2):
        await door.inlet._round()
        door.world.clock.move(601)
    assert len(door.answers.handled) == TRIES
    state, note = await door.state("a")
    assert (state, note[: len(text)]) == ("failed", text)


async def test_a_rate_limit_is_waited_for(door: Door) -> None:
    """Where GitHub says how long, it is asked no sooner."""
    door.answers.faults["a"] = RateLimited("slow", retry_after_s=1800.0)
    await door.keep("a")
    await door.inlet._round()
    door.world.clock.move(1799)
    await door.inlet._round()
    assert len(door.answers.handled) == 1
    door.world.clock.move(1)
    await door.inlet._round()
    assert len(door.answers.handled) == 2


@pytest.mark.parametrize("fault", [Forbidden("no"), BotError("never")])
async def test_what_cannot_succeed_later_is_given_up_at_once(door: Door, fault: BotError) -> None:
    """An error that waiting does not mend is not tried again."""
    door.answers.faults["a"] = fault
    await door.keep("a")
    await door.inlet._round()
    assert (await door.state("a"))[0] == "failed"


async def test_a_poisonous_one_does_not_stop_others(door: Door) -> None:
    """What breaks us again and again keeps nobody else from being handled."""
    door.answers.faults["bad"] = ZeroDivisionError()
    await door.keep("bad", "good")
    await door.inlet._round()
    assert await door.state("good") == ("done", "well")
    await door.keep("late")
    await door.inlet._round()
    assert await door.state("late") == ("done", "well")
    assert (await door.state("bad"))[0] == "received"


async def test_at_most_eight_are_handled_at_once(door: Door) -> None:
    """A burst is handled side by side, but not without bound."""
    await door.keep(*(f"g{number:02}" for number in range(30)))
    await door.inlet._round()
    assert door.answers.most == AT_ONCE == 8
    assert len(door.answers.handled) == 30


async def test_many_that_wait_do_not_hide_a_new_one(door: Door) -> None:
    """A hundred deliveries that wait for their next try keep nobody else from being handled."""
    names = [f"g{number:03}" for number in range(100)]
    door.answers.faults = {name: RateLimited("slow", retry_after_s=1800.0) for name in names}
    await door.keep(*names)
    await door.inlet._round()
    await door.world.deliveries.add(Delivery("new", "issues", "new", b"{}", START + timedelta(hours=1)))
    await door.inlet._round()
    assert await door.state("new") == ("done", "well")
