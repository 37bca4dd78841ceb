"""Deliveries that are handled twice, late, or as a run ends: each does once what it meant when it was said."""

from collections.abc import Sequence
from datetime import datetime

import pytest

from bot.domain.events import RunStarted
from bot.domain.refs import RepositoryRef
from bot.domain.task import Run, Task
from bot.errors import Forbidden, GitHubUnavailable, RunEnding
from bot.github.reviews import ReviewThread
from bot.settings.server import ServerSettings
from bot.store.base import Accepted, InboxKind, NewRequest
from bot.tasks.orders import Handled
from bot.tasks.plans import open_plan
from tests.unit.tasks.github import MemoryGitHub
from tests.unit.tasks.made import World, reply
from tests.unit.tasks.test_gates import waits
from tests.unit.tasks.test_handed_over import dies
from tests.unit.tasks.test_intake import FLORA, Door, issue
from tests.unit.tasks.test_orders import hashes, planned, taken
from tests.unit.tasks.test_planning import WATER, WORKED, facts_of, propose
from tests.unit.tasks.test_workflow import ended, whole

AWAY = GitHubUnavailable("answered 502")


@pytest.fixture
def door(world: World) -> Door:
    """Where plans wait."""
    world.settings = ServerSettings(mode="plan")
    return Door(world, world.settings)


def away(github: MemoryGitHub, name: str, error: Exception = AWAY) -> None:
    """Let the next call of a kind fail."""
    github.faults[name] = [error]


@pytest.mark.parametrize("how", ["", " {short}"])
async def test_a_yes_that_is_handled_twice_is_answered_once(door: Door, how: str) -> None:
    """Where GitHub was away for the reaction, the work is queued, and nobody is told that nothing waits."""
    world, task = door.world, await planned(door, WATER)
    [short] = [one[:8] for one in await hashes(door, task)]
    before = world.github.bodies(7)
    said = {"id": 900_000, "body": f"/agent approve{how.format(short=short)}", "user": FLORA}
    away(world.github, "react")
    with pytest.raises(GitHubUnavailable):
        await door.play_comment(said)
    handled = await door.play_comment(said)
    assert handled.accepted is not None
    assert handled.accepted.run.seq == 2
    assert world.github.bodies(7) == before


@pytest.mark.parametrize("command", ["approve", "deny"])
async def test_a_decision_whose_answer_is_refused_is_acted_upon(world: World, command: str) -> None:
    """As where the conversation was locked meanwhile."""
    door = Door(world, ServerSettings())
    task, asked = await waits(world)
    away(world.github, "comment", Forbidden("the conversation is locked"))
    handled = await door.comment(f"/agent {command} {asked.hash[:8]}")
    assert handled.accepted is not None
    assert (await world.store.open_run(task.id)) is not None


async def test_a_stop_that_was_cut_short_is_shown_in_the_end(door: Door) -> None:
    """Where GitHub was away for the edit: handled again it says what it did, and not that nothing runs."""
    world, task = door.world, await planned(door, WATER)
    stop = {"id": 900_000, "body": "/agent stop", "user": FLORA}
    away(world.github, "edit_comment")
    with pytest.raises(GitHubUnavailable):
        await door.play_comment(stop)
    assert (await door.play_comment(stop)).note == f"dropped: {task.id}-1"
    assert world.github.bodies(7)[0].startswith("**Stopped**")
    assert len(world.github.bodies(7)) == 2


async def test_a_stop_that_is_handled_twice_drops_one_wait(door: Door) -> None:
    """What waits by then is another question."""
    world, task = door.world, await planned(door, WATER)
    stop = {"id": 900_000, "body": "/agent stop", "user": FLORA}
    assert (await door.play_comment(stop)).note.startswith("dropped")
    await whole(world, await taken(world, await door.comment("/agent plan Dig.")), reply(propose("Dig.")))
    await door.play_comment(stop)
    assert await open_plan(world.store, task) is not None


async def test_a_stop_of_nothing_stops_nothing_later(world: World) -> None:
    """Its answer is tried again, and not the stop itself."""
    door = Door(world, ServerSettings())
    await whole(world, await taken(world, await door.comment("/agent fix")), *WORKED)
    stop = {"id": 900_000, "body": "/agent stop", "user": FLORA}
    away(world.github, "comment")
    with pytest.raises(GitHubUnavailable):
        await door.play_comment(stop)
    run = await taken(world, await door.comment("/agent fix More."))
    await door.play_comment(stop)
    assert door.stopped == []
    assert not await world.store.inbox(run.task_id)


def moment(second: int) -> str:
    """Write one of GitHub's times."""
    return f"2026-11-30T12:00:{second:02}Z"


async def closed(door: Door, at: str) -> Handled:
    """Deliver that the issue was closed."""
    return await door.play("issues", action="closed", sender=FLORA, issue={**issue(7), "closed_at": at})


async def test_a_late_stop_is_for_what_there_was(world: World) -> None:
    """By GitHub's clock, and by the ids of comments: neither ends what was asked for behind it."""
    door = Door(world, ServerSettings())
    asked = {"id": 500, "body": "/agent fix", "user": FLORA, "created_at": moment(30)}
    run = await taken(world, await door.play_comment(asked))
    assert run.asked_at == datetime.fromisoformat(moment(30))
    await closed(door, moment(29))
    await door.play_comment({"id": 499, "body": "/agent stop", "user": FLORA, "created_at": moment(30)})
    assert door.stopped == []
    await closed(door, moment(31))
    assert door.stopped == [run.id]


