"""Random histories: parallel calls, errors, thinking, people's words, results of any size, answers of any kind."""

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from bot.agent.context.duplicates import without_duplicates
from bot.agent.context.sizes import size_of
from bot.agent.context.truncation import cut_results, truncate
from bot.agent.context.turns import joined, split
from bot.agent.context.window import Room
from bot.agent.loop import heard
from bot.domain.messages import Message, Reply
from bot.errors import ContextOverflow, ModelUnavailable
from tests.unit.agent.context.made import ANSWERS, FACTS, HISTORIES, Summariser, context, prompt_of
from tests.unit.agent.made import broken_rules

ALL_ANSWERS = st.one_of(ANSWERS, st.sampled_from([ContextOverflow("too long"), ModelUnavailable("busy")]))
SHORT = heard("Hurry up.")


def is_within(kept: list[Message], of: list[Message]) -> bool:
    """Whether these messages of the model are all among those, in their order."""
    left = iter(of)
    return all(any(one is other for other in left) for one in kept)


def replies(messages: list[Message]) -> list[Message]:
    """Return the model's messages."""
    return [message for message in messages if message.role == "assistant"]


@given(HISTORIES, st.lists(ALL_ANSWERS, min_size=1, max_size=4), st.booleans())
@settings(max_examples=150, deadline=None)
def test_a_compaction_leaves_a_whole_conversation(
    history: list[Message],
    answers: list[Reply | Exception],
    forced: bool,  # noqa: FBT001 - drawn
) -> None:
    """Pairs are whole, the first message stays, roles alternate, it is shorter, and the newest turn is there."""
    ask = Summariser(*answers)
    watched, before = context(ask), list(history)
    done = asyncio.run(watched.compact(prompt_of(history), forced=forced))
    assert history == before
    assert all(broken_rules(prompt.messages) == [] for prompt in ask.prompts)
    if done is None:
        return
    made = list(done.messages)
    assert broken_rules(made) == []
    assert made[0] is history[0]
    assert size_of(made) < size_of(history)
    own = replies(made)[1:] if "summary" in done.means else replies(made)
    assert is_within(own, replies(history))
    assert own[-1] is replies(history)[-1]
    assert str(made).count(SHORT) == str(history).count(SHORT)


@given(HISTORIES, ALL_ANSWERS)
@settings(max_examples=60, deadline=None)
def test_what_is_done_is_done(history: list[Message], answer: Reply | Exception) -> None:
    """Right behind a compaction nothing is done again, and nobody is asked; without need nothing is done at all."""
    ask = Summariser(answer)
    watched = context(ask)
    done = asyncio.run(watched.compact(prompt_of(history)))
    asked = len(ask.prompts)
    left = history if done is None else done.messages
    assert asyncio.run(watched.compact(prompt_of(left))) is None
    assert len(ask.prompts) == asked
    assert (done is None) or watched.measure(prompt_of(history)).tokens >= watched._window.compact_at


@given(HISTORIES, st.integers(0, 100_000))
@settings(max_examples=100, deadline=None)
def test_each_means_alone_leaves_a_whole_conversation(history: list[Message], limit: int) -> None:
    """Duplicates, truncation and cutting each keep the rules, and do nothing a second time."""
    single = without_duplicates(history)
    shorter = truncate(history, Room(limit, tail=0, words=limit, whole=limit), FACTS)
    cut = cut_results(history, limit)
    for made in (single, shorter, cut):
        assert broken_rules(made) == []
        assert made[0] is history[0]
        assert made[-1].role == history[-1].role
    assert without_duplicates(single) == single
    assert size_of(single) <= size_of(history)
    assert size_of(cut) <= size_of(history)
    assert [message.calls for message in single] == [message.calls for message in cut]
    if size_of(history) <= limit:
        assert shorter == cut == history


@given(HISTORIES)
def test_taking_apart_loses_nothing(history: list[Message]) -> None:
    """A transcript is its head and its turns, in that order."""
    assert joined(*split(history)) == history
