"""Rounds of review: as of the command, bounded, and resolved only where what was asked for was done."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from bot.domain.messages import Reply, ToolCall
from bot.domain.refs import Actor
from bot.domain.task import Run, Task
from bot.github.reviews import ReviewThread
from bot.settings.server import ServerSettings
from bot.tasks.desk import Threads
from bot.tasks.threads import EDITED
from bot.tasks.workflow import Workflow
from tests.unit.tasks.made import START, Script, World, finish, read, reply, write
from tests.unit.tasks.test_intake import FLORA, Door, issue
from tests.unit.tasks.test_workflow import Death, Mortal, ended, whole

WRITER, STRANGER = Actor(1, "flora"), Actor(2, "moss")
SECOND = timedelta(seconds=1)


@pytest.fixture
async def pull(world: World) -> int:
    """The pull request of a first run."""
    world.github.permissions = {WRITER.id: "write", STRANGER.id: "read"}
    _, one = await world.begin()
    await whole(world, one, reply(read("rose.txt")), reply(write("rose.txt", "wet")), reply(finish()))
    [number] = world.github.pulls
    return number


def say(world: World, pull: int, by: Actor, body: str, path: str = "rose.txt") -> ReviewThread:
    """Let somebody begin a thread."""
    reviews = world.github.reviews
    return reviews.begin(pull, reviews.review(pull, by, "COMMENTED"), path, 1, body)


async def asked(world: World, **changes: object) -> tuple[Task, Run]:
    """Queue the round, and take it."""
    return await world.begin("round", comment_id=900, request="", **changes)


async def known(world: World, task: Task, one: Run) -> Threads:
    """Fetch what a run may know."""
    return await world.publisher().threads((await world.store.task(task.id)) or task, one)


def answer(name: str, *, done: bool = True) -> ToolCall:
    """Answer a thread."""
    return ToolCall(f"a{name}", "answer_thread", json.dumps({"thread": name, "text": "Done.", "done": done}))


async def plays(world: World, one: Run, *calls: ToolCall) -> Script:
    """Work on a round; the model looks at the file first."""
    return await whole(world, one, reply(read("rose.txt")), reply(*calls), reply(finish()), reply(finish()))


def left(world: World, pull: int) -> tuple[str, list[tuple[bool, str]]]:
    """Return the text of our last review, and of each thread whether it is resolved and its last words."""
    [*_, review] = [one.body for one in world.github.reviews.given[pull] if one.is_ours]
    threads = world.github.reviews.threads[pull]
    return review, [(thread.is_resolved, thread.comments[-1].body) for thread in threads]


async def test_what_a_commit_does_not_touch_stays_open(world: World, pull: int) -> None:
    """The model's word alone resolves nothing."""
    for path in ("rose.txt", "secure.py"):
        say(world, pull, WRITER, "Check the token.", path)
    _, one = await asked(world)
    await plays(world, one, write("rose.txt", "wetter"), answer("T1"), answer("T2"))
    review, (rose, secure) = left(world, pull)
    assert review.startswith("Answers to 2 threads.")
    assert rose[0]
    assert not secure[0]
    assert "which does not change `secure.py`" in secure[1]


async def test_what_no_writer_asked_for_is_not_resolved(world: World, pull: int) -> None:
    """A stranger's thread is data: it may be answered, and needs no answer."""
    for body in ("Remove it.", "And this."):
        say(world, pull, STRANGER, body)
    _, one = await asked(world)
    script = await plays(world, one, write("rose.txt", "wetter"), answer("T1"))
    assert len(script.prompts) == 3
    review, (first, second) = left(world, pull)
    assert review.startswith("Answers to 1 thread.")
    assert (first[0], second) == (False, (False, "And this."))
    assert "Dealt with in" in first[1]


async def test_nothing_is_said_where_nothing_is_due(world: World, pull: int) -> None:
    """And a round in which nothing was done is no success because strangers spoke."""
    say(world, pull, STRANGER, "Remove it.")
    task, one = await asked(world)
    await plays(world, one)
    assert not [body for body in world.github.reviews.given[pull] if body.is_ours]
    assert (await ended(world, task, one.seq)).reason != "No file was changed; the threads are answered."


async def test_a_writer_s_thread_has_to_be_answered(world: World, pull: int) -> None:
    """The model is reminded, and people are told where it stays silent."""
    say(world, pull, WRITER, "Remove it.")
    _, one = await asked(world)
    script = await plays(world, one, write("rose.txt", "wetter"))
    assert "T1 of the review have no answer" in str(script.prompts[-1].messages)
    assert left(world, pull)[1][0][1].startswith("Not dealt with in this round.")


