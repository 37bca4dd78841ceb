"""What every model behind one of OpenAI's wires does, over real HTTP: the same stories on each."""

import asyncio
import json
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from bot.domain.messages import Message, Part, Prompt, TextPart, ThinkingPart, ToolCall, ToolResult, ToolSpec, Usage
from bot.errors import (
    ContextOverflow,
    MalformedReply,
    ModelError,
    ModelRefused,
    ModelRejected,
    ModelUnavailable,
    OperatorError,
)
from bot.llm.discarded import usage_of
from bot.llm.openai_chat import OpenAIChatModel
from bot.llm.openai_client import Endpoint
from bot.llm.openai_responses import OpenAIResponsesModel
from bot.llm.retrying import Retrying
from bot.llm.transport import ClientOptions
from bot.testing.model.openai_server import ScriptedOpenAI
from bot.testing.model.reply import Call, Fault
from bot.testing.model.script import Conversation, Script, Turn
from tests.unit.llm.cassettes import Exchange, exchanges
from tests.unit.llm.test_openai_chat_recordings import is_ours as is_completion
from tests.unit.llm.test_openai_responses_recordings import is_ours as is_response

OpenAIModel = OpenAIResponsesModel | OpenAIChatModel
Serve = Callable[..., Awaitable[tuple[ScriptedOpenAI, OpenAIModel]]]
TOOLS = (ToolSpec("read", "Read a file.", {"type": "object", "properties": {"path": {"type": "string"}}}),)
AZURE = "2025-04-01-preview"


@dataclass(frozen=True, slots=True)
class Wire:
    """One way to reach a model."""

    make: Callable[..., OpenAIModel]
    is_azure: bool = False

    def model(self, url: str, key: str = "k", **options: Any) -> OpenAIModel:
        """Make a model of the server at this address."""
        endpoint = (
            Endpoint(key, url, api_version=AZURE, deployment="mine") if self.is_azure else Endpoint(key, f"{url}/v1")
        )
        return self.make("openai:gpt-x", **{"endpoint": endpoint, "max_output_tokens": 4096, **options})


def chat(name: str, **options: Any) -> OpenAIModel:
    """A chat model that is let reason."""
    return OpenAIChatModel(name, **{"effort": "low", **options})


WIRES = {
    "responses": Wire(OpenAIResponsesModel),
    "chat": Wire(chat),
    "azure-responses": Wire(OpenAIResponsesModel, is_azure=True),
    "azure-chat": Wire(chat, is_azure=True),
}


everywhere = pytest.mark.parametrize("wire", list(WIRES), indirect=True)
"""Marks what is to be true of Azure too; the rest is the same code."""


@pytest.fixture(params=["responses", "chat"])
def wire(request: pytest.FixtureRequest) -> Wire:
    """Each way."""
    return WIRES[request.param]


@pytest.fixture
async def serve(wire: Wire) -> AsyncIterator[Serve]:
    """Serve turns and point a model at them, until the test ends."""
    async with AsyncExitStack() as stack:

        async def start(*turns: Turn, window: int = 200_000, **options: Any) -> tuple[ScriptedOpenAI, OpenAIModel]:
            script = Script([Conversation("test", turns, match="/./")], window=window)
            server = await stack.enter_async_context(ScriptedOpenAI(script, api_key="k"))
            model = wire.model(server.url, **options)
            stack.push_async_callback(model.close)
            return server, model

        yield start


def user(*parts: Part | str) -> Message:
    """A user message."""
    return Message("user", tuple(TextPart(part) if isinstance(part, str) else part for part in parts))


def prompt(*messages: Message) -> Prompt:
    """A prompt with a tool."""
    return Prompt("You are a test.", TOOLS, messages)


async def test_a_text_comes_back_and_is_heard_while_it_comes(serve: Serve) -> None:
    """Whole text, stop reason, usage, the model's own name; the pieces that were heard are the text."""
    server, model = await serve(Turn(text="Hello, here is a somewhat longer answer: äöü 🦀.", chunk=5))
    heard: list[str] = []
    reply = await model.ask(prompt(user("Hi")), on_text=heard.append)
    assert reply.message == Message("assistant", (TextPart("Hello, here is a somewhat longer answer: äöü 🦀."),))
    assert (reply.stop, reply.model) == ("end", server.model_id)
    assert reply.usage.output_tokens > 0
    assert reply.usage.total_tokens > reply.usage.output_tokens
    assert len(heard) > 5
    assert "".join(heard) == reply.message.text
    assert model.name == "openai:gpt-x"
    assert (server.problems, model.unknown) == ([], {})


