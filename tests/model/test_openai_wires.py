"""The scripted model on OpenAI's wires: through OpenAI's own SDK, and compared with recorded traffic."""

import json
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from typing import Any

import httpx
import openai
import pytest

from bot.testing.model import openai_chat_wire, openai_responses_wire
from bot.testing.model.cache import Usage
from bot.testing.model.load import parse_script
from bot.testing.model.openai_check import check_chat, check_responses
from bot.testing.model.openai_errors import ERRORS
from bot.testing.model.openai_read import read_chat, read_responses, segments
from bot.testing.model.play import play
from bot.testing.model.reply import Call, Fault, Reply, Thinking
from bot.testing.model.request import Request, Text
from bot.testing.model.script import Conversation, Script, Turn
from bot.testing.model.seal import seal
from bot.testing.model.server import ScriptedModel
from tests.unit.llm.cassettes import Exchange, Json, decoded, exchanges

Serve = Callable[..., Awaitable[tuple[ScriptedModel, openai.AsyncOpenAI]]]
SPOKEN = Reply([Thinking("Hm."), Text("Yes, I do."), Call("run", {"command": "make"})], key="k")
FUNCTION: Any = {"name": "run", "description": "Run", "parameters": {"type": "object"}}
CHAT: Any = {
    "model": "any",
    "messages": [{"role": "user", "content": "Go"}],
    "tools": [{"type": "function", "function": FUNCTION}],
}
RESPONSES: Any = {
    "model": "any",
    "input": [{"role": "user", "content": "Go"}],
    "store": False,
    "tools": [{"type": "function", "strict": False, **FUNCTION}],
}
STORY = """
script: story
conversations:
  - name: fix
    match: add
    turns:
      - text: I look.
        capture: {name: 'function (\\w+)'}
        calls: [{tool: run, arguments: {command: "cat ${name}.py"}}, {tool: run, arguments: {command: ls}}]
      - expect: [{tool: run, matches: 'def add'}, {tool: run, is_error: true}]
        text: Done.
  - name: more
    match_last: again
    turns:
      - text: Once more.
"""


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    """Serve scripts, as YAML or as values, until the test ends."""
    async with AsyncExitStack() as stack:

        async def start(script: str | Script, **options: Any) -> tuple[ScriptedModel, openai.AsyncOpenAI]:
            played = parse_script(script) if isinstance(script, str) else script
            model = await stack.enter_async_context(ScriptedModel(played, **options))
            client = openai.AsyncOpenAI(base_url=model.base_url("openai-chat"), api_key="x", max_retries=0)
            await stack.enter_async_context(client)
            return model, client

        yield start


def one(*turns: Turn) -> Script:
    """Return a script with one conversation that answers everything."""
    return Script([Conversation("only", turns)], name="demo")


TALK = Turn(
    text="I read the file: ümläut.", thinking="Where?", calls=[Call("run", {"a": [1, None]}), Call("run")], chunk=5
)


async def test_a_completion_arrives_whole(serve: Serve) -> None:
    """Streamed or not, the SDK ends up with the same text, calls, reason, usage and model id."""
    _, client = await serve(one(TALK))
    ask = {**CHAT, "reasoning_effort": "low"}
    whole = await client.chat.completions.create(**ask)
    async with client.chat.completions.stream(**ask, stream_options={"include_usage": True}) as streaming:
        grown = await streaming.get_final_completion()
    for completion in (whole, grown):
        (choice,) = completion.choices
        assert choice.message.content == TALK.text
        calls = [(c.id, c.function.name, json.loads(c.function.arguments)) for c in choice.message.tool_calls or []]
        assert [call[1:] for call in calls] == [("run", {"a": [1, None]}), ("run", {})]
        assert len({call[0] for call in calls}) == 2
        assert (choice.finish_reason, completion.model) == ("tool_calls", "scripted:demo")
        assert completion.usage is not None
        assert completion.usage.total_tokens == completion.usage.prompt_tokens + completion.usage.completion_tokens
    assert "reasoning_content" in whole.choices[0].message.model_dump()
    quiet = await client.chat.completions.create(**CHAT)
    assert "reasoning_content" not in quiet.choices[0].message.model_dump()


