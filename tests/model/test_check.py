"""What the scripted model refuses, as the real API does; and that it takes all that the real API took."""

import copy
import json
from collections.abc import Callable
from typing import Any

import anthropic
import httpx
import pytest

from bot.testing.model.anthropic_check import check_body, check_signatures
from bot.testing.model.body import Rejected
from bot.testing.model.script import Conversation, Script, Turn
from tests.model.conftest import Serve

Body = dict[str, Any]
HEADERS = {"x-api-key": "x", "anthropic-version": "2023-06-01"}
SCRIPT = Script([Conversation("c", [Turn(text="Yes.", thinking="Hm."), Turn(text="And yes.")])])


def use(call: str = "a", **more: Any) -> Body:
    """Return a call."""
    return {"type": "tool_use", "id": call, "name": "run", "input": {}, **more}


def result(call: str = "a", **more: Any) -> Body:
    """Return its result."""
    return {"type": "tool_result", "tool_use_id": call, "content": "ok", **more}


def good() -> Body:
    """Return a body that is right, with two turns and two calls."""
    return {
        "model": "m",
        "max_tokens": 100,
        "system": [{"type": "text", "text": "Be brief."}],
        "tools": [{"name": "run", "input_schema": {"type": "object"}}],
        "messages": [
            {"role": "user", "content": "Hello"},
            {"role": "assistant", "content": [{"type": "text", "text": "I run."}, use("a"), use("b")]},
            {"role": "user", "content": [result("a"), result("b"), {"type": "text", "text": "Go on."}]},
        ],
    }


def put(value: Any, *path: str | int | slice) -> Callable[[Body], None]:
    """Return a change that sets one place of a body; None deletes it."""

    def change(body: Body) -> None:
        place: Any = body
        for step in path[:-1]:
            place = place[step]
        if value is None:
            del place[path[-1]]
        else:
            place[path[-1]] = [value] if isinstance(path[-1], slice) else value

    return change


MARK = {"cache_control": {"type": "ephemeral"}}
HOUR = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
FOREIGN = {"type": "thinking", "thinking": "x", "signature": "y"}
NO_RESULT = (
    "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: {}. "
    "Each `tool_use` block must have a corresponding `tool_result` block in the next message."
)
WORDS = {"type": "text", "text": "w"}
WRONG: list[tuple[Callable[[Body], None], str]] = [
    (put(None, "max_tokens"), "max_tokens: Field required"),
    (put(None, "model"), "model: Field required"),
    (put(None, "messages"), "messages: Field required"),
    (put("5", "max_tokens"), "max_tokens: Input should be a valid integer"),
    (put(0, "max_tokens"), "max_tokens: must be greater than or equal to 1"),
    (put([], "messages"), "messages: at least one message is required"),
    (put("assistant", "messages", 0, "role"), 'messages: first message must use the "user" role'),
    (put("robot", "messages", 1, "role"), "messages.1.role: Input should be 'user' or 'assistant'"),
    (put([], "messages", 0, "content"), "messages.0: all messages must have non-empty content"),
    (put("", "messages", 1, "content", 0, "text"), "messages: text content blocks must be non-empty"),
    (put(" \n", "messages", 2, "content", 2, "text"), "must contain non-whitespace text"),
    (put("", "system", 0, "text"), "system: text content blocks must be non-empty"),
    (put("a:b", "messages", 1, "content", 1, "id"), r"messages.1.content.1.tool_use.id: String should match pattern"),
    (put("a" * 65, "messages", 1, "content", 1, "id"), "should have at most 64 characters"),
    (put("{}", "messages", 1, "content", 1, "input"), "tool_use.input: Input should be a valid dictionary"),
    (put([result("a"), result("b"), result("c")], "messages", 2, "content"), "unexpected `tool_use_id` found in"),
    (put([result("a")], "messages", 2, "content"), NO_RESULT.format("b")),
    (put([WORDS, result("a"), result("b")], "messages", 2, "content"), "immediately after: a, b."),
    (put([result("a"), result("b"), result("b")], "messages", 2, "content"), "each tool_use must have a single result"),
    (put("a", "messages", 1, "content", 2, "id"), "`tool_use` ids must be unique"),
    (put(None, "messages", 2), "immediately after: a, b."),
    (put({**use("a"), **MARK}, "messages", 0, "content"), "Input should be a valid list"),
    (put([{**WORDS, **MARK}] * 5, "system"), "A maximum of 4 blocks with cache_control may be provided. Found 5."),
    (put([{**WORDS, **MARK}, {**WORDS, **HOUR}], "system"), "a ttl='1h' cache_control block must not come after"),
    (put([{**FOREIGN, **MARK}, use("a"), use("b")], "messages", 1, "content"),
        "messages.1.content.0.thinking.cache_control: Extra inputs are not permitted"),
    (put([FOREIGN, use("a"), use("b")], "messages", 1, "content"),
        "messages.1.content.0: Invalid `signature` in `thinking` block"),
    (put("a b", "tools", 0, "name"), "tools.0.custom.name: String should match pattern"),
    (put([{"name": "run", "input_schema": {"type": "object"}}] * 2, "tools"), "tools: Tool names must be unique."),
    (put({}, "tools", 0, "input_schema"), "input_schema.type: Input should be 'object'"),
    (put({"type": "enabled", "budget_tokens": 5}, "thinking"), "greater than or equal to 1024"),
    (put({"type": "enabled", "budget_tokens": 1024}, "thinking"), "`max_tokens` must be greater than"),
    (put("Yes. ", "messages", 1, "content"), "unexpected `tool_use_id`"),
    (put({"role": "assistant", "content": "Yes. "}, "messages", slice(1, None)), "cannot end with trailing"),
]  # fmt: skip


