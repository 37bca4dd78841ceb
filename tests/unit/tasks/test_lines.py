"""Requests on lines: where people see what a call would change, they are asked there, once, and decide there."""

from dataclasses import replace

import pytest

from bot.domain.events import ActionCarriedOut, ActionRequested
from bot.domain.messages import ToolCall
from bot.domain.task import Run, Task
from bot.errors import Conflict
from bot.github.reviews import ReviewThread
from bot.store.base import Decision
from bot.tasks.decisions import Decided, approve, waiting_for
from bot.tasks.engines.base import Action, Json
from bot.tasks.plans import open_plan
from bot.tasks.workflow import Workflow
from tests.unit.tasks.github import REPOSITORY
from tests.unit.tasks.made import Script, Shop, World, finish, read, reply, write
from tests.unit.tasks.test_gates import DEPLOYS, context, facts, told
from tests.unit.tasks.test_intake import FLORA, Door
from tests.unit.tasks.test_planning import propose
from tests.unit.tasks.test_workflow import Death, Mortal, ended, left, whole

PATH = "deploy/all.sh"
HEAD = "a" * 40
"""Where every pull request of the double stands."""
TEXT = b"one\ntwo\nthree\n"
EDIT = reply(ToolCall("e", "edit", '{"path": "deploy/all.sh", "old": "two\\nthree", "new": "two\\n3"}'))
ASKS = (reply(read(PATH)), EDIT)
DONE = (reply(finish("Deployed.")),)


@pytest.fixture
async def pull(world: World) -> int:
    """The pull request of a first run, and the file in it as it was pushed."""
    world.github.files[".github/issuewright.yml"] = DEPLOYS
    world.shop = Shop({"rose.txt": b"dry\n", PATH: TEXT})
    task, one = await world.begin()
    await whole(world, one, reply(read("rose.txt")), reply(write("rose.txt", "wet")), reply(finish()))
    assert (await ended(world, task)).outcome == "done"
    [number] = world.github.pulls
    world.github.commits[HEAD] = {PATH: b"a line that was pushed since\n" + TEXT}
    return number


async def asks(world: World, key: str = "second") -> tuple[Task, Run]:
    """Work until the edit waits."""
    task, one = await world.begin(key, comment_id=900, request="Deploy it.")
    await whole(world, one, *ASKS)
    assert (await ended(world, task, one.seq)).outcome == "waiting"
    return task, one


def threads(world: World, pull: int) -> list[ReviewThread]:
    """Return the threads on lines."""
    return world.github.reviews.threads.get(pull, [])


async def decision(world: World, task: Task) -> Decision:
    """Return the last decision."""
    return (await world.store.decisions(task.id))[-1]


async def yes(world: World, root: int | None, *, key: str = "yes", short: str | None = None) -> Decided:
    """Approve in a thread on a line, or in the conversation."""
    return await approve(
        world.store,
        world.github,
        context(key),
        short_hash=short,
        always=None,
        in_thread_of=root,
        required=1,
        clock=world.clock,
        comment_id=None if root else 10_000,
    )


async def test_it_stands_on_the_first_line_that_changes(world: World, pull: int) -> None:
    """Of the file as it is at the head, and nowhere else; the next run makes the change once."""
    task, _ = await asks(world)
    [thread] = threads(world, pull)
    assert (thread.path, thread.line, thread.side) == (PATH, 4, "RIGHT")
    [comment] = thread.comments
    assert comment.body.startswith("@flora: **a call of `edit` waits for approval**")
    assert world.github.reviews.given[pull][0].commit == HEAD
    assert not any("waits for approval**" in body for body in world.github.bodies(7))
    kept = await decision(world, task)
    assert (kept.comment_id, kept.on_line) == (comment.id, True)
    said = await yes(world, comment.id)
    assert said.kind == "approved"
    [thread] = threads(world, pull)
    assert thread.is_resolved
    assert thread.comments[0].body.startswith(f"{said.text}\n\n<details>")
    _, one = await world.begin("third", comment_id=901, request="")
    script = await whole(world, one, *DONE)
    assert "was approved by maria" in told(script)
    assert len(await facts(world, task, ActionCarriedOut)) == 1
    assert world.shop.commits[world.shop.branches[task.branch]][PATH] == b"one\ntwo\n3\n"
    assert (await yes(world, comment.id, key="again")).text.startswith("The call `")


@pytest.mark.parametrize("why", ["refused", "closed", "moved", "gone"])
async def test_else_it_stands_in_the_conversation(world: World, pull: int, why: str) -> None:
    """Where the line is not in the diff, the pull request is closed or another's, or the file is not there."""
    if why == "refused":
        world.github.faults["review_comment"] = [Conflict("line must be part of the diff", status=422)]
    elif why == "gone":
        world.github.commits[HEAD] = {}
    else:
        changed = {"closed": {"state": "closed"}, "moved": {"head_branch": "other"}}[why]
        world.github.pulls[pull] = replace(world.github.pulls[pull], **changed)  # type: ignore[arg-type]
    task, _ = await asks(world)
    assert threads(world, pull) == []
    assert sum("waits for approval**" in body for body in world.github.bodies(7)) == 1
    assert not (await decision(world, task)).on_line
    assert (await yes(world, None)).kind == "approved"


