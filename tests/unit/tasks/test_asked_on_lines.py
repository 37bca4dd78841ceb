"""What is asked on lines has its place: the review it came with, and the thread in which it stands."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from bot.domain.events import Notice
from bot.domain.review import OpenThread, Said
from bot.domain.task import Run, Task
from bot.domain.trigger import ReviewState
from bot.errors import Forbidden
from bot.github.reviews import ReviewThread
from bot.settings.server import ServerSettings
from bot.tasks.fitting import fitted
from bot.tasks.orders import Handled
from bot.tasks.workflow import Workflow
from tests.unit.tasks.github import MemoryGitHub
from tests.unit.tasks.github import pull as theirs
from tests.unit.tasks.made import Script, World, finish, read, reply, write
from tests.unit.tasks.test_intake import FLORA, Door
from tests.unit.tasks.test_moved import Rival
from tests.unit.tasks.test_planning import ask
from tests.unit.tasks.test_rounds import WRITER, answer, behind, known, left, plays, pull, say
from tests.unit.tasks.test_workflow import ended, whole

__all__ = ["pull"]

MINUTE = timedelta(minutes=1)


async def said(door: Door, pull: int, thread: ReviewThread, at: datetime | None = None) -> Handled:
    """Deliver the last comment of a thread; without a time it was said at once."""
    root, last = thread.comments[0], thread.comments[-1]
    comment = {
        "id": last.id,
        "body": last.body,
        "user": FLORA,
        "path": thread.path,
        "line": thread.line,
        "created_at": last.created_at.isoformat(),
        "updated_at": (at or last.created_at).isoformat(),
    }
    if root.id != last.id:
        comment["in_reply_to_id"] = root.id
    shown = {"number": pull, "title": "T", "state": "open", "user": FLORA}
    return await door.play(
        "pull_request_review_comment", action="created", sender=FLORA, comment=comment, pull_request=shown
    )


def more(world: World, pull: int, thread: ReviewThread, body: str) -> ReviewThread:
    """Let the writer say something in a thread that is there."""
    made = replace(thread.comments[0], id=thread.comments[0].id + 700, body=body, author=WRITER, is_ours=False)
    return world.github.reviews.change(pull, thread.id, comments=(*thread.comments, made))


async def taken(world: World, handled: Handled) -> Run:
    """Take the run that a delivery queued."""
    assert handled.accepted is not None
    assert handled.accepted.kind in {"new", "again"}
    return await behind(world, handled.accepted.task, handled.accepted.run.seq)


async def test_a_command_on_a_line_is_said_when_its_review_is_submitted(world: World, pull: int) -> None:
    """What was drafted behind it belongs to it, also where it was touched up before that."""
    reviews, door = world.github.reviews, Door(world, ServerSettings())
    first = say(world, pull, WRITER, "/agent fix Wetter.")
    reviews.now += 5 * MINUTE
    later = say(world, pull, WRITER, "And not too cold.")
    touched = replace(later.comments[0], edited_at=reviews.now + MINUTE / 2)
    reviews.change(pull, later.id, comments=(touched,))
    handled = await said(door, pull, first, reviews.now + MINUTE)
    assert handled.accepted is not None
    found = await known(world, handled.accepted.task, handled.accepted.run)
    assert [[one.text for one in thread.said] for thread in found.open] == [
        ["/agent fix Wetter."],
        ["And not too cold."],
    ]
    assert not found.remark


@pytest.mark.parametrize("late", [False, True])
async def test_a_command_in_a_resolved_thread_keeps_its_place(world: World, pull: int, *, late: bool) -> None:
    """It is told as the one in which the request stands, and answered there; other resolved ones stay out."""
    door = Door(world, ServerSettings())
    rose, other = say(world, pull, WRITER, "Why wet?"), say(world, pull, WRITER, "Settled.")
    for thread in (rose, other):
        world.github.reviews.change(pull, thread.id, is_resolved=True)
    open_run = (await world.begin("open", comment_id=899, request=""))[1] if late else None
    handled = await said(door, pull, more(world, pull, rose, "/agent fix Do it differently."))
    if open_run is None:
        one = await taken(world, handled)
    else:
        task = handled.accepted.task if handled.accepted else None
        assert task is not None
        await whole(world, open_run, reply(read("rose.txt")), reply(write("rose.txt", "w")), reply(finish()))
        one = await behind(world, task, open_run.seq + 1)
    script = await plays(world, one, write("rose.txt", "wetter"), answer("T1", done=False))
    told = str(script.prompts[0].messages)
    assert "review thread T1; the request stands here; it was resolved before" in told
    assert "Why wet?" in told
    assert "Settled." not in told
    review, threads = left(world, pull)
    assert review.startswith("Answers to 1 thread.")
    assert threads[0][1].startswith("Left as it is.")
    assert threads[1][1] == "Settled."


async def test_a_request_that_was_dealt_with_reopens_nothing(world: World, pull: int) -> None:
    """A later round is told of the thread in which it was asked, and of none that an earlier one was asked in."""
    door = Door(world, ServerSettings())
    rose, fern = say(world, pull, WRITER, "Why wet?"), say(world, pull, WRITER, "Why dry?")
    for thread in (rose, fern):
        world.github.reviews.change(pull, thread.id, is_resolved=True)
    task, one = await world.begin("open", comment_id=899, request="")
    for thread, text in ((rose, "w"), (fern, "ww")):
        await said(door, pull, more(world, pull, thread, "/agent fix Do it."))
        await whole(world, one, reply(read("rose.txt")), reply(write("rose.txt", text)), *[reply(finish())] * 3)
        one = await behind(world, task, one.seq + 1)
    assert [thread.id for thread in (await known(world, task, one)).open] == [fern.id]


async def asks(world: World, thread: ReviewThread, pull: int) -> tuple[str, str]:
    """Let the writer ask in a thread; return what the model was told, and what it answered."""
    door = Door(world, ServerSettings())
    one = await taken(world, await said(door, pull, thread))
    script = await whole(world, one, reply(read("rose.txt")), reply(finish("Since it rains.")))
    return str(script.prompts[0].messages), "> Since it rains."


@pytest.mark.parametrize("resolved", [False, True])
async def test_a_question_on_a_line_is_answered_there(world: World, pull: int, *, resolved: bool) -> None:
    """With its place, and once; what stands elsewhere is neither told nor answered, and nobody's thread is resolved."""
    say(world, pull, WRITER, "Elsewhere.")
    asked = more(world, pull, say(world, pull, WRITER, "Hm."), "/agent ask Why wet?")
    world.github.reviews.change(pull, asked.id, is_resolved=resolved)
    before = len(world.github.bodies(pull))
    told, words = await asks(world, asked, pull)
    assert "The question was asked on a line of pull request #102" in told
    assert "rose.txt:1" in told
    assert "+new" in told
    assert "Hm." in told
    assert "Elsewhere." not in told
    review, threads = left(world, pull)
    assert review.startswith("The question is answered in its thread.")
    assert threads[0] == (False, "Elsewhere.")
    assert threads[1][0] is resolved
    assert words in threads[1][1]
    assert len(world.github.bodies(pull)) == before


