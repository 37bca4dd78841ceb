"""Recorded traffic: what the API said is what comes out, and what goes back is what it took."""

import itertools
import json
from typing import Any

import pytest

from bot.domain.messages import Message, Part, Prompt, Reply, TextPart, ThinkingPart, ToolCall, ToolResult, Usage
from bot.errors import ModelError, ModelRejected, ModelUnavailable
from bot.llm.anthropic_errors import error_for
from bot.llm.anthropic_wire import events_of, from_wire, to_wire
from tests.unit.llm.cassettes import Json
from tests.unit.llm.recordings import Recording, recordings

MODEL = "anthropic:claude"
STOPS = {"end_turn": "end", "tool_use": "tool", "stop_sequence": "end"}


def answered(*, streamed: bool) -> list[Recording]:
    """All replies, whole or streamed."""
    found = [r for r in recordings() if r.status == 200 and (r.stream is not None) is streamed]
    return [r for r in found if streamed or (r.body or {}).get("type") == "message"]


def walk(events: list[Json]) -> tuple[list[str], list[tuple[str, str, str]], list[tuple[str, str]], Json]:
    """Collect texts, calls, thinking and usage without any rule but their order."""
    blocks: dict[int, Json] = {}
    grown: dict[int, str] = {}
    seals: dict[int, str] = {}
    usage: Json = {}
    for event in events:
        if event["type"] == "message_start":
            usage.update(event["message"]["usage"])
        elif event["type"] == "message_delta":
            usage.update({key: value for key, value in event["usage"].items() if value is not None})
        elif event["type"] == "content_block_start":
            blocks[event["index"]] = event["content_block"]
            grown[event["index"]] = ""
        elif event["type"] == "content_block_delta":
            delta = event["delta"]
            grown[event["index"]] += delta.get("text") or delta.get("partial_json") or delta.get("thinking") or ""
            if "signature" in delta:
                seals[event["index"]] = delta["signature"]
    texts = [grown[i] for i, b in blocks.items() if b["type"] == "text"]
    calls = [(b["id"], b["name"], grown[i] or "{}") for i, b in blocks.items() if b["type"] == "tool_use"]
    thinking = [(grown[i], seals.get(i, "")) for i, b in blocks.items() if b["type"] == "thinking"]
    return texts, calls, thinking, usage


def tokens(usage: Json) -> Usage:
    """Read the four counts."""
    return Usage(
        usage["input_tokens"],
        usage["cache_read_input_tokens"] or 0,
        usage["cache_creation_input_tokens"] or 0,
        usage["output_tokens"],
    )


def texts_of(reply: Reply) -> list[str]:
    """The texts of a reply."""
    return [part.text for part in reply.message.parts if isinstance(part, TextPart)]


def calls_of(reply: Reply) -> list[tuple[str, str, str]]:
    """The calls of a reply."""
    return [(call.id, call.name, call.arguments) for call in reply.message.calls]


def thinking_of(reply: Reply) -> list[tuple[str, str]]:
    """The thinking of a reply with its seals."""
    return [(part.text, part.signature) for part in reply.message.parts if isinstance(part, ThinkingPart)]


def test_streamed_replies_are_read_as_they_were_sent() -> None:
    """Text, calls with their very arguments, thinking with its seal, usage and stop reason of each recorded stream."""
    found = answered(streamed=True)
    assert len(found) >= 40
    for recording in found:
        events = recording.events()
        texts, calls, thinking, usage = walk(events)
        reply = from_wire(events, model=MODEL)
        assert (texts_of(reply), calls_of(reply), thinking_of(reply)) == (texts, calls, thinking), recording.name
        assert reply.usage == tokens(usage), recording.name
        stop = next(event["delta"]["stop_reason"] for event in events if event["type"] == "message_delta")
        assert reply.stop == STOPS[stop], recording.name
        assert reply.model == events[0]["message"]["model"]
    assert sum(len(walk(r.events())[1]) for r in found) >= 5
    assert sum(len(walk(r.events())[2]) for r in found) >= 10


def test_whole_replies_are_read_as_they_were_sent() -> None:
    """The same of each recorded reply that came in one piece."""
    found = answered(streamed=False)
    assert len(found) >= 170
    for recording in found:
        assert recording.body is not None
        reply = from_wire(events_of(recording.body), model=MODEL)
        content = recording.body["content"]
        assert texts_of(reply) == [b["text"] for b in content if b["type"] == "text"], recording.name
        expected = [(b["id"], b["name"], b["input"]) for b in content if b["type"] == "tool_use"]
        assert [(i, n, json.loads(a)) for i, n, a in calls_of(reply)] == expected, recording.name
        assert thinking_of(reply) == [(b["thinking"], b["signature"]) for b in content if b["type"] == "thinking"]
        assert reply.usage == tokens(recording.body["usage"]), recording.name
        assert reply.stop == STOPS[recording.body["stop_reason"]], recording.name