@pytest.mark.parametrize("change", ["edited", "deleted"])
async def test_a_comment_that_is_not_as_it_was_posted_is_void(world: World, pull: int, change: str) -> None:
    """It is looked for among those on lines: one of the conversation may have the same id."""
    task, _ = await asks(world)
    [thread] = threads(world, pull)
    [comment] = thread.comments
    world.github.threads[7][-1] = type(world.github.threads[7][-1])(comment.id, comment.body, 42, "")
    if change == "edited":
        await world.github.reviews.edit_review_comment(REPOSITORY, comment.id, comment.body.replace("+3", "+4"))
    else:
        world.github.reviews.threads[pull].clear()
    said = await yes(world, comment.id)
    assert "is void: its comment is not as it was posted" in said.text
    assert await waiting_for(world.store, task) == []


@pytest.mark.usefixtures("pull")
async def test_ids_of_different_kinds_are_not_compared(world: World) -> None:
    """Nor are clocks: whether a request on a line was there when somebody wrote elsewhere, only its hash says."""
    task, _ = await asks(world)
    asked = await decision(world, task)
    said = await yes(world, None)
    assert said.text.startswith("Say which call you mean")
    assert f"`{asked.hash[:8]}`" in said.text
    assert (await decision(world, task)).verdict is None
    assert (await yes(world, None, key="hash", short=asked.hash[:8])).kind == "approved"


@pytest.mark.usefixtures("pull")
async def test_another_thread_is_not_the_requests_own(world: World) -> None:
    """A request in the conversation may have the id of a thread's first comment."""
    world.github.faults["review_comment"] = [Conflict("line must be part of the diff", status=422)]
    task, _ = await asks(world)
    kept = await decision(world, task)
    assert (await yes(world, kept.comment_id)).kind == "refused"
    assert (await yes(world, kept.comment_id, key="hash", short=kept.hash[:8])).kind == "approved"


async def test_a_round_passes_requests_over(world: World, pull: int) -> None:
    """There is nothing for the model to answer, whatever people say there."""
    task, _ = await asks(world)
    [thread] = threads(world, pull)
    github = world.github.reviews
    theirs = github.review(pull, context("x").actor, "COMMENTED")
    other = github.begin(pull, theirs, "rose.txt", 1, "Why wet?")
    github.change(pull, thread.id, comments=(*thread.comments, other.comments[0]))
    _, one = await world.begin("third", comment_id=901, request="")
    found = await world.publisher().threads((await world.store.task(task.id)) or task, one)
    assert [known.id for known in found.open] == [other.id]


class DiesAt(Mortal):
    """Steps that end the process at the one of a name."""

    def __init__(self, world: World, one: Run, name: str, *, inside: bool) -> None:
        super().__init__(world, one, inside=inside)
        self._name = name

    async def __call__(self, name: str, action: Action) -> Json:
        """Make a step, or die."""
        if name == self._name:
            self._at = len(self.names) + 1
        return await super().__call__(name, action)


@pytest.mark.parametrize("refused", [False, True], ids=["on line", "refused"])
@pytest.mark.parametrize("moment", ["before", "made", "inside"])
async def test_a_death_while_it_is_asked_changes_nothing(
    world: World, pull: int, moment: str, *, refused: bool
) -> None:
    """One comment and one request, also where the worker dies right behind the comment."""
    github = world.github
    if refused:
        github.faults["review_comment"] = [Conflict("line must be part of the diff", status=422) for _ in range(2)]
    task, one = await world.begin("second", comment_id=900, request="Deploy it.")
    place, name = (github, "comment") if refused else (github.reviews, "review_comment")
    make = getattr(place, name)

    async def dying(*args: object, **more: object) -> object:
        made = await make(*args, **more)
        if "waits for approval**" in str((*args, *more.values())):
            raise Death
        return made

    if moment == "made":
        setattr(place, name, dying)
    with pytest.raises(Death):
        await Workflow(world.desk(Script(*ASKS)))(one.id, DiesAt(world, one, _AT[moment], inside=moment == "inside"))
    setattr(place, name, make)
    await Workflow(world.desk(Script()))(one.id, Mortal(world, one))
    assert (await ended(world, task, 2)).outcome == "waiting"
    assert len(threads(world, pull)) == (0 if refused else 1)
    assert sum("waits for approval**" in body for body in github.bodies(7)) == (1 if refused else 0)
    assert len(await facts(world, task, ActionRequested)) == 1
    assert (await decision(world, task)).on_line is not refused
    before = await left(world, task)
    await Workflow(world.desk(Script()))(one.id, Mortal(world, one))
    assert await left(world, task) == before


_AT = {"before": "gate", "inside": "gate", "made": ""}


async def test_in_its_own_thread_a_yes_is_no_yes_to_a_plan(world: World, pull: int) -> None:
    """Without a hash the request is meant there, although a plan waits too."""
    task, _ = await asks(world)
    door = Door(world, world.settings)
    handled = await door.comment("/agent plan Something else.")
    assert handled.accepted is not None
    await world.store.admit("us", slots=9, per_installation=9)
    one = await world.store.run(task.id, handled.accepted.run.seq)
    assert one is not None
    await whole(world, one, reply(propose("Something else.")))
    assert await open_plan(world.store, task) is not None
    [thread] = threads(world, pull)
    said = {"id": 9000, "body": "/agent approve", "user": FLORA, "created_at": "2026-11-30T12:00:00Z"}
    said |= {"path": PATH, "line": 4, "in_reply_to_id": thread.comments[0].id}
    shown = {"number": pull, "title": "t", "state": "open", "user": FLORA}
    handled = await door.play(
        "pull_request_review_comment", action="created", sender=FLORA, pull_request=shown, comment=said
    )
    assert (await decision(world, task)).verdict == "approved"
    assert threads(world, pull)[0].is_resolved
