"""What a model of Anthropic's does beside what every `Model` does (`test_model`), over real HTTP."""

import json
from typing import Any

import pytest
from starlette.responses import PlainTextResponse, Response

from bot.domain.messages import Reply, TextPart, ToolCall, Usage
from bot.errors import ModelUnavailable, OperatorError
from bot.llm.anthropic import AnthropicModel
from bot.llm.discarded import usage_of
from bot.llm.retrying import Retrying
from bot.testing.model.reply import Fault
from bot.testing.model.script import Conversation, Script, Turn
from bot.testing.model.server import ScriptedModel
from tests.contract.models import WAYS, answering, no_sleep, prompt, stream, user


@pytest.mark.parametrize("budget", [0, 1023, 4096])
def test_a_budget_for_thinking_that_cannot_be_is_refused_at_once(budget: int) -> None:
    """At start, not in the middle of a task."""
    with pytest.raises(OperatorError, match=f"is {budget}"):
        WAYS["anthropic"].model("http://127.0.0.1:9", thinking_budget=budget)


async def test_retries_over_http_end_in_a_reply_that_counts_all() -> None:
    """Two failures, one of which had cost tokens, then the answer."""
    faults = [Fault("stream_error", times=1), Fault(status=529, times=1, retry_after_s=2)]
    script = Script([Conversation("test", [Turn(text="Hello", faults=faults)], match="/./")])
    waits: list[float] = []
    async with ScriptedModel(script) as server:
        model = Retrying(
            WAYS["anthropic"].model(server.url),
            sleep=no_sleep,
            random=lambda: 0.0,
            on_retry=lambda _, delay_s: waits.append(delay_s),
        )
        reply = await model.ask(prompt(user("Hi")))
        await model.close()
    assert reply.message.text == "Hello"
    assert reply.usage.total_tokens > 2 * 10
    assert waits == [0.5, 2]
    assert len(server.requests) == 3


def message(*parts: dict[str, Any], stop: str, usage: int = 5) -> Response:
    """A streamed message."""
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": usage, "output_tokens": 1}}}
    ]
    for index, part in enumerate(parts):
        events.append({"type": "content_block_start", "index": index, "content_block": part})
        events.append({"type": "content_block_stop", "index": index})
    events.append({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": usage}})
    events += [{"type": "news"}, {"type": "message_stop"}]
    return stream(*(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events))


def says(text: str) -> dict[str, Any]:
    """A block of text."""
    return {"type": "text", "text": text}


async def ask_once(*answers: Response) -> tuple[Reply, list[dict[str, Any]], AnthropicModel]:
    """Ask a model behind these answers one question."""
    async with answering(*answers) as (url, seen):
        model = AnthropicModel("anthropic:claude-x", api_key="k", base_url=url, max_output_tokens=100)
        try:
            return await model.ask(prompt(user("Hi"))), seen, model
        finally:
            await model.close()


async def test_a_paused_reply_is_sent_back_and_comes_as_one() -> None:
    """The same request with what was said so far; text goes on in place, usage adds up."""
    tool = {"type": "tool_use", "id": "t", "name": "read", "input": {"path": "x"}}
    answers = [message(says("One, "), stop="pause_turn"), message(says("two."), tool, stop="tool_use")]
    reply, seen, model = await ask_once(*answers)
    assert reply.message.parts == (TextPart("One, two."), ToolCall("t", "read", '{"path":"x"}'))
    assert (reply.stop, reply.usage) == ("tool", Usage(10, 0, 0, 10))
    assert [message["role"] for message in seen[1]["messages"]] == ["user", "assistant"]
    assert seen[1]["messages"][1]["content"] == [says("One,")]
    assert model.unknown == {"news": 2}


async def test_a_reply_is_continued_three_times() -> None:
    """Then it is handed over as paused."""
    reply, seen, _ = await ask_once(*[message(says(f"{n} "), stop="pause_turn") for n in range(4)])
    assert (reply.stop, reply.message.text, len(seen)) == ("pause", "0 1 2 3 ", 4)


async def test_a_pause_that_fails_still_has_its_cost() -> None:
    """The usage of the first half is on the error."""
    with pytest.raises(ModelUnavailable) as caught:
        await ask_once(message(says("One, "), stop="pause_turn"), PlainTextResponse("down", 503))
    assert usage_of(caught.value) == Usage(5, 0, 0, 5)


async def test_only_the_address_that_was_set_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK would else read its address and key from the environment."""
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
    model = AnthropicModel("anthropic:claude-x", api_key="k", max_output_tokens=100)
    await model.warm()
    assert model._client is not None
    assert model._client.base_url.host == "api.anthropic.com"
    await model.close()
