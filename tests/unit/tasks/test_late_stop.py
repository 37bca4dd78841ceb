"""A stop that comes when the model is done: heeded as long as nothing is public, with the work kept."""

from collections.abc import Sequence

import pytest

from bot.domain.events import BranchPushed, PullOpened
from bot.domain.messages import Reply
from bot.domain.task import Run, Task
from bot.sandbox.base import ExecResult
from bot.tasks.decisions import waiting_for
from bot.tasks.engines.base import Action, Json
from bot.tasks.protection import kept
from bot.tasks.workflow import Workflow
from tests.unit.tasks.made import Copy, Script, World, finish, read, reply, run, write
from tests.unit.tasks.test_rounds import WRITER, answer, asked, left, pull, say
from tests.unit.tasks.test_workflow import Death, Mortal, ended, whole

__all__ = ["pull"]

STORY = (reply(read("rose.txt")), reply(write("rose.txt", "wet")), reply(finish("Watered.")))
MORE = (reply(read("rose.txt")), reply(write("rose.txt", "wetter")), reply(finish("Watered.")))
PATH = ".github/workflows/x.yml"


class Late(Mortal):
    """Steps before one of which somebody says stop."""

    def __init__(self, world: World, one: Run, task: Task, before: str) -> None:
        super().__init__(world, one)
        self._store, self._task, self._before = world.store, task, before

    async def __call__(self, name: str, action: Action) -> Json:
        """Let them, and then make the step."""
        if name == self._before:
            await self._store.post(self._task.id, "stop", author="maria", text="asked", event_key=f"stop {name}")
        return await super().__call__(name, action)


class Dying(Mortal):
    """Steps that end the process when the push is made and nothing says so yet."""

    async def __call__(self, name: str, action: Action) -> Json:
        """Make the step, or die in it."""
        if name == "push":
            await action()
            raise Death
        return await super().__call__(name, action)


async def stopped(world: World, task: Task, one: Run, story: Sequence[Reply], before: str) -> list[object]:
    """Work on a run that is stopped late; return what it left."""
    await Workflow(world.desk(Script(*story)))(one.id, Late(world, one, task, before))
    fact = await ended(world, task, one.seq)
    assert (fact.outcome, fact.reason) == ("stopped", "Stopped on request.")
    return [event.fact for event in await world.store.events(task.id) if event.run == one.seq]


@pytest.mark.parametrize("before", ["commit", "push", "pull"])
async def test_a_stop_opens_no_pull_request(world: World, before: str) -> None:
    """The work is on its branch, as what a stop cuts short is, and the next run goes on from there."""
    task, one = await world.begin()
    left = await stopped(world, task, one, STORY, before)
    assert world.github.pulls == {}
    assert world.shop.commits[world.shop.branches[task.branch]] == {"rose.txt": b"wet"}
    assert [fact.branch for fact in left if isinstance(fact, BranchPushed)] == [task.branch]
    assert not [fact for fact in left if isinstance(fact, PullOpened)]
    _, again = await world.begin("again", comment_id=900, request="")
    await whole(world, again, reply(finish("Watered.")))
    assert (await ended(world, task, again.seq)).outcome == "done"
    assert len(world.github.pulls) == 1


async def test_what_an_earlier_life_pushed_is_not_put_beside_it(world: World) -> None:
    """It died before it could say so; no pull request is opened all the same."""
    task, one = await world.begin()
    with pytest.raises(Death):
        await Workflow(world.desk(Script(*STORY)))(one.id, Dying(world, one))
    left = await stopped(world, task, one, STORY[:0], "push")
    assert sorted(world.shop.branches) == sorted(["main", task.branch])
    assert [fact.branch for fact in left if isinstance(fact, BranchPushed)] == [task.branch]
    assert world.github.pulls == {}


async def test_what_people_look_at_stays_as_it_is(world: World) -> None:
    """What was to be pushed to an open pull request is beside it, and no other one is opened."""
    task, one = await world.begin()
    await whole(world, one, *STORY)
    _, two = await world.begin("second", comment_id=900, request="More.")
    head = world.shop.branches[task.branch]
    await stopped(world, task, two, MORE, "push")
    assert world.shop.branches[task.branch] == head
    assert world.shop.commits[world.shop.branches[f"agent/7-{task.id[:8]}-run2"]] == {"rose.txt": b"wetter"}
    assert len(world.github.pulls) == 1


async def test_what_a_round_pushed_is_told_by_the_next_one(world: World, pull: int) -> None:
    """Its commit is in the pull request, and its answers are not lost."""
    say(world, pull, WRITER, "Wetter, please.")
    task, one = await asked(world)
    story = (*MORE[:1], reply(write("rose.txt", "w"), answer("T1")), *MORE[2:])
    await stopped(world, task, one, story, "pull")
    head = world.shop.branches[task.branch]
    assert world.shop.commits[head] == {"rose.txt": b"w"}
    _, again = await world.begin("again", comment_id=901, request="")
    await whole(world, again, *[reply(finish())] * 3)
    _, ((is_resolved, words),) = left(world, pull)
    assert is_resolved
    assert words.startswith(f"Dealt with in {head}, which changes `rose.txt`.")


async def test_nobody_is_asked_about_what_was_stopped(world: World) -> None:
    """A protected change stays on the server; the next run goes on from it."""

    def act(copy: Copy) -> ExecResult:
        copy.files[PATH] = b"on: push\n"
        return ExecResult(0, "", "", 0.1, timed_out=False)

    world.commands |= {"make ci": act}
    task, one = await world.begin()
    await stopped(world, task, one, (reply(run("make ci")), reply(finish("Made."))), "protected")
    assert await waiting_for(world.store, task) == []
    assert await kept(world.store, task) is not None
    assert list(world.shop.branches) == ["main"]
    _, again = await world.begin("again", comment_id=900, request="")
    await whole(world, again, reply(finish("Made.")))
    assert (await ended(world, task, again.seq)).outcome == "waiting"
