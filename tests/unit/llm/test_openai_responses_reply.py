"""Events of the Responses API into a reply: what it may send beyond the ordinary."""

import json
from typing import Any

import pytest

from bot.domain.messages import Reply, TextPart, ThinkingPart, ToolCall, Usage
from bot.errors import ContextOverflow, MalformedReply, ModelError, ModelRefused, ModelRejected, ModelUnavailable
from bot.llm.openai_responses_reply import ReplyBuilder
from bot.llm.openai_responses_wire import events_of, from_wire

MODEL = "openai:m"
Event = dict[str, Any]


def text(*words: str) -> Event:
    """An item of text."""
    return {"type": "message", "content": [{"type": "output_text", "text": word} for word in words]}


def call(arguments: Any = "{}", **more: Any) -> Event:
    """An item with a call."""
    return {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "read", "arguments": arguments, **more}


def done(index: int, item: Event) -> Event:
    """The end of an item."""
    return {"type": "response.output_item.done", "output_index": index, "item": item}


def ending(status: str = "completed", *items: Event, **more: Any) -> Event:
    """The end of a reply."""
    response = {"status": status, "model": "m-1", "output": list(items), **more}
    return {"type": f"response.{status}", "response": response}


def read(*events: Event) -> Reply:
    """The reply of a stream."""
    return from_wire(events, model=MODEL)


def test_items_keep_their_order_wherever_they_come_from() -> None:
    """By their place; the ending has what a server did not tell before."""
    reply = read(done(1, call()), done(0, text("a", "b")), ending("completed", text("other"), call("[]"), text("c")))
    assert reply.message.parts == (TextPart("a"), TextPart("b"), ToolCall("c1", "read", "{}"), TextPart("c"))
    assert (reply.stop, reply.model) == ("tool", "m-1")
    assert read(done(0, text("a")), ending()).message.text == "a"


def test_arguments_are_the_models_own_text() -> None:
    """Nothing is `{}`, an object that is no text is written out; a call without its id has the item's."""
    for given, text_ in (
        ("", "{}"),
        ('{"a" :1.0}', '{"a" :1.0}'),
        ({"ü": 1}, '{"ü":1}'),
        ('{"cut', '{"cut'),
        (None, "{}"),
    ):
        assert read(ending("completed", call(given))).message.calls[0].arguments == text_
    assert read(ending("completed", call(call_id=None))).message.calls[0].id == "fc_1"


@pytest.mark.parametrize(
    ("reason", "stop"),
    [("max_output_tokens", "length"), ("content_filter", "refusal"), ("tomorrow", "error"), (None, "error")],
)
def test_an_incomplete_reply_says_why(reason: str | None, stop: str) -> None:
    """A cut call stays cut, whatever the reason."""
    details = {"reason": reason} if reason else None
    assert read(ending("incomplete", call('{"a'), incomplete_details=details)).stop == stop


def test_a_refusal_is_one() -> None:
    """As a content of its own."""
    builder = ReplyBuilder(MODEL)
    builder.feed(ending("completed", {"type": "message", "content": [{"type": "refusal", "refusal": "No."}]}))
    assert (builder.finish().stop, builder.refusal) == ("refusal", "No.")


def test_reasoning_keeps_its_seal() -> None:
    """The whole item goes back; one without seal or content could not be found again."""
    summary = [{"type": "summary_text", "text": "a"}, {"type": "summary_text", "text": "b"}]
    sealed = {
        "type": "reasoning",
        "id": "rs",
        "summary": summary,
        "encrypted_content": "e",
        "content": [],
        "status": None,
    }
    bare = {"type": "reasoning", "id": "rs", "summary": []}
    own = {"type": "reasoning", "id": "rs", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]}
    dirty = {"type": "reasoning", "id": "rs", "summary": [{"text": "\0"}], "encrypted_content": "e\0"}
    one, two, three, four = read(ending("completed", sealed, bare, own, dirty)).message.parts
    assert isinstance(one, ThinkingPart)
    assert (one.text, one.model) == ("a\n\nb", MODEL)
    assert json.loads(one.data) == {"type": "reasoning", "id": "rs", "summary": summary, "encrypted_content": "e"}
    assert two == ThinkingPart("", model=MODEL)
    assert isinstance(three, ThinkingPart)
    assert (three.text, json.loads(three.data)) == ("hm", own)
    assert four == ThinkingPart("\ufffd", model=MODEL)


