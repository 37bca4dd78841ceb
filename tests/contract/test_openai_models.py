"""What models behind OpenAI's wires do beside what every `Model` does (`test_model`), over real HTTP: at Azure too."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest
from starlette.responses import Response

from bot.domain.messages import ToolResult
from bot.errors import MalformedReply, ModelRejected, ModelUnavailable
from bot.llm.openai_responses import OpenAIResponsesModel
from bot.testing.model.reply import Call, Fault
from bot.testing.model.script import Conversation, Script, Turn
from bot.testing.model.server import ScriptedModel
from tests.contract.models import WAYS, Adapter, Way, answering, prompt, stream, user
from tests.unit.llm.cassettes import Exchange, exchanges
from tests.unit.llm.test_openai_chat_recordings import is_ours as is_completion
from tests.unit.llm.test_openai_responses_recordings import is_ours as is_response

Serve = Callable[..., Awaitable[tuple[ScriptedModel, Adapter]]]
OPENAI = ["responses", "chat", "azure-responses", "azure-chat"]

everywhere = pytest.mark.parametrize("way", OPENAI, indirect=True)
"""Marks what is to be true of Azure too; the rest is the same code."""


@pytest.fixture(params=["responses", "chat"])
def way(request: pytest.FixtureRequest) -> Way:
    """Each way."""
    return WAYS[request.param]


@pytest.fixture
async def serve(way: Way) -> AsyncIterator[Serve]:
    """Serve turns and point a model at them, until the test ends."""
    async with AsyncExitStack() as stack:

        async def start(*turns: Turn, **options: Any) -> tuple[ScriptedModel, Adapter]:
            script = Script([Conversation("test", turns, match="/./")])
            server = await stack.enter_async_context(ScriptedModel(script, api_key="k"))
            model = way.model(server.url, **options)
            stack.push_async_callback(model.close)
            return server, model

        yield start


@everywhere
async def test_the_request_goes_where_it_belongs(way: Way, serve: Serve) -> None:
    """By path, model, key and version, as OpenAI and Azure want them."""
    server, model = await serve(Turn(text="Hello"))
    await model.ask(prompt(user("Hi")))
    (sent,) = server.requests
    assert sent.body is not None
    assert sent.body["model"] == ("mine" if way.is_azure else "gpt-x")
    assert ("/openai/" in sent.path) is way.is_azure
    assert sent.body["stream"] is True
    cap = "max_completion_tokens" if way.is_azure else "max_tokens"
    assert ("max_output_tokens" if isinstance(model, OpenAIResponsesModel) else cap) in sent.body


@pytest.mark.parametrize("way", ["responses", "azure-responses", "azure-chat"], indirect=True)
async def test_one_key_leads_all_requests_to_one_cache(serve: Serve) -> None:
    """It is the same for a conversation that has grown."""
    server, model = await serve(Turn(text="One.", calls=[Call("read", {"path": "x"})]), Turn(text="Two."))
    first = await model.ask(prompt(user("Hi")))
    await model.ask(prompt(user("Hi"), first.message, user(ToolResult(first.message.calls[0].id, "y"))))
    keys = {(request.body or {}).get("prompt_cache_key") for request in server.requests}
    assert len(keys) == 1
    assert None not in keys


async def test_the_wait_may_be_told_in_words(serve: Serve) -> None:
    """Of seconds or milliseconds, in an answer or inside a stream."""
    faults = [
        Fault(status=429, message="Rate limit reached. Please try again in 1.3s.", times=1),
        Fault("stream_error", error="rate_limit_exceeded", message="Please try again in 20ms."),
    ]
    _, model = await serve(Turn(text="Hello", faults=faults))
    for seconds in (1.3, 0.02):
        with pytest.raises(ModelUnavailable) as caught:
            await model.ask(prompt(user("Hi")))
        assert caught.value.retry_after_s == seconds


@everywhere
async def test_a_key_may_change(way: Way, serve: Serve) -> None:
    """A function gives the one that is valid now; Azure gets it as a token."""
    server, _ = await serve(Turn(text="Hello"))
    keys = iter(["stale", "k"])

    async def key() -> str:
        return next(keys)

    model = way.model(server.url, key)
    with pytest.raises(ModelRejected, match="Set OPENAI_API_KEY"):
        await model.ask(prompt(user("Hi")))
    assert (await model.ask(prompt(user("Hi")))).message.text == "Hello"
    await model.close()


async def test_a_server_of_ones_own_may_do_without_a_key(way: Way) -> None:
    """None is asked for where the address is set."""
    async with ScriptedModel(Script([Conversation("test", [Turn(text="Hello")], match="/./")])) as server:
        own = way.model(server.url, "")
        assert (await own.ask(prompt(user("Hi")))).message.text == "Hello"
        await own.close()


@everywhere
async def test_only_what_was_set_is_sent(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK would else read address, key, organization and project from the environment."""
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("OPENAI_API_KEY", "other")
    monkeypatch.setenv("AZURE_OPENAI_AD_TOKEN", "other")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-other")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-other")
    server, model = await serve(Turn(text="Hello"))
    assert (await model.ask(prompt(user("Hi")))).message.text == "Hello"
    assert [value for value in server.requests[0].headers.values() if "other" in value] == []