async def test_a_right_request_is_taken(serve: Serve) -> None:
    """The body that the wrong ones are made of is right; consecutive messages of one role are too."""
    model, client = await serve(SCRIPT)
    body = good()
    assert (await client.messages.create(**body)).stop_reason == "end_turn"
    results = body["messages"].pop()["content"]
    body["messages"] += [{"role": "user", "content": [block]} for block in results]
    assert (await client.messages.create(**body)).stop_reason == "end_turn"
    assert model.problems == []


@pytest.mark.parametrize(("change", "message"), WRONG)
def test_a_wrong_request_is_refused_in_the_words_of_the_api(change: Callable[[Body], None], message: str) -> None:
    """Each mistake is a 400 whose message names the place."""
    body = copy.deepcopy(good())
    change(body)
    with pytest.raises(Rejected) as caught:
        check_signatures(check_body(json.dumps(body).encode()))
    assert message.lower() in str(caught.value).lower()
    assert caught.value.status == 400


async def test_a_refusal_reaches_the_client_and_the_test(serve: Serve) -> None:
    """The client gets an `invalid_request_error`; the test finds the same words in `problems` and in the record."""
    model, client = await serve(SCRIPT)
    body = good()
    put("", "messages", 1, "content", 0, "text")(body)
    with pytest.raises(anthropic.BadRequestError, match="must be non-empty") as caught:
        await client.messages.create(**body)
    assert caught.value.type == "invalid_request_error"
    words = "messages: text content blocks must be non-empty"
    assert caught.value.api_message == model.requests[0].error == words
    assert model.problems == [f"refused with 400: {words}"]
    assert model.requests[0].status == 400


@pytest.mark.parametrize(
    ("headers", "raw", "status", "message"),
    [
        ({"anthropic-version": "1"}, b"{}", 401, "x-api-key header is required"),
        ({"x-api-key": "x"}, b"{}", 400, "anthropic-version: header is required"),
        (HEADERS, b"{", 400, "The request body is not valid JSON"),
        (HEADERS, b"\xff", 400, "The request body is not valid JSON"),
        (HEADERS, b"[" * 100_000, 400, "The request body is not valid JSON"),
        (HEADERS, b"[]", 400, "Input should be a valid dictionary"),
    ],
)
async def test_headers_and_json_are_checked_first(
    serve: Serve, headers: dict[str, str], raw: bytes, status: int, message: str
) -> None:
    """Without a key it is a 401; without a version, or with a body that is no JSON object, a 400."""
    model, _ = await serve(SCRIPT)
    async with httpx.AsyncClient(base_url=model.url, headers=headers) as http:
        response = await http.post("/v1/messages", content=raw)
    assert response.status_code == status
    assert message in response.json()["error"]["message"]
    assert response.headers["x-scripted-model"] == "true"


def test_too_large_a_body_is_a_413() -> None:
    """Beyond 32 MiB nothing is read."""
    with pytest.raises(Rejected, match="maximum size") as caught:
        check_body(b" " * (32 * 1024 * 1024 + 1))
    assert caught.value.status == 413


async def test_a_prompt_beyond_the_window_is_refused(serve: Serve) -> None:
    """More tokens than the script's window is the API's "prompt is too long", which harnesses look for."""
    _, client = await serve(Script(SCRIPT.conversations, window=50))
    with pytest.raises(anthropic.BadRequestError, match=r"prompt is too long: \d+ tokens > 50 maximum"):
        await client.messages.create(model="m", max_tokens=5, messages=[{"role": "user", "content": "x" * 400}])


async def test_thinking_replayed_as_it_was_is_taken(serve: Serve) -> None:
    """The signature of our own thinking is accepted; a changed word is not."""
    _, client = await serve(SCRIPT)
    ask: Any = {"model": "m", "max_tokens": 2000, "thinking": {"type": "enabled", "budget_tokens": 1024}}
    messages: Any = [{"role": "user", "content": "Hello"}]
    first = await client.messages.create(messages=messages, **ask)
    content: Any = [block.model_dump(exclude_none=True) for block in first.content]
    messages += [{"role": "assistant", "content": content}, {"role": "user", "content": "And?"}]
    assert (await client.messages.create(messages=messages, **ask)).content[-1].text == "And yes."
    content[0]["thinking"] = "Hm!"
    with pytest.raises(anthropic.BadRequestError, match="Invalid `signature`"):
        await client.messages.create(messages=messages, **ask)
