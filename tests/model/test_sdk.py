"""The scripted model through Anthropic's own SDK."""

from typing import Any

import pytest
from anthropic import AsyncAnthropic, AuthenticationError

from bot.testing.model.reply import Call, Pace, Reply, Thinking
from bot.testing.model.request import Request, Text
from bot.testing.model.script import Conversation, Script, Turn
from tests.model.conftest import Serve

READ: Any = {"name": "read", "description": "Read a file", "input_schema": {"type": "object"}}
RUN: Any = {"name": "run", "description": "Run a command", "input_schema": {"type": "object"}}
ASK: dict[str, Any] = {"model": "any", "max_tokens": 2048, "tools": [READ, RUN]}
FIX: Any = [{"role": "user", "content": "Fix add"}]


def one(*turns: Turn) -> Script:
    """Return a script with one conversation that answers everything."""
    return Script([Conversation("only", turns)], name="demo")


TALK = Turn(
    text="I read the file first: ümläut.",
    thinking="Where is add?",
    calls=[Call("read", {"path": "calc.py", "deep": [1, {"a": None}]}), Call("run", {})],
    chunk=5,
)


@pytest.mark.parametrize("stream", [True, False])
async def test_text_thinking_and_calls_arrive_whole(serve: Serve, stream: bool) -> None:  # noqa: FBT001 - parametrised
    """Streamed or not, the SDK ends up with the same blocks, stop reason, usage and model id."""
    _, client = await serve(one(TALK))
    ask = {**ASK, "messages": FIX, "thinking": {"type": "enabled", "budget_tokens": 1024}}
    if stream:
        async with client.messages.stream(**ask) as streaming:
            message = await streaming.get_final_message()
    else:
        message = await client.messages.create(**ask)
    thinking, text, read, run = message.content
    assert thinking.type == "thinking"
    assert thinking.thinking == "Where is add?"
    assert thinking.signature
    assert text.type == "text"
    assert text.text == "I read the file first: ümläut."
    assert read.type == run.type == "tool_use"
    assert read.input == {"path": "calc.py", "deep": [1, {"a": None}]}
    assert (read.name, run.name, run.input) == ("read", "run", {})
    assert read.id != run.id
    assert message.stop_reason == "tool_use"
    assert message.model == "scripted:demo"
    assert message.usage.input_tokens > 0
    assert message.usage.output_tokens > 10


async def test_every_reply_says_that_it_is_scripted(serve: Serve) -> None:
    """Each answer has the header `x-scripted-model`, also an error, the list of models and the page at the root."""
    model, client = await serve(one(Turn(text="Hello.")))
    raw = await client.messages.with_raw_response.create(**ASK, messages=FIX)
    assert raw.headers["x-scripted-model"] == "true"
    assert [entry.id async for entry in client.models.list()] == ["scripted:demo"]
    about = await client.get("/", cast_to=str)
    assert "no AI" in about
    assert len(model.requests) == 1


async def test_thinking_comes_only_when_asked_for(serve: Serve) -> None:
    """Without `thinking` in the request scripted thinking is not sent."""
    _, client = await serve(one(TALK))
    message = await client.messages.create(**ASK, messages=FIX)
    assert [block.type for block in message.content] == ["text", "tool_use", "tool_use"]


@pytest.mark.parametrize("stop", ["pause_turn", "refusal", "max_tokens", "model_context_window_exceeded"])
async def test_stop_reasons_are_passed_on(serve: Serve, stop: Any) -> None:
    """A turn may end for any reason that the API knows."""
    _, client = await serve(one(Turn(text="Hm.", stop=stop)))
    async with client.messages.stream(**ASK, messages=FIX) as streaming:
        assert (await streaming.get_final_message()).stop_reason == stop


async def test_a_paused_turn_goes_on_when_it_is_sent_back(serve: Serve) -> None:
    """After `pause_turn` the client sends the answer back as it is and gets the next turn."""
    _, client = await serve(one(Turn(text="Wait.", stop="pause_turn"), Turn(text="Done.")))
    first = await client.messages.create(**ASK, messages=FIX)
    again: Any = [*FIX, {"role": "assistant", "content": first.content}]
    assert (await client.messages.create(**ASK, messages=again)).content[0].text == "Done."


async def test_an_empty_turn_is_an_answer_without_blocks(serve: Serve) -> None:
    """Models do answer nothing at all; the script can."""
    _, client = await serve(one(Turn()))
    message = await client.messages.create(**ASK, messages=FIX)
    assert (message.content, message.stop_reason) == ([], "end_turn")


async def test_max_tokens_of_the_request_cut_the_answer(serve: Serve) -> None:
    """An answer longer than `max_tokens` ends there and says so."""
    _, client = await serve(one(Turn(text="word " * 100)))
    message = await client.messages.create(model="any", max_tokens=10, messages=FIX)
    assert message.stop_reason == "max_tokens"
    assert message.usage.output_tokens == 10
    assert message.content[0].text == ("word " * 8)  # type: ignore[union-attr]


async def test_a_turn_may_be_a_function(serve: Serve) -> None:
    """A callable turn gets the request in no vendor's words; its reply needs no ids."""
    seen: list[Request] = []

    def answer(request: Request) -> Reply:
        seen.append(request)
        return Reply(
            [Thinking("never sent raw"), Text("From Python."), Call("read", {"path": "x"})], pace=Pace(chunk=3)
        )

    model, client = await serve(Script([Conversation("py", [answer])]))
    async with client.messages.stream(**ASK, messages=FIX, system="Be brief.") as streaming:
        message = await streaming.get_final_message()
    assert message.content[-1].type == "tool_use"
    assert (seen[0].system, seen[0].messages[0].text, seen[0].tools) == ("Be brief.", "Fix add", ("read", "run"))
    assert model.requests[0].conversation == "py"


async def test_counting_tokens_agrees_with_the_usage(serve: Serve) -> None:
    """`count_tokens` returns what the same prompt is billed for; it needs no `max_tokens`."""
    _, client = await serve(one(Turn(text="Hello.")))
    counted = await client.messages.count_tokens(model="any", messages=FIX, tools=[READ, RUN])
    message = await client.messages.create(**ASK, messages=FIX)
    assert counted.input_tokens == message.usage.input_tokens > 20


async def test_requests_are_recorded_without_the_key(serve: Serve) -> None:
    """A request is kept with headers, body and raw bytes; the key is not."""
    model, client = await serve(one(Turn(text="Hello.")))
    await client.messages.create(**ASK, messages=FIX)
    (recorded,) = model.requests
    assert recorded.body is not None
    assert recorded.body["messages"] == FIX
    assert b"Fix add" in recorded.raw
    assert not {"x-api-key", "authorization"} & set(recorded.headers)
    assert "x" not in recorded.headers.values()
    assert recorded.headers["anthropic-version"]
    assert (recorded.path, recorded.status, recorded.conversation, recorded.turn) == ("/v1/messages", 200, "only", 0)
    assert model.problems == []


async def test_a_wrong_key_is_refused(serve: Serve) -> None:
    """A server with a key of its own refuses any other."""
    model, _ = await serve(one(Turn(text="Hello.")), api_key="right")
    async with AsyncAnthropic(base_url=model.url, api_key="wrong", max_retries=0) as client:
        with pytest.raises(AuthenticationError, match="invalid x-api-key"):
            await client.messages.create(**ASK, messages=FIX)
