"""How a further run takes up what an earlier one left."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.events import BranchPushed, Notice, RunStarted, WorkspaceReady
from bot.domain.messages import Message, Part, TextPart, ToolCall, ToolResult
from bot.settings.resolve import resolve
from bot.settings.server import ServerSettings
from bot.tasks.engines.base import Step
from bot.tasks.opening import NO_RESULT, Prepared, Wanted, _closed, begin, prepare, transcript_of
from tests.unit.agent.made import broken_rules
from tests.unit.tasks.made import World, finish, reply
from tests.unit.tasks.test_workflow import whole

SETTINGS = resolve(ServerSettings(), None)


def user(*parts: Part) -> Message:
    """Make a user message."""
    return Message("user", parts)


def model(*parts: Part) -> Message:
    """Make a message of the model."""
    return Message("assistant", parts)


TOLD = user(TextPart("Do it."))


def test_open_calls_are_answered() -> None:
    """Calls that the last run left open get a result each."""
    closed = _closed([TOLD, model(ToolCall("a", "x", "{}"), ToolCall("b", "x", "{}"))])
    assert closed[-1].parts[:2] == tuple(ToolResult(one, NO_RESULT, is_error=True) for one in ("a", "b"))
    assert broken_rules(closed) == []


def test_a_partly_answered_message_is_completed() -> None:
    """Only what is missing is added."""
    given = [TOLD, model(ToolCall("a", "x", "{}"), ToolCall("b", "x", "{}")), user(ToolResult("b", "yes"))]
    closed = _closed(given)
    assert {part.call_id: part.text for part in closed[-1].parts if isinstance(part, ToolResult)} == {
        "a": NO_RESULT,
        "b": "yes",
    }


def test_what_is_whole_stays_as_it_is() -> None:
    """A transcript that is whole is not touched, so that caches hit."""
    whole = [TOLD, model(ToolCall("a", "x", "{}")), user(ToolResult("a", "yes")), model(TextPart("Done."))]
    assert _closed(whole) == whole


@st.composite
def histories(draw: st.DrawFn) -> list[Message]:
    """What the loop leaves, cut off anywhere, with neighbours of one role in it."""
    made = [TOLD]
    for turn in range(draw(st.integers(0, 6))):
        calls = tuple(ToolCall(f"{turn}-{index}", "x", "{}") for index in range(draw(st.integers(0, 3))))
        made.append(model(TextPart("words"), *calls))
        if calls:
            made.append(user(*(ToolResult(call.id, "yes") for call in calls)))
        elif draw(st.booleans()):
            made.append(user(TextPart("Go on.")))
        if made[-1].role == "user" and draw(st.booleans()):
            made.append(user(TextPart("And?")))
    return made[: draw(st.integers(1, len(made)))]


@given(histories())
def test_whatever_was_left_becomes_whole(history: list[Message]) -> None:
    """After mending, a history keeps all rules of providers and all its words."""
    closed = _closed(history)
    assert broken_rules(closed) == []
    kept = [part for message in closed for part in message.parts]
    assert all(part in kept for message in history for part in message.parts)


@dataclass
class Told:
    """What a run's first request says."""

    messages: list[Message]
    prepared: Prepared


async def told(world: World, key: str, **changes: object) -> Told:
    """Open a further run and build its transcript."""
    task, one = await world.begin(key, **changes)
    found: list[Told] = []

    async def body(_: str, step: Step) -> None:
        scene = await world.scene(task, one, step)
        begun = await begin(scene)
        prepared = await prepare(scene)
        found.append(Told(await transcript_of(scene, begun, prepared, "", Wanted(request=one.request)), prepared))

    await world.live(one, body)
    await world.store.finish(task.id, one.seq, "done", "", world.clock())
    return found[0]


async def test_the_first_run_has_the_first_message(world: World) -> None:
    """The first run is told the issue and the surroundings, and stands on the base branch."""
    first = await told(world, "first")
    [message] = first.messages
    assert "Water the roses" in message.text
    assert "Made-up Linux; programs: git; commands have no network; branch agent/7-0123abcd" in message.text
    assert (first.prepared.base, first.prepared.expected) == (world.shop.branches["main"], None)
    task = await world.store.task_of(5_000_000_000, 7)
    assert task is not None
    facts = [event.fact for event in await world.store.events(task.id)]
    assert [type(fact) for fact in facts[1:]] == [RunStarted, WorkspaceReady]


async def test_a_further_run_goes_on_from_the_last_transcript(world: World) -> None:
    """A further run has the history, an answer where the last message was a person's, and what is asked now."""
    await told(world, "first")
    task = await world.store.task_of(5_000_000_000, 7)
    assert task is not None
    await world.store.save_messages(task.id, 1, 0, [TOLD, model(ToolCall("a", "x", "{}"))])
    again = await told(world, "second", request="More.")
    assert again.messages[0] == TOLD
    assert again.messages[-2] == model(TextPart("The run is over."))
    assert "More." in again.messages[-1].text
    assert broken_rules(again.messages) == []
    third = await told(world, "third", request="Even more.")
    assert third.messages[0] == TOLD, "a run without messages does not hide the history before it"


async def test_a_history_of_any_length_is_taken_along(world: World) -> None:
    """Where it does not fit into the window it is made shorter there, and people's words are kept."""
    await told(world, "first")
    task = await world.store.task_of(5_000_000_000, 7)
    assert task is not None
    await world.store.save_messages(task.id, 1, 0, [TOLD, model(TextPart("x" * 1_000_000))])
    again = await told(world, "second", request="More.")
    assert again.messages[0] == TOLD
    assert len(again.messages) == 3


async def test_others_commits_are_told(world: World) -> None:
    """Where the branch stands on a commit that is not ours, the model is told to read again."""
    await told(world, "first")
    task = await world.store.task_of(5_000_000_000, 7)
    assert task is not None
    await world.store.save_messages(task.id, 1, 0, [TOLD, model(TextPart("Done."))])
    ours, theirs = world.shop.keep({"a": b"1"}, "ours"), world.shop.keep({"a": b"2"}, "theirs")
    await world.store.record(task.id, 1, "push", BranchPushed(task.branch, ours), world.clock())
    world.shop.branches[task.branch] = ours
    calm = await told(world, "second", request="More.")
    assert calm.prepared.base == calm.prepared.expected == ours
    assert "not yours" not in calm.messages[-1].text
    world.shop.branches[task.branch] = theirs
    assert "not yours" in (await told(world, "third", request="More.")).messages[-1].text


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("See ![this](https://x/y.png) and <img src='z'>.", "2 images were not looked at."),
        ("![a][ref]", "1 image was not looked at."),
        ("As `![a](b)` says:\n```md\n![c](d)\n```\n", None),
        ("Plain words!", None),
    ],
)
async def test_pictures_that_nobody_saw_are_told_of(world: World, body: str, told: str | None) -> None:
    """Once, of what was written for this run; what stands in code is no picture."""
    task, one = await world.begin(body=body)
    await whole(world, one, reply(finish()))
    facts = [event.fact for event in await world.store.events(task.id)]
    found = [fact.text for fact in facts if isinstance(fact, Notice) and "looked at" in fact.text]
    assert found == ([told] if told else [])
    _, again = await world.begin("again", comment_id=5, request="More.")
    await whole(world, again, reply(finish()))
    facts = [event.fact for event in await world.store.events(task.id)]
    assert [fact.text for fact in facts if isinstance(fact, Notice) and "looked at" in fact.text] == found
