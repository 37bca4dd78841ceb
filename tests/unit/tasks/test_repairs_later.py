"""Checks of others that were looked at too early, or could not be: they are looked at again, and by the next server."""

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from bot.errors import Forbidden, GitHubUnavailable
from bot.tasks.later import Later
from bot.tasks.repairs import Repairs
from tests.unit.tasks.github import MemoryApp
from tests.unit.tasks.made import Clock, World
from tests.unit.tasks.test_repairs import GREEN, MEND, RED, RUNNING, Followed, Ours, check, checked, opened


@dataclass
class Naps:
    """Sleep that ends when a test says so."""

    clock: Clock
    open: list[tuple[float, asyncio.Event, "asyncio.Task[None]"]] = field(default_factory=list)

    async def __call__(self, seconds: float) -> None:
        """Wait to be woken."""
        woken, sleeper = asyncio.Event(), asyncio.current_task()
        assert sleeper is not None
        self.open.append((seconds, woken, sleeper))
        await woken.wait()

    async def lengths(self) -> list[float]:
        """Say how long each one sleeps."""
        await asyncio.sleep(0)
        self.open = [one for one in self.open if not one[2].done()]
        return [seconds for seconds, _, _ in self.open]

    async def wake(self) -> float:
        """Let the first one sleep to its end, and do what it slept for."""
        await self.lengths()
        seconds, woken, sleeper = self.open.pop(0)
        self.clock.move(seconds)
        woken.set()
        await asyncio.wait([sleeper])
        return seconds


@dataclass
class Patient:
    """Our pull request, and a server with patience."""

    ours: Ours
    naps: Naps
    later: Later
    repairs: Repairs

    async def suite(self, *checks: object) -> str:
        """Let others check the head, look, and say what came of it."""
        self.ours.says(*checks)  # type: ignore[arg-type]  # checks
        return (await self.repairs.look(self.ours.task, self.ours.world.github)).note


@pytest.fixture
async def patient(world: World) -> Patient:
    """Our pull request, as its first run left it."""
    ours = await opened(world)
    naps = Naps(world.clock)
    later = Later(naps)
    return Patient(ours, naps, later, Repairs(world.store, world.settings, world.clock, later))


async def test_one_quick_green_check_is_not_all(patient: Patient) -> None:
    """What begins behind it is waited for; only when nothing else came for a minute it is ready."""
    ours, naps = patient.ours, patient.naps
    assert await patient.suite(GREEN) == "green, and looked at again: others may still begin"
    ours.says(GREEN, RUNNING)
    assert await naps.wake() == 60
    assert await naps.lengths() == []
    assert await patient.suite(GREEN, check("lint", "success")) == "green, and looked at again: others may still begin"
    assert ours.reviews.ready == set()
    assert await naps.wake() == 60
    assert ours.reviews.ready == {ours.number}
    assert await naps.lengths() == []


async def test_events_meanwhile_begin_no_other_wait(patient: Patient) -> None:
    """The same checks again change nothing, and one look is due."""
    naps = patient.naps
    await patient.suite(GREEN)
    patient.ours.world.clock.move(20)
    assert await patient.suite(GREEN) == "green, and looked at again: others may still begin"
    assert await naps.lengths() == [40]
    assert await naps.wake() == 40
    assert patient.ours.reviews.ready == {patient.ours.number}
    assert (await patient.suite(GREEN), await naps.lengths()) == ("marked ready before", [])


async def test_what_turns_red_meanwhile_is_mended(patient: Patient) -> None:
    """It is not said to be ready first."""
    await patient.suite(GREEN)
    patient.ours.says(GREEN, RED)
    await patient.naps.wake()
    assert patient.ours.reviews.ready == set()
    assert [run.is_repair for run in await patient.ours.runs()] == [False, True]


async def test_github_away_at_the_end_of_a_run_is_asked_again(patient: Patient) -> None:
    """No event need come behind it: after some waits it is looked at, and no sooner is anything said."""
    ours, naps = patient.ours, patient.naps
    ours.says(RED)
    ours.world.github.faults["pull"] = [GitHubUnavailable("away") for _ in range(3)]
    await patient.repairs.ended(ours.task, ours.world.github)
    assert [await naps.wake() for _ in range(3)] == [2, 10, 60]
    assert len(await ours.runs()) == 2
    assert (await ours.work(*MEND)).outcome == "done"


async def test_who_stays_away_is_given_up(patient: Patient) -> None:
    """After half an hour; what cannot be mended by waiting is not asked for again."""
    ours, naps = patient.ours, patient.naps
    ours.world.github.faults["pull"] = [GitHubUnavailable("away") for _ in range(9)]
    await patient.repairs.ended(ours.task, ours.world.github)
    waits = [await naps.wake() for _ in range(5)]
    assert await naps.lengths() == []
    assert 1800 <= sum(waits) < 3600
    ours.world.github.faults["pull"] = [Forbidden("no", status=403)]
    with pytest.raises(Forbidden):
        await patient.repairs.ended(ours.task, ours.world.github)
    assert await naps.lengths() == []


async def test_the_next_server_looks_at_what_it_was_not_told(patient: Patient) -> None:
    """Checks ended while no server was there; what is older than a day is left alone."""
    ours, naps = patient.ours, patient.naps
    app = MemoryApp(ours.world.github)
    ours.says(RED)
    await patient.repairs.began(app)
    assert await naps.wake() == 1
    assert len(await ours.runs()) == 2
    ours.world.clock.move(timedelta(days=2).total_seconds())
    await patient.repairs.began(app)
    assert await naps.lengths() == []


async def test_of_two_looks_the_sooner_one_is_done(patient: Patient) -> None:
    """A long wait for GitHub must not hide what an event asks for."""
    later, naps, done = patient.later, patient.naps, list[str]()

    async def act(name: str) -> None:
        done.append(name)

    later.ask("a", 300, lambda: act("late"))
    await naps.lengths()
    later.ask("a", 60, lambda: act("soon"))
    later.ask("a", 90, lambda: act("between"))
    assert await naps.lengths() == [60]
    await naps.wake()
    assert (done, await naps.lengths()) == (["soon"], [])
    later.ask("a", 5, lambda: act("never"))
    await naps.lengths()
    await later.close()
    assert (done, await naps.lengths()) == (["soon"], [])


async def test_workflows_that_run_on_nothing_of_ours_are_waited_for_in_vain(world: World) -> None:
    """Nobody tells of their end: after half an hour our own checks decide, and then stay what they are for a minute."""
    ours = await checked(world, 0, workflows=True)
    naps = Naps(world.clock)
    repairs = Repairs(world.store, world.settings, world.clock, Later(naps))
    await repairs.ended(ours.task, world.github)
    assert [await naps.wake(), await naps.wake()] == [30 * 60, 60]
    assert ours.reviews.ready == {ours.number}
    assert await naps.lengths() == []


async def test_a_base_branch_that_is_gone_has_no_checks(world: World) -> None:
    """GitHub refuses to tell of them, and that is no reason to fail for ever."""
    ours = await checked(world, 0, others=[GREEN])
    github = world.github
    assert isinstance(github, Followed)
    assert (await ours.suite()).note == "checks are still to come"
    github.gone = "main"
    assert (await ours.suite()).note == "ready for review"
