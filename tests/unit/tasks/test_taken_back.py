"""What was approved and counts no more: after a stop, a fresh start, an edit, or a vote that is gone."""

import pytest

from bot.domain.events import ActionCarriedOut, ActionsAllowed
from bot.domain.refs import Actor
from bot.domain.task import Task
from bot.sandbox.base import ExecResult
from bot.settings.server import ServerSettings
from bot.store.base import Decision
from bot.tasks.decisions import waiting_for
from bot.tasks.protection import kept
from tests.unit.tasks.made import Copy, World, finish, reply, run
from tests.unit.tasks.test_gates import JONAS, MARIA, PUSH, WORK, facts, go_on, waits, yes
from tests.unit.tasks.test_intake import FLORA, MOSS, Door
from tests.unit.tasks.test_protection import PATH, STORY, puts
from tests.unit.tasks.test_workflow import ended, whole


@pytest.fixture
def door(world: World) -> Door:
    """Where people give commands."""
    made = Door(world, ServerSettings())
    world.github.permissions |= {MARIA.id: "write", JONAS.id: "write"}
    return made


@pytest.fixture(autouse=True)
def pushed(world: World) -> list[str]:
    """Count how often the command is run that people are asked about."""
    times: list[str] = []

    def push(_: Copy) -> ExecResult:
        times.append(PUSH)
        return ExecResult(0, "", "", 0.5, timed_out=False)

    world.commands |= {PUSH: push, "make ci": puts({PATH: b"on: push\n", "rose.txt": b"wet\n"})}
    return times


async def last(world: World, task: Task) -> Decision:
    """Return the last decision."""
    return (await world.store.decisions(task.id))[-1]


async def test_a_stop_takes_an_approval_back_for_good(door: Door, pushed: list[str]) -> None:
    """The run that was queued does nothing, and neither does a later one that has another task."""
    world = door.world
    task, _ = await waits(world)
    await yes(world)
    _, one = await world.begin("second", comment_id=900, request="")
    assert (await door.comment("/agent stop")).note.startswith("stop:")
    assert (await last(world, task)).verdict == "void"
    await whole(world, one, reply(finish("No.")))
    assert (await ended(world, task, 2)).outcome == "stopped"
    _, third = await world.begin("third", comment_id=901, request="Only a typo")
    await whole(world, third, reply(finish("Done.")))
    assert pushed == []
    assert await facts(world, task, ActionCarriedOut) == []


async def test_a_stop_whose_signal_is_lost_is_heard_before_a_call_is_carried_out(
    world: World, pushed: list[str]
) -> None:
    """It lies in the inbox, though the process that was told of it is gone, and the approval with it."""
    task, _ = await waits(world)
    await yes(world)
    _, one = await world.begin("second", comment_id=900, request="")
    await world.store.post(task.id, "stop", author="maria", text="", event_key="stop")
    await whole(world, one, reply(finish("No.")))
    assert (await ended(world, task, 2)).outcome == "stopped"
    assert pushed == []


async def test_a_stop_whose_signal_is_lost_is_heard_before_a_push(world: World) -> None:
    """Nothing is pushed, and the work stays where it is."""
    task, one = await world.begin()
    await whole(world, one, *STORY)
    [asked] = await waiting_for(world.store, task)
    await yes(world, asked.hash[:8])
    _, second = await world.begin("second", comment_id=900, request="")
    await world.store.post(task.id, "stop", author="maria", text="", event_key="stop")
    await whole(world, second)
    assert (await ended(world, task, 2)).outcome == "stopped"
    assert task.branch not in world.shop.branches
    assert await kept(world.store, task) is not None


async def test_a_stop_where_nothing_runs_takes_an_approval_back_too(door: Door, pushed: list[str]) -> None:
    """As where the run that was to carry it out failed before that."""
    world = door.world
    task, _ = await waits(world)
    await yes(world)
    await door.comment("/agent stop")
    await go_on(world)
    assert pushed == []
    decision = await last(world, task)
    assert decision.reason == "the work was stopped"
    [told] = [one.body for one in world.github.threads[7] if one.id == decision.comment_id]
    assert told.startswith("**Void**: `flora` stopped the work.")


