"""Checks of others, and how the task stands: what came to nothing changes nothing, and what GitHub refuses is told."""

import pytest

from bot.domain.events import BranchPushed
from bot.domain.task import Outcome
from bot.errors import Forbidden
from bot.settings.server import ServerSettings
from tests.unit.tasks.made import World, finish, reply, write
from tests.unit.tasks.test_repairs import GREEN, MEND, RED, Ours, check, opened


async def ended(ours: Ours, outcome: Outcome) -> None:
    """Let an update come to an end."""
    world = ours.world
    request = world.request("update", comment_id=5, intent="update", number=ours.number, requester="moss")
    accepted = await world.store.accept(request, world.clock())
    await world.store.finish(ours.task.id, accepted.run.seq, outcome, "", world.clock())


@pytest.mark.parametrize("outcome", ["failed", "stopped", "budget"])
async def test_an_update_that_came_to_nothing_leaves_the_work_as_it_was(world: World, outcome: Outcome) -> None:
    """The head is what it was: green is ready, and red begins a round in the name of who asked for the work."""
    ours = await opened(world)
    await ended(ours, outcome)
    assert (await ours.suite(GREEN)).note == "ready for review"
    handled = await ours.suite(RED)
    assert handled.accepted is not None
    assert handled.accepted.run.requester == "flora"


async def test_an_update_that_waits_is_waited_for(world: World) -> None:
    """A person decides how it goes on."""
    ours = await opened(world)
    await ended(ours, "waiting")
    assert (await ours.suite(GREEN)).note == "the last run is waiting"


async def test_a_round_acts_whatever_the_mode(world: World) -> None:
    """Its plan was approved with the work that it mends."""
    ours = await opened(world)
    world.settings = ServerSettings(mode="plan")
    await ours.suite(RED)
    done = await ours.work(*MEND)
    assert (done.outcome, done.reason) == ("done", "")
    assert world.shop.commits[ours.head] == {"rose.txt": b"very wet"}


async def test_what_github_refuses_is_told_once(world: World) -> None:
    """The draft stays one, people hear why, and who asked is asked for a review all the same."""
    ours = await opened(world)
    world.github.faults["ready_for_review"] = [Forbidden("Resource not accessible by @integration", status=403)]
    assert (await ours.suite(GREEN)).note == "ready for review"
    [told] = world.github.bodies(7)
    assert "though GitHub does not let this App end the draft, and `flora` was asked for one." in told
    assert "GitHub says: Resource not accessible by" in told
    assert "@integration" not in told
    assert "marked ready" not in told
    assert ours.reviews.ready == set()
    assert (await ours.suite(GREEN)).note == "marked ready before"


async def test_what_people_cancelled_or_are_asked_about_is_no_fault_of_the_work(world: World) -> None:
    """No run can mend it, and it is not green; beside a real failure it is named with it."""
    ours = await opened(world)
    stopped = [check("deploy", "action_required"), check("slow", "cancelled")]
    assert (await ours.suite(GREEN, *stopped)).note == "what is not green was cancelled, or waits for a person"
    assert (len(await ours.runs()), ours.reviews.ready) == (1, set())
    handled = await ours.suite(RED, *stopped)
    assert handled.accepted is not None
    assert all(one.name in handled.accepted.run.request for one in stopped)


async def test_another_try_of_a_round_quotes_no_person(world: World) -> None:
    """The harness asked for the round: it goes on, and nobody is shown with words that they did not say."""
    ours = await opened(world)
    await ours.suite(RED)
    await ours.work(*MEND)
    handled = await ours.door.comment("/agent retry", number=ours.number, pr=True)
    assert handled.accepted is not None
    assert (handled.accepted.run.request, handled.accepted.run.is_repair) == ("", False)
    await ours.work(reply(write("rose.txt", "wetter")), reply(finish()))
    assert "No person asks this" not in world.github.pulls[ours.number].body


@pytest.mark.parametrize("outcome", ["failed", "budget", "stopped"])
async def test_what_turns_green_by_itself_after_a_round_in_vain_is_ready(world: World, outcome: Outcome) -> None:
    """A check that fails now and then, made again: the head is the work that was done before that round."""
    ours = await opened(world)
    handled = await ours.suite(RED)
    assert handled.accepted is not None
    await world.store.finish(ours.task.id, handled.accepted.run.seq, outcome, "", world.clock())
    assert (await ours.suite(RED)).note == ("the last run is stopped" if outcome == "stopped" else "handed over")
    assert (await ours.suite(GREEN)).note == "ready for review"
    assert ours.reviews.ready == {ours.number}


async def test_a_round_that_was_cut_short_behind_its_push_is_not_ready(world: World) -> None:
    """Its own commit is the head, and nobody says that it is done."""
    ours = await opened(world)
    handled = await ours.suite(RED)
    assert handled.accepted is not None
    run = handled.accepted.run
    await world.store.record(ours.task.id, run.seq, "pushed", BranchPushed(ours.task.branch, "d" * 40), world.clock())
    await world.store.finish(ours.task.id, run.seq, "budget", "", world.clock())
    world.shop.branches[ours.task.branch] = "d" * 40
    assert (await ours.suite(GREEN)).note == "the work is not done"