@everywhere
async def test_the_request_goes_where_it_belongs(wire: Wire, serve: Serve) -> None:
    """By path, model, key and version, as OpenAI and Azure want them."""
    server, model = await serve(Turn(text="Hello"))
    await model.ask(prompt(user("Hi")))
    (sent,) = server.requests
    assert sent.body is not None
    assert sent.body["model"] == ("mine" if wire.is_azure else "gpt-x")
    assert ("/openai/" in sent.path) is wire.is_azure
    assert sent.body["stream"] is True
    cap = "max_completion_tokens" if wire.is_azure else "max_tokens"
    assert ("max_output_tokens" if wire.make is OpenAIResponsesModel else cap) in sent.body


@everywhere
async def test_a_tool_loop_goes_round(serve: Serve) -> None:
    """Thinking, text and parallel calls; the results and all that was said are accepted in the next request."""
    calls = [Call("read", {"path": "a b/ü"}), Call("read", json="{}")]
    server, model = await serve(Turn(thinking="Hm.", text="Look.", calls=calls), Turn(text="Done."))
    first = prompt(user("Hi"))
    reply = await model.ask(first)
    thinking, text, one, two = reply.message.parts
    assert isinstance(thinking, ThinkingPart)
    assert (thinking.text, thinking.model, bool(thinking.data)) == ("Hm.", "openai:gpt-x", True)
    assert text == TextPart("Look.")
    assert isinstance(one, ToolCall)
    assert isinstance(two, ToolCall)
    assert (one.arguments, two.arguments, reply.stop) == ('{"path": "a b/ü"}', "{}", "tool")
    results = user(ToolResult(one.id, "text"), ToolResult(two.id, "", is_error=True), "Go on.")
    reply = await model.ask(prompt(*first.messages, reply.message, results))
    assert (reply.message.text, reply.stop) == ("Done.", "end")
    assert server.problems == []
    assert "Hm." in server.requests[1].raw.decode()


async def test_the_second_request_reads_what_the_first_one_sent(serve: Serve) -> None:
    """The prefix is the same, byte by byte, and so is the key that leads both to one cache."""
    words = user("word " * 20_000)
    server, model = await serve(Turn(text="One.", calls=[Call("read", {"path": "x"})]), Turn(text="Two."))
    first = await model.ask(prompt(words))
    result = user(ToolResult(first.message.calls[0].id, "y"))
    second = await model.ask(prompt(words, first.message, result))
    assert first.usage.cache_read_tokens == 0
    assert second.usage.cache_read_tokens >= first.usage.input_tokens - 10
    assert second.usage.input_tokens < 150
    keys = {(request.body or {}).get("prompt_cache_key") for request in server.requests}
    assert len(keys) == 1


async def test_broken_arguments_are_the_models_and_do_no_later_harm(serve: Serve) -> None:
    """They come as the model wrote them, and the conversation goes on."""
    server, model = await serve(Turn(calls=[Call("read", json='{"path": "a')]), Turn(text="Sorry."))
    first = prompt(user("Hi"))
    reply = await model.ask(first)
    (call,) = reply.message.calls
    assert call.arguments == '{"path": "a'
    result = user(ToolResult(call.id, "That is no JSON.", is_error=True))
    reply = await model.ask(prompt(*first.messages, reply.message, result))
    assert reply.message.text == "Sorry."
    assert server.problems == []


async def test_a_reply_at_the_limit_says_so(serve: Serve) -> None:
    """Its last call is cut, and the stop reason tells."""
    _, model = await serve(Turn(calls=[Call("read", {"path": "a" * 100})], faults=[Fault("cut")]))
    reply = await model.ask(prompt(user("Hi")))
    assert reply.stop == "length"
    with pytest.raises(json.JSONDecodeError):
        json.loads(reply.message.calls[0].arguments)


async def test_the_cap_is_sent(serve: Serve) -> None:
    """A longer answer ends there."""
    _, model = await serve(Turn(text="word " * 100), max_output_tokens=20)
    reply = await model.ask(prompt(user("Hi")))
    assert (reply.stop, reply.usage.output_tokens) == ("length", 20)