def test_usage_is_replaced_and_in_one_shape() -> None:
    """Also that of a reply that failed."""
    counted = {
        "input_tokens": 9,
        "input_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 4},
        "output_tokens": 2,
    }
    assert read(ending("completed", usage=counted)).usage == Usage(2, 3, 4, 2)
    assert read(ending("completed", usage=None)).usage == Usage()
    builder = ReplyBuilder(MODEL)
    with pytest.raises(ModelUnavailable):
        builder.feed(ending("failed", usage=counted, error={"code": "server_error", "message": "x"}))
    assert builder.usage == Usage(2, 3, 4, 2)


def test_text_is_heard_while_it_streams_and_clean() -> None:
    """Once, though it is told three times; what comes behind the end is not heard."""
    builder = ReplyBuilder(MODEL)
    delta: Event = {"type": "response.output_text.delta", "delta": "a\0"}
    events = [
        delta,
        {"type": "response.output_text.done", "text": "a\0"},
        done(0, text("a\0")),
        ending("completed", text("a\0")),
    ]
    assert [builder.feed(event) for event in [*events, delta]] == ["a\ufffd", "", "", "", ""]
    assert builder.finish().message.text == "a\ufffd"


def test_what_nobody_knows_is_passed_over_and_counted() -> None:
    """Events, items and contents of tomorrow."""
    builder = ReplyBuilder(MODEL)
    news = {"type": "message", "content": [{"type": "hologram"}]}
    for event in ({"type": "news"}, {"type": "keepalive"}, ending("completed", {"type": "web_search_call"}, news)):
        builder.feed(event)
    assert builder.finish().message.parts == ()
    assert builder.unknown == {"news": 1, "item web_search_call": 1, "content hologram": 1}


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"code": "server_error", "message": "x"}, ModelUnavailable),
        ({"code": "rate_limit_exceeded", "message": "Please try again in 11.054s."}, ModelUnavailable),
        ({"code": "context_length_exceeded", "message": "too long"}, ContextOverflow),
        ({"code": "insufficient_quota", "message": "x"}, ModelRejected),
        ({"code": "invalid_prompt", "message": "x"}, ModelRefused),
        (None, ModelUnavailable),
    ],
)
def test_a_failed_reply_is_what_its_code_says(error: Any, kind: type[ModelError]) -> None:
    """As an event of its own, as the end of the reply, or in one piece."""
    with pytest.raises(kind):
        read(ending("failed", error=error))
    with pytest.raises(kind):
        read({"type": "error", **(error or {})})
    with pytest.raises(kind):
        from_wire(events_of({"status": "failed", "error": error, "output": []}), model=MODEL)
    with pytest.raises(ModelUnavailable):
        read(ending("cancelled"))


def test_a_stream_that_ends_too_early_is_no_reply() -> None:
    """Even if all items are there."""
    with pytest.raises(ModelUnavailable, match="broke off"):
        read({"type": "response.created", "response": {}}, done(0, text("x")), done(1, call()))
    for status in ("queued", "in_progress", "cancelled", "tomorrow"):
        with pytest.raises(ModelUnavailable, match=status):
            list(events_of({"status": status, "output": []}))


@pytest.mark.parametrize(
    "odd",
    [
        {},
        [],
        None,
        "x",
        {"type": "response.completed"},
        {"type": "response.completed", "response": {"output": 5}},
        {"type": "response.output_text.delta", "delta": 5},
        {"type": "response.output_item.done", "item": {}},
        ending("completed", usage={"input_tokens": "many"}),
        ending("completed", {"type": "message"}),
        ending("completed", {"type": "message", "content": [{"type": "output_text"}]}),
        ending("completed", {"type": "function_call"}),
        ending("completed", call(name=5)),
        ending("completed", {"type": "reasoning", "summary": [5]}),
        ending("completed", 5),  # type: ignore[arg-type]  # on purpose
    ],
)
def test_what_breaks_the_protocol_is_no_reply(odd: Any) -> None:
    """A reply that is not whole in every item is thrown away."""
    with pytest.raises(MalformedReply):
        read(odd)