def test_a_stream_that_is_cut_anywhere_is_no_reply() -> None:
    """Whatever event is the last one: without `message_stop` there is an error and never a half-written call."""
    for recording in answered(streamed=True):
        events = recording.events()
        for end in range(len(events)):
            assert events[end]["type"] == "message_stop" or end < len(events) - 1
            with pytest.raises(ModelUnavailable, match="broke off"):
                from_wire(events[:end], model=MODEL)


def test_recorded_errors_become_ours() -> None:
    """Each recorded 400 and 404 is a rejection that repeats the API's words, and never an overflow."""
    found = [recording for recording in recordings() if recording.status >= 400]
    assert sorted(recording.status for recording in found) == [400, 404, 404]
    for recording in found:
        assert recording.body is not None
        error = error_for(recording.status, recording.body)
        assert type(error) is ModelRejected
        assert recording.body["error"]["message"].rstrip(".") in str(error)


PLAIN = {"text", "tool_use", "tool_result", "thinking"}
FIELDS = {
    "text": {"type", "text"},
    "tool_use": {"type", "id", "name", "input"},
    "tool_result": {"type", "tool_use_id", "content", "is_error"},
    "thinking": {"type", "thinking", "signature"},
}


def plain(recording: Recording) -> bool:
    """Whether the request has nothing but what the bot sends: texts, thinking, calls and their results."""
    messages = recording.request["messages"]
    return all(
        message["role"] != "system"
        and not isinstance(message["content"], str)
        and all(block["type"] in PLAIN and texts_only(block) for block in message["content"])
        for message in messages
    )


def texts_only(block: Json) -> bool:
    """Whether a result has no picture and no reference in it."""
    content = block.get("content", "")
    return isinstance(content, str) or all(inner["type"] == "text" for inner in content)


def part_of(block: Json) -> Part:
    """Read a recorded block into ours."""
    match block["type"]:
        case "text":
            return TextPart(block["text"])
        case "thinking":
            return ThinkingPart(block["thinking"], signature=block["signature"], model=MODEL)
        case "tool_use":
            return ToolCall(block["id"], block["name"], json.dumps(block["input"]))
        case _:
            content = block.get("content", "")
            text = content if isinstance(content, str) else "".join(inner["text"] for inner in content)
            return ToolResult(block["tool_use_id"], text, is_error=block.get("is_error", False))


def normal(messages: list[Json]) -> list[Any]:
    """Leave out what may differ: cache marks, `caller`, the two ways to write a result, texts of blanks alone."""
    told = []
    for message in messages:
        content = []
        for block in message["content"]:
            if not block.get("text", "x").strip():
                continue
            kept = {key: value for key, value in block.items() if key in FIELDS[block["type"]]}
            if block["type"] == "tool_result":
                value = kept.get("content", "")
                kept["content"] = value if isinstance(value, str) else "".join(inner["text"] for inner in value)
                kept["is_error"] = kept.get("is_error", False)
            content.append(kept)
        told.append((message["role"], content))
    return told


def test_recorded_requests_come_out_as_they_went_in() -> None:
    """Each recorded conversation of texts, thinking and tool loops, read into our messages, is written the same."""
    found = [recording for recording in recordings() if recording.status == 200 and plain(recording)]
    loops = [r for r in found if any(b["type"] == "tool_use" for m in r.request["messages"] for b in m["content"])]
    assert len(found) >= 100
    assert len(loops) >= 30
    for recording in found:
        sent = recording.request["messages"]
        messages = [Message(m["role"], tuple(part_of(block) for block in m["content"])) for m in sent]
        body = to_wire(Prompt("", (), messages), model=MODEL, max_output_tokens=100)
        assert normal(body["messages"]) == normal(sent), recording.name


def test_a_recorded_loop_goes_on_with_the_reply_that_was_read() -> None:
    """A reply read from a recording and written back is what the recorded next request has in its place."""
    checked = 0
    pairs = itertools.pairwise(recordings())
    for first, second in pairs:
        if first.body is None or first.body.get("type") != "message" or not (plain(first) and plain(second)):
            continue
        before, after = first.request["messages"], second.request["messages"]
        if len(after) != len(before) + 2 or normal(after[: len(before)]) != normal(before):
            continue
        if not any(block["type"] == "tool_use" for block in first.body["content"]):
            continue
        reply = from_wire(events_of(first.body), model=MODEL)
        results = tuple(part_of(block) for block in after[-1]["content"])
        history = [Message(m["role"], tuple(part_of(b) for b in m["content"])) for m in before]
        prompt = Prompt("", (), [*history, reply.message, Message("user", results)])
        body = to_wire(prompt, model=MODEL, max_output_tokens=100)
        assert normal(body["messages"]) == normal(after), first.name
        checked += 1
    assert checked >= 20


def test_no_error_of_a_recording_is_foreign() -> None:
    """Streams with events in a wrong order fail as a `ModelError`, whatever the order."""
    for recording in answered(streamed=True)[:10]:
        events = recording.events()
        for place in range(0, len(events) - 1, 3):
            shuffled = [*events[:place], events[place + 1], events[place], *events[place + 2 :]]
            try:
                from_wire(shuffled, model=MODEL)
            except ModelError:
                continue