@pytest.mark.parametrize(
    ("fault", "error", "words"),
    [
        (Fault(status=503), ModelUnavailable, "overloaded"),
        (Fault(status=429), ModelUnavailable, "Rate limit"),
        (Fault(status=500), ModelUnavailable, "had an error"),
        (Fault("stream_error"), ModelUnavailable, "overloaded"),
        (Fault("stream_error", error="rate_limit_exceeded", after=0), ModelUnavailable, "429 rate_limit_exceeded"),
        (Fault("drop"), ModelUnavailable, "cannot be reached|broke off"),
        (Fault("drop", after=0), ModelUnavailable, "cannot be reached|broke off"),
        (Fault("garbage"), ModelUnavailable, "broke off"),
        (Fault("bad_json"), MalformedReply, "cannot be read"),
        (Fault("stall", seconds=5, after=2), ModelUnavailable, "Timeout|timed out"),
        (Fault(status=401), ModelRejected, "Set OPENAI_API_KEY"),
        (Fault(status=402), ModelRejected, "Add credit"),
        (Fault(status=403), ModelRejected, "from here"),
        (Fault(status=404), ModelRejected, "Set the model"),
        (Fault(status=413), ContextOverflow, "too large"),
        (Fault(status=400, message="input: nonsense"), ModelRejected, "input: nonsense"),
        (Fault(status=400, error="content_filter"), ModelRefused, "content_filter"),
        (Fault(status=429, error="insufficient_quota"), ModelRejected, "Add credit"),
    ],
    ids=lambda value: f"{value.kind}-{value.status}-{value.error}" if isinstance(value, Fault) else "",
)
async def test_each_failure_is_one_of_ours(serve: Serve, fault: Fault, error: type[ModelError], words: str) -> None:
    """No error of an SDK or of HTTP comes through; none is tried again behind the caller's back."""
    options = ClientOptions(silence_timeout_s=0.3)
    server, model = await serve(Turn(text="Hello", faults=[fault]), client_options=options)
    with pytest.raises(error, match=words) as caught:
        await model.ask(prompt(user("Hi")))
    assert type(caught.value).__module__ in ("bot.errors", "bot.llm.discarded")
    assert len(server.requests) == 1


@everywhere
async def test_a_wrong_key_is_told(serve: Serve, wire: Wire) -> None:
    """And so is none; the key itself is not."""
    server, _ = await serve(Turn(text="Hello"))
    model = wire.model(server.url, key="sk-wrong-1234")
    with pytest.raises(ModelRejected, match="Set OPENAI_API_KEY to a key that is valid") as caught:
        await model.ask(prompt(user("Hi")))
    assert "1234" not in str(caught.value)
    await model.close()


async def test_the_wait_that_the_provider_asks_for_is_handed_on(serve: Serve) -> None:
    """Seconds, as in `retry-after`, or in words."""
    faults = [
        Fault(status=429, retry_after_s=7, times=1),
        Fault(status=429, message="Rate limit reached. Please try again in 1.3s.", times=1),
        Fault("stream_error", error="rate_limit_exceeded", message="Please try again in 20ms."),
    ]
    _, model = await serve(Turn(text="Hello", faults=faults))
    for seconds in (7, 1.3, 0.02):
        with pytest.raises(ModelUnavailable) as caught:
            await model.ask(prompt(user("Hi")))
        assert caught.value.retry_after_s == seconds


async def test_a_prompt_over_the_window_is_an_overflow(serve: Serve) -> None:
    """By the API's own words."""
    _, model = await serve(Turn(text="Hello"), window=100)
    with pytest.raises(ContextOverflow, match="maximum context length"):
        await model.ask(prompt(user("word " * 200)))


async def test_a_refusal_is_an_error_with_a_cost(serve: Serve) -> None:
    """The model declined; asking again would not help."""
    _, model = await serve(Turn(text="I cannot do that", stop="refusal"))
    with pytest.raises(ModelRefused, match="declined to answer: I cannot do that") as caught:
        await model.ask(prompt(user("Hi")))
    assert usage_of(caught.value).output_tokens > 0


