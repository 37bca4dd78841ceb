"""The scripted model on Google's wire: through Google's own SDK and our adapter, and compared with recorded traffic."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest
from google import genai
from google.genai import errors, types

from bot.domain.messages import Message, Prompt, TextPart, ThinkingPart, ToolResult, ToolSpec
from bot.errors import ContextOverflow, MalformedReply, ModelRefused
from bot.llm.google import GoogleModel
from bot.testing.model import google_wire
from bot.testing.model.cache import Usage
from bot.testing.model.google_errors import ERRORS
from bot.testing.model.google_read import read_request, segments
from bot.testing.model.load import parse_script
from bot.testing.model.reply import Call, Fault, Reply, Thinking
from bot.testing.model.request import Request, Text
from bot.testing.model.script import Conversation, Script, Turn
from bot.testing.model.seal import letter
from bot.testing.model.server import ScriptedModel
from tests.model.test_google_check import ASK, GO, TOOLS, picture, said, shown
from tests.model.test_openai_wires import STORY, TALK, one
from tests.unit.llm.cassettes import Json, decoded
from tests.unit.llm.google_traffic import lines, talks

Serve = Callable[..., Awaitable[tuple[ScriptedModel, genai.Client]]]
SPOKEN = Reply([Thinking("Hm."), Text("Yes, I do."), Call("run", {"command": "make"})], key="k")


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    """Serve scripts, as YAML or as values, until the test ends."""
    async with AsyncExitStack() as stack:

        async def start(script: str | Script, **options: Any) -> tuple[ScriptedModel, genai.Client]:
            played = parse_script(script) if isinstance(script, str) else script
            model = await stack.enter_async_context(ScriptedModel(played, **options))
            http = types.HttpOptions(base_url=model.base_url("google"))
            client = genai.Client(vertexai=False, api_key="k", http_options=http)
            stack.push_async_callback(client.aio.aclose)
            return model, client

        yield start
    # The SDK's transport gives its sockets back a little later.
    await asyncio.sleep(0.02)


def thoughtful(**fields: Any) -> types.GenerateContentConfig:
    """What the SDK sends beside the conversation."""
    thinking = types.ThinkingConfig(include_thoughts=True)
    return types.GenerateContentConfig(tools=TOOLS, thinking_config=thinking, **fields)


async def test_a_reply_arrives_whole(serve: Serve) -> None:
    """Streamed or not, the SDK ends up with the same thoughts, text, calls, seal, reason, usage and model id."""
    _, client = await serve(one(TALK))
    whole = await client.aio.models.generate_content(model="gemini-3", contents="Go", config=thoughtful())
    stream = await client.aio.models.generate_content_stream(model="gemini-3", contents="Go", config=thoughtful())
    grown = [chunk async for chunk in stream]
    assert len(grown) > 5
    for chunks in ([whole], grown):
        parts = [part for chunk in chunks for part in (chunk.parts or [])]
        assert "".join(part.text or "" for part in parts if not part.thought) == TALK.text
        assert "".join(part.text or "" for part in parts if part.thought) == "Where?"
        called = [(part.function_call, part.thought_signature) for part in parts if part.function_call]
        assert [(call.name, call.args) for call, _ in called] == [("run", {"a": [1, None]}), ("run", {})]
        assert len({call.id for call, _ in called}) == 2
        assert [bool(sealed) for _, sealed in called] == [True, False]
        (candidate,) = chunks[-1].candidates or []
        assert candidate.finish_reason == types.FinishReason.STOP
        assert chunks[-1].model_version == "scripted:demo"
        count = chunks[-1].usage_metadata
        assert count is not None
        spoken = (count.prompt_token_count, count.thoughts_token_count, count.candidates_token_count)
        assert all(spoken)
        assert count.total_token_count == sum(number or 0 for number in spoken)
    quiet = await client.aio.models.generate_content(model="gemini-3", contents="Go", config={"tools": TOOLS})
    assert not any(part.thought for part in quiet.parts or [])


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("status", ERRORS)
async def test_a_status_becomes_the_exception_of_the_sdk(
    serve: Serve,
    status: int,
    stream: bool,  # noqa: FBT001 - parametrised
) -> None:
    """Each HTTP error has Google's status, and the wait that it asks for stands in its details."""
    _, client = await serve(one(Turn(text="x", faults=[Fault(status=status, retry_after_s=2.5)])))
    ask: Any = {"model": "gemini-3", "contents": "Go"}
    models = client.aio.models
    asking: Any = anext(await models.generate_content_stream(**ask)) if stream else models.generate_content(**ask)
    with pytest.raises(errors.APIError) as caught:
        await asking
    name, message = ERRORS[status]
    assert (caught.value.code, caught.value.status, caught.value.message) == (status, name, message)
    assert caught.value.details["error"]["details"][0]["retryDelay"] == "2.5s"