async def test_a_fresh_run_lets_nothing_wait(world: World, pushed: list[str]) -> None:
    """What was asked before it is not decided about behind it, though the files are the same."""
    task, asked = await waits(world)
    _, one = await world.begin("second", comment_id=900, request="", fresh=True)
    await whole(world, one, *WORK, reply(finish("Watered.")))
    assert await waiting_for(world.store, task) == []
    assert (await yes(world, asked.hash[:8])).kind == "refused"
    assert (await last(world, task)).reason == "the run begins anew"
    await go_on(world, key="third")
    assert pushed == []


async def test_a_void_approval_allows_nothing_else(world: World, pushed: list[str]) -> None:
    """Its pattern counts once the call is carried out, and not before."""
    task, _ = await waits(world)
    await yes(world, always="git push")
    assert await facts(world, task, ActionsAllowed) == []
    world.shop.branches[task.branch] = world.shop.keep({"rose.txt": b"dead"}, "theirs")
    await go_on(world, *WORK, reply(run(PUSH)))
    assert pushed == []
    assert await facts(world, task, ActionsAllowed) == []
    assert len(await waiting_for(world.store, task)) == 1


@pytest.mark.parametrize(("first", "second"), [("git push", "git push"), ("git push", None), (None, "git push")])
async def test_a_pattern_counts_where_all_wrote_it(
    door: Door, pushed: list[str], first: str | None, second: str | None
) -> None:
    """Else the call alone is approved, and people read that."""
    world = door.world
    world.github.files[".github/issuewright.yml"] = b"version: 1\nrequire_approvals: 2\n"
    task, asked = await waits(world)
    assert (await yes(world, asked.hash[:8], always=first)).kind == "more_needed"
    said = await yes(world, asked.hash[:8], key="jonas", actor=JONAS, always=second)
    assert said.kind == "approved"
    same = first == second
    assert ("this call alone is approved" in said.text) is not same
    assert ("Approved always" in said.text) is same
    await go_on(world)
    assert pushed == [PUSH]
    assert [fact.pattern for fact in await facts(world, task, ActionsAllowed)] == ["git push"] * same  # type: ignore[attr-defined]


async def test_a_vote_counts_while_its_author_may_vote(door: Door) -> None:
    """Who has lost access meanwhile is no second person, and the right numeric id is asked about."""
    world = door.world
    world.github.files[".github/issuewright.yml"] = b"version: 1\nrequire_approvals: 2\n"
    _, asked = await waits(world)
    await yes(world, asked.hash[:8])
    world.github.permissions[MARIA.id] = "read"
    assert (await yes(world, asked.hash[:8], key="jonas", actor=JONAS)).kind == "more_needed"
    world.github.permissions[3] = "write"
    said = await yes(world, asked.hash[:8], key="lena", actor=Actor(3, "lena"))
    assert said.kind == "approved"
    assert "`jonas, lena`" in said.text


async def test_an_approved_command_answers_for_no_protected_file(world: World, pushed: list[str]) -> None:
    """What it wrote nobody read, so the push waits."""
    world.commands[PUSH] = puts({PATH: b"on: push\n"})
    task, _ = await waits(world)
    await yes(world)
    await go_on(world)
    assert (await ended(world, task, 2)).outcome == "waiting"
    [asked] = await waiting_for(world.store, task)
    assert asked.tool == "push"
    assert pushed == []


@pytest.mark.parametrize("who", ["another", "we"])
async def test_an_edit_that_is_put_back_was_one(door: Door, who: str) -> None:
    """A request whose comment others changed waits no more, whatever it says later; what we change does."""
    world = door.world
    task, asked = await waits(world)
    decision = await last(world, task)
    us = await world.github.identity()
    sender = {"id": us.id, "login": us.login, "type": "Bot"} if who == "we" else MOSS
    handled = await door.play(
        "issue_comment",
        action="edited",
        sender=sender,
        issue={"number": 7, "title": "t", "body": "b", "user": FLORA, "updated_at": "1"},
        comment={"id": decision.comment_id, "body": "as before", "user": {"id": us.id, "login": us.login}},
        changes={"body": {"from": "another call"}},
    )
    assert (handled.state == "done") is (who == "another"), handled
    told = [body for body in world.github.bodies(7) if "is void: its comment is not as it was posted" in body]
    assert len(told) == (who == "another")
    said = await yes(world, asked.hash[:8] if who == "another" else None)
    assert said.kind == ("refused" if who == "another" else "approved")
