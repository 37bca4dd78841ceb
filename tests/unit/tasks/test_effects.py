"""What we make on GitHub is looked up before it is made."""

import pytest

from bot.domain.refs import Actor, ThreadRef
from bot.domain.trigger import TriggerContext
from bot.errors import GitHubUnavailable
from bot.github import markers
from bot.github.text import cut
from bot.tasks.effects import ensure_comment, reply
from tests.unit.tasks.github import REPOSITORY, US
from tests.unit.tasks.made import World

TASK = "0123456789abcdef" * 2


async def ensure(world: World, body: str, task_id: str = TASK) -> int:
    """Ensure the one comment of these tests."""
    return await ensure_comment(world.store, world.github, REPOSITORY, 7, task_id=task_id, slot="progress.1", body=body)


@pytest.fixture
async def task_id(world: World) -> str:
    """A task that is there."""
    task, _ = await world.begin()
    return task.id


async def test_a_comment_is_made_once_and_then_edited(world: World, task_id: str) -> None:
    """The first call makes the comment, further ones edit it."""
    first = await ensure(world, "One.", task_id)
    assert await ensure(world, "Two.", task_id) == first
    [body] = world.github.bodies(7)
    assert body.startswith("Two.")
    assert markers.find(body, await world.store.state_key()) == (task_id, "progress.1")


async def test_a_comment_whose_note_was_lost_is_found_by_its_marker(world: World, task_id: str) -> None:
    """A process that died between comment and note makes no second comment."""
    mark = markers.make(task_id, "progress.1", await world.store.state_key())
    lost = world.github.say(7, f"One.\n{mark}", US.id)
    assert await ensure(world, "Two.", task_id) == lost.id
    assert len(world.github.bodies(7)) == 1
    assert world.github.bodies(7)[0].startswith("Two.")
    assert "comment" not in world.github.calls


async def test_a_comment_that_somebody_deleted_is_made_anew(world: World, task_id: str) -> None:
    """And from then on that one is edited."""
    first = await ensure(world, "One.", task_id)
    world.github.threads[7].clear()
    second = await ensure(world, "Two.", task_id)
    assert second != first
    assert await ensure(world, "Three.", task_id) == second
    [body] = world.github.bodies(7)
    assert body.startswith("Three.")


async def test_the_same_text_is_not_edited(world: World, task_id: str) -> None:
    """Where the found comment says it already, nothing is written."""
    mark = markers.make(task_id, "progress.1", await world.store.state_key())
    world.github.say(7, cut("One.", tail=mark), US.id)
    await ensure(world, "One.", task_id)
    assert not {"edit_comment", "comment"} & set(world.github.calls)


@pytest.mark.parametrize("author", [1, None])
async def test_another_authors_marker_is_no_proof(world: World, task_id: str, author: int | None) -> None:
    """A marker that somebody else copied is not ours to edit."""
    mark = markers.make(task_id, "progress.1", await world.store.state_key())
    forged = world.github.say(7, f"Mine!\n{mark}", author)
    assert await ensure(world, "Ours.", task_id) != forged.id
    assert world.github.bodies(7)[0] == forged.body
    assert len(world.github.bodies(7)) == 2


async def test_a_marker_of_another_key_or_slot_is_none(world: World, task_id: str) -> None:
    """A seal of another server, another slot and another task do not match."""
    for mark in (
        markers.make(task_id, "progress.1", b"k" * 32),
        markers.make(task_id, "progress.2", await world.store.state_key()),
        markers.make("e" * 32, "progress.1", await world.store.state_key()),
    ):
        world.github.say(7, f"x\n{mark}", US.id)
    await ensure(world, "Ours.", task_id)
    assert len(world.github.bodies(7)) == 4


async def test_a_comment_that_failed_is_made_by_the_next_try(world: World, task_id: str) -> None:
    """Where making it failed nothing is noted, and the next try makes it."""
    world.github.faults["comment"] = [GitHubUnavailable("502")]
    with pytest.raises(GitHubUnavailable):
        await ensure(world, "One.", task_id)
    await ensure(world, "One.", task_id)
    assert len(world.github.bodies(7)) == 1


def happening(key: str) -> TriggerContext:
    """Make what happened on a thread without a task."""
    return TriggerContext(key, 11, Actor(1, "flora"), ThreadRef(REPOSITORY, 7, "issue"), "t", "b", None)


async def test_one_happening_is_answered_once(world: World) -> None:
    """However often a happening is handled, it has one answer; another happening has its own."""
    for key in ("comment:1", "comment:1", "comment:2"):
        await reply(world.store, world.github, happening(key), "No.")
    assert len(world.github.bodies(7)) == 2