async def test_a_question_is_answered_in_the_conversation_where_its_thread_cannot_be(world: World, pull: int) -> None:
    """Nobody who asks is left without an answer."""
    asked = say(world, pull, WRITER, "/agent ask Why wet?")
    world.github.faults["reply_in_review"] = [Forbidden("locked", status=403)]
    _, words = await asks(world, asked, pull)
    assert words in world.github.bodies(pull)[-1]


async def test_a_question_on_somebody_s_pull_request_has_its_place(world: World) -> None:
    """Where no task was before."""
    world.github = MemoryGitHub(permissions={WRITER.id: "write"})
    world.github.pulls[12] = theirs(12, "topic", author=WRITER)
    world.shop.branches["topic"] = world.shop.branches["main"]
    told, words = await asks(world, say(world, 12, WRITER, "/agent ask Why?"), 12)
    assert "pull request #12" in told
    assert words in left(world, 12)[1][0][1]


async def reviewed(world: World, door: Door, pull: int, state: ReviewState, body: str = "") -> Handled:
    """Deliver a review with two comments on lines."""
    reviews = world.github.reviews
    made = reviews.review(pull, WRITER, state, body)
    for text in ("A typo.", "Another."):
        reviews.begin(pull, made, "rose.txt", 1, text)
    review = {"id": made.id, "state": state.lower(), "body": body, "user": FLORA, "commit_id": "c"}
    shown = {"number": pull, "title": "T", "user": FLORA}
    return await door.play("pull_request_review", action="submitted", sender=FLORA, review=review, pull_request=shown)


