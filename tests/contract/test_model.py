"""What every `Model` does, over real HTTP; a further vendor is a further row of `WAYS` in `models`."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest
from starlette.responses import JSONResponse, PlainTextResponse, Response

from bot.domain.messages import Message, TextPart, ThinkingPart, ToolResult
from bot.errors import (
    ContextOverflow,
    MalformedReply,
    ModelError,
    ModelRefused,
    ModelRejected,
    ModelUnavailable,
    OperatorError,
)
from bot.llm.base import Model
from bot.llm.discarded import usage_of
from bot.llm.retrying import Retrying
from bot.llm.transport import ClientOptions
from bot.testing.model.cache import Usage
from bot.testing.model.reply import Call, Fault, Reply
from bot.testing.model.request import Text
from bot.testing.model.script import Conversation, Script, Turn
from bot.testing.model.server import ScriptedModel
from bot.testing.model.wires import SPOKEN
from tests.contract.models import WAYS, Way, answering, no_sleep, prompt, stream, user

Serve = Callable[..., Awaitable[tuple[ScriptedModel, Model]]]
VENDORS = ["anthropic", "responses", "chat", "google"]

everywhere = pytest.mark.parametrize("way", list(WAYS), indirect=True)
"""Marks what is to be true of Azure too; the rest is the same code."""


def ways(*names: str) -> pytest.MarkDecorator:
    """Mark what makes sense for some."""
    return pytest.mark.parametrize("way", names, indirect=True)


@pytest.fixture(params=VENDORS)
def way(request: pytest.FixtureRequest) -> Way:
    """Each way."""
    return WAYS[request.param]


@pytest.fixture
async def serve(way: Way) -> AsyncIterator[Serve]:
    """Serve turns and point a model at them, until the test ends."""
    async with AsyncExitStack() as stack:

        async def start(*turns: Turn, window: int = 200_000, **options: Any) -> tuple[ScriptedModel, Model]:
            script = Script([Conversation("test", turns, match="/./")], window=window)
            server = await stack.enter_async_context(ScriptedModel(script, api_key="k"))
            model = way.model(server.url, **options)
            stack.push_async_callback(model.close)
            return server, model

        yield start


async def test_a_text_comes_back_and_is_heard_while_it_comes(serve: Serve, way: Way) -> None:
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
    assert model.name == way.name
    assert server.problems == []


@everywhere
async def test_a_tool_loop_goes_round(serve: Serve, way: Way) -> None:
    """Thinking, text and parallel calls; the results and all that was said are accepted in the next request."""
    calls = [Call("read", {"path": "a b/ü"}), Call("read", json="{}")]
    server, model = await serve(Turn(thinking="Hm.", text="Look.", calls=calls), Turn(text="Done."), **way.thinks)
    first = prompt(user("Hi"))
    reply = await model.ask(first)
    thoughts = [part for part in reply.message.parts if isinstance(part, ThinkingPart)]
    assert reply.message.parts[0] == thoughts[0]
    assert "".join(part.text for part in thoughts) == "Hm."
    assert {part.model for part in thoughts} == {way.name}
    (seal,) = [part.signature or part.data for part in thoughts if part.signature or part.data]
    one, two = reply.message.calls
    assert (reply.message.text, reply.stop) == ("Look.", "tool")
    assert (json.loads(one.arguments), two.arguments) == ({"path": "a b/ü"}, "{}")
    results = user(ToolResult(one.id, "text"), ToolResult(two.id, "", is_error=True), "Go on.")
    reply = await model.ask(prompt(*first.messages, reply.message, results))
    assert (reply.message.text, reply.stop) == ("Done.", "end")
    assert server.problems == []
    sent = server.requests[1].raw.decode()
    assert "Hm." in sent
    assert way.wire.startswith("openai") or seal in sent


@everywhere
async def test_nothing_of_a_reply_is_unknown(way: Way) -> None:
    """The scripted model says what the adapters know; what they do not know they count."""
    script = Script([Conversation("test", [Turn(thinking="Hm.", text="Look.", calls=[Call("read")])])])
    async with ScriptedModel(script) as server:
        model = way.model(server.url, **way.thinks)
        await model.ask(prompt(user("Hi")))
        await model.close()
    assert model.unknown == {}


async def test_the_second_request_reads_what_the_first_one_sent(serve: Serve) -> None:
    """The prefix is the same, byte by byte, and the prompt cache finds it."""
    words = user("word " * 20_000)
    _, model = await serve(Turn(text="One.", calls=[Call("read", {"path": "x"})]), Turn(text="Two."))
    first = await model.ask(prompt(words))
    result = user(ToolResult(first.message.calls[0].id, "y"))
    second = await model.ask(prompt(words, first.message, result))
    sent = first.usage.total_tokens - first.usage.output_tokens
    assert first.usage.cache_read_tokens == 0
    assert second.usage.cache_read_tokens >= sent - 10 > 10_000
    assert second.usage.input_tokens < 150


@ways("anthropic", "responses", "chat")
async def test_broken_arguments_are_the_models_and_do_no_later_harm(serve: Serve) -> None:
    """They come as the model wrote them, and the conversation goes on; Google's wire has none, but a reason to stop."""
    server, model = await serve(Turn(calls=[Call("read", json='{"path": "a')]), Turn(text="Sorry."))
    first = prompt(user("Hi"))
    reply = await model.ask(first)
    (call,) = reply.message.calls
    assert call.arguments == '{"path": "a'
    result = user(ToolResult(call.id, "That is no JSON.", is_error=True))
    reply = await model.ask(prompt(*first.messages, reply.message, result))
    assert reply.message.text == "Sorry."
    assert server.problems == []