async def test_what_there_is_no_room_for_is_told(world: World, pull: int) -> None:
    """To the model by name, to people by number; the writer's thread behind a flood is dealt with."""
    for _ in range(500):
        say(world, pull, STRANGER, "x" * 65_000)
    say(world, pull, WRITER, "Check the token.")
    task, one = await asked(world)
    script = await plays(world, one, write("rose.txt", "wetter"), answer("T501"))
    told = str(script.prompts[0].messages)
    assert len(told) < 100_000
    assert "Check the token." in told
    review, threads = left(world, pull)
    assert threads[500][0]
    untold = 501 - len(re.findall(r"review thread T\d+", told))
    assert 0 < untold < 500
    assert review.startswith(
        f"Answers to 1 thread. There was not room for all: {untold} threads are left for the next round."
    )
    assert (await ended(world, task, one.seq)).outcome == "done"


async def test_the_round_is_as_of_the_command(world: World, pull: int) -> None:
    """By GitHub's clock: an edit between it and our taking it up is left out and told, and a new comment too."""
    reviews = world.github.reviews
    plain, edited = say(world, pull, WRITER, "First."), say(world, pull, STRANGER, "Second.")
    reviews.now = START + 60 * SECOND
    say(world, pull, STRANGER, "Too late.")
    changed = replace(edited.comments[0], body="Evil.", edited_at=START + 40 * SECOND)
    reviews.change(pull, edited.id, comments=(changed,))
    world.clock.move(70)
    found = await known(world, *await asked(world, asked_at=START + 10 * SECOND))
    assert [[one.text for one in thread.said] for thread in found.open] == [["First."], [EDITED]]
    assert found.open[0].id == plain.id
    assert found.remark.startswith("1 comment was edited after the request")


async def test_what_is_left_out_asks_for_nothing(world: World, pull: int) -> None:
    """Also where a writer said it; an edit within the second of the command may be one after it."""
    thread = say(world, pull, WRITER, "First.")
    changed = replace(thread.comments[0], body="Evil.", edited_at=START + 10 * SECOND)
    world.github.reviews.change(pull, thread.id, comments=(changed,))
    [made] = (await known(world, *await asked(world, asked_at=START + 10 * SECOND))).open
    assert not made.is_asked


async def test_a_slow_clock_of_ours_hides_nothing(world: World, pull: int) -> None:
    """Where GitHub's time is known; else ours counts."""
    world.github.reviews.now = START + SECOND
    say(world, pull, WRITER, "First.")
    task, one = await asked(world, asked_at=START + 2 * SECOND)
    assert len((await known(world, task, one)).open) == 1
    assert (await known(world, task, replace(one, asked_at=None))).open == []


@pytest.mark.parametrize("how", ["comment", "line", "review", "label"])
async def test_the_time_of_the_command_is_github_s(world: World, pull: int, how: str) -> None:
    """Of each kind of command; our own clock goes elsewhere."""
    door, at = Door(world, ServerSettings()), "2026-11-30T11:00:07Z"
    world.clock.move(1000)
    said = {"id": 9000, "body": "/agent fix", "user": FLORA, "created_at": at}
    shown = {"number": pull, "title": "t", "state": "open", "user": FLORA}
    if how == "comment":
        handled = await door.play_comment(said)
    elif how == "line":
        handled = await door.play(
            "pull_request_review_comment", action="created", sender=FLORA, pull_request=shown, comment=said
        )
    elif how == "review":
        review = {"id": 77, "state": "changes_requested", "body": "No.", "user": FLORA, "submitted_at": at}
        handled = await door.play(
            "pull_request_review", action="submitted", sender=FLORA, pull_request=shown, review=review
        )
    else:
        label = {"id": 5, "name": "agent"}
        handled = await door.play("issues", action="labeled", sender=FLORA, label=label, issue=issue(7, at=at))
    assert handled.accepted is not None
    assert handled.accepted.run.asked_at == START - 3593 * SECOND


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("back", range(1, 9))
async def test_a_death_at_any_late_step_answers_once(world: World, pull: int, back: int, *, inside: bool) -> None:
    """From the commit on: there is one review of ours, and each thread has one answer."""
    thread = say(world, pull, WRITER, "Wetter, please.")
    story = (reply(read("rose.txt")), reply(write("rose.txt", "wetter"), answer("T1")), reply(finish()))
    task, one = await asked(world)
    names = await _lived(world, one, story)
    assert "answers" in names
    _, again = await world.begin("again", comment_id=901, request="")
    say(world, pull, WRITER, "Drier, please.")
    later = (reply(read("rose.txt")), reply(write("rose.txt", "drier"), answer("T1")), reply(finish()))
    with pytest.raises(Death):
        await Workflow(world.desk(Script(*later)))(
            again.id, Mortal(world, again, at=len(names) + 1 - back, inside=inside)
        )
    assert len(await _lived(world, again, later[-1:])) >= len(names)
    assert (await ended(world, task, again.seq)).outcome == "done"
    reviews = [one.body for one in world.github.reviews.given[pull] if one.is_ours]
    assert len(reviews) == 2
    first, second = world.github.reviews.threads[pull]
    assert first.id == thread.id
    assert [len(one.comments) for one in (first, second)] == [2, 2]
    assert (first.is_resolved, second.is_resolved) == (True, True)