async def test_an_error_inside_a_stream(serve: Serve) -> None:
    """It comes after what came before it, with its own code; where nothing streams it is a 503."""
    _, client = await serve(one(Turn(text="Hello", faults=[Fault("stream_error", error="RESOURCE_EXHAUSTED")])))
    chunks = await client.aio.models.generate_content_stream(model="gemini-3", contents="Go")
    assert (await anext(chunks)).text == "Hello"
    with pytest.raises(errors.ClientError) as caught:
        await anext(chunks)
    assert caught.value.code == 429
    with pytest.raises(errors.ServerError, match="503"):
        await client.aio.models.generate_content(model="gemini-3", contents="Go")


@pytest.mark.parametrize("stream", [True, False])
async def test_a_story_is_the_same_through_the_sdk(serve: Serve, stream: bool) -> None:  # noqa: FBT001 - parametrised
    """Captures, expectations, failed results, words behind results and a follow-up stand where they stand elsewhere.

    The SDK's chat sends back what came, in as many contents as came.
    """
    model, client = await serve(STORY)
    config = types.GenerateContentConfig(
        tools=TOOLS, automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True)
    )
    chat = client.aio.chats.create(model="gemini-3", config=config)

    async def send(*parts: Any) -> list[types.Part]:
        if not stream:
            return (await chat.send_message(list(parts))).parts or []
        chunks = [chunk async for chunk in await chat.send_message_stream(list(parts))]
        return [part for chunk in chunks for part in (chunk.parts or [])]

    def answer(call: types.FunctionCall, response: Json) -> types.Part:
        return types.Part(function_response=types.FunctionResponse(id=call.id, name=call.name, response=response))

    calls = [part.function_call for part in await send("Fix function add") if part.function_call]
    assert calls[0].args == {"command": "cat add.py"}
    results = [answer(calls[0], {"output": "def add"}), answer(calls[1], {"error": "no such file"})]
    done = await send(*results, "Not again.")
    last = await send("Never mind again")
    words = ["".join(part.text or "" for part in parts) for parts in (done, last)]
    assert (words, model.problems) == (["Done.", "Once more."], [])
    assert [(one.conversation, one.turn) for one in model.requests] == [("fix", 0), ("fix", 1), ("more", 0)]


async def test_a_story_is_the_same_through_the_adapter(serve: Serve) -> None:
    """And the seal of the first call comes back verbatim; where it is lost, that is a problem."""
    model, _ = await serve(STORY)
    tool = ToolSpec("run", "Run", {"type": "object", "properties": {"command": {"type": "string"}}})
    adapter = GoogleModel("google:gemini-3-pro", api_key="k", base_url=model.base_url("google"), max_output_tokens=99)
    messages = [Message("user", (TextPart("Fix function add"),))]
    reply = await adapter.ask(Prompt("", (tool,), tuple(messages)))
    calls = reply.message.calls
    results = (ToolResult(calls[0].id, "def add"), ToolResult(calls[1].id, "no such file", is_error=True))
    messages += [reply.message, Message("user", (*results, TextPart("Not again.")))]
    done = await adapter.ask(Prompt("", (tool,), tuple(messages)))
    messages += [done.message, Message("user", (TextPart("Never mind again"),))]
    last = await adapter.ask(Prompt("", (tool,), tuple(messages)))
    await adapter.close()
    assert (done.message.text, last.message.text, model.problems) == ("Done.", "Once more.", [])
    body: Any = model.requests[-1].body
    sealed = [part["thoughtSignature"] for part in body["contents"][1]["parts"] if "thoughtSignature" in part]
    assert sealed == [part.signature for part in reply.message.parts if isinstance(part, ThinkingPart)]
    assert sealed == [letter(calls[0].id)]


