"""What people do in threads while a round runs, and behind it: nothing that they say is buried or left unheard."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

import pytest

from bot.domain.events import RoundAnswered
from bot.domain.review import OpenThread
from bot.domain.task import Run, Task
from bot.github.reviews import ReviewThread
from bot.github.rounds import SILENT
from bot.settings.server import LimitsSection, ServerSettings
from bot.tasks.engines.base import Action, Json
from bot.tasks.workflow import Workflow
from tests.unit.tasks.made import START, Script, World, finish, read, reply, write
from tests.unit.tasks.test_round_answers import approve, facts, held
from tests.unit.tasks.test_rounds import SECOND, WRITER, answer, asked, left, plays, pull, say
from tests.unit.tasks.test_workflow import Death, Mortal, ended, whole

__all__ = ["pull"]

WETTER = (reply(read("rose.txt")), reply(write("rose.txt", "wetter"), answer("T1")), reply(finish()), reply(finish()))
MORE = "What people wrote here since this round was asked for is left for the next one:"
DRY = "Wait: keep it dry!"


class Meanwhile(Mortal):
    """Steps before one of which people do something."""

    def __init__(self, world: World, one: Run, step: str, happens: Callable[[], object]) -> None:
        super().__init__(world, one)
        self._step, self._happens = step, happens

    async def __call__(self, name: str, action: Action) -> Json:
        """Let it happen, and then make the step."""
        if name == self._step:
            self._happens()
        return await super().__call__(name, action)


class Dying(Mortal):
    """Steps that end the process behind the effects of the answers, before they are recorded."""

    async def __call__(self, name: str, action: Action) -> Json:
        """Make the step, or die behind it."""
        if name == "answers":
            await action()
            raise Death
        return await super().__call__(name, action)


def now(world: World, pull: int, thread: ReviewThread) -> ReviewThread:
    """Return a thread as it stands."""
    return next(one for one in world.github.reviews.threads[pull] if one.id == thread.id)


def add(world: World, pull: int, thread: ReviewThread, body: str, at: datetime = START + SECOND) -> None:
    """Let a writer say something in a thread."""
    there = now(world, pull, thread).comments
    made = replace(there[0], id=990 + len(there), body=body, created_at=at)
    world.github.reviews.change(pull, thread.id, comments=(*there, made))


def edit(world: World, pull: int, thread: ReviewThread) -> None:
    """Let a writer say something else than was told."""
    [only] = now(world, pull, thread).comments
    world.github.reviews.change(pull, thread.id, comments=(replace(only, body=DRY, edited_at=START + SECOND),))


@pytest.mark.parametrize("how", ["later", "a draft", "edited"])
async def test_what_is_said_while_the_round_runs_keeps_the_thread_open(world: World, pull: int, how: str) -> None:
    """The answer stands, and says that the rest is for the next round, which is told of it and has to answer."""
    thread, other = say(world, pull, WRITER, "Wetter, please."), say(world, pull, WRITER, "Wetter, as I said.")
    task, one = await asked(world)

    def happens() -> None:
        if how == "edited":
            edit(world, pull, thread)
        else:
            # What was drafted before the request and sent after it has the date of the draft.
            add(world, pull, thread, DRY, START if how == "a draft" else START + SECOND)

    story = [*WETTER[:2], reply(answer("T2")), *WETTER[2:]]
    await Workflow(world.desk(Script(*story)))(one.id, Meanwhile(world, one, "model/2", happens))
    assert RoundAnswered(2, 1) in await facts(world, task, one.seq)
    assert (now(world, pull, thread).is_resolved, now(world, pull, other).is_resolved) == (False, True)
    said = now(world, pull, thread).comments[-1].body
    assert said.startswith(f"{MORE} `/agent fix` begins it.\n\nDealt with in ")
    assert MORE not in now(world, pull, other).comments[-1].body
    world.clock.move(60)
    _, two = await world.begin("again", comment_id=901, request="")
    script = await plays(world, two, write("rose.txt", "dry"))
    assert DRY in str(script.prompts[0].messages)
    assert "yet: T1 of the review" in str(script.prompts[-1].messages)
    _, three = await world.begin("and again", comment_id=902, request="")
    await plays(world, three, write("rose.txt", "drier"), answer("T1"))
    assert now(world, pull, thread).is_resolved


async def test_what_is_said_while_answers_are_posted_keeps_the_thread_open(world: World, pull: int) -> None:
    """That may take a while, and the answer could not know of it."""
    thread = say(world, pull, WRITER, "Wetter, please.")
    task, one = await asked(world)
    reviews, seen = world.github.reviews, list[str]()
    called = reviews.call

    def call(name: str) -> None:
        called(name)
        if name == "review_threads" and "reply_in_review" in seen:
            add(world, pull, thread, DRY)
            seen.clear()
        seen.append(name)

    reviews.call = call
    await whole(world, one, *WETTER)
    assert not now(world, pull, thread).is_resolved
    assert now(world, pull, thread).comments[-1].body == DRY
    assert RoundAnswered(1, 0) in await facts(world, task, one.seq)


async def test_an_objection_to_what_is_held_keeps_the_thread_open(world: World, pull: int) -> None:
    """Days may lie between what the round was told and the push."""
    task = await held(world, pull)
    thread = world.github.reviews.threads[pull][0]
    add(world, pull, thread, DRY)
    await whole(world, await approve(world, task))
    assert not now(world, pull, thread).is_resolved
    assert now(world, pull, thread).comments[-1].body.startswith(MORE)


async def test_what_people_resolve_while_the_round_runs_is_left_alone(world: World, pull: int) -> None:
    """Unless the model answered there."""
    threads = [say(world, pull, WRITER, body) for body in ("First.", "Second.", "Third.")]
    _, one = await asked(world)

    def happens() -> None:
        for thread in threads[:2]:
            add(world, pull, thread, "Never mind.")
            world.github.reviews.change(pull, thread.id, is_resolved=True)

    story = [*WETTER[:1], reply(write("rose.txt", "wetter"), answer("T2")), *WETTER[2:]]
    await Workflow(world.desk(Script(*story)))(one.id, Meanwhile(world, one, "answers", happens))
    assert [one.is_resolved for one in world.github.reviews.threads[pull]] == [True, True, False]
    review, ((_, first), (_, second), (_, third)) = left(world, pull)
    assert first == "Never mind."
    # Nobody is told that a resolved thread is for the next round.
    assert second.startswith("Dealt with in ")
    assert third.startswith(SILENT)
    assert review.startswith("Answers to 2 threads.")


@pytest.mark.parametrize("dies", [False, True])
async def test_a_thread_that_is_opened_again_is_due(world: World, pull: int, *, dies: bool) -> None:
    """Whoever does so need not say why: the model is told, and asked for an answer until it gives one."""
    thread, other = say(world, pull, WRITER, "Wetter, please."), say(world, pull, WRITER, "Why?")
    _, one = await asked(world)
    story = [WETTER[0], reply(write("rose.txt", "wetter"), answer("T1"), answer("T2", done=False)), *WETTER[2:]]
    if dies:
        with pytest.raises(Death):
            await Workflow(world.desk(Script(*story)))(one.id, Dying(world, one))
    await Workflow(world.desk(Script(*([] if dies else story))))(one.id, Mortal(world, one))
    assert [one.is_resolved for one in world.github.reviews.threads[pull]] == [True, False]
    world.github.reviews.change(pull, thread.id, is_resolved=False)
    _, two = await world.begin("again", comment_id=901, request="")
    script = await plays(world, two, write("rose.txt", "dry"))
    assert "review thread T1; opened again after you resolved it" in str(script.prompts[0].messages)
    assert "yet: T1 of the review" in str(script.prompts[-1].messages)
    assert now(world, pull, thread).comments[-1].body.startswith(SILENT)
    assert len(now(world, pull, other).comments) == 2
    _, three = await world.begin("and again", comment_id=902, request="")
    script = await plays(world, three, write("rose.txt", "drier"), answer("T1", done=False))
    assert "yet: T" not in str(script.prompts[-1].messages[-3:])
    assert now(world, pull, thread).comments[-1].body.startswith("Left open.")
    _, four = await world.begin("once more", comment_id=903, request="")
    await plays(world, four, write("rose.txt", "driest"))
    assert len(now(world, pull, thread).comments) == 4


async def test_a_commit_that_people_took_out_deals_with_nothing(world: World, pull: int) -> None:
    """Nor does what was said of it: the thread is as if that round had not been."""
    thread = say(world, pull, WRITER, "Wetter, please.")
    task, before = await cut_short(world)
    world.shop.branches[task.branch] = before
    _, two = await world.begin("again", comment_id=901, request="")
    await whole(world, two, *[reply(finish())] * 3)
    assert (await ended(world, task, two.seq)).outcome == "done"
    assert not now(world, pull, thread).is_resolved
    assert now(world, pull, thread).comments[-1].body.startswith(SILENT)


async def test_a_commit_that_others_pushed_over_still_deals_with_it(world: World, pull: int) -> None:
    """It is in the pull request."""
    thread = say(world, pull, WRITER, "Wetter, please.")
    task, _ = await cut_short(world)
    made = world.shop.branches[task.branch]
    world.shop.theirs(task.branch, lily_txt=b"new")
    _, two = await world.begin("again", comment_id=901, request="")
    await whole(world, two, *[reply(finish())] * 3)
    assert now(world, pull, thread).is_resolved
    assert now(world, pull, thread).comments[-1].body.startswith(f"Dealt with in {made}, ")


async def test_an_edit_behind_a_round_that_was_cut_short_asks_for_something_else(world: World, pull: int) -> None:
    """What was done and said there was about other words."""
    thread = say(world, pull, WRITER, "Wetter, please.")
    await cut_short(world)
    edit(world, pull, thread)
    world.clock.move(60)
    _, two = await world.begin("again", comment_id=901, request="")
    await whole(world, two, *[reply(finish())] * 3)
    assert not now(world, pull, thread).is_resolved
    assert now(world, pull, thread).comments[-1].body.startswith(SILENT)


def test_what_an_earlier_version_kept_is_read() -> None:
    """Of such a thread nobody knows what was told, so that it stays open."""
    thread = OpenThread("T1", "PRRT_1", "a.py", 3, None, old_side=False, outdated=False, hunk="", said=())
    data = thread.to_data()
    del data["seen"], data["reopened"]
    assert OpenThread.from_data(data) == thread
    assert OpenThread.from_data(replace(thread, seen=("1",), reopened=True).to_data()).seen == ("1",)


async def cut_short(world: World) -> tuple[Task, str]:
    """Let a limit end a round behind its answer; return where the branch stood before."""
    task, one = await asked(world)
    before = world.shop.branches[task.branch]
    world.settings = ServerSettings(limits=LimitsSection(turns=2))
    await whole(world, one, *WETTER)
    assert (await ended(world, task, one.seq)).outcome == "budget"
    world.settings = ServerSettings()
    return task, before