@ways("google")
async def test_a_call_that_the_api_cannot_read_is_a_malformed_reply(serve: Serve) -> None:
    """There is nothing of it to answer to."""
    _, model = await serve(Turn(calls=[Call("read", json='{"path": "a')]))
    with pytest.raises(MalformedReply, match="MALFORMED_FUNCTION_CALL"):
        await model.ask(prompt(user("Hi")))


async def test_a_reply_at_the_limit_says_so(serve: Serve, way: Way) -> None:
    """Its last call is cut, or gone where the wire cannot carry half of one, and the stop reason tells."""
    _, model = await serve(Turn(calls=[Call("read", {"path": "a" * 100})], faults=[Fault("cut")]))
    reply = await model.ask(prompt(user("Hi")))
    assert reply.stop == "length"
    assert len(reply.message.calls) == (0 if way.wire == "google" else 1)
    for call in reply.message.calls:
        with pytest.raises(json.JSONDecodeError):
            json.loads(call.arguments)


async def test_the_cap_is_sent(serve: Serve) -> None:
    """A longer answer ends there."""
    _, model = await serve(Turn(text="word " * 100), max_output_tokens=20)
    reply = await model.ask(prompt(user("Hi")))
    assert (reply.stop, reply.usage.output_tokens) == ("length", 20)


Failure = tuple[Fault, type[ModelError], str]
ALL: list[Failure] = [
    (Fault("drop"), ModelUnavailable, "cannot be reached|broke off"),
    (Fault("drop", after=0), ModelUnavailable, "cannot be reached|broke off"),
    (Fault("bad_json"), MalformedReply, "cannot be read"),
    (Fault("stall", seconds=5, after=2), ModelUnavailable, "Timeout|timed out|cannot be reached"),
    (Fault(status=413), ContextOverflow, "(?i)too large|exceeds the"),
    (Fault(status=400, message="messages: nonsense"), ModelRejected, "messages: nonsense"),
]
OPENAI: list[Failure] = [
    (Fault(status=503), ModelUnavailable, "overloaded"),
    (Fault(status=429), ModelUnavailable, "Rate limit"),
    (Fault(status=500), ModelUnavailable, "had an error"),
    (Fault("stream_error"), ModelUnavailable, "overloaded"),
    (Fault("stream_error", error="rate_limit_exceeded", after=0), ModelUnavailable, "429 rate_limit_exceeded"),
    (Fault("garbage"), ModelUnavailable, "broke off"),
    (Fault(status=401), ModelRejected, "Set OPENAI_API_KEY"),
    (Fault(status=402), ModelRejected, "Add credit"),
    (Fault(status=403), ModelRejected, "from here"),
    (Fault(status=404), ModelRejected, "Set the model"),
    (Fault(status=400, error="content_filter"), ModelRefused, "content_filter"),
    (Fault(status=429, error="insufficient_quota"), ModelRejected, "Add credit"),
]
FAILURES: dict[str, list[Failure]] = {
    "anthropic": [
        (Fault(status=529), ModelUnavailable, "Overloaded"),
        (Fault(status=429), ModelUnavailable, "rate limit"),
        (Fault(status=500), ModelUnavailable, "Internal server error"),
        (Fault("stream_error"), ModelUnavailable, "Overloaded"),
        (Fault("stream_error", error="api_error", after=0), ModelUnavailable, "api_error"),
        (Fault("garbage"), ModelUnavailable, "broke off"),
        (Fault(status=401), ModelRejected, "Set ANTHROPIC_API_KEY"),
        (Fault(status=402), ModelRejected, "credit balance"),
        (Fault(status=403), ModelRejected, "permission"),
        (Fault(status=404), ModelRejected, "Set the model"),
    ],
    "responses": OPENAI,
    "chat": OPENAI,
    "google": [
        (Fault(status=503), ModelUnavailable, "overloaded"),
        (Fault(status=429), ModelUnavailable, "429 RESOURCE_EXHAUSTED"),
        (Fault(status=500), ModelUnavailable, "500 INTERNAL"),
        (Fault(status=504), ModelUnavailable, "504 DEADLINE_EXCEEDED"),
        (Fault("stream_error"), ModelUnavailable, "503 UNAVAILABLE: The model is overloaded"),
        (Fault("stream_error", error="RESOURCE_EXHAUSTED", after=0), ModelUnavailable, "429 RESOURCE_EXHAUSTED"),
        (Fault("garbage"), MalformedReply, "cannot be read"),
        (Fault(status=401), ModelRejected, "Set GEMINI_API_KEY"),
        (Fault(status=403), ModelRejected, "Set GEMINI_API_KEY"),
        (Fault(status=404), ModelRejected, "Set the model"),
        (Fault(status=429, message="Your prepayment credits are depleted."), ModelRejected, "Add credit"),
    ],
}
CASES = [(way, *failure) for way in VENDORS for failure in (*ALL, *FAILURES[way])]