async def test_a_cancelled_question_leaves_nothing_behind(serve: Serve) -> None:
    """The connection is given back, and the model can be asked again."""
    server, model = await serve(Turn(text="Hello", faults=[Fault("stall", times=1, seconds=30)]))
    asking = asyncio.create_task(model.ask(prompt(user("Hi"))))
    while not server.requests:  # noqa: ASYNC110 - the server is another thread's
        await asyncio.sleep(0.01)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert (await model.ask(prompt(user("Hi")))).message.text == "Hello"


async def test_many_ask_at_once_and_after_a_close(serve: Serve) -> None:
    """One model serves all tasks of a process; closing it twice does no harm."""
    _, model = await serve(Turn(text="Hello"))
    replies = await asyncio.gather(*(model.ask(prompt(user("Hi"))) for _ in range(8)))
    assert {reply.message.text for reply in replies} == {"Hello"}
    await model.close()
    await model.close()
    assert (await model.ask(prompt(user("Hi")))).message.text == "Hello"


async def test_retries_over_http_end_in_a_reply(serve: Serve) -> None:
    """Two failures, then the answer, with the waits that the provider asked for."""
    faults = [Fault("stream_error", times=1), Fault(status=429, times=1, message="Please try again in 2s.")]
    server, model = await serve(Turn(text="Hello", faults=faults))
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    reply = await Retrying(model, sleep=sleep, random=lambda: 0.0).ask(prompt(user("Hi")))
    assert reply.message.text == "Hello"
    assert waits == [0.5, 2]
    assert len(server.requests) == 3


@everywhere
async def test_a_key_may_change(wire: Wire, serve: Serve) -> None:
    """A function gives the one that is valid now; Azure gets it as a token."""
    server, _ = await serve(Turn(text="Hello"))
    keys = iter(["stale", "k"])

    async def key() -> str:
        return next(keys)

    url = server.url if wire.is_azure else server.openai_url
    endpoint = Endpoint(key, url, api_version=AZURE if wire.is_azure else None)
    model = wire.make("openai:gpt-x", endpoint=endpoint, max_output_tokens=100)
    with pytest.raises(ModelRejected, match="Set OPENAI_API_KEY"):
        await model.ask(prompt(user("Hi")))
    assert (await model.ask(prompt(user("Hi")))).message.text == "Hello"
    await model.close()


async def test_nobody_listens(wire: Wire) -> None:
    """The address is in the error."""
    model = wire.model("http://127.0.0.1:9")
    with pytest.raises(ModelUnavailable, match=r"127\.0\.0\.1:9"):
        await model.ask(prompt(user("Hi")))
    await model.close()


@pytest.mark.parametrize("make", [OpenAIResponsesModel, OpenAIChatModel])
async def test_without_a_key_nothing_is_sent(make: Any) -> None:
    """The error says which variable to set; a server of one's own may do without."""
    model = make("openai:gpt-x", endpoint=Endpoint(), max_output_tokens=10)
    with pytest.raises(ModelRejected, match="Set OPENAI_API_KEY"):
        await model.ask(prompt(user("Hi")))
    async with ScriptedOpenAI(Script([Conversation("test", [Turn(text="Hello")], match="/./")])) as server:
        own = make("own:llama", endpoint=Endpoint(base_url=server.openai_url), max_output_tokens=10)
        assert (await own.ask(prompt(user("Hi")))).message.text == "Hello"
        await own.close()


async def test_certificates_that_cannot_be_read_are_the_operators(wire: Wire, tmp_path: Any) -> None:
    """Absent or no PEM; so is a proxy that is none."""
    (tmp_path / "empty.pem").write_text("")
    for path in (tmp_path / "absent.pem", tmp_path / "empty.pem"):
        model = wire.model("http://127.0.0.1:9", client_options=ClientOptions(ca_bundle=path))
        with pytest.raises(OperatorError, match=path.name):
            await model.warm()
    odd = wire.model("http://127.0.0.1:9", client_options=ClientOptions(https_proxy="gopher://x"))
    with pytest.raises(OperatorError, match="cannot be reached"):
        await odd.ask(prompt(user("Hi")))


@pytest.mark.parametrize("options", [{"key": "ü"}, {"key": "a\nb"}, {"url": "http://["}, {"url": "gopher://x"}])
async def test_a_key_or_an_address_that_cannot_be_is_one_of_ours(wire: Wire, options: dict[str, str]) -> None:
    """Typing errors of an operator raise nothing foreign."""
    model = wire.model(**{"url": "http://127.0.0.1:9", **options})
    with pytest.raises((ModelError, OperatorError)):
        await model.ask(prompt(user("Hi")))
    await model.close()


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


