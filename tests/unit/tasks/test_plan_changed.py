"""A plan's comment, or its file, that others changed is approved by nobody."""

import pytest

from bot.settings.server import ServerSettings
from bot.tasks.plans import open_plan
from tests.unit.tasks.github import REPOSITORY
from tests.unit.tasks.made import World, finish, read, reply, write
from tests.unit.tasks.test_intake import FLORA, Door, issue
from tests.unit.tasks.test_orders import hashes, planned, taken
from tests.unit.tasks.test_planning import WATER
from tests.unit.tasks.test_workflow import ended, whole

MOSS = {"id": 2, "login": "moss", "type": "User"}
US = {"id": 900, "login": "wright[bot]", "type": "Bot"}
WORKED = (reply(read("rose.txt")), reply(write("rose.txt", "wet")), reply(finish("Watered them.")))


@pytest.fixture
def door(world: World) -> Door:
    """Where plans wait."""
    world.settings = ServerSettings(mode="plan")
    return Door(world, world.settings)


async def changed(door: Door, words: str) -> tuple[int, str]:
    """Let somebody write something else into the plan's comment; return its id and what stood there."""
    task = await planned(door, WATER)
    plan = await open_plan(door.world.store, task)
    assert plan is not None
    assert plan.comment_id is not None
    [body] = [one.body for one in door.world.github.threads[7] if one.id == plan.comment_id]
    await door.world.github.edit_comment(REPOSITORY, plan.comment_id, body.replace(WATER, words))
    return plan.comment_id, body


async def edited(door: Door, comment_id: int) -> str:
    """Deliver that somebody changed a comment of ours; return what came of it."""
    comment = {"id": comment_id, "body": "x", "user": US}
    return (await door.play("issue_comment", action="edited", sender=MOSS, issue=issue(7), comment=comment)).note


def stands(door: Door, comment_id: int) -> str:
    """Return what a comment says now."""
    return next(one.body for one in door.world.github.threads[7] if one.id == comment_id)


@pytest.mark.parametrize("how", ["", " {short}"])
async def test_it_is_put_back_and_has_to_be_read_anew(door: Door, how: str) -> None:
    """The first yes was to other words, also where it names the hash; the next one counts."""
    comment_id, body = await changed(door, "Fix a typo.")
    task = await door.world.store.task_of(REPOSITORY.id, 7)
    assert task is not None
    [short] = [one[:8] for one in await hashes(door, task)]
    refused = await door.comment(f"/agent approve{how.format(short=short)}")
    assert refused.accepted is None
    assert f"Somebody had changed the comment that holds plan `{short}`" in door.world.github.bodies(7)[-1]
    assert stands(door, comment_id) == body
    run = await taken(door.world, await door.comment(f"/agent approve{how.format(short=short)}"))
    await whole(door.world, run, *WORKED)
    assert (await ended(door.world, task, 2)).outcome == "done"


async def test_who_wrote_before_it_was_put_back_is_asked_again(door: Door) -> None:
    """It is put back as soon as GitHub says that it was changed; a yes from before that is to what stood there then."""
    comment_id, body = await changed(door, "Fix a typo.")
    early = await door.world.github.comment(REPOSITORY, 7, "/agent approve")
    assert await edited(door, comment_id) == "the comment of the plan that waits is as it was posted"
    assert stands(door, comment_id) == body
    handled = await door.play_comment({"id": early.id, "body": early.body, "user": FLORA})
    assert handled.accepted is None
    assert "Nothing was approved." in door.world.github.bodies(7)[-1]
    assert (await door.comment("/agent approve")).accepted is not None


async def test_our_own_comment_as_it_is_stays(door: Door) -> None:
    """Nothing is edited where nobody changed it."""
    task = await planned(door, WATER)
    plan = await open_plan(door.world.store, task)
    assert plan is not None
    assert plan.comment_id is not None
    assert await edited(door, plan.comment_id) == "no change"
    assert plan.put_back == 0
