"""Others push while a run works: its commit goes on top of theirs, and beside them where the two conflict."""

from itertools import pairwise

import pytest

from bot.domain.events import BranchPushed, CommitMade, Notice
from bot.domain.task import Run, Task
from bot.tasks.engines.base import Action, Json
from bot.tasks.workflow import Workflow
from tests.unit.agent.made import broken_rules
from tests.unit.tasks.made import Script, World, finish, read, reply, write
from tests.unit.tasks.test_workflow import Death, Mortal, ended, whole

SCRIPT = (reply(read("rose.txt")), reply(write("rose.txt", "wet")), reply(finish("Watered them.")))
MORE = (reply(read("rose.txt")), reply(write("rose.txt", "wetter")), reply(finish("Watered them more.")))
ON_TOP = "The work is rebased over a commit that was pushed meanwhile. The checks ran before that: `/agent check`"


class Rival(Mortal):
    """Steps before one of which somebody pushes."""

    def __init__(self, world: World, one: Run, task: Task, *, inside: bool = False, at: int | None = None) -> None:
        super().__init__(world, one, at=at, inside=inside)
        self._world = world
        self._task = task
        self.files: dict[str, bytes] = {"tulip_txt": b"theirs"}
        self.again = False

    async def __call__(self, name: str, action: Action) -> Json:
        """Let them push, and then make the step."""
        if name == "push" and self.files:
            self._world.shop.theirs(self._task.branch, **self.files)
            self.files = {}
        return await super().__call__(name, action)


async def second(world: World) -> tuple[Task, Run]:
    """Publish the work of one run, and begin another."""
    task, one = await world.begin()
    await whole(world, one, *SCRIPT)
    _, two = await world.begin("second", comment_id=4, request="More.")
    return task, two


async def facts(world: World, task: Task, seq: int = 2) -> list[object]:
    """What a run left in the stream."""
    return [event.fact for event in await world.store.events(task.id) if event.run == seq]


async def test_the_work_goes_on_top_of_what_others_pushed(world: World) -> None:
    """One commit, theirs below it; the text of the pull request says so, and claims no check of it."""
    task, two = await second(world)
    steps = Rival(world, two, task)
    await Workflow(world.desk(Script(*MORE)))(two.id, steps)
    assert (await ended(world, task, 2)).outcome == "done"
    head = world.shop.branches[task.branch]
    assert world.shop.commits[head] == {"rose.txt": b"wetter", "tulip.txt": b"theirs"}
    assert world.shop.commits[world.shop.parents[head]] == {"rose.txt": b"wet", "tulip.txt": b"theirs"}
    assert sorted(world.shop.branches) == sorted(["main", task.branch])
    told = await facts(world, task)
    before, after = [fact for fact in told if isinstance(fact, CommitMade)]
    assert before.same_tree_as is not None
    assert (after.sha, after.same_tree_as, after.put_from) == (head, None, before.sha)
    assert BranchPushed(task.branch, head) in told
    [pull] = world.github.pulls.values()
    assert ON_TOP in pull.body


async def test_what_others_did_too_is_not_pushed_again(world: World) -> None:
    """Their commit stands for ours, and no empty one is put on it."""
    task, two = await second(world)
    steps = Rival(world, two, task)
    steps.files = {"rose_txt": b"wetter"}
    await Workflow(world.desk(Script(*MORE)))(two.id, steps)
    assert (await ended(world, task, 2)).outcome == "done"
    head = world.shop.branches[task.branch]
    assert head not in world.shop.signed
    told = await facts(world, task)
    assert [fact.text.split(",")[0] for fact in told if isinstance(fact, Notice) and "meanwhile" in fact.text] == [
        "Others pushed the same change meanwhile"
    ]


@pytest.mark.parametrize("inside", [False, True], ids=["before", "inside"])
@pytest.mark.parametrize("step", ["push", "pull"])
async def test_a_death_makes_no_second_commit(world: World, step: str, *, inside: bool) -> None:
    """Wherever a process dies around the push, the change is on the branch once."""
    task, two = await second(world)
    names = ["announce", "prepare", "environment", "approved/0", "inbox/1", "model/1", "tool/1/0", "inbox/2"]
    names += ["model/2", "tool/2/0", "inbox/3", "model/3", "tool/3/0", "inbox/4", "commit", "push", "pull"]
    steps = Rival(world, two, task, at=names.index(step) + 1, inside=inside)
    with pytest.raises(Death):
        await Workflow(world.desk(Script(*MORE)))(two.id, steps)
    assert steps.names == names[: names.index(step) + 1]
    # In the gap they push once more.
    world.shop.theirs(task.branch, poppy_txt=b"later")
    await Workflow(world.desk(Script()))(two.id, Mortal(world, two))
    assert (await ended(world, task, 2)).outcome == "done"
    head = world.shop.branches[task.branch]
    assert world.shop.commits[head] == {"rose.txt": b"wetter", "tulip.txt": b"theirs", "poppy.txt": b"later"}
    line = [world.shop.commits[one]["rose.txt"] for one in world.shop.history(head)]
    assert sum(after != before for after, before in pairwise(line)) == 2
    assert sorted(world.shop.branches) == sorted(["main", task.branch])
    assert broken_rules(list(await world.store.messages(task.id, run=2))) == []


async def test_what_conflicts_goes_beside_it(world: World) -> None:
    """Nothing of theirs is lost, and people hear where the work is."""
    task, two = await second(world)
    steps = Rival(world, two, task)
    steps.files = {"rose_txt": b"theirs"}
    await Workflow(world.desk(Script(*MORE)))(two.id, steps)
    aside = f"agent/7-{task.id[:8]}-run2"
    assert world.shop.commits[world.shop.branches[task.branch]] == {"rose.txt": b"theirs"}
    assert world.shop.commits[world.shop.branches[aside]] == {"rose.txt": b"wetter"}
    notices = [fact.text for fact in await facts(world, task) if isinstance(fact, Notice)]
    assert f"`{task.branch}` has commits of others by now, so the work is beside it, on `{aside}`." in notices


async def test_a_branch_that_moves_again_is_left_to_them(world: World) -> None:
    """It is tried once; then the work goes beside the branch."""
    task, two = await second(world)
    steps = Rival(world, two, task)
    fetch = world.shop.fetch

    async def fetched(task_id: str, origin: object, branch: str) -> str:
        found = await fetch(task_id, origin, branch)  # type: ignore[arg-type]
        if branch == task.branch:
            world.shop.theirs(branch, lily_txt=b"again")
        return found

    world.shop.fetch = fetched  # type: ignore[method-assign]
    await Workflow(world.desk(Script(*MORE)))(two.id, steps)
    aside = f"agent/7-{task.id[:8]}-run2"
    assert world.shop.commits[world.shop.branches[aside]] == {"rose.txt": b"wetter"}
    assert world.shop.commits[world.shop.branches[task.branch]] == {
        "rose.txt": b"wet",
        "tulip.txt": b"theirs",
        "lily.txt": b"again",
    }
