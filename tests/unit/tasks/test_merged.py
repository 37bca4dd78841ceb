"""A pull request that was merged has ended its branch; one that was closed has no threads to be answered."""

from dataclasses import replace

import pytest

from bot.domain.events import Notice, PullOpened
from bot.settings.server import ServerSettings
from bot.tasks.workflow import Workflow
from tests.unit.tasks.made import Script, World, finish, read, reply, write
from tests.unit.tasks.test_intake import Door
from tests.unit.tasks.test_rounds import WRITER, asked, behind, known, pull, say
from tests.unit.tasks.test_workflow import Mortal, ended, whole

__all__ = ["pull"]


def merge(world: World, number: int) -> None:
    """Squash it into the base branch, which goes on; its own branch stays."""
    made = world.github.pulls[number]
    world.github.pulls[number] = replace(made, state="closed", merged=True)
    world.shop.theirs("main", rose_txt=b"wet", lily_txt=b"white")


async def test_what_comes_behind_a_merge_begins_from_the_base(world: World, pull: int) -> None:
    """On another branch and in another pull request, which tells of its own work alone; the old one stays as it is."""
    say(world, pull, WRITER, "Why?")
    before = world.github.pulls[pull].head_branch
    tip = world.shop.branches[before]
    merge(world, pull)
    handled = await Door(world, ServerSettings()).comment("/agent fix More.")
    assert handled.accepted is not None
    task, one = handled.accepted.task, handled.accepted.run
    assert task.branch != before
    assert task.pull_number is None
    one = await behind(world, task, one.seq)
    script = await whole(world, one, reply(read("lily.txt")), reply(write("rose.txt", "wetter")), reply(finish()))
    assert (await ended(world, task, one.seq)).outcome == "done"
    told = str(script.prompts[0].messages[-1])
    assert "The pull request was merged" in told
    assert "same branch" not in told
    assert "not in it" not in told
    assert "Why?" not in told
    assert world.shop.branches[before] == tip
    head = world.shop.branches[task.branch]
    assert world.shop.branches["main"] in world.shop.history(head)
    assert tip not in world.shop.history(head)
    events = [event.fact for event in await world.store.events(task.id) if event.run == one.seq]
    [opened] = [fact for fact in events if isinstance(fact, PullOpened)]
    assert opened.number != pull
    body = world.github.pulls[opened.number].body
    assert "More." in body
    assert "2 commits" not in body
    assert f"`{before}` was merged" in body
    assert any(isinstance(fact, Notice) and f"`{before}` was merged" in fact.text for fact in events)
    known_now = await world.store.task(task.id)
    assert known_now is not None
    assert known_now.pull_number == opened.number
    assert [len(thread.comments) for thread in world.github.reviews.threads[pull]] == [1]


async def test_the_run_behind_that_goes_on_as_ever(world: World, pull: int) -> None:
    """On the new branch, which nobody merged."""
    merge(world, pull)
    door = Door(world, ServerSettings())
    for words, content in (("More.", "wetter"), ("Still more.", "wettest")):
        handled = await door.comment(f"/agent fix {words}")
        assert handled.accepted is not None
        one = await behind(world, handled.accepted.task, handled.accepted.run.seq)
        script = await whole(world, one, reply(read("rose.txt")), reply(write("rose.txt", content)), reply(finish()))
    told = str(script.prompts[0].messages[-1])
    assert "on the same branch" in told
    assert "merged" not in told
    assert "not in it" not in told


async def test_what_began_anew_was_not_merged(world: World) -> None:
    """Though the run that began anew ended before it had a work tree."""
    task, one = await world.begin()
    await whole(world, one, reply(read("rose.txt")), reply(write("rose.txt", "wet")), reply(finish()))
    _, anew = await world.begin("anew", comment_id=900, request="", fresh=True)
    desk = world.desk(Script())
    desk.stop_of(anew.id).set()
    await Workflow(desk)(anew.id, Mortal(world, anew))
    assert (await ended(world, task, anew.seq)).outcome == "stopped"
    _, again = await world.begin("again", comment_id=901, request="More.")
    await whole(world, again, reply(read("rose.txt")), reply(write("rose.txt", "wetter")), reply(finish()))
    assert (await ended(world, task, again.seq)).outcome == "done"
    facts = [event.fact for event in await world.store.events(task.id)]
    assert not [fact for fact in facts if isinstance(fact, Notice) and "merged" in fact.text]


@pytest.mark.parametrize("command", ["update", "check"])
async def test_a_merged_branch_is_neither_updated_nor_checked(world: World, pull: int, command: str) -> None:
    """There is nothing that people look at."""
    merge(world, pull)
    await Door(world, ServerSettings()).comment(f"/agent {command}")
    assert f"There is no open pull request for `{command}`." in world.github.bodies(7)[-1]


async def test_a_closed_pull_request_has_no_threads(world: World, pull: int) -> None:
    """Whoever asks for more on the issue gets another one, and what was said on the closed one stays as it is."""
    say(world, pull, WRITER, "Wetter, please.")
    world.github.pulls[pull] = replace(world.github.pulls[pull], state="closed")
    task, one = await asked(world)
    assert (await known(world, task, one)).open == ()
    await whole(world, one, reply(read("rose.txt")), reply(write("rose.txt", "w")), *[reply(finish())] * 2)
    assert [len(thread.comments) for thread in world.github.reviews.threads[pull]] == [1]