async def test_a_response_arrives_whole(serve: Serve) -> None:
    """Streamed or not, the SDK ends up with the same items, status, usage and model id."""
    _, client = await serve(one(TALK))
    ask = {**RESPONSES, "include": ["reasoning.encrypted_content"]}
    whole = await client.responses.create(**ask)
    async with client.responses.stream(**ask) as streaming:
        grown = await streaming.get_final_response()
    for response in (whole, grown):
        output: Any = response.output
        reasoning, message, first, second = output
        assert reasoning.type == "reasoning"
        assert (reasoning.summary[0].text, reasoning.encrypted_content) == ("Where?", seal("Where?"))
        assert message.type == "message"
        assert response.output_text == TALK.text
        assert first.type == second.type == "function_call"
        assert (json.loads(first.arguments), second.arguments) == ({"a": [1, None]}, "{}")
        assert (response.status, response.model) == ("completed", "scripted:demo")
        assert response.usage is not None
        assert response.usage.total_tokens == response.usage.input_tokens + response.usage.output_tokens


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("path", ["chat", "responses"])
@pytest.mark.parametrize(
    ("status", "raised"),
    [
        (400, openai.BadRequestError),
        (401, openai.AuthenticationError),
        (403, openai.PermissionDeniedError),
        (404, openai.NotFoundError),
        (429, openai.RateLimitError),
        (500, openai.InternalServerError),
        (503, openai.InternalServerError),
    ],
)
async def test_a_status_becomes_the_exception_of_the_sdk(
    serve: Serve,
    status: int,
    raised: type[openai.APIStatusError],
    path: str,
    stream: bool,  # noqa: FBT001 - parametrised
) -> None:
    """Each HTTP error has OpenAI's type and code, and the SDK raises its class for it."""
    _, client = await serve(one(Turn(text="x", faults=[Fault(status=status, retry_after_s=2.5)])))
    create: Any = client.chat.completions.create if path == "chat" else client.responses.create
    with pytest.raises(raised) as caught:
        await create(**(CHAT if path == "chat" else RESPONSES), stream=stream)
    assert (caught.value.type, caught.value.code) == ERRORS[status][:2]
    assert caught.value.response.headers["retry-after"] == "2.5"


async def test_an_error_inside_a_stream(serve: Serve) -> None:
    """It comes after what came before it, with its own code."""
    _, client = await serve(one(Turn(text="Hello", faults=[Fault("stream_error", error="slow_down")])))
    chunks = await client.chat.completions.create(**CHAT, stream=True)
    with pytest.raises(openai.APIError, match="overloaded") as caught:
        [chunk async for chunk in chunks]
    assert caught.value.code == "slow_down"
    events = [event async for event in await client.responses.create(**RESPONSES, stream=True)]
    assert (events[-1].type, events[0].type) == ("error", "response.created")
    with pytest.raises(openai.InternalServerError):
        await client.chat.completions.create(**CHAT)


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        ("chat/completions", {**CHAT, "model": None}, "model"),
        (
            "chat/completions",
            {**CHAT, "messages": [{"role": "tool", "tool_call_id": "a", "content": "x"}]},
            "preceding",
        ),
        ("chat/completions", {**CHAT, "messages": [{"role": "assistant", "content": None}]}, "content"),
        ("chat/completions", {**CHAT, "messages": [{"role": "robot", "content": "x"}]}, "robot"),
        ("chat/completions", {**CHAT, "tools": [{"function": {"name": "a b"}}]}, "pattern"),
        ("responses", {**RESPONSES, "input": None}, "input"),
        ("responses", {**RESPONSES, "store": True}, "store"),
        (
            "responses",
            {**RESPONSES, "input": [{"type": "function_call_output", "call_id": "a", "output": ""}]},
            "No tool",
        ),
        (
            "responses",
            {**RESPONSES, "input": [{"type": "function_call", "call_id": "a", "name": "b", "arguments": "{}"}]},
            "No tool",
        ),
        (
            "responses",
            {**RESPONSES, "input": [{"type": "reasoning", "id": "r", "encrypted_content": "no"}]},
            "verified",
        ),
        (
            "responses",
            {**RESPONSES, "input": [{"type": "reasoning", "id": "r", "encrypted_content": seal("")}]},
            "following",
        ),
        ("responses", {**RESPONSES, "input": [{"role": "user", "content": "\0"}]}, "Unicode"),
        ("responses", [], "object"),
    ],
)
async def test_what_the_api_refuses_is_refused(serve: Serve, path: str, body: Any, words: str) -> None:
    """With 400, in its words, and the test is told."""
    model, _ = await serve(one(Turn(text="x")))
    async with httpx.AsyncClient(base_url=model.base_url("openai-chat")) as http:
        answer = await http.post(f"/{path}", json=body)
    assert answer.status_code == 400
    assert words in answer.json()["error"]["message"]
    assert answer.headers["x-scripted-model"] == "true"
    assert len(model.problems) == 1