async def test_an_answer_at_the_limit_says_so(serve: Serve) -> None:
    """By the reason; a call that was cut is none."""
    _, client = await serve(one(Turn(text="word " * 100)))
    config = types.GenerateContentConfig(max_output_tokens=10)
    reply = await client.aio.models.generate_content(model="gemini-3", contents="Go", config=config)
    assert reply.candidates is not None
    assert reply.candidates[0].finish_reason == types.FinishReason.MAX_TOKENS
    cut = one(Turn(text="So.", calls=[Call("run", {"a": "x" * 99})], faults=[Fault("cut")]))
    _, client = await serve(cut)
    reply = await client.aio.models.generate_content(model="gemini-3", contents="Go", config={"tools": TOOLS})
    assert reply.candidates is not None
    assert reply.candidates[0].finish_reason == types.FinishReason.MAX_TOKENS
    assert (reply.text, reply.function_calls) == ("So.", None)


async def test_a_reply_that_is_none_is_told_by_its_reason(serve: Serve) -> None:
    """A call that is no JSON, a refusal, a prompt over the window, and a turn without a word."""
    turns = [Turn(calls=[Call("run", json='{"a": ')]), Turn(text="I cannot", stop="refusal")]
    asks = [Message("user", (TextPart("Go"),)), Message("assistant", (TextPart("x"),))]
    prompt = Prompt("", (ToolSpec("run", "Run", {"type": "object"}),), tuple(asks[:1]))
    refused = Prompt("", prompt.tools, (*asks, asks[0]))
    model, client = await serve(Script([Conversation("only", [*turns, Turn()])], window=500))
    adapter = GoogleModel("google:gemini-3-pro", api_key="k", base_url=model.base_url("google"), max_output_tokens=99)
    with pytest.raises(MalformedReply, match=r'MALFORMED_FUNCTION_CALL: Malformed function call: run\({"a": \)'):
        await adapter.ask(prompt)
    with pytest.raises(ModelRefused, match="SAFETY"):
        await adapter.ask(refused)
    assert (await adapter.ask(Prompt("", (), (*asks, *asks, asks[0])))).message.parts == ()
    words = r"The input token count \(\d+\) exceeds the maximum number of tokens allowed \(500\)"
    with pytest.raises(ContextOverflow, match=words):
        await adapter.ask(Prompt("x" * 4000, (), tuple(asks[:1])))
    await adapter.close()
    whole = await client.aio.models.generate_content(model="gemini-3", contents="Go", config={"tools": TOOLS})
    assert whole.candidates is not None
    assert whole.candidates[0].finish_reason == types.FinishReason.MALFORMED_FUNCTION_CALL


async def test_thinking_without_a_call_is_sealed_at_its_end(serve: Serve) -> None:
    """With the last text, and it comes back; other thinking says nothing."""
    model, client = await serve(one(Turn(text="Hello", thinking="Hm."), Turn(text="Bye", thinking="So.")))
    for is_stream in (True, False):
        chat = client.aio.chats.create(model="gemini-3", config=thoughtful())
        if is_stream:
            first = [part async for chunk in await chat.send_message_stream("Go") for part in chunk.parts or []]
        else:
            first = (await chat.send_message("Go")).parts or []
        assert [part.thought_signature is not None for part in first] == [False] * (len(first) - 1) + [True]
        assert (await chat.send_message("And?")).text == "Bye"
    assert model.problems == []


def test_a_prompt_that_was_sent_before_is_cached() -> None:
    """The count of the prompt includes what came from the cache, which has a count of its own."""
    counted: Any = google_wire.body(SPOKEN, Usage(20, read=100), "m")["usageMetadata"]
    assert (counted["promptTokenCount"], counted["cachedContentTokenCount"]) == (120, 100)
    assert counted["cacheTokensDetails"] == [{"modality": "TEXT", "tokenCount": 100}]
    first, other = ({**ASK, "model": name} for name in ("gemini-3", "gemini-4"))
    assert segments(first)[0] != segments(other)[0]
    assert all(segment.lifetime for segment in segments(first))


