"""What every `Model` does, over real HTTP; a further vendor is a further row of `MODELS`."""

import asyncio
import json
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from bot.domain.messages import (
    Message,
    Part,
    Prompt,
    Reply,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolResult,
    ToolSpec,
    Usage,
)
from bot.errors import (
    ContextOverflow,
    MalformedReply,
    ModelError,
    ModelRefused,
    ModelRejected,
    ModelUnavailable,
    OperatorError,
)
from bot.llm.anthropic import AnthropicModel
from bot.llm.base import Model
from bot.llm.discarded import usage_of
from bot.llm.retrying import Retrying
from bot.llm.transport import ClientOptions
from bot.testing.model.reply import Call, Fault
from bot.testing.model.script import Conversation, Script, Turn
from bot.testing.model.server import ScriptedModel

Serve = Callable[..., Awaitable[tuple[ScriptedModel, Model]]]
TOOLS = (ToolSpec("read", "Read a file.", {"type": "object", "properties": {"path": {"type": "string"}}}),)


async def no_sleep(_seconds: float) -> None:
    """Wait for nothing."""


def bare(url: str, **options: Any) -> Model:
    """The adapter alone."""
    return AnthropicModel(
        "anthropic:claude-x", **{"api_key": "k", "base_url": url, "max_output_tokens": 4096, **options}
    )


def retried(url: str, **options: Any) -> Model:
    """The adapter as the bot uses it; one request, so that failures show."""
    return Retrying(bare(url, **options), sleep=no_sleep, random=lambda: 0.5, attempts=1)


MODELS = [bare, retried]


@pytest.fixture(params=MODELS, ids=lambda make: make.__name__)
async def serve(request: pytest.FixtureRequest) -> AsyncIterator[Serve]:
    """Serve turns and point a model at them, until the test ends."""
    async with AsyncExitStack() as stack:

        async def start(*turns: Turn, window: int = 200_000, **options: Any) -> tuple[ScriptedModel, Model]:
            script = Script([Conversation("test", turns, match="/./")], window=window)
            server = await stack.enter_async_context(ScriptedModel(script, api_key="k"))
            model: Model = request.param(server.url, **options)
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
    assert model.name == "anthropic:claude-x"
    assert server.problems == []


async def test_a_tool_loop_goes_round(serve: Serve) -> None:
    """Thinking, text and parallel calls; the results and all that was said are accepted in the next request."""
    calls = [Call("read", {"path": "a b/ü"}), Call("read", json="{}")]
    server, model = await serve(
        Turn(thinking="Hm.", text="Look.", calls=calls), Turn(text="Done."), thinking_budget=2000
    )
    first = prompt(user("Hi"))
    reply = await model.ask(first)
    thinking, text, one, two = reply.message.parts
    assert isinstance(thinking, ThinkingPart)
    assert (thinking.text, thinking.model, bool(thinking.signature)) == ("Hm.", "anthropic:claude-x", True)
    assert text == TextPart("Look.")
    assert isinstance(one, ToolCall)
    assert isinstance(two, ToolCall)
    assert (json.loads(one.arguments), two.arguments, reply.stop) == ({"path": "a b/ü"}, "{}", "tool")
    results = user(ToolResult(one.id, "text"), ToolResult(two.id, "", is_error=True), "Go on.")
    reply = await model.ask(prompt(*first.messages, reply.message, results))
    assert (reply.message.text, reply.stop) == ("Done.", "end")
    assert server.problems == []


async def test_the_second_request_reads_what_the_first_one_wrote(serve: Serve) -> None:
    """The prompt cache is told where to keep, and where to look."""
    words = user("word " * 20_000)
    _, model = await serve(Turn(text="One.", calls=[Call("read", {"path": "x"})]), Turn(text="Two."))
    first = await model.ask(prompt(words))
    result = user(ToolResult(first.message.calls[0].id, "y"))
    second = await model.ask(prompt(words, first.message, result))
    assert first.usage.cache_write_tokens > 10_000
    assert first.usage.cache_read_tokens == 0
    assert second.usage.cache_read_tokens >= first.usage.cache_write_tokens - 10
    assert second.usage.input_tokens < 100


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