@pytest.mark.parametrize(
    ("way", "fault", "error", "words"),
    CASES,
    indirect=["way"],
    ids=lambda value: f"{value.kind}-{value.status}-{value.error}" if isinstance(value, Fault) else "",
)
async def test_each_failure_is_one_of_ours(serve: Serve, fault: Fault, error: type[ModelError], words: str) -> None:
    """No error of an SDK or of HTTP comes through; none is tried again behind the caller's back."""
    options = ClientOptions(silence_timeout_s=0.3)
    server, model = await serve(Turn(text="Hello", faults=[fault]), client_options=options)
    with pytest.raises(error, match=words) as caught:
        await model.ask(prompt(user("Hi")))
    assert type(caught.value).__module__.startswith("bot.")
    assert len(server.requests) == 1


@everywhere
async def test_a_wrong_key_is_told(serve: Serve, way: Way) -> None:
    """With the variable to set; the key itself is not."""
    server, _ = await serve(Turn(text="Hello"))
    model = way.model(server.url, "sk-wrong-1234")
    with pytest.raises(ModelRejected, match=f"Set {way.key}") as caught:
        await model.ask(prompt(user("Hi")))
    assert "1234" not in str(caught.value)
    await model.close()


async def test_the_wait_that_the_provider_asks_for_is_handed_on(serve: Serve) -> None:
    """Seconds, as the API says them."""
    _, model = await serve(Turn(text="Hello", faults=[Fault(status=429, retry_after_s=7)]))
    with pytest.raises(ModelUnavailable) as caught:
        await model.ask(prompt(user("Hi")))
    assert caught.value.retry_after_s == 7


@ways("anthropic", "google")
async def test_a_reply_that_breaks_off_still_has_its_cost(serve: Serve) -> None:
    """What the provider had counted is on the error; OpenAI counts at the end only."""
    _, model = await serve(Turn(text="Hello", faults=[Fault("stream_error")]))
    with pytest.raises(ModelUnavailable) as caught:
        await model.ask(prompt(user("Hi")))
    assert usage_of(caught.value).total_tokens > 0


async def test_a_prompt_over_the_window_is_an_overflow(serve: Serve) -> None:
    """By the API's own words."""
    _, model = await serve(Turn(text="Hello"), window=100)
    with pytest.raises(ContextOverflow, match=r"too long|maximum context|maximum number of"):
        await model.ask(prompt(user("word " * 200)))


async def test_a_refusal_is_an_error_with_a_cost(serve: Serve) -> None:
    """The model declined; asking again would not help."""
    _, model = await serve(Turn(text="I cannot do that", stop="refusal"))
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


