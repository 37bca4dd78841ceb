"""Chunks into a reply: what the API may send beyond the ordinary."""

from typing import Any

import pytest

from bot.domain.messages import Reply, TextPart, ThinkingPart, ToolCall, Usage
from bot.errors import ContextOverflow, MalformedReply, ModelError, ModelUnavailable
from bot.llm.google_reply import ReplyBuilder
from bot.llm.google_wire import from_wire

MODEL = "google:gemini-x"
Chunk = dict[str, Any]


def chunk(*parts: Chunk, stop: str | None = None, **fields: Any) -> Chunk:
    """One piece of a stream."""
    candidate: Chunk = {"content": {"parts": list(parts), "role": "model"}, "index": 0}
    return {"candidates": [candidate | ({"finishReason": stop} if stop else {})], **fields}


def text(value: str, seal: str = "", **fields: Any) -> Chunk:
    """A part of text."""
    return {"text": value, **({"thoughtSignature": seal} if seal else {}), **fields}


def call(name: str, args: Any = None, seal: str = "", **fields: Any) -> Chunk:
    """A part with a call."""
    return {"functionCall": {"name": name, "args": args, **fields}, **({"thoughtSignature": seal} if seal else {})}


def read(*chunks: Chunk, turn: int = 0) -> Reply:
    """The reply of a stream."""
    return from_wire(chunks, model=MODEL, turn=turn)


def sealed(seal: str) -> ThinkingPart:
    """The seal of what follows."""
    return ThinkingPart("", signature=seal, model=MODEL)


def counted(**counts: int) -> Chunk:
    """The count of tokens."""
    return {"usageMetadata": counts}


def test_usage_is_replaced_and_never_added() -> None:
    """The last count is of the whole reply; cached tokens are part of the prompt's, those of tools and thoughts not."""
    first = chunk(text("x"), **counted(promptTokenCount=100, candidatesTokenCount=5, thoughtsTokenCount=9))
    whole = counted(
        promptTokenCount=100,
        cachedContentTokenCount=30,
        toolUsePromptTokenCount=7,
        candidatesTokenCount=10,
        thoughtsTokenCount=9,
        totalTokenCount=126,
    )
    reply = read(first, chunk(stop="STOP", **whole))
    assert reply.usage == Usage(77, 30, 0, 19)
    assert reply.usage.total_tokens == 126
    assert read(first, chunk(stop="STOP")).usage == Usage(100, 0, 0, 14)
    assert read(chunk(stop="STOP", **counted(promptTokenCount=3, cachedContentTokenCount=5))).usage == Usage(0, 5)


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("STOP", "end"),
        ("MAX_TOKENS", "length"),
        ("SAFETY", "refusal"),
        ("RECITATION", "refusal"),
        ("LANGUAGE", "refusal"),
        ("BLOCKLIST", "refusal"),
        ("PROHIBITED_CONTENT", "refusal"),
        ("SPII", "refusal"),
        ("MODEL_ARMOR", "refusal"),
        ("IMAGE_SAFETY", "refusal"),
        ("OTHER", "error"),
        ("TOMORROW", "error"),
    ],
)
def test_each_finish_reason_has_our_name(reason: str, stop: str) -> None:
    """A reason that nobody knows yet is an error, not an end, and counted."""
    builder = ReplyBuilder(MODEL)
    builder.feed(chunk(text("x"), stop=reason))
    assert builder.finish().stop == stop
    assert builder.unknown == ({"finishReason TOMORROW": 1} if reason == "TOMORROW" else {})
    assert builder.refusal == (reason if stop == "refusal" else "")


@pytest.mark.parametrize(
    "reason", ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MALFORMED_RESPONSE"]
)
def test_a_call_that_the_api_could_not_read_is_no_reply(reason: str) -> None:
    """The whole reply is thrown away, with what the API says of it; its cost is known."""
    builder = ReplyBuilder(MODEL)
    builder.feed(chunk(call("read", {}), **counted(promptTokenCount=4)))
    builder.feed({"candidates": [{"finishReason": reason, "finishMessage": "print(read("}]})
    with pytest.raises(MalformedReply, match=rf"{reason}: print\(read\("):
        builder.finish()
    assert builder.usage == Usage(4)


