"""Stream events into a reply: what the API may send beyond the ordinary."""

from typing import Any

import pytest

from bot.domain.messages import Reply, TextPart, ThinkingPart, ToolCall, Usage
from bot.errors import ContextOverflow, MalformedReply, ModelError, ModelUnavailable
from bot.llm.anthropic_reply import ReplyBuilder
from bot.llm.anthropic_wire import from_wire

MODEL = "anthropic:claude-x"
Event = dict[str, Any]

START: Event = {
    "type": "message_start",
    "message": {
        "model": "claude-x-1",
        "usage": {
            "input_tokens": 5,
            "output_tokens": 1,
            "cache_read_input_tokens": 7,
            "cache_creation_input_tokens": 3,
        },
    },
}
STOP: Event = {"type": "message_stop"}


def ended(reason: str | None, **usage: int) -> Event:
    """The event that ends a reply."""
    return {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 9, **usage}}


def block(index: int, begun: Event, *deltas: Event, closed: bool = True) -> list[Event]:
    """The events of one block."""
    events: list[Event] = [{"type": "content_block_start", "index": index, "content_block": begun}]
    events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
    return events + ([{"type": "content_block_stop", "index": index}] if closed else [])


def text(index: int, *pieces: str) -> list[Event]:
    """A block of text."""
    return block(index, {"type": "text", "text": ""}, *({"type": "text_delta", "text": piece} for piece in pieces))


def call(index: int, *pieces: str, closed: bool = True, **begun: object) -> list[Event]:
    """A block of a tool call."""
    opening = {"type": "tool_use", "id": f"t{index}", "name": "read", "input": {}, **begun}
    deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
    return block(index, opening, *deltas, closed=closed)


def read(*events: Event) -> Reply:
    """The reply of a stream."""
    return from_wire(events, model=MODEL)


def test_usage_is_replaced_and_never_added() -> None:
    """The last event counts the whole reply; what it leaves out or has as null stays."""
    reply = read(
        START, *text(0, "x"), ended("end_turn", input_tokens=6), ended("end_turn", cache_read_input_tokens=8), STOP
    )
    assert reply.usage == Usage(6, 8, 3, 9)
    null: Event = {"type": "message_delta", "delta": {}, "usage": {"input_tokens": None, "output_tokens": 4}}
    assert read(START, null, ended("end_turn"), STOP).usage == Usage(5, 7, 3, 9)


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("end_turn", "end"),
        ("stop_sequence", "end"),
        ("tool_use", "tool"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "refusal"),
        ("pause_turn", "pause"),
        ("tomorrow", "error"),
    ],
)
def test_each_stop_reason_has_our_name(reason: str, stop: str) -> None:
    """A reason that nobody knows yet is an error, not an end."""
    assert read(START, ended(reason), STOP).stop == stop


def test_a_call_is_a_call_whatever_the_stop_reason_says() -> None:
    """Servers that speak like Anthropic end a call with `end_turn`; a cut one stays cut."""
    assert read(START, *call(0), ended("end_turn"), STOP).stop == "tool"
    assert read(START, *call(0, '{"a'), ended("max_tokens"), STOP).stop == "length"


def test_arguments_are_the_models_own_text() -> None:
    """Pieces are joined and never parsed; nothing is `{}`; an object that came whole is written out."""
    events = [*call(0, "", '{"a" ', ":1.0}"), *call(1), *call(2, " "), *call(3, input={"ü": 1}), *call(4, '{"cut')]
    reply = read(START, *events, ended("tool_use"), STOP)
    assert [call.arguments for call in reply.message.calls] == ['{"a" :1.0}', "{}", "{}", '{"ü":1}', '{"cut']


def test_blocks_that_are_interleaved_keep_their_order() -> None:
    """By index, not by end."""
    one, two = call(0, '{"a":1}'), text(1, "x", "y")
    events = [one[0], two[0], two[1], one[1], two[2], two[3], one[2]]
    parts = read(START, *events, ended("tool_use"), STOP).message.parts
    assert parts == (ToolCall("t0", "read", '{"a":1}'), TextPart("xy"))


def test_thinking_keeps_its_seal() -> None:
    """Text and signature come in pieces; a redacted block comes whole."""
    thinking = block(
        0,
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "thinking_delta", "thinking": "a "},
        {"type": "thinking_delta", "thinking": "b"},
        {"type": "signature_delta", "signature": "s"},
        {"type": "signature_delta", "signature": "t"},
    )
    redacted = block(1, {"type": "redacted_thinking", "data": "d"})
    parts = read(START, *thinking, *redacted, ended("end_turn"), STOP).message.parts
    assert parts == (ThinkingPart("a b", signature="st", model=MODEL), ThinkingPart("", data="d", model=MODEL))


