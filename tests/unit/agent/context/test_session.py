"""Held against a real session of 453 turns: the meter, the price, the loop detector, and compactions all along it."""

import asyncio

import pytest

from bot.agent.context.conversation import Context
from bot.agent.context.gauge import Gauge
from bot.agent.context.window import Window
from bot.agent.limits import LimitGuard, Limits
from bot.domain.messages import Message, Prompt, Reply, ToolCall, ToolResult
from bot.errors import LimitReached
from bot.llm.prices import price_usd
from tests.unit.agent.context.made import FACTS, SUMMARY, Summariser, said
from tests.unit.agent.context.recorded import Request, session
from tests.unit.agent.made import broken_rules

WRITERS = {"edit", "write"}


def prompt_of(request: Request) -> Prompt:
    """Make the prompt; the system prompt and the tools of the session were not recorded."""
    return Prompt("", (), request.messages)


def test_the_next_prompt_is_predicted_within_three_thousandths() -> None:
    """At the 95th percentile, and never more than 1,000 tokens too low."""
    gauge = Gauge()
    misses: list[float] = []
    under: list[int] = []
    for request in session():
        counted = request.usage.total_tokens - request.usage.output_tokens
        if gauge._counted:
            predicted = gauge.tokens(prompt_of(request))
            misses.append(abs(predicted - counted) / counted)
            under.append(counted - predicted)
        gauge.replied(prompt_of(request), Reply(request.reply, "tool", request.usage))
    assert len(misses) > 400
    assert sorted(misses)[int(len(misses) * 0.95)] <= 0.003
    assert max(under) <= 1_000


def test_the_price_is_what_was_paid() -> None:
    """Within 1 % of the recorded cost of the whole session."""
    requests = session()
    recorded = sum(request.cost_usd for request in requests)
    ours = [price_usd("anthropic:claude-sonnet-4-5", request.usage, at=request.at) for request in requests]
    assert None not in ours
    assert sum(one or 0 for one in ours) == pytest.approx(recorded, rel=0.01)


def calls(requests: list[Request]) -> list[tuple[ToolCall, ToolResult]]:
    """Return all calls with their results, in order."""
    found = []
    for reply, behind in zip(requests[-1].messages, requests[-1].messages[1:], strict=False):
        given = {part.call_id: part for part in behind.parts if isinstance(part, ToolResult)}
        found += [(call, given[call.id]) for call in reply.calls if call.id in given]
    return found


def test_the_loop_detector_is_silent() -> None:
    """No real call is taken for a circle; one that is repeated on purpose is."""
    guard = LimitGuard(Limits(turns=1, tokens=1, usd=1, minutes=1))
    all_calls = calls(session())
    assert len(all_calls) > 350
    assert not any(guard.repeated(call, result, changed=call.name in WRITERS) for call, result in all_calls)
    # Nobody is told either where edits are not known as such.
    guard = LimitGuard(Limits(turns=1, tokens=1, usd=1, minutes=1))
    assert not any(guard.repeated(call, result) for call, result in all_calls)
    last = all_calls[-1]
    assert [guard.repeated(*last) for _ in range(3)] == [False, True, True]
    with pytest.raises(LimitReached, match="repeats"):
        guard.repeated(*last)


@pytest.mark.parametrize("answer", [said(SUMMARY), said("")], ids=["summary", "truncation"])
def test_a_compaction_anywhere_leaves_a_whole_conversation(answer: Reply) -> None:
    """At every thirtieth turn, with a window that is full there."""
    for request in session()[30::30]:
        messages = request.messages
        assert broken_rules(messages) == []
        gauge = Gauge()
        window = Window(200_000, gauge.tokens(prompt_of(request)))
        done = asyncio.run(Context(window, Summariser(answer), lambda: FACTS).compact(prompt_of(request)))
        assert done is not None
        assert broken_rules(done.messages) == []
        assert done.after <= window.target
        assert done.messages[0] == messages[0]
        assert list(done.messages[-2:]) == list(messages[-2:])


def test_a_session_larger_than_its_window_goes_on_to_its_end() -> None:
    """Replayed in a window of a third of what it used: it is never over, and a summary now and then is enough."""
    requests = session()
    ask = Summariser(said("I know. " * 200))
    watched = Context(Window.of(72_000, 8_192), ask, lambda: FACTS)
    done = []
    transcript: list[Message] = []
    seen = 0
    for request in requests:
        transcript += request.messages[seen:]
        seen = len(request.messages)
        compaction = asyncio.run(watched.compact(Prompt("", (), tuple(transcript))))
        if compaction is not None:
            transcript = list(compaction.messages)
            done.append(compaction)
        assert broken_rules(transcript) == []
        assert watched.measure(Prompt("", (), tuple(transcript))).tokens < 60_208
    assert 2 <= len(done) <= 12
    assert all(one.means[-1] == "summary" for one in done)
    assert len(ask.prompts) == len(done)