@pytest.mark.parametrize(
    ("fault", "error", "words"),
    [
        (Fault(status=529), ModelUnavailable, "Overloaded"),
        (Fault(status=429), ModelUnavailable, "rate limit"),
        (Fault(status=500), ModelUnavailable, "Internal server error"),
        (Fault("stream_error"), ModelUnavailable, "Overloaded"),
        (Fault("stream_error", error="api_error", after=0), ModelUnavailable, "api_error"),
        (Fault("drop"), ModelUnavailable, "cannot be reached|broke off"),
        (Fault("drop", after=0), ModelUnavailable, "cannot be reached|broke off"),
        (Fault("garbage"), ModelUnavailable, "broke off"),
        (Fault("bad_json"), MalformedReply, "cannot be read"),
        (Fault("stall", seconds=5), ModelUnavailable, "Timeout|timed out"),
        (Fault(status=401), ModelRejected, "Set ANTHROPIC_API_KEY"),
        (Fault(status=402), ModelRejected, "credit balance"),
        (Fault(status=403), ModelRejected, "permission"),
        (Fault(status=404), ModelRejected, "Set the model"),
        (Fault(status=413), ContextOverflow, "exceeds the maximum size"),
        (Fault(status=400, message="messages: nonsense"), ModelRejected, "messages: nonsense"),
    ],
    ids=lambda value: f"{value.kind}-{value.status}" if isinstance(value, Fault) else "",
)
async def test_each_failure_is_one_of_ours(serve: Serve, fault: Fault, error: type[ModelError], words: str) -> None:
    """No error of an SDK or of HTTP comes through; none is tried again behind the caller's back."""
    options = ClientOptions(silence_timeout_s=0.3)
    server, model = await serve(Turn(text="Hello", faults=[fault]), client_options=options)
    with pytest.raises(error, match=words) as caught:
        await model.ask(prompt(user("Hi")))
    assert type(caught.value).__module__ in ("bot.errors", "bot.llm.discarded")
    assert len(server.requests) == 1


async def test_the_wait_that_the_provider_asks_for_is_handed_on(serve: Serve) -> None:
    """Seconds, as in `retry-after`."""
    _, model = await serve(Turn(text="Hello", faults=[Fault(status=429, retry_after_s=7)]))
    with pytest.raises(ModelUnavailable) as caught:
        await model.ask(prompt(user("Hi")))
    assert caught.value.retry_after_s == 7


async def test_a_reply_that_breaks_off_still_has_its_cost(serve: Serve) -> None:
    """What the provider had counted is on the error."""
    _, model = await serve(Turn(text="Hello", faults=[Fault("stream_error")]))
    with pytest.raises(ModelUnavailable) as caught:
        await model.ask(prompt(user("Hi")))
    assert usage_of(caught.value).total_tokens > 0


async def test_a_prompt_over_the_window_is_an_overflow(serve: Serve) -> None:
    """By the API's own words."""
    _, model = await serve(Turn(text="Hello"), window=50)
    with pytest.raises(ContextOverflow, match="prompt is too long"):
        await model.ask(prompt(user("word " * 200)))


async def test_a_refusal_is_an_error_with_a_cost(serve: Serve) -> None:
    """The model declined; asking again would not help."""
    _, model = await serve(Turn(text="I cannot", stop="refusal"))
    with pytest.raises(ModelRefused, match="declined") as caught:
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


async def test_nobody_listens() -> None:
    """The address is in the error."""
    model = bare("http://127.0.0.1:9")
    with pytest.raises(ModelUnavailable, match=r"127\.0\.0\.1:9"):
        await model.ask(prompt(user("Hi")))
    await model.close()


async def test_without_a_key_nothing_is_sent() -> None:
    """The error says which variable to set."""
    model = bare("http://127.0.0.1:9", api_key="")
    with pytest.raises(ModelRejected, match="Set ANTHROPIC_API_KEY"):
        await model.ask(prompt(user("Hi")))


@pytest.mark.parametrize("budget", [0, 1023, 4096])
def test_a_budget_for_thinking_that_cannot_be_is_refused_at_once(budget: int) -> None:
    """At start, not in the middle of a task."""
    with pytest.raises(OperatorError, match=f"is {budget}"):
        bare("http://127.0.0.1:9", thinking_budget=budget)


async def test_certificates_that_cannot_be_read_are_the_operators(tmp_path: Any) -> None:
    """Absent or no PEM; so is an address that is none."""
    for path in (tmp_path / "absent.pem", tmp_path / "empty.pem"):
        (tmp_path / "empty.pem").write_text("")
        model = AnthropicModel(
            "anthropic:x", api_key="k", max_output_tokens=10, client_options=ClientOptions(ca_bundle=path)
        )
        with pytest.raises(OperatorError, match=path.name):
            await model.warm()
    odd = bare("http://127.0.0.1:9", client_options=ClientOptions(https_proxy="gopher://x"))
    with pytest.raises(OperatorError, match="cannot be reached"):
        await odd.ask(prompt(user("Hi")))


@pytest.mark.parametrize(
    "options", [{"api_key": "ü"}, {"api_key": "a\nb"}, {"url": "http://["}, {"url": "gopher://x"}, {"url": "x"}]
)
async def test_a_key_or_an_address_that_cannot_be_is_one_of_ours(options: dict[str, str]) -> None:
    """Typing errors of an operator raise nothing foreign."""
    model = bare(**{"url": "http://127.0.0.1:9", **options})
    with pytest.raises(ModelError):
        await model.ask(prompt(user("Hi")))
    await model.close()