def test_thinking_that_had_to_be_cleaned_loses_its_seal() -> None:
    """The seal would not fit any more, and the API would refuse the whole request."""
    events = block(
        0, {"type": "thinking", "thinking": "", "signature": "s"}, {"type": "thinking_delta", "thinking": "\0"}
    )
    assert read(START, *events, ended("end_turn"), STOP).message.parts == (ThinkingPart("\ufffd", model=MODEL),)


def test_text_is_heard_while_it_streams_and_clean() -> None:
    """What was heard is what the reply has; thinking and arguments are not heard."""
    builder = ReplyBuilder(MODEL)
    thinking = block(
        1, {"type": "thinking", "thinking": "", "signature": ""}, {"type": "thinking_delta", "thinking": "hm"}
    )
    opened = block(3, {"type": "text", "text": "A"}, {"type": "text_delta", "text": "B"})
    events = [START, *text(0, "a\0", "\ud83d", "\ude00"), *thinking, *call(2, "{}"), *opened, ended("tool_use"), STOP]
    heard = [piece for event in events if (piece := builder.feed(event))]
    assert heard == ["a\ufffd", "\ufffd", "\ufffd", "A", "B"]
    assert "".join(heard) == "".join(p.text for p in builder.finish().message.parts if isinstance(p, TextPart))


def test_what_nobody_knows_is_passed_over_and_counted() -> None:
    """Events, blocks and deltas of tomorrow; pings are known."""
    builder = ReplyBuilder(MODEL)
    events: list[Event] = [START, {"type": "ping"}, {"type": "news"}, *text(0, "x")]
    events += block(1, {"type": "server_tool_use", "id": "s"}, {"type": "input_json_delta", "partial_json": "{"})
    events += block(2, {"type": "text", "text": ""}, {"type": "citations_delta", "citation": {}})
    for event in [*events, ended("end_turn"), STOP, {"type": "news"}]:
        builder.feed(event)
    assert builder.finish().message.parts == (TextPart("x"), TextPart(""))
    assert builder.unknown == {"news": 1, "block server_tool_use": 1, "delta citations_delta": 1}


@pytest.mark.parametrize(
    "events",
    [
        [*text(0, "x")],
        [START, START],
        [START, *call(0, '{"a', closed=False), ended("tool_use"), STOP],
        [START, {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "x"}}],
        [START, {"type": "content_block_stop", "index": 0}],
        [START, *text(0, "x"), *text(0, "y")],
        [START, {"type": "content_block_start", "index": 0}],
        [START, *block(0, {"type": "text"}, {"type": "text_delta", "text": 5})],
        [START, *block(0, {"type": "text"}, {"type": "text_delta"})],
        [START, *block(0, {"type": "tool_use", "id": "x"})],
        [START, {"type": "message_delta", "delta": None}],
        [START, {"type": "message_delta", "delta": {}, "usage": {"output_tokens": "many"}}],
        [{}],
        [{"type": "message_start", "message": "x"}],
        [START, STOP],
        ["x"],
        [[]],
        [None],
    ],
)
def test_what_breaks_the_protocol_is_no_reply(events: list[Any]) -> None:
    """A reply that is not whole in every block is thrown away."""
    with pytest.raises(MalformedReply):
        read(*events)


@pytest.mark.parametrize(
    ("kind", "message", "error"),
    [
        ("overloaded_error", "Overloaded", ModelUnavailable),
        ("rate_limit_error", "Slow down", ModelUnavailable),
        ("api_error", "Internal server error", ModelUnavailable),
        ("timeout_error", "Too slow", ModelUnavailable),
        ("news_error", "?", ModelUnavailable),
        ("invalid_request_error", "prompt is too long: 2 tokens > 1 maximum", ContextOverflow),
    ],
)
def test_an_error_inside_a_stream_is_what_it_is_outside(kind: str, message: str, error: type[ModelError]) -> None:
    """The status of 200 in front of it changes nothing."""
    told: Event = {"type": "error", "error": {"type": kind, "message": message}}
    for before in ([], [START], [START, *text(0, "x")]):
        with pytest.raises(error, match=message[:8].replace("?", r"\?")):
            read(*before, told)