async def test_chunks_of_another_shape_are_malformed(way: Way) -> None:
    """In a stream, and in an answer that is none."""
    odd = '{"choices": 5, "status": "completed", "output": 5}'
    answers = stream(b'data: {"choices": 5}\n\n'), Response(odd, media_type="text/html")
    async with answering(*answers) as (url, _):
        model = way.model(url)
        for _ in range(2):
            with pytest.raises(MalformedReply):
                await model.ask(prompt(user("Hi")))
        await model.close()


async def test_a_chat_stream_without_a_reason_counts_where_it_was_closed() -> None:
    """Some servers never say why they stop: the closing line is enough, silence is not; what keeps alive is nothing."""
    piece = {"index": 0, "id": "0", "function": {"name": "read", "arguments": "{}"}}
    chunk = json.dumps({"model": "m", "choices": [{"index": 0, "delta": {"tool_calls": [piece]}}]})
    data = f"data: {chunk}\n\n".encode()
    closed = stream(b": hello\n\n", b"event: ping\n\n", data, b"data: [DONE]\n\n")
    async with answering(closed, stream(data)) as (url, _):
        model = WAYS["chat"].model(url)
        reply = await model.ask(prompt(user("Hi")))
        assert (reply.stop, len(reply.message.calls)) == ("tool", 1)
        with pytest.raises(ModelUnavailable, match="broke off"):
            await model.ask(prompt(user("Hi")))
        await model.close()


def streams(folder: str, ours: Callable[[Exchange], bool], ending: str) -> list[Exchange]:
    """The shortest recorded streams with a call and an ending, since each is sent many times."""
    found = [
        one for one in exchanges(folder) if ours(one) and all(w in (one.stream or "") for w in ("arguments", ending))
    ]
    return sorted(found, key=lambda one: len(one.stream or ""))[:2]


@pytest.mark.parametrize(
    ("name", "folder", "ours", "ending"),
    [
        ("chat", "openai-chat", is_completion, '"finish_reason":"'),
        ("responses", "openai-responses", is_response, "event: response.completed"),
    ],
)
async def test_a_stream_that_is_cut_at_any_byte_is_no_reply(
    name: str, folder: str, ours: Callable[[Exchange], bool], ending: str
) -> None:
    """Recorded streams with calls, cut inside lines too: before the finishing event is whole nothing is a call."""
    for exchange in streams(folder, ours, ending):
        raw = (exchange.stream or "").encode()
        begins = raw.rindex(ending.encode())
        finishes = raw.find(b"\n", raw.index(b"data:", begins) if name == "responses" else begins)
        places = sorted({*range(0, finishes, max(1, finishes // 60)), finishes - 1, begins})
        async with answering(*(stream(raw[:place]) for place in places), stream(raw)) as (url, _):
            model = WAYS[name].model(url)
            for _ in places:
                with pytest.raises((ModelUnavailable, MalformedReply)):
                    await model.ask(prompt(user("Hi")))
            assert (await model.ask(prompt(user("Hi")))).message.calls
            await model.close()
