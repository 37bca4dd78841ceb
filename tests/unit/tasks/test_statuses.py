"""The check run that says what a task waits for."""

import pytest

from bot.errors import Forbidden
from bot.github.base import CheckRun
from bot.github.statuses import CHECK_NAME
from bot.tasks.workflow import Workflow
from tests.unit.tasks.made import Script, World, finish, read, reply, run, write
from tests.unit.tasks.test_gates import PUSH, no, waits, yes
from tests.unit.tasks.test_lines import DiesAt
from tests.unit.tasks.test_workflow import Death, Mortal, ended, whole

HEAD = "a" * 40


def shown(world: World) -> list[CheckRun]:
    """Return our check runs of this name."""
    return [check for check in world.github.own_checks.values() if check.name == CHECK_NAME]


async def test_it_says_what_is_waited_for_and_how_to_decide(world: World) -> None:
    """On the draft that holds what was done so far; an approval and the next run turn it green."""
    task, asked = await waits(world)
    [check] = shown(world)
    assert (check.head_sha, check.external_id) == (HEAD, task.id)
    assert (check.status, check.conclusion) == ("completed", "action_required")
    assert check.title == f"A call waits for a person's approval: run {PUSH} (hash {asked.hash[:8]})."
    assert "`/agent approve <hash>` carries it out" in check.summary
    await yes(world)
    _, one = await world.begin("second", comment_id=900, request="")
    await whole(world, one, reply(finish("Pushed.")))
    [check] = shown(world)
    assert (check.conclusion, check.title) == ("success", "The work is done")


async def test_a_run_that_fails_or_is_cut_short_says_so(world: World) -> None:
    """Failed is red; what a limit ended is neither."""
    await waits(world)
    await no(world)
    task, one = await world.begin("second", comment_id=900, request="")
    await whole(world, one, reply(run("sleep")), ValueError("broken"))
    assert (await ended(world, task, 2)).outcome == "failed"
    [check] = shown(world)
    assert (check.conclusion, check.title) == ("failure", "The work failed")


async def test_who_never_waited_has_none(world: World) -> None:
    """A check that always stood there would tell nothing."""
    task, one = await world.begin()
    await whole(world, one, reply(read("rose.txt")), reply(write("rose.txt", "wet")), reply(finish()))
    assert (await ended(world, task)).outcome == "done"
    assert shown(world) == []


async def test_an_answer_leaves_it_as_it_is(world: World) -> None:
    """The call waits on."""
    task, _ = await waits(world)
    _, one = await world.begin("second", comment_id=900, request="Why?", intent="ask")
    await whole(world, one, reply(finish("Because.")))
    assert (await ended(world, task, 2)).outcome == "done"
    [check] = shown(world)
    assert check.conclusion == "action_required"


async def test_without_a_pull_request_of_ours_there_is_none(world: World) -> None:
    """Nothing was changed yet, so nothing carries it."""
    await waits(world, reply(run(PUSH)))
    assert world.github.pulls == {}
    assert shown(world) == []


async def test_a_refusal_changes_nothing(world: World) -> None:
    """The App may not show checks; the run ends as it does."""
    refusals = [Forbidden("Resource not accessible by integration", status=403) for _ in range(4)]
    world.github.faults["put_check"] = [*refusals]
    task, _ = await waits(world)
    assert shown(world) == []
    assert world.github.bodies(7)[0].startswith("**Waiting for approval**")
    assert await world.store.effect(task.id, "status") is None


@pytest.mark.parametrize("inside", [False, True], ids=["before", "inside"])
async def test_a_death_at_the_report_repeats_nothing(world: World, *, inside: bool) -> None:
    """One check run, wherever the worker dies."""
    script = Script(reply(read("rose.txt")), reply(write("rose.txt", "wet")), reply(run(PUSH)))
    task, one = await world.begin()
    with pytest.raises(Death):
        await Workflow(world.desk(script))(one.id, DiesAt(world, one, "report", inside=inside))
    await Workflow(world.desk(Script()))(one.id, Mortal(world, one))
    assert (await ended(world, task)).outcome == "waiting"
    [check] = shown(world)
    assert check.conclusion == "action_required"