def test_a_body_is_read_into_no_vendors_words() -> None:
    """In either spelling of the fields; thoughts are left out, and results of any shape are words, as pictures are."""
    body: Json = {
        "model": "gemini-3",
        "stream": True,
        "system_instruction": said("user", {"text": "Be"}, {"text": "brief."}),
        "tools": TOOLS,
        "generation_config": {"max_output_tokens": 7, "thinking_config": {"include_thoughts": True}},
        "contents": [
            GO,
            GO,
            said("model", {"text": "Hm", "thought": True}, {"text": "So"}, {"function_call": {"name": "run"}}),
            said("user", {"function_response": {"name": "run", "response": {"found": [1]}}}, {"text": "Hurry"}),
            said("model", {"function_call": {"name": "run", "id": "a"}}),
            said("user", shown("image/png"), picture("image/webp")),
        ],
    }
    request = read_request(body)
    assert (request.model, request.system, request.tools) == ("gemini-3", "Be\nbrief.", ("run",))
    assert (request.stream, request.thinking, request.max_tokens) == (True, True, 7)
    assert [(message.role, message.text) for message in request.messages] == [
        ("user", "Go"),
        ("user", "Go"),
        ("assistant", "So"),
        ("user", "Hurry"),
        ("assistant", ""),
        ("user", "[image/webp]"),
    ]
    (result,), (seen,) = request.messages[3].results, request.messages[-1].results
    assert seen.text == "ok\n[image/png]"
    assert (result.name, result.text, result.is_error) == ("run", '{"found": [1]}', False)


async def test_a_turn_may_be_a_function(serve: Serve) -> None:
    """It gets the request in no vendor's words; one that fails is a 500, and is told to the test."""
    seen: list[Request] = []

    def answer(request: Request) -> Reply:
        seen.append(request)
        raise KeyError(request.model)

    model, client = await serve(Script([Conversation("only", [answer])]))
    config = types.GenerateContentConfig(tools=TOOLS, system_instruction="Be brief.", max_output_tokens=5)
    with pytest.raises(errors.ServerError, match="KeyError"):
        await client.aio.models.generate_content(model="gemini-3", contents="Go", config=config)
    assert [(one.system, one.tools, one.max_tokens, one.stream) for one in seen] == [("Be brief.", ("run",), 5, False)]
    assert model.problems == ["a callable turn raised KeyError('gemini-3')"]


def shape(value: Any) -> frozenset[str]:
    """Return the paths of the keys of a JSON value; the arguments of a call are anybody's."""
    if isinstance(value, list):
        return frozenset(path for item in value for path in shape(item))
    if not isinstance(value, dict):
        return frozenset()
    inner = {f"{key}.{path}" for key, item in value.items() if key != "args" for path in shape(item)}
    return frozenset(value) | inner


def test_chunks_have_the_keys_of_recorded_ones() -> None:
    """All of our keys were recorded, in a stream and in one piece; a reason to stop ends the stream."""
    real = frozenset(path for talk in (*talks(), *lines()) for chunk in talk.chunks for path in shape(chunk))
    replies = [SPOKEN, Reply([Thinking("Hm."), Text("Yes.")], key="k"), Reply(key="k")]
    for reply in replies:
        frames = b"".join(frame for frame, _ in google_wire.frames(reply, Usage(9, read=1), "m"))
        sent = decoded(frames.decode())
        for event in [*sent, google_wire.body(reply, Usage(9, read=1), "m")]:
            assert shape(event) - real == set()
        assert ["finishReason" in event["candidates"][0] for event in sent] == [False] * (len(sent) - 1) + [True]
        assert sent[-1]["usageMetadata"] == google_wire.body(reply, Usage(9, read=1), "m")["usageMetadata"]


def test_errors_have_the_shape_of_recorded_ones() -> None:
    """Status, code and message."""
    (refused,) = [talk for talk in talks() if talk.status != 200]
    error = refused.chunks[0]["error"]
    assert set(error) == {"code", "message", "status"}
    assert error["status"] == ERRORS[refused.status][0]