def test_a_blocked_prompt_is_a_refusal() -> None:
    """There is no candidate then, and no other end."""
    builder = ReplyBuilder(MODEL)
    builder.feed({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, **counted(promptTokenCount=4)})
    reply = builder.finish()
    assert (reply.stop, reply.message.parts, reply.usage) == ("refusal", (), Usage(4))
    assert builder.refusal == "the prompt was blocked: PROHIBITED_CONTENT"
    assert read({"promptFeedback": {"safetyRatings": []}}, chunk(stop="STOP")).stop == "end"


def test_a_call_is_a_call_if_the_reply_is_whole() -> None:
    """Google ends a call with STOP; one behind which the output limit fell is not run."""
    assert read(chunk(call("read")), chunk(text(""), stop="STOP")).stop == "tool"
    assert read(chunk(call("read"), stop="MAX_TOKENS")).stop == "length"
    assert read(chunk(call("read"), stop="SAFETY")).stop == "refusal"


def test_parallel_calls_may_come_in_different_chunks() -> None:
    """They keep their order among the texts."""
    chunks = [chunk(call("a", id="1"), text("x")), chunk(text("y"), call("b", id="2")), chunk(call("c", id="3"))]
    parts = read(*chunks, chunk(stop="STOP")).message.parts
    assert parts == (ToolCall("1", "a", "{}"), TextPart("xy"), ToolCall("2", "b", "{}"), ToolCall("3", "c", "{}"))


def test_missing_ids_are_made_and_always_the_same() -> None:
    """Different for each call of a reply and for each turn, whatever else is alike; the API's own are kept."""
    chunks = [chunk(call("a", {"x": 1}), call("a", {"x": 1}), call("a", id="own"), stop="STOP", responseId="r")]
    first, again = read(*chunks).message.calls, read(*chunks).message.calls
    assert first == again
    later = read(*chunks, turn=2).message.calls
    other = read({**chunks[0], "responseId": "s"}).message.calls
    made = [call.id for calls in (first, later, other) for call in calls if call.id != "own"]
    assert len(set(made)) == 6
    assert first[2].id == "own"
    assert all(identifier.startswith("call_") for identifier in made)


def test_arguments_are_always_the_same_text() -> None:
    """In the model's order, with nothing lost; none are `{}`, and a text stays what it is."""
    args = {"b": 1.0, "a": [None, True, "ü\u2028", 12345678901234567890], "n": {"z": {}}}
    reply = read(chunk(call("a", args), call("b"), call("c", '{"x": 1}'), call("d", {"k\0": "\ud800"}), stop="STOP"))
    told = [call.arguments for call in reply.message.calls]
    assert told == [
        '{"b":1.0,"a":[null,true,"ü\u2028",12345678901234567890],"n":{"z":{}}}',
        "{}",
        '{"x": 1}',
        '{"k\\u0000":"\ufffd"}',
    ]


def test_texts_that_follow_each_other_are_one() -> None:
    """As the API tells them in one piece: thoughts apart from words, a seal for the run wherever it comes."""
    middle = [chunk(text("a", "s")), chunk(text("b")), chunk(text("c"), stop="STOP")]
    last = [chunk(text("a")), chunk(text("bc")), chunk(text("", "s"), stop="STOP")]
    for chunks in (middle, last):
        assert read(*chunks).message.parts == (sealed("s"), TextPart("abc"))
    thoughts = [chunk(text("t", thought=True)), chunk(text("u", thought=True)), chunk(text("a"), stop="STOP")]
    assert read(*thoughts).message.parts == (ThinkingPart("tu", model=MODEL), TextPart("a"))


def test_each_seal_stays_with_what_it_seals() -> None:
    """With a call, a text, thoughts; a second one begins a new part; one with an empty text is a part of its own."""
    reply = read(
        chunk(text("t", "s1", thought=True), call("a", seal="s2", id="1"), call("b", id="2"), text("x", "s3")),
        chunk(text("y", "s4"), call("c", id="3")),
        chunk(text("", "s5"), stop="STOP"),
    )
    assert reply.message.parts == (
        ThinkingPart("t", signature="s1", model=MODEL),
        sealed("s2"),
        ToolCall("1", "a", "{}"),
        ToolCall("2", "b", "{}"),
        sealed("s3"),
        TextPart("x"),
        sealed("s4"),
        TextPart("y"),
        ToolCall("3", "c", "{}"),
        ThinkingPart("", data="s5", model=MODEL),
    )