@pytest.mark.parametrize("wire", ["chat", "responses"])
async def test_a_story_is_the_same_on_each_wire(serve: Serve, wire: str) -> None:
    """Captures, expectations, failed results, words behind results and a follow-up stand where they stand elsewhere."""
    model, client = await serve(STORY)
    task, rest = "Fix function add", "Never mind again"
    results = [("def add", 0), ("Error: no such file", 1)]
    if wire == "chat":
        messages: list[Any] = [{"role": "user", "content": task}]
        told: Any = (await client.chat.completions.create(**{**CHAT, "messages": messages})).choices[0].message
        ids, first = [call.id for call in told.tool_calls], told.tool_calls[0].function.arguments
        messages += [told.model_dump(exclude_none=True)]
        messages += [{"role": "tool", "tool_call_id": ids[n], "content": text} for text, n in results]
        messages += [{"role": "user", "content": "Not again."}]
        done = (await client.chat.completions.create(**{**CHAT, "messages": messages})).choices[0].message.content
        messages += [{"role": "assistant", "content": done}, {"role": "user", "content": rest}]
        last = (await client.chat.completions.create(**{**CHAT, "messages": messages})).choices[0].message.content
    else:
        items: list[Any] = [{"role": "user", "content": task}]
        answer: Any = await client.responses.create(**{**RESPONSES, "input": items})
        calls = [item for item in answer.output if item.type == "function_call"]
        ids, first = [call.call_id for call in calls], calls[0].arguments
        items += [item.model_dump(exclude_none=True) for item in answer.output]
        items += [{"type": "function_call_output", "call_id": ids[n], "output": text} for text, n in results]
        items += [{"role": "user", "content": "Not again."}]
        done = (await client.responses.create(**{**RESPONSES, "input": items})).output_text
        items += [{"role": "assistant", "content": done}, {"role": "user", "content": rest}]
        last = (await client.responses.create(**{**RESPONSES, "input": items})).output_text
    assert json.loads(first) == {"command": "cat add.py"}
    assert (done, last, model.problems) == ("Done.", "Once more.", [])
    assert [(one.conversation, one.turn) for one in model.requests] == [("fix", 0), ("fix", 1), ("more", 0)]


async def test_an_answer_at_the_limit_says_so(serve: Serve) -> None:
    """By the reason, and on the Responses API by the state of the last item too."""
    _, client = await serve(one(Turn(text="word " * 100)))
    completion = await client.chat.completions.create(**CHAT, max_tokens=10)
    assert completion.choices[0].finish_reason == "length"
    response: Any = await client.responses.create(**RESPONSES, max_output_tokens=10)
    assert (response.status, response.incomplete_details.reason) == ("incomplete", "max_output_tokens")
    assert response.output[-1].status == "incomplete"


async def test_a_turn_may_be_a_function(serve: Serve) -> None:
    """It gets the request in no vendor's words; one that fails is a 500, and is told to the test."""
    seen: list[Request] = []

    def answer(request: Request) -> Reply:
        seen.append(request)
        raise KeyError(request.model)

    model, client = await serve(Script([Conversation("only", [answer])]))
    system: Any = {"role": "system", "content": "Be brief."}
    with pytest.raises(openai.InternalServerError):
        await client.chat.completions.create(**{**CHAT, "messages": [system, *CHAT["messages"]], "max_tokens": 5})
    with pytest.raises(openai.InternalServerError):
        await client.responses.create(**RESPONSES, instructions="Be brief.", max_output_tokens=5)
    for request in seen:
        assert (request.system, request.tools, request.max_tokens) == ("Be brief.", ("run",), 5)
        assert [message.text for message in request.messages] == ["Go"]
    assert model.problems == ["a callable turn raised KeyError('any')"]