async def replies(door: Door, number: int, root: int) -> Handled:
    """Let a writer answer in a thread that we began, without a command."""
    said = {"id": 9_000, "body": "I do not like this at all.", "user": FLORA, "in_reply_to_id": root, "path": "x"}
    return await door.play(
        "pull_request_review_comment",
        action="created",
        sender=FLORA,
        pull_request={"number": number, "title": "T", "body": "", "user": FLORA},
        comment=said,
    )


async def revised(door: Door) -> tuple[Task, Run, int, int]:
    """Plan a change of work that has a pull request with a thread of ours."""
    world = door.world
    task = await planned(door, WATER)
    await whole(world, await taken(world, await door.comment("/agent approve")), *WORKED)
    [number] = world.github.pulls
    reviews = world.github.reviews
    thread = reviews.begin(number, reviews.review(number, reviews.us, "COMMENTED"), "rose.txt", 1, "Look here.")
    run = await taken(world, await door.comment("/agent plan Dig."))
    return task, run, number, thread.comments[0].id


async def test_a_reply_as_the_run_ends_lets_no_plan_begin(door: Door) -> None:
    """It comes behind the plan, while the run is closed: nobody said that it is to be carried out."""
    world = door.world
    task, run, number, root = await revised(door)
    await dies(world, run, reply(propose("Dig.")), late=lambda: replies(door, number, root))
    assert (await ended(world, task, run.seq)).outcome == "waiting"
    assert [item.kind for item in await world.store.inbox(task.id)] == ["talk"]
    assert await world.store.open_run(task.id) is None
    assert await open_plan(world.store, task) is not None


async def test_a_reply_behind_the_run_begins_none(door: Door) -> None:
    """Though the run was still open when the delivery was looked at."""
    world = door.world
    task, run, number, root = await revised(door)
    reviews = world.github.reviews
    inner = reviews.review_threads

    async def slowly(repository: RepositoryRef, number: int) -> Sequence[ReviewThread]:
        reviews.review_threads = inner  # type: ignore[method-assign]
        await whole(world, run, reply(propose("Dig.")))
        return await inner(repository, number)

    reviews.review_threads = slowly  # type: ignore[method-assign]
    assert (await replies(door, number, root)).state == "ignored"
    assert await world.store.open_run(task.id) is None
    assert await open_plan(world.store, task) is not None
    assert len(await facts_of(world, task, RunStarted)) == run.seq


async def test_what_was_said_before_the_plan_does_not_begin_it(door: Door) -> None:
    """A request that is delivered late is heard by who plans anew; it lets no plan begin that its author never saw."""
    world, task = door.world, await planned(door, WATER)
    plan = await open_plan(world.store, task)
    assert plan is not None
    assert plan.comment_id is not None
    late = {"id": plan.comment_id - 1, "body": "/agent fix Only the red ones.", "user": FLORA}
    script = await whole(world, await taken(world, await door.play_comment(late)), reply(propose("Dig.")))
    assert "propose_plan" in {tool.name for tool in script.prompts[0].tools}
    assert "Only the red ones." in str(script.prompts[0].messages)
    assert world.github.pulls == {}


async def test_no_budget_is_queued_as_the_run_ends(world: World) -> None:
    """Whether it reached its budget is not known while it is open, however slow GitHub is meanwhile."""
    door = Door(world, ServerSettings())
    run = await taken(world, await door.comment("/agent fix"))
    store = world.store
    inner = store.accept

    async def slowly(request: NewRequest, at: datetime) -> Accepted:
        store.accept = inner  # type: ignore[method-assign]
        await whole(world, run, *WORKED)
        return await inner(request, at)

    store.accept = slowly  # type: ignore[method-assign]
    assert (await door.comment("/agent budget 3")).accepted is None
    assert await store.run(run.task_id, 2) is None


async def test_a_stop_as_the_run_ends_stops_no_later_one(world: World) -> None:
    """Though the run was still open when the delivery was looked at: it is looked at once more."""
    door = Door(world, ServerSettings())
    run = await taken(world, await door.comment("/agent fix"))
    store = world.store
    inner = store.post

    async def slowly(task_id: str, kind: InboxKind, *, author: str, text: str, event_key: str) -> bool:
        store.post = inner  # type: ignore[method-assign]
        await whole(world, run, *WORKED)
        return await inner(task_id, kind, author=author, text=text, event_key=event_key)

    store.post = slowly  # type: ignore[method-assign]
    stop = {"id": 900_000, "body": "/agent stop", "user": FLORA}
    with pytest.raises(RunEnding):
        await door.play_comment(stop)
    await door.play_comment(stop)
    assert world.github.bodies(7)[-1].startswith("Nothing is running on this thread.")
    task = (await world.store.tasks())[0]
    await whole(world, await taken(world, await door.comment("/agent fix More.")), *WORKED)
    assert (await ended(world, task, 2)).outcome != "stopped"


async def test_a_stop_that_was_cut_short_voids_the_request_in_the_end(world: World) -> None:
    """Its comment offers no approval any more, though what waited was let go of before GitHub was away."""
    door = Door(world, ServerSettings())
    await waits(world)
    stop = {"id": 900_000, "body": "/agent stop", "user": FLORA}
    away(world.github, "edit_comment")
    with pytest.raises(GitHubUnavailable):
        await door.play_comment(stop)
    await door.play_comment(stop)
    assert [body for body in world.github.bodies(7) if body.startswith("**Void**: `flora` stopped the work.")]
