"""Chunks into a reply: what the many servers of this API send beyond the ordinary."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.messages import Part, Reply, TextPart, ThinkingPart, ToolCall, Usage
from bot.errors import ContextOverflow, MalformedReply, ModelError, ModelUnavailable
from bot.llm.openai_chat_reply import ReplyBuilder
from bot.llm.openai_chat_wire import events_of, from_wire
from bot.llm.openai_events import DONE

MODEL = "openai-chat:m"
Chunk = dict[str, Any]
STOP: Chunk = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}


def chunk(**delta: Any) -> Chunk:
    """A chunk with this delta."""
    return {"id": "c1", "model": "m-1", "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}


def ended(reason: str | None) -> Chunk:
    """The chunk that says why it stopped."""
    return {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}


def piece(index: int | None = 0, id: str | None = None, name: str | None = None, arguments: Any = None) -> Chunk:  # noqa: A002
    """A chunk with a piece of a call; what is None is not there."""
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    told = {"index": index, "id": id, "function": function or None}
    return chunk(tool_calls=[{key: value for key, value in told.items() if value is not None}])


def read(*chunks: Chunk, stop: Chunk = STOP) -> Reply:
    """The reply of a stream."""
    return from_wire([*chunks, stop], model=MODEL)


def calls(*chunks: Chunk) -> list[tuple[str, str]]:
    """Names and arguments of the calls of a stream."""
    reply = read(*chunks)
    assert reply.stop == "tool"
    assert len({call.id for call in reply.message.calls}) == len(reply.message.calls)
    return [(call.name, call.arguments) for call in reply.message.calls]


TWO = [("read", '{"a":1}'), ("read", '{"a":2}')]


@pytest.mark.parametrize(
    "chunks",
    [
        [piece(0, "x", "read", ""), piece(0, arguments='{"a"'), piece(0, arguments=":1}"), piece(1, "y", *TWO[1])],
        # `index` always 0: another id begins another call.
        [piece(0, "x", *TWO[0]), piece(0, "y", *TWO[1])],
        [
            piece(0, "x", "read", '{"a":'),
            piece(0, arguments="1}"),
            piece(0, "y", "read"),
            piece(0, arguments='{"a":2}'),
        ],
        # No `index`: each call whole, or its pieces one after the other.
        [piece(None, "x", *TWO[0]), piece(None, "y", *TWO[1])],
        [piece(None, "x", "read", '{"a":'), piece(None, arguments="1}"), piece(None, "y", *TWO[1])],
        [piece(0, "x", "read", '{"a":'), piece(None, arguments="1}"), piece(None, "y", *TWO[1])],
        # No id: by `index`, or by a name behind whole arguments.
        [piece(0, None, *TWO[0]), piece(1, None, *TWO[1])],
        [piece(0, None, *TWO[0]), piece(0, None, *TWO[1])],
        # The same id for two calls, told apart by `index`.
        [piece(0, "x", *TWO[0]), piece(1, "x", *TWO[1])],
        # Id and name in every chunk; a new id in every chunk.
        [piece(0, "x", "read", '{"a":'), piece(0, "x", "read", "1}"), piece(1, "y", *TWO[1])],
        [piece(0, "x", "read", '{"a":'), piece(0, "z", None, "1}"), piece(1, "y", *TWO[1])],
        # The name in pieces, or growing.
        [piece(0, "x", "re"), piece(0, None, "ad"), piece(0, None, None, '{"a":1}'), piece(1, "y", *TWO[1])],
        [piece(0, "x", "re"), piece(0, "x", "read"), piece(0, None, None, '{"a":1}'), piece(1, "y", *TWO[1])],
        # The whole call a second time at its end.
        [piece(0, "x", "read", '{"a":'), piece(0, None, None, "1}"), piece(0, "x", *TWO[0]), piece(1, "y", *TWO[1])],
        # Interleaved, and arguments that are no text.
        [piece(0, "x", "read"), piece(1, "y", "read"), piece(0, arguments='{"a":1}'), piece(1, arguments='{"a":2}')],
        [piece(3, "x", *TWO[0]), piece(7, "y", *TWO[1])],
    ],
)
def test_two_calls_are_two_calls(chunks: list[Chunk]) -> None:
    """However a server cuts, repeats and numbers them, and with `stop` as the reason."""
    assert calls(*chunks) == TWO


def test_arguments_are_the_models_own_text() -> None:
    """Pieces are joined and never parsed; nothing is `{}`; an object that is no text is written out."""
    assert calls(
        piece(0, "x", "a"), piece(1, "y", "b", ""), piece(2, "z", "c", {"ü": [1]}), piece(3, "w", "d", '{"cut')
    ) == [
        ("a", "{}"),
        ("b", "{}"),
        ("c", '{"ü": [1]}'),
        ("d", '{"cut'),
    ]
    assert calls(piece(0, "x", "a", '"{\\"a\\": 1}"')) == [("a", '"{\\"a\\": 1}"')]


def test_missing_ids_are_made_and_the_same_each_time() -> None:
    """From the reply's id and the place; a second one of the same id gets its own."""
    first, second = (
        read(piece(0, None, "a"), piece(1, None, "b"), piece(2, "x", "c"), piece(3, "x", "d")) for _ in "12"
    )
    ids = [call.id for call in first.message.calls]
    assert ids == [call.id for call in second.message.calls]
    assert len(set(ids)) == 4
    assert ids[2] == "x"