@asynccontextmanager
async def answering(*answers: Response) -> AsyncIterator[str]:
    """Serve the answers one after the other, word for word, whatever is asked."""
    left = list(answers)

    async def answer(request: Request) -> Response:
        await request.body()
        return left.pop(0)

    app = Starlette(routes=[Route("/{path:path}", answer, methods=["POST"])])
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(uvicorn.Config(app, lifespan="off", ws="none", log_config=None, access_log=False))
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            await asyncio.to_thread(thread.join)


async def iterate(pieces: Sequence[bytes]) -> AsyncIterator[bytes]:
    """Yield the pieces."""
    for piece in pieces:
        yield piece


def stream(*pieces: bytes) -> Response:
    """Bytes as events."""
    return StreamingResponse(iterate(pieces), media_type="text/event-stream")


COMPLETION: Any = {
    "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
}
RESPONSE: Any = {
    "model": "m",
    "status": "completed",
    "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hello"}]}],
    "usage": {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5},
}


async def test_an_answer_that_is_no_stream_is_read_all_the_same(wire: Wire) -> None:
    """A proxy may collect the stream into one answer; a page of HTML is none."""
    whole = COMPLETION if wire.make is chat else RESPONSE
    heard: list[str] = []
    odd = ("<html>", "[]", "{}", "null", '{"choices": 5, "status": "completed", "output": 5}')
    answers = [JSONResponse(whole), *(Response(raw, media_type="text/html") for raw in odd)]
    async with answering(*answers) as url:
        model = wire.model(url)
        reply = await model.ask(prompt(user("Hi")), on_text=heard.append)
        assert (reply.message.text, reply.stop, reply.usage, heard) == ("Hello", "end", Usage(3, 0, 0, 2), ["Hello"])
        for _ in odd:
            with pytest.raises(MalformedReply):
                await model.ask(prompt(user("Hi")))
        await model.close()


async def test_a_stream_of_odd_bytes_is_malformed(wire: Wire) -> None:
    """Neither UTF-8 nor JSON objects; a comment and an empty event are nothing."""
    odd = (b"data: \xff\n\n", b"data: 5\n\n", b"data: []\n\n", b"data: {\n\n", b'data: {"choices": 5}\n\n')
    async with answering(*(stream(b": hello\n\n", b"event: ping\n\n", raw) for raw in odd)) as url:
        model = wire.model(url)
        for _ in odd:
            with pytest.raises(MalformedReply):
                await model.ask(prompt(user("Hi")))
        await model.close()


async def test_a_proxy_that_fails_without_json_is_unavailable(wire: Wire) -> None:
    """And an address where nothing is says so."""
    async with answering(PlainTextResponse("<h1>Bad gateway</h1>", 502), PlainTextResponse("Not Found", 404)) as url:
        model = wire.model(url)
        with pytest.raises(ModelUnavailable, match="Bad gateway"):
            await model.ask(prompt(user("Hi")))
        with pytest.raises(ModelRejected, match="Set `base_url`"):
            await model.ask(prompt(user("Hi")))
        await model.close()


async def test_a_chat_stream_without_a_reason_counts_where_it_was_closed() -> None:
    """Some servers never say why they stop: the closing line is enough, silence is not; what keeps alive is nothing."""
    piece = {"index": 0, "id": "0", "function": {"name": "read", "arguments": "{}"}}
    chunk = json.dumps({"model": "m", "choices": [{"index": 0, "delta": {"tool_calls": [piece]}}]})
    data = f"data: {chunk}\n\n".encode()
    async with answering(stream(b": hello\n\n", b"event: ping\n\n", data, b"data: [DONE]\n\n"), stream(data)) as url:
        model = WIRES["chat"].model(url)
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
        async with answering(*(stream(raw[:place]) for place in places), stream(raw)) as url:
            model = WIRES[name].model(url)
            for _ in places:
                with pytest.raises((ModelUnavailable, MalformedReply)):
                    await model.ask(prompt(user("Hi")))
            assert (await model.ask(prompt(user("Hi")))).message.calls
            await model.close()