async def waits(world: World) -> Task:
    """Let a run ask how wet."""
    task, one = await world.begin("asks", comment_id=899, request="Wetter.")
    await whole(world, one, reply(read("rose.txt")), reply(ask("How wet?")))
    assert (await ended(world, task, one.seq)).outcome == "waiting"
    return task


async def test_comments_on_lines_leave_the_question_that_waits(world: World, pull: int) -> None:
    """Who made them is told, once; the answer's run deals with them."""
    task, door = await waits(world), Door(world, ServerSettings())
    assert (await reviewed(world, door, pull, "COMMENTED")).accepted is None
    assert await world.store.open_run(task.id) is None
    assert world.github.bodies(pull)[-1].startswith("A question waits for an answer: `/agent answer <text>`.")
    one = await taken(world, await door.comment("/agent answer Very.", number=pull, pr=True))
    script = await plays(world, one, write("rose.txt", "very wet"), answer("T1"), answer("T2"))
    told = str(script.prompts[0].messages[-1])
    assert "A person answers your question:" in told
    assert "Another." in told
    assert [done for done, _ in left(world, pull)[1]] == [True, True]


@pytest.mark.parametrize("words", ["", "Very wet, please."])
async def test_a_question_that_is_off_is_told_to_be(world: World, pull: int, words: str) -> None:
    """A review that asks for changes begins a round whatever waits; its own words are the answer."""
    task, door = await waits(world), Door(world, ServerSettings())
    one = await taken(world, await reviewed(world, door, pull, "CHANGES_REQUESTED", words))
    await plays(world, one, write("rose.txt", "very wet"), answer("T1"), answer("T2"))
    told = [event.fact.text for event in await world.store.events(task.id) if isinstance(event.fact, Notice)]
    assert any("goes on without an answer" in text for text in told) is not bool(words)


async def test_a_pull_request_beside_says_what_is_heard_there(world: World, pull: int) -> None:
    """A command alone, which takes its open threads up; the task's own says nothing of that."""
    task, one = await world.begin("round", comment_id=900, request="")
    steps = Rival(world, one, task)
    steps.files = {"rose_txt": b"theirs"}
    story = (reply(read("rose.txt")), reply(write("rose.txt", "wetter")), reply(finish()))
    await Workflow(world.desk(Script(*story)))(one.id, steps)
    [other] = [number for number in world.github.pulls if number != pull]
    heard = "`/agent fix` takes it up, with what stands open on its lines."
    assert heard in world.github.pulls[other].body
    assert heard not in world.github.pulls[pull].body
    door = Door(world, ServerSettings())
    assert (await reviewed(world, door, other, "CHANGES_REQUESTED")).state == "ignored"
    own = await taken(world, await door.comment("/agent fix", number=other, pr=True))
    script = await plays(world, own, write("rose.txt", "wettest"), answer("T1"), answer("T2"))
    assert "Another." in str(script.prompts[0].messages)
    assert [done for done, _ in left(world, other)[1]] == [True, True]


def test_what_is_asked_here_is_due_whoever_spoke_last() -> None:
    """Another round may have answered in between, which did not know of it."""
    said = (Said("flora", writes=True, text="/agent fix More."), Said("", writes=False, text="Done.", ours=True))
    thread = OpenThread("T1", "PRRT_1", "a.py", 3, None, old_side=False, outdated=False, hunk="+a", said=said)
    assert not thread.is_due
    assert replace(thread, asks=True).is_due
    assert [one.name for one in fitted([thread, replace(thread, name="T2", asks=True)])] == ["T2", "T1"]
