"""What is pushed and needs a look is pointed out on its first changed line."""

import pytest

from bot.domain.events import PullOpened
from bot.domain.task import Run, Task
from bot.errors import Conflict, Forbidden
from bot.github.reviews import ReviewThread
from bot.tasks.marks import MOST
from bot.tasks.workflow import Workflow
from tests.unit.tasks.made import Script, Shop, World, finish, reply, run
from tests.unit.tasks.test_gates import facts
from tests.unit.tasks.test_lines import DiesAt
from tests.unit.tasks.test_protection import puts
from tests.unit.tasks.test_workflow import Death, Mortal, ended, left, whole

FILES = {"rose.txt": b"dry\n", "uv.lock": b"one\ntwo\nthree\n"}
STORY = (reply(run("lock")), reply(finish("Locked.")))


@pytest.fixture
def world(world: World) -> World:
    """A world with a command that changes files which need a look."""
    world.shop = Shop(FILES)
    changed = {"uv.lock": b"one\n2\nthree\n", "Dockerfile": b"FROM x\n", "bun.lockb": b"\0\1", "rose.txt": b"wet\n"}
    world.commands["lock"] = puts(changed)
    return world


async def works(world: World) -> tuple[Task, Run]:
    """Lock."""
    task, one = await world.begin()
    await whole(world, one, *STORY)
    return task, one


def marks(world: World) -> list[ReviewThread]:
    """Return the threads on lines."""
    return [thread for threads in world.github.reviews.threads.values() for thread in threads]


async def test_each_file_is_pointed_out_once(world: World) -> None:
    """On its first line that changed; what is no text stands in the pull request's text alone."""
    task, _ = await works(world)
    assert [(one.path, one.line) for one in marks(world)] == [("uv.lock", 2), ("Dockerfile", 1)]
    lock, image = [one.comments[0].body for one in marks(world)]
    assert lock.startswith("**Look at this with care:** this file decides which versions are installed.\n\n<!-- ")
    assert image.startswith("**Look at this with care:** this file decides how an image is built, and what is in it.")
    [pull] = world.github.pulls.values()
    assert "the change changes lock files: `bun.lockb`, `uv.lock`" in pull.body
    assert (await ended(world, task)).outcome == "done"
    threads = await world.publisher().threads((await world.store.task(task.id)) or task, _)
    assert threads.open == []


async def test_a_further_run_points_out_its_own_changes(world: World) -> None:
    """Not what an earlier one changed."""
    await works(world)
    world.commands["more"] = puts({"Dockerfile": b"FROM x\nRUN y\n"})
    _, one = await world.begin("second", comment_id=900, request="More.")
    await whole(world, one, reply(run("more")), reply(finish("More.")))
    assert [(one.path, one.line) for one in marks(world)] == [("uv.lock", 2), ("Dockerfile", 1), ("Dockerfile", 2)]


async def test_of_many_files_the_first_ones(world: World) -> None:
    """The pull request's text says how many there are."""
    world.commands["lock"] = puts({f"{number:02}/go.sum": b"x\n" for number in range(MOST + 5)})
    await works(world)
    assert len(marks(world)) == MOST


@pytest.mark.parametrize("refusal", [Conflict("not in the diff", status=422), Forbidden("locked", status=403)])
async def test_a_refusal_changes_nothing(world: World, refusal: Exception) -> None:
    """The next file is pointed out all the same, and the work stands."""
    world.github.faults["review_comment"] = [refusal]
    task, _ = await works(world)
    assert [one.path for one in marks(world)] == ["Dockerfile"]
    assert (await ended(world, task)).outcome == "done"


async def test_where_threads_cannot_be_read_the_work_stands(world: World) -> None:
    """Nothing is pointed out then."""
    world.github.faults["review_threads"] = [Forbidden("Resource not accessible by integration", status=403)]
    task, _ = await works(world)
    assert marks(world) == []
    assert (await ended(world, task)).outcome == "done"


@pytest.mark.parametrize("moment", ["before", "made", "inside"])
async def test_a_death_repeats_nothing(world: World, moment: str) -> None:
    """One comment for each file, also where the worker dies between two."""
    task, one = await world.begin()
    make = world.github.reviews.review_comment

    async def dying(*args: object, **more: object) -> None:
        await make(*args, **more)  # type: ignore[arg-type]  # as the caller has it
        raise Death

    if moment == "made":
        world.github.reviews.review_comment = dying  # type: ignore[assignment,method-assign]  # dies behind its call
    at = "" if moment == "made" else "marks"
    with pytest.raises(Death):
        await Workflow(world.desk(Script(*STORY)))(one.id, DiesAt(world, one, at, inside=moment == "inside"))
    world.github.reviews.review_comment = make  # type: ignore[method-assign]  # a new life
    await Workflow(world.desk(Script()))(one.id, Mortal(world, one))
    assert [thread.path for thread in marks(world)] == ["uv.lock", "Dockerfile"]
    assert len(await facts(world, task, PullOpened)) == 1
    before = await left(world, task)
    await Workflow(world.desk(Script()))(one.id, Mortal(world, one))
    assert await left(world, task) == before