async def test_retries_over_http_end_in_a_reply_that_counts_all() -> None:
    """Two failures, one of which had cost tokens, then the answer."""
    faults = [Fault("stream_error", times=1), Fault(status=529, times=1, retry_after_s=2)]
    script = Script([Conversation("test", [Turn(text="Hello", faults=faults)], match="/./")])
    waits: list[float] = []
    async with ScriptedModel(script) as server:
        model = Retrying(
            bare(server.url), sleep=no_sleep, random=lambda: 0.0, on_retry=lambda _, delay_s: waits.append(delay_s)
        )
        reply = await model.ask(prompt(user("Hi")))
        await model.close()
    assert reply.message.text == "Hello"
    assert reply.usage.total_tokens > 2 * 10
    assert waits == [0.5, 2]
    assert len(server.requests) == 3


@asynccontextmanager
async def answering(*answers: Response) -> AsyncIterator[tuple[str, list[dict[str, Any]]]]:
    """Serve the answers one after the other, word for word; gives the address and the requests."""
    left, seen = list(answers), list[dict[str, Any]]()

    async def answer(request: Request) -> Response:
        seen.append(await request.json())
        return left.pop(0)

    app = Starlette(routes=[Route("/v1/messages", answer, methods=["POST"])])
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(uvicorn.Config(app, lifespan="off", ws="none", log_config=None, access_log=False))
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}", seen
        finally:
            server.should_exit = True
            await asyncio.to_thread(thread.join)


def stream(*parts: dict[str, Any], stop: str, usage: int = 5) -> Response:
    """A streamed message."""
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": usage, "output_tokens": 1}}}
    ]
    for index, part in enumerate(parts):
        events.append({"type": "content_block_start", "index": index, "content_block": part})
        events.append({"type": "content_block_stop", "index": index})
    events.append({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": usage}})
    events += [{"type": "news"}, {"type": "message_stop"}]
    return told(*events)


def told(*events: dict[str, Any]) -> Response:
    """Events as bytes."""
    raw = [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events]
    return StreamingResponse(iterate(raw), media_type="text/event-stream")


async def iterate(pieces: Sequence[bytes]) -> AsyncIterator[bytes]:
    """Yield the pieces."""
    for piece in pieces:
        yield piece


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
    answers = [stream(says("One, "), stop="pause_turn"), stream(says("two."), tool, stop="tool_use")]
    reply, seen, model = await ask_once(*answers)
    assert reply.message.parts == (TextPart("One, two."), ToolCall("t", "read", '{"path":"x"}'))
    assert (reply.stop, reply.usage) == ("tool", Usage(10, 0, 0, 10))
    assert [message["role"] for message in seen[1]["messages"]] == ["user", "assistant"]
    assert seen[1]["messages"][1]["content"] == [says("One,")]
    assert model.unknown == {"news": 2}


async def test_a_reply_is_continued_three_times() -> None:
    """Then it is handed over as paused."""
    reply, seen, _ = await ask_once(*[stream(says(f"{n} "), stop="pause_turn") for n in range(4)])
    assert (reply.stop, reply.message.text, len(seen)) == ("pause", "0 1 2 3 ", 4)


async def test_a_pause_that_fails_still_has_its_cost() -> None:
    """The usage of the first half is on the error."""
    with pytest.raises(ModelUnavailable) as caught:
        await ask_once(stream(says("One, "), stop="pause_turn"), PlainTextResponse("down", 503))
    assert usage_of(caught.value) == Usage(5, 0, 0, 5)


async def test_an_answer_that_is_no_stream_is_read_all_the_same() -> None:
    """A proxy may collect the stream into one message; a page of HTML is no message."""
    message = {"model": "m", "content": [says("Hello")], "stop_reason": "end_turn", "usage": {"output_tokens": 2}}
    reply, _, _ = await ask_once(Response(json.dumps(message), media_type="application/json"))
    assert (reply.message.text, reply.stop, reply.usage.output_tokens) == ("Hello", "end", 2)
    for raw in ("<html>", "[]", "{}", "null", '{"content": 5}'):
        with pytest.raises(MalformedReply, match="text/html"):
            await ask_once(Response(raw, media_type="text/html"))


async def test_a_stream_of_odd_bytes_is_malformed() -> None:
    """Neither UTF-8 nor JSON objects."""
    for raw in (b"event: x\ndata: \xff\n\n", b"event: x\ndata: 5\n\n", b"event: x\ndata: []\n\n"):
        with pytest.raises(MalformedReply):
            await ask_once(StreamingResponse(iterate([raw]), media_type="text/event-stream"))


async def test_only_the_address_that_was_set_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK would else read its address and key from the environment."""
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
    model = AnthropicModel("anthropic:claude-x", api_key="k", max_output_tokens=100)
    await model.warm()
    assert model._client is not None
    assert model._client.base_url.host == "api.anthropic.com"
    await model.close()