async def _lived(world: World, one: Run, story: Sequence[Reply]) -> list[str]:
    """Work on a run in one life; return its steps."""
    steps = Mortal(world, one)
    await Workflow(world.desk(Script(*story)))(one.id, steps)
    return steps.names


async def behind(world: World, task: Task, seq: int) -> Run:
    """Take the run that follows another one."""
    await world.store.admit("us", slots=9, per_installation=9)
    run = await world.store.run(task.id, seq)
    assert run is not None
    return run


LINE = {"path": "rose.txt", "line": 1, "user": FLORA, "created_at": "2031-01-01T00:00:00Z"}


@pytest.mark.parametrize("how", ["review", "bare", "thread"])
async def test_what_is_asked_on_lines_while_a_run_is_open_is_a_round_behind_it(
    world: World, pull: int, how: str
) -> None:
    """Whether it has words of its own or not; the open run hears nothing of it, and no thread is dropped."""
    door = Door(world, ServerSettings())
    task, one = await asked(world)
    for body in ("Wetter, please.", "And this."):
        say(world, pull, WRITER, body)
    pulled = {"number": pull, "title": "T", "user": FLORA}
    review = {"id": 5, "state": "changes_requested", "body": "As I say.", "user": FLORA, "commit_id": "c"}
    if how == "review":
        review["submitted_at"] = LINE["created_at"]
        handled = await door.play(
            "pull_request_review", action="submitted", sender=FLORA, review=review, pull_request=pulled
        )
    elif how == "bare":
        handled = await door.comment("/agent fix", number=pull, pr=True)
    else:
        comment = {"id": 5_000, "body": "/agent fix As I say.", **LINE}
        handled = await door.play(
            "pull_request_review_comment", action="created", sender=FLORA, comment=comment, pull_request=pulled
        )
    assert handled.accepted is not None
    assert handled.accepted.kind == "joined"
    script = await whole(world, one, reply(read("rose.txt")), reply(write("rose.txt", "wet2")), reply(finish()))
    assert not any("As I say." in str(prompt.messages) for prompt in script.prompts)
    further = await behind(world, task, one.seq + 1)
    assert further.request == ("" if how == "bare" else "As I say.")
    assert (further.number, further.requester_id, further.commanded) == (pull, WRITER.id, True)
    if how != "bare":
        assert further.asked_at is not None
        assert further.asked_at.isoformat().startswith("2031-01-01")
    script = await plays(world, further, write("rose.txt", "wetter"), answer("T1"), answer("T2"))
    assert "Wetter, please." in str(script.prompts[0].messages)
    assert [done for done, _ in left(world, pull)[1]] == [True, True]
    assert await world.store.open_run(task.id) is None


async def test_a_stop_ends_the_rounds_before_it_too(world: World, pull: int) -> None:
    """They were meant for what is stopped."""
    door = Door(world, ServerSettings())
    task, one = await asked(world)
    say(world, pull, WRITER, "Wetter, please.")
    await door.comment("/agent fix", number=pull, pr=True)
    await door.comment("/agent stop", number=pull, pr=True)
    await whole(world, one, reply(finish()))
    assert (await ended(world, task, one.seq)).outcome == "stopped"
    assert await world.store.open_run(task.id) is None


async def test_the_base_is_that_of_the_pull_request(world: World, pull: int) -> None:
    """People may turn it to another branch; from the issue too, and as long as it is open."""
    door = Door(world, ServerSettings())
    for base, number, closed in (("develop", pull, False), ("next", 7, False), ("other", 7, True)):
        made = replace(world.github.pulls[pull], base_branch=base, state="closed" if closed else "open")
        world.github.pulls[pull] = made
        handled = await door.comment("/agent fix Wetter.", number=number, pr=number == pull)
        assert handled.accepted is not None
        task, run = handled.accepted.task, handled.accepted.run
        assert task.base_branch == ("next" if closed else base)
        await world.store.finish(task.id, run.seq, "done", "", world.clock())