@given(st.data())
def test_any_cut_of_the_arguments_gives_the_same_calls(data: st.DataObject) -> None:
    """Two calls whose arguments come in pieces of any size."""
    chunks = []
    for index, (name, arguments) in enumerate(TWO):
        chunks.append(piece(index, f"c{index}", name))
        left = arguments
        while left:
            size = data.draw(st.integers(1, len(left)))
            chunks.append(piece(index, None, None, left[:size]))
            left = left[size:]
    assert calls(*chunks) == TWO


def test_usage_is_replaced_and_never_added() -> None:
    """Cumulative in each chunk, in the last one without a choice, or where Groq and Kimi put it; disjoint fields."""
    counted = {"prompt_tokens": 100, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 60}}
    growing: Chunk = {**chunk(content="x"), "usage": {"prompt_tokens": 100, "completion_tokens": 1}}
    last: Chunk = {"choices": [], "usage": counted}
    assert read(growing, growing, last).usage == Usage(40, 60, 0, 7)
    assert read(chunk(content="x"), last, {"choices": [], "usage": None}).usage == Usage(40, 60, 0, 7)
    groq: Chunk = {"choices": [], "x_groq": {"usage": counted}}
    kimi: Chunk = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop", "usage": counted}]}
    assert read(groq).usage == read(kimi).usage == Usage(40, 60, 0, 7)


@pytest.mark.parametrize(
    ("counted", "usage"),
    [
        ({"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}, Usage(5, 0, 0, 2)),
        ({"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 30}, Usage(5, 0, 0, 25)),
        ({"prompt_tokens": 9, "completion_tokens": 2, "prompt_cache_hit_tokens": 4}, Usage(5, 4, 0, 2)),
        ({"prompt_tokens": 9, "completion_tokens": 2, "cached_tokens": 4}, Usage(5, 4, 0, 2)),
        (
            {"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 4}},
            Usage(2, 3, 4, 0),
        ),
        ({"prompt_tokens": 1, "prompt_tokens_details": {"cached_tokens": None}}, Usage(1)),
        ({"prompt_tokens": 1, "prompt_tokens_details": {"cached_tokens": 3}}, Usage(0, 3)),
    ],
)
def test_each_way_to_count_is_one_shape(counted: Chunk, usage: Usage) -> None:
    """XAI leaves reasoning out of the completion, DeepSeek and Kimi name the cache in their own way."""
    assert read({"choices": [], "usage": counted}).usage == usage


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("stop", "end"),
        ("length", "length"),
        ("model_length", "length"),
        ("content_filter", "refusal"),
        ("tool_calls", "end"),
        ("tomorrow", "error"),
    ],
)
def test_each_reason_has_our_name(reason: str, stop: str) -> None:
    """A reason that nobody knows yet is an error, not an end; calls without a call are an end."""
    assert read(chunk(content="x"), stop=ended(reason)).stop == stop


def test_a_cut_call_stays_cut() -> None:
    """Only `stop` and the like make a call of it."""
    cut = piece(0, "x", "read", '{"a')
    assert read(cut, stop=ended("length")).stop == "length"
    assert read(cut, stop=ended("content_filter")).stop == "refusal"
    assert read(cut, stop=ended("tomorrow")).stop == "error"


def test_a_stream_without_a_reason() -> None:
    """Closed by `[DONE]` it is as whole as its arguments are; not closed it broke off."""
    assert read(chunk(content="x"), stop=dict(DONE)).stop == "end"
    assert read(piece(0, "x", "read"), stop=dict(DONE)).stop == "tool"
    assert read(piece(0, "x", "read", '{"a'), stop=dict(DONE)).stop == "error"
    with pytest.raises(ModelUnavailable, match="broke off"):
        read(chunk(content="x"), stop=ended(None))


@pytest.mark.parametrize("reason", ["error", "insufficient_system_resource", "abort"])
def test_a_server_that_gives_up_is_unavailable(reason: str) -> None:
    """Not every failure comes as an error."""
    with pytest.raises(ModelUnavailable, match=reason):
        read(chunk(content="x"), stop=ended(reason))


def test_a_refusal_is_one() -> None:
    """In its own field, with `stop` as the reason."""
    builder = ReplyBuilder(MODEL)
    for event in (chunk(refusal="I "), chunk(refusal="won't"), STOP):
        builder.feed(event)
    assert (builder.finish().stop, builder.refusal) == ("refusal", "I won't")


def thinking(*chunks: Chunk) -> tuple[Part, ...]:
    """The thinking of a stream."""
    return tuple(part for part in read(*chunks).message.parts if isinstance(part, ThinkingPart))


def test_reasoning_is_thinking() -> None:
    """In each spelling, with the field in which it goes back; the same words in two fields come once."""
    for field in ("reasoning_content", "reasoning"):
        (part,) = thinking(chunk(**{field: "Hm "}), chunk(**{field: "ok"}), chunk(content="x"))
        assert part == ThinkingPart("Hm ok", data=json.dumps({field: "Hm ok"}, separators=(",", ":")), model=MODEL)
    assert thinking(chunk(reasoning="\ud800")) == (ThinkingPart("\ufffd", model=MODEL),)
    (both,) = thinking(chunk(reasoning_content="Hm", reasoning="Hm"))
    assert isinstance(both, ThinkingPart)
    assert both.text == "Hm"
    content = [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}]}, {"type": "text", "text": "x"}]
    reply = read(chunk(content=content))
    assert reply.message.parts == (ThinkingPart("Hm", model=MODEL), TextPart("x"))