async def test_anthropics_wire_is_served_too(serve: Serve) -> None:
    """One server, all wires, one cache and one list of requests."""
    model, _ = await serve(one(Turn(text="Hello")), api_key="k")
    ask = {"model": "m", "max_tokens": 9, "messages": CHAT["messages"]}
    async with httpx.AsyncClient(base_url=model.url) as http:
        anthropic = await http.post("/v1/messages", json=ask, headers={"x-api-key": "k", "anthropic-version": "1"})
        azure = await http.post("/openai/deployments/d/chat/completions", json=CHAT, headers={"api-key": "k"})
        refused = await http.post("/v1/responses", json=RESPONSES, headers={"authorization": "Bearer other-key"})
    assert anthropic.json()["content"][0]["text"] == azure.json()["choices"][0]["message"]["content"] == "Hello"
    assert refused.status_code == 401
    assert "other-key" not in refused.text
    assert [recorded.status for recorded in model.requests] == [200, 200, 401]
    assert "k" not in [recorded.headers.get("api-key") for recorded in model.requests]


def shape(value: Any) -> frozenset[str]:
    """Return the paths of the keys of a JSON value."""
    if isinstance(value, list):
        return frozenset(path for item in value for path in shape(item))
    if not isinstance(value, dict):
        return frozenset()
    return frozenset(value) | {f"{key}.{path}" for key, item in value.items() for path in shape(item)}


def recorded(folder: str, path: str) -> list[Exchange]:
    """All recorded requests of a kind that were answered."""
    return [one for one in exchanges(folder) if one.method == "POST" and one.status == 200 and one.url.endswith(path)]


def ours(frames: Iterator[tuple[bytes, bool]]) -> list[Json]:
    """Decode our own stream."""
    return decoded(b"".join(frame for frame, _ in frames).decode())


def test_each_event_has_keys_of_recorded_ones() -> None:
    """Every kind of event of ours was recorded, with all of our keys."""
    real: defaultdict[str, set[str]] = defaultdict(set)
    for exchange in recorded("openai-responses", "/v1/responses"):
        for event in exchange.events():
            real[event["type"]] |= shape({**event, "response": None, "item": None})
            for name in ("item", "response"):
                inner = event.get(name) or {}
                real[f"{name} {inner.get('type', '')}"] |= shape({**inner, "output": None})
    for event in ours(openai_responses_wire.frames(SPOKEN, Usage(1), "m")):
        assert shape({**event, "response": None, "item": None}) - real[event["type"]] - {"response", "item"} == set()
        for name in ("item", "response"):
            inner = event.get(name) or {}
            assert shape({**inner, "output": None}) - real[f"{name} {inner.get('type', '')}"] <= {"output"}


def test_each_chunk_has_keys_of_recorded_ones() -> None:
    """All of our keys were recorded; reasoning apart, which OpenAI does not send."""
    real = frozenset(
        path
        for exchange in recorded("openai-chat", "/chat/completions")
        for event in exchange.events()
        for path in shape(event)
    )
    sent = [
        event
        for event in ours(openai_chat_wire.frames(SPOKEN, Usage(1), "m", counted=True))
        if "reasoning_content" not in str(event)
    ]
    assert len(sent) == 6
    for event in sent[:-1]:
        assert shape(event) - real == set()
    assert sent[-1]["choices"] == []


def test_bodies_have_the_keys_of_recorded_ones() -> None:
    """The whole answers too."""
    for folder, path, body in (
        ("openai-responses", "/v1/responses", openai_responses_wire.body(SPOKEN, Usage(1), "m")),
        ("openai-chat", "/chat/completions", openai_chat_wire.body(SPOKEN, Usage(1), "m")),
    ):
        real = frozenset(key for exchange in recorded(folder, path) for key in shape(exchange.body))
        assert {key for key in shape(body) - real if "reasoning_content" not in key} == set()


def test_what_the_real_api_took_is_taken() -> None:
    """Recorded requests of texts and tool loops that were answered pass the check and can be read."""
    taken = 0
    for exchange in recorded("openai-chat", "/chat/completions"):
        # One client left empty answers in its history, and the API took them.
        said = [m for m in exchange.request["messages"] if m.get("content") != "" or m.get("tool_calls")]
        body = {**exchange.request, "messages": said}
        check_chat(body)
        assert read_chat(body).messages
        assert segments(body, "messages")
        taken += 1
    for exchange in recorded("openai-responses", "/v1/responses"):
        items = exchange.request["input"]
        if {"previous_response_id", "conversation"} & set(exchange.request) or not isinstance(items, list):
            continue
        if any(
            item.get("type", "message") not in ("message", "function_call", "function_call_output") for item in items
        ):
            continue
        body = {**exchange.request, "store": False, "tools": [], "input": [i for i in items if i.get("content") != ""]}
        check_responses(body)
        play(one(Turn(text="x")), read_responses(body))
        taken += 1
    assert taken > 250