async def test_retries_over_http_end_in_a_reply(serve: Serve, way: Way) -> None:
    """Two failures, then the answer, with the waits that the provider asked for."""
    faults = [Fault("stream_error", times=1), Fault(status=503, times=1, retry_after_s=2)]
    server, model = await serve(Turn(text="Hello", faults=faults))
    waits: list[float] = []
    retried = Retrying(model, sleep=no_sleep, random=lambda: 0.0, on_retry=lambda _, delay_s: waits.append(delay_s))
    reply = await retried.ask(prompt(user("Hi")))
    assert (reply.message.text, waits, len(server.requests)) == ("Hello", [0.5, 2], 3)
    assert retried.name == way.name


async def test_nobody_listens(way: Way) -> None:
    """The address is in the error."""
    model = way.model("http://127.0.0.1:9")
    with pytest.raises(ModelUnavailable, match=r"127\.0\.0\.1:9"):
        await model.ask(prompt(user("Hi")))
    await model.close()


async def test_without_a_key_nothing_is_sent(way: Way) -> None:
    """The error says which variable to set."""
    with pytest.raises(ModelRejected, match=f"Set {way.key}"):
        await way.model(None, "").ask(prompt(user("Hi")))


async def test_certificates_that_cannot_be_read_are_the_operators(way: Way, tmp_path: Any) -> None:
    """Absent or no PEM; so is a proxy that is none."""
    (tmp_path / "empty.pem").write_text("")
    for path in (tmp_path / "absent.pem", tmp_path / "empty.pem"):
        model = way.model("http://127.0.0.1:9", client_options=ClientOptions(ca_bundle=path))
        with pytest.raises(OperatorError, match=path.name):
            await model.warm()
    odd = way.model("http://127.0.0.1:9", client_options=ClientOptions(https_proxy="gopher://x"))
    with pytest.raises(OperatorError, match="cannot be reached"):
        await odd.ask(prompt(user("Hi")))


@pytest.mark.parametrize(
    "options", [{"key": "ü"}, {"key": "a\nb"}, {"url": "http://["}, {"url": "gopher://x"}, {"url": "x"}]
)
async def test_a_key_or_an_address_that_cannot_be_is_one_of_ours(way: Way, options: dict[str, str]) -> None:
    """Typing errors of an operator raise nothing foreign."""
    model = way.model(**{"url": "http://127.0.0.1:9", **options})
    with pytest.raises((ModelError, OperatorError)):
        await model.ask(prompt(user("Hi")))
    await model.close()


async def test_an_answer_that_is_no_stream_is_read_all_the_same(way: Way) -> None:
    """A proxy may collect the stream into one answer; a page of HTML is none."""
    whole = SPOKEN[way.wire].body(Reply([Text("Hello")], key="k"), Usage(3), "m")
    odd = ("<html>", "[]", "{}", "null")
    heard: list[str] = []
    pages = [Response(raw, media_type="text/html") for raw in odd]
    async with answering(JSONResponse(whole), *pages) as (url, _):
        model = way.model(url)
        reply = await model.ask(prompt(user("Hi")), on_text=heard.append)
        assert (reply.message.text, reply.stop, heard, reply.model) == ("Hello", "end", ["Hello"], "m")
        assert (reply.usage.input_tokens, reply.usage.output_tokens) == (3, 1)
        for _ in odd:
            with pytest.raises((MalformedReply, ModelUnavailable)):
                await model.ask(prompt(user("Hi")))
        await model.close()


async def test_a_stream_of_odd_bytes_is_malformed(way: Way) -> None:
    """Neither UTF-8 nor JSON objects; a comment and an empty event are nothing."""
    odd = (b"data: \xff\n\n", b"data: 5\n\n", b"data: []\n\n", b"data: {\n\n")
    name = b"event: x\n" if way.wire == "anthropic" else b""
    async with answering(*(stream(b": hello\n\n", name + raw) for raw in odd)) as (url, _):
        model = way.model(url)
        for _ in odd:
            with pytest.raises(MalformedReply):
                await model.ask(prompt(user("Hi")))
        await model.close()


async def test_a_proxy_that_fails_without_json_is_unavailable(way: Way) -> None:
    """And an address where nothing is says so."""
    answers = PlainTextResponse("<h1>Bad gateway</h1>", 502), PlainTextResponse("Not Found", 404)
    async with answering(*answers) as (url, _):
        model = way.model(url)
        with pytest.raises(ModelUnavailable, match="502"):
            await model.ask(prompt(user("Hi")))
        with pytest.raises(ModelRejected, match="Set "):
            await model.ask(prompt(user("Hi")))
        await model.close()