def test_sealed_reasoning_goes_back_whole() -> None:
    """OpenRouter's blocks: pieces of one block are joined, blocks stay apart and in order."""
    one = {"type": "reasoning.text", "index": 0, "text": "Hm ", "format": "f"}
    two = {"type": "reasoning.text", "index": 0, "text": "ok", "signature": "s", "format": None}
    three = {"type": "reasoning.encrypted", "index": 1, "data": "d"}
    (part,) = thinking(
        *(chunk(reasoning=detail.get("text", ""), reasoning_details=[detail]) for detail in (one, two, three))
    )
    assert isinstance(part, ThinkingPart)
    assert part.text == "Hm ok"
    joined = {"type": "reasoning.text", "index": 0, "text": "Hm ok", "format": "f", "signature": "s"}
    assert json.loads(part.data) == {"reasoning_details": [joined, three]}


def test_text_is_heard_while_it_streams_and_clean() -> None:
    """What was heard is what the reply has; reasoning, refusals and arguments are not heard."""
    builder = ReplyBuilder(MODEL)
    chunks = [chunk(content="a\0"), chunk(content="\ud83d"), chunk(reasoning="hm"), piece(0, "x", "re\0ad"), STOP]
    heard = [text for event in chunks if (text := builder.feed(event))]
    assert heard == ["a\ufffd", "\ufffd"]
    reply = builder.finish()
    assert reply.message.text == "".join(heard)
    assert reply.message.calls[0].name == "re\ufffdad"


def test_what_nobody_knows_is_passed_over_and_counted() -> None:
    """Other choices, fields, contents and reasons of tomorrow."""
    builder = ReplyBuilder(MODEL)
    second: Chunk = {"choices": [{"index": 1, "delta": {"content": "other"}, "finish_reason": "stop"}]}
    for event in (second, chunk(news=[1], old=None), chunk(content=[{"type": "image"}]), ended("tomorrow")):
        builder.feed(event)
    assert builder.finish().message.parts == ()
    assert builder.unknown == {"choice": 1, "field news": 1, "content image": 1, "finish_reason tomorrow": 1}


@pytest.mark.parametrize(
    "odd",
    [
        {},
        [],
        None,
        "x",
        {"choices": 5},
        {"choices": ["x"]},
        {"choices": [], "usage": 5},
        {"choices": [], "usage": {"prompt_tokens": "many"}},
        chunk(content=5),
        chunk(content=[{}]),
        chunk(tool_calls=5),
        chunk(tool_calls=[5]),
        chunk(tool_calls=[{"function": 5}]),
        chunk(reasoning=5),
        chunk(refusal=5),
        piece(0, "x", None, "{}"),
    ],
)
def test_what_breaks_the_protocol_is_no_reply(odd: Any) -> None:
    """Whatever it is, it is ours."""
    with pytest.raises(MalformedReply):
        read(odd)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"code": 502, "message": "Provider disconnected"}, ModelUnavailable),
        ({"code": "context_length_exceeded", "message": "too long"}, ContextOverflow),
        ("overloaded", ModelUnavailable),
    ],
)
def test_an_error_inside_a_stream_ends_it(error: object, kind: type[ModelError]) -> None:
    """Whatever came before."""
    with pytest.raises(kind):
        read(chunk(content="x"), {"error": error, "choices": [{"index": 0, "delta": {}, "finish_reason": "error"}]})


def test_a_whole_completion_is_read_as_a_stream() -> None:
    """Calls without an index included."""
    told = [
        {"id": i, "type": "function", "function": {"name": n, "arguments": a}}
        for i, (n, a) in zip("xy", TWO, strict=True)
    ]
    message = {"role": "assistant", "content": None, "tool_calls": told}
    reply = from_wire(
        events_of({"model": "m-1", "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}),
        model=MODEL,
    )
    assert reply.message.parts == (ToolCall("x", *TWO[0]), ToolCall("y", *TWO[1]))
    assert (reply.stop, reply.model) == ("tool", "m-1")
