"""Everything that goes wrong on purpose, as the SDK sees it."""

import time
from typing import Any

import anthropic
import httpx2
import pytest

from bot.testing.model.reply import Call, Fault, Reply
from bot.testing.model.request import Request
from bot.testing.model.script import Conversation, Script, Turn
from tests.model.conftest import Serve

TOOLS: Any = [{"name": "run", "description": "Run", "input_schema": {"type": "object"}}]
ASK: dict[str, Any] = {
    "model": "any",
    "max_tokens": 500,
    "tools": TOOLS,
    "messages": [{"role": "user", "content": "Go"}],
}
TURN = Turn(text="I shall run it now.", calls=[Call("run", {"command": "make test", "timeout": 60})])


def failing(*faults: Fault) -> Script:
    """Return a script whose only turn has these faults."""
    turn = Turn(text=TURN.text, calls=TURN.calls, faults=faults)
    return Script([Conversation("only", [turn])])


async def ask(client: anthropic.AsyncAnthropic, *, stream: bool = True) -> anthropic.types.Message:
    """Ask for the answer to "Go"."""
    if not stream:
        message: anthropic.types.Message = await client.messages.create(**ASK)
        return message
    async with client.messages.stream(**ASK) as streaming:
        return await streaming.get_final_message()


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("status", "raised", "kind"),
    [
        (400, anthropic.BadRequestError, "invalid_request_error"),
        (401, anthropic.AuthenticationError, "authentication_error"),
        (403, anthropic.PermissionDeniedError, "permission_error"),
        (404, anthropic.NotFoundError, "not_found_error"),
        (413, anthropic.RequestTooLargeError, "request_too_large"),
        (429, anthropic.RateLimitError, "rate_limit_error"),
        (500, anthropic.InternalServerError, "api_error"),
        (529, anthropic.OverloadedError, "overloaded_error"),
    ],
)
async def test_a_status_becomes_the_exception_of_the_sdk(
    serve: Serve,
    status: int,
    raised: type[anthropic.APIStatusError],
    kind: str,
    stream: bool,  # noqa: FBT001 - parametrised
) -> None:
    """Each HTTP error has Anthropic's type, and the SDK raises its class for it."""
    _, client = await serve(failing(Fault(status=status)))
    with pytest.raises(raised) as caught:
        await ask(client, stream=stream)
    assert caught.value.status_code == status
    assert caught.value.type == kind
    assert caught.value.request_id is not None
    assert caught.value.request_id.startswith("req_")


async def test_a_rate_limit_says_when_to_come_back(serve: Serve) -> None:
    """`retry_after_s` is the header `retry-after`; the message is the script's."""
    _, client = await serve(failing(Fault(status=429, retry_after_s=2.5, message="Slow down.")))
    with pytest.raises(anthropic.RateLimitError, match=r"Slow down\.") as caught:
        await ask(client)
    assert caught.value.response.headers["retry-after"] == "2.5"


async def test_overload_inside_a_stream(serve: Serve) -> None:
    """An `overloaded_error` inside a 200 raises in the middle of the stream, after what came before it."""
    model, client = await serve(failing(Fault("stream_error", after=3)))
    seen = []
    with pytest.raises(anthropic.APIStatusError) as caught:
        async with client.messages.stream(**ASK) as streaming:
            seen = [event.type async for event in streaming]
    assert seen == []
    assert caught.value.status_code == 200
    assert caught.value.type == "overloaded_error"
    assert model.requests[0].status == 200


async def test_overload_without_a_stream_is_a_529(serve: Serve) -> None:
    """A stream error has no stream to be in when none was asked for."""
    _, client = await serve(failing(Fault("stream_error")))
    with pytest.raises(anthropic.OverloadedError):
        await ask(client, stream=False)


@pytest.mark.parametrize("stream", [True, False])
async def test_a_dropped_connection(serve: Serve, stream: bool) -> None:  # noqa: FBT001 - parametrised
    """`drop` closes the connection before the answer is complete."""
    _, client = await serve(failing(Fault("drop", after=4)))
    with pytest.raises((httpx2.RemoteProtocolError, anthropic.APIConnectionError)):
        await ask(client, stream=stream)