def test_text_is_heard_while_it_streams_and_clean() -> None:
    """What was heard is what the reply has; thoughts and arguments are not heard."""
    builder = ReplyBuilder(MODEL)
    chunks = [
        chunk(text("a\0"), text("\ud83d")),
        chunk(text("hm", thought=True), call("x")),
        chunk(text("B"), stop="STOP"),
    ]
    heard = [piece for one in chunks if (piece := builder.feed(one))]
    assert heard == ["a\ufffd\ufffd", "B"]
    assert "".join(heard) == "".join(p.text for p in builder.finish().message.parts if isinstance(p, TextPart))


def test_what_nobody_knows_is_passed_over_and_counted() -> None:
    """Parts, fields and candidates of tomorrow."""
    builder = ReplyBuilder(MODEL)
    builder.feed(chunk(text("x", mood="good"), {"executableCode": {"code": "1"}, "thoughtSignature": "s"}, news=1))
    builder.feed({"candidates": [{"index": 1, "content": {"parts": [text("second")]}}]})
    builder.feed({"candidates": [{"groundingMetadata": {}, "finishReason": "STOP", "safetyRatings": []}]})
    assert builder.finish().message.parts == (TextPart("x"),)
    assert builder.unknown == {
        "news": 1,
        "part mood": 1,
        "part executableCode": 1,
        "candidate": 1,
        "candidate groundingMetadata": 1,
    }


def test_a_reply_without_a_reason_broke_off() -> None:
    """A stream has no other end."""
    for chunks in ([], [chunk(text("x"))], [chunk(call("a"))], [chunk(call("a"), stop="FINISH_REASON_UNSPECIFIED")]):
        with pytest.raises(ModelUnavailable, match="broke off"):
            read(*chunks)


@pytest.mark.parametrize(
    "odd",
    [
        "x",
        [],
        None,
        5,
        {"candidates": 5},
        {"candidates": ["x"]},
        {"candidates": [{"content": {"parts": ["x"]}}]},
        {"candidates": [{"content": {"parts": 5}}]},
        {"candidates": [{"finishReason": 5}]},
        chunk({"text": None}),
        chunk({"text": 5}),
        chunk(text("x", thoughtSignature=5)),
        chunk({"functionCall": None}),
        chunk({"functionCall": {"args": {}}}),
        chunk({"functionCall": {"name": 5}}),
        chunk(call("a", partialArgs=[{"jsonPath": "$.x"}])),
        chunk(call("a", willContinue=True)),
        chunk(call("a", id=5)),
        {"usageMetadata": {"promptTokenCount": "many"}},
        {"usageMetadata": 5},
        {"modelVersion": 5},
    ],
)
def test_what_breaks_the_protocol_is_no_reply(odd: Any) -> None:
    """Nothing but a `ModelError` comes out, whatever goes in."""
    with pytest.raises(MalformedReply):
        read(odd, chunk(stop="STOP"))


@pytest.mark.parametrize(
    ("code", "status", "message", "error"),
    [
        (503, "UNAVAILABLE", "The model is overloaded", ModelUnavailable),
        (429, "RESOURCE_EXHAUSTED", "Slow down", ModelUnavailable),
        (500, "INTERNAL", "Internal error", ModelUnavailable),
        (400, "INVALID_ARGUMENT", "The input token count (2) exceeds the maximum number of tokens", ContextOverflow),
    ],
)
def test_an_error_inside_a_stream_is_what_it_is_outside(
    code: int, status: str, message: str, error: type[ModelError]
) -> None:
    """The status of 200 in front of it changes nothing."""
    told = {"error": {"code": code, "status": status, "message": message}}
    for before in ([], [chunk(text("x"))], [chunk(call("a"), stop="STOP")]):
        with pytest.raises(error, match=message[:8]):
            read(*before, told)