async def test_a_late_fault_comes_before_the_last_event(serve: Serve) -> None:
    """A fault after more events than there are still happens: the answer is never complete."""
    _, client = await serve(failing(Fault("drop", after=9999)))
    with pytest.raises((httpx2.RemoteProtocolError, anthropic.APIConnectionError)):
        await ask(client)


@pytest.mark.parametrize("kind", ["garbage", "bad_json"])
async def test_garbage_in_a_stream_is_no_message(serve: Serve, kind: Any) -> None:
    """A page of HTML and an event that is no JSON never become an answer."""
    _, client = await serve(failing(Fault(kind)))
    with pytest.raises((ValueError, AssertionError)):
        await ask(client)


async def test_a_call_is_cut_in_the_middle_of_its_json(serve: Serve) -> None:
    """`cut` ends with `max_tokens` while the arguments of the last call are half there."""
    _, client = await serve(failing(Fault("cut")))
    spelled = ""
    stop: object = None
    async for event in await client.messages.create(**ASK, stream=True):
        if event.type == "content_block_delta" and event.delta.type == "input_json_delta":
            spelled += event.delta.partial_json
        if event.type == "message_delta":
            stop = event.delta.stop_reason
    whole = '{"command": "make test", "timeout": 60}'
    assert whole.startswith(spelled)
    assert 0 < len(spelled) < len(whole)
    assert stop == "max_tokens"
    message = await ask(client, stream=False)
    assert message.content[1].input == {}  # type: ignore[union-attr]


async def test_a_stall_is_silence_in_the_middle(serve: Serve) -> None:
    """`stall` sends nothing for a while; a client with a shorter patience gives up, a longer one gets the answer."""
    _, client = await serve(failing(Fault("stall", seconds=0.4)))
    with pytest.raises((httpx2.TimeoutException, anthropic.APITimeoutError)):
        await ask(client.with_options(timeout=0.1))
    began = time.monotonic()
    assert (await ask(client)).stop_reason == "tool_use"
    assert time.monotonic() - began >= 0.4


async def test_faults_with_times_happen_one_after_the_other(serve: Serve) -> None:
    """Two 529, one 429, then the answer: retries of one turn work through its faults."""
    model, client = await serve(failing(Fault(status=529, times=2), Fault(status=429, times=1)))
    for raised in (anthropic.OverloadedError, anthropic.OverloadedError, anthropic.RateLimitError):
        with pytest.raises(raised):
            await ask(client)
    assert (await ask(client)).stop_reason == "tool_use"
    assert [request.status for request in model.requests] == [529, 529, 429, 200]


async def test_the_sdk_retries_until_the_answer(serve: Serve) -> None:
    """The SDK's own retries see the faults as those of the real API."""
    _, client = await serve(failing(Fault(status=529, times=1, retry_after_s=0.01)))
    assert (await ask(client.with_options(max_retries=2))).stop_reason == "tool_use"


async def test_arguments_may_be_broken_on_purpose(serve: Serve) -> None:
    """`json` goes over the wire as it is written."""
    turn = Turn(calls=[Call("run", json='{"command": "ma')])
    _, client = await serve(Script([Conversation("only", [turn])]))
    pieces = [
        event.delta.partial_json
        async for event in await client.messages.create(**ASK, stream=True)
        if event.type == "content_block_delta" and event.delta.type == "input_json_delta"
    ]
    assert "".join(pieces) == '{"command": "ma'


async def test_a_callable_turn_that_raises_is_a_problem(serve: Serve) -> None:
    """A failure inside a test's own turn is a 500 to the client and is told to the test."""

    def broken(request: Request) -> Reply:
        raise KeyError(request.model)

    model, client = await serve(Script([Conversation("only", [broken])]))
    with pytest.raises(anthropic.InternalServerError):
        await ask(client)
    assert model.problems == ["a callable turn raised KeyError('any')"]


async def test_the_pace_is_kept(serve: Serve) -> None:
    """`delay_s` comes before the first byte, `chunk_s` before each delta."""
    turn = Turn(text="abcdef", chunk=2, chunk_s=0.05, delay_s=0.1)
    _, client = await serve(Script([Conversation("only", [turn])]))
    began = time.monotonic()
    await ask(client)
    assert 0.25 <= time.monotonic() - began < 20
