"""Recorded chat completions: what the server said is what comes out, and what goes back is what it took."""

import itertools
import json
from collections import Counter
from typing import Any

import pytest

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
from bot.errors import MalformedReply, ModelError, ModelRejected, ModelUnavailable
from bot.llm.openai_chat_reply import ReplyBuilder
from bot.llm.openai_chat_wire import events_of, from_wire, to_wire
from bot.llm.openai_errors import error_for
from bot.llm.openai_events import DONE
from tests.unit.llm.cassettes import Exchange, Json, exchanges

MODEL = "openai-chat:m"
FOLDERS = ("openai-chat", "openai-responses")
STOPS = {"stop": "end", "tool_calls": "tool"}


def is_ours(exchange: Exchange) -> bool:
    """Whether the request is one of this API."""
    return exchange.method == "POST" and exchange.url.endswith("/chat/completions")


def recorded() -> list[Exchange]:
    """All requests of this API, wherever they lie."""
    return [one for one in exchanges(*FOLDERS) if is_ours(one)]


def answered() -> list[Exchange]:
    """Those that got a reply."""
    return [one for one in recorded() if one.status == 200]


def told(exchange: Exchange) -> list[Json]:
    """The answer as chunks."""
    if exchange.body is not None:
        return [dict(chunk) for chunk in events_of(exchange.body)]
    assert exchange.stream is not None
    return [*exchange.events(), *([dict(DONE)] if exchange.stream.rstrip().endswith("[DONE]") else [])]


def words(content: Any) -> str:
    """The words of a content, in one piece or in several."""
    if not isinstance(content, list):
        return content or ""
    return "".join(piece["text"] for piece in content if piece["type"] == "text")


def walk(exchange: Exchange) -> tuple[str, list[tuple[str, str, str]], str, Json]:
    """Collect text, calls, reason and usage of an answer; no recorded name comes in pieces, one comes twice."""
    text, reason, calls = "", "", dict[int, list[str]]()
    if exchange.body is not None:
        choice = exchange.body["choices"][0]
        message = choice["message"]
        told_calls = [
            (call["id"], call["function"]["name"], call["function"]["arguments"])
            for call in message.get("tool_calls") or []
        ]
        return words(message["content"]), told_calls, choice["finish_reason"], exchange.body["usage"]
    usage: Json = {}
    for chunk in exchange.events():
        usage = chunk.get("usage") or usage
        for choice in chunk["choices"]:
            reason = choice["finish_reason"] or reason
            text += words(choice["delta"].get("content"))
            for piece in choice["delta"].get("tool_calls") or []:
                call = calls.setdefault(piece["index"], ["", "", ""])
                call[0] = piece.get("id") or call[0]
                call[1] = piece["function"].get("name") or call[1]
                call[2] += piece["function"].get("arguments") or ""
    return text, [(i, n, a or "{}") for i, n, a in calls.values()], reason, usage


def tokens(usage: Json) -> Usage:
    """The counts of a recording, whose input includes what the cache had."""
    details = usage.get("prompt_tokens_details") or {}
    read, written = details.get("cached_tokens") or 0, details.get("cache_write_tokens") or 0
    return Usage(usage["prompt_tokens"] - read - written, read, written, usage["completion_tokens"])


def calls_of(reply: Reply) -> list[tuple[str, str, str]]:
    """The calls of a reply."""
    return [(call.id, call.name, call.arguments) for call in reply.message.calls]


def test_what_is_held_against_us_is_all_there_is() -> None:
    """Each request of the two folders is of this API, of the Responses API, or of a kind listed here."""
    others = Counter(
        f"{one.method} {one.url.split('://')[1].split('?')[0].split('_')[0]}"
        for one in exchanges("openai-chat")
        if not is_ours(one)
    )
    assert others == {"POST mcp.deepwiki.com/mcp": 17}
    assert Counter(one.status for one in recorded()) == {200: 143, 400: 3, 404: 1}
    assert sum(one.stream is not None for one in recorded()) == 58


def test_replies_are_read_as_they_were_sent() -> None:
    """Text, calls with their very arguments, usage, stop reason and model of each recorded reply."""
    thinking = 0
    for exchange in answered():
        text, calls, reason, usage = walk(exchange)
        reply = from_wire(told(exchange), model=MODEL)
        assert "".join(p.text for p in reply.message.parts if isinstance(p, TextPart)) == text, exchange.name
        assert calls_of(reply) == calls, exchange.name
        assert reply.usage == tokens(usage), exchange.name
        assert reply.usage.total_tokens == usage["total_tokens"], exchange.name
        assert reply.stop == (STOPS[reason] if reason else "tool"), exchange.name
        assert reply.model == (exchange.body or exchange.events()[0])["model"]
        thinking += sum(isinstance(part, ThinkingPart) for part in reply.message.parts)
    assert thinking == 1
    assert sum(len(walk(one)[1]) for one in answered()) >= 90


def test_nothing_is_dropped_silently() -> None:
    """What no reply of ours has is counted by name: moderation apart, which no bot of ours asks for."""
    unknown: Counter[str] = Counter()
    for exchange in answered():
        builder = ReplyBuilder(MODEL)
        for chunk in told(exchange):
            builder.feed(chunk)
        builder.finish()
        unknown += builder.unknown
    assert unknown == {}


def test_a_stream_that_is_cut_anywhere_is_no_reply() -> None:
    """Before the chunk with the reason to stop is whole there is an error, and never a half-written call.

    Two streams have no reason at all: there it is the line that closes them.
    """
    cut = 0
    for exchange in answered():
        events = exchange.events()
        reasons = [n for n, e in enumerate(events) if any(c["finish_reason"] for c in e["choices"])]
        for end in range(1 + (reasons[0] if reasons else len(events)) if events else 0):
            with pytest.raises((ModelUnavailable, MalformedReply)):
                from_wire(events[:end], model=MODEL)
        cut += bool(events and walk(exchange)[1])
    assert cut == 39


def test_recorded_errors_become_ours() -> None:
    """Each recorded 400 and 404 is a rejection that repeats the API's words, and never an overflow."""
    for exchange in recorded():
        if exchange.status != 200:
            assert exchange.body is not None
            error = error_for(exchange.status, exchange.body)
            assert type(error) is ModelRejected
            assert exchange.body["error"]["message"].rstrip(".") in str(error)
            assert ("Set the model" in str(error)) is (exchange.status == 404)


def is_plain(message: Json) -> bool:
    """Whether a message has nothing but words and calls, as all of the bot's have."""
    content = message.get("content") or ""
    return isinstance(content, str) or all(piece["type"] == "text" for piece in content)


def conversation(sent: list[Json]) -> tuple[str, list[Message]]:
    """Read a recorded conversation into our messages: results, and the words behind them, are one of ours."""
    system = [message for message in sent if message["role"] in ("system", "developer")]
    messages: list[Message] = []
    for message in sent[len(system) :]:
        if message["role"] == "assistant":
            messages.append(Message("assistant", assistant_parts(message)))
            continue
        is_result = message["role"] == "tool"
        part: Part = (
            ToolResult(message["tool_call_id"], message["content"])
            if is_result
            else TextPart(words(message["content"]))
        )
        if messages and messages[-1].role == "user" and isinstance(messages[-1].parts[-1], ToolResult):
            messages[-1] = Message("user", (*messages[-1].parts, part))
        else:
            messages.append(Message("user", (part,)))
    return "".join(words(message["content"]) for message in system), messages


def assistant_parts(message: Json) -> tuple[Part, ...]:
    """Read a recorded answer."""
    text = words(message.get("content"))
    calls = [
        ToolCall(call["id"], call["function"]["name"], call["function"]["arguments"])
        for call in message.get("tool_calls") or []
    ]
    return (*([TextPart(text)] if text else []), *calls)


def normal(messages: list[Json]) -> list[Json]:
    """Leave out what may differ: the system's role, the ways to write words or none, messages without anything."""
    roles = {"developer": "system"}
    return [
        {**message, "role": roles.get(message["role"], message["role"]), "content": words(message.get("content"))}
        for message in messages
        if message["role"] != "assistant" or message.get("tool_calls") or message["content"]
    ]


def respaced(messages: list[Json]) -> list[Json]:
    """Leave out blanks in arguments too: some clients write them anew."""
    told: list[Json] = json.loads(json.dumps(normal(messages)))
    for function in [call["function"] for message in told for call in message.get("tool_calls", [])]:
        function["arguments"] = json.dumps(json.loads(function["arguments"]))
    return told


def loops() -> list[Exchange]:
    """All replies to a conversation with a tool loop in it."""
    return [
        one
        for one in answered()
        if all(is_plain(message) for message in one.request["messages"])
        and any(message["role"] == "tool" for message in one.request["messages"])
    ]


def written(system: str, messages: list[Message]) -> list[Json]:
    """Write a conversation."""
    body = to_wire(Prompt(system, (), messages), model=MODEL, max_output_tokens=100)
    found: list[Json] = body["messages"]
    return found


def test_recorded_requests_come_out_as_they_went_in() -> None:
    """Each recorded conversation of texts and tool loops, read into our messages, is written the same."""
    found = [one for one in answered() if all(is_plain(message) for message in one.request["messages"])]
    for exchange in found:
        sent = exchange.request["messages"]
        assert normal(written(*conversation(sent))) == normal(sent), exchange.name
    assert (len(found), len(loops())) == (139, 68)


def test_a_recorded_loop_goes_on_with_the_reply_that_was_read() -> None:
    """A reply read from a recording and written back is what the recorded next request has in its place."""
    checked = others = 0
    for first, second in itertools.pairwise(recorded()):
        if first.path != second.path or second not in loops():
            continue
        before, after = first.request["messages"], second.request["messages"]
        if first.status != 200 or normal(after[: len(before)]) != normal(before):
            continue
        system, history = conversation(before)
        _, whole = conversation(after)
        reply = from_wire(told(first), model=MODEL)
        if not reply.message.calls:
            continue
        # One client made up an id of its own: its reply had another.
        if [call.id for call in reply.message.calls] != [
            call["id"] for message in after[len(before) :] for call in message.get("tool_calls", [])
        ]:
            others += 1
            continue
        results = [message for message in whole[len(history) :] if message.role == "user"]
        assert respaced(written(system, [*history, reply.message, *results])) == respaced(after), first.name
        checked += 1
    assert (checked, others) == (59, 1)


def test_a_request_has_the_keys_of_recorded_ones() -> None:
    """What the bot sends was sent, and taken, in recordings, down to the tools; the cap apart."""
    tool = ToolSpec("read", "Read.", {"type": "object"})
    ours = to_wire(Prompt("s", (tool,), ()), model=MODEL, max_output_tokens=100)
    assert set(ours) - {key for one in answered() for key in one.request} == {"max_completion_tokens"}
    tools = [tool for one in answered() for tool in one.request.get("tools", [])]
    keys = {(frozenset(tool), frozenset(tool.get("function", ()))) for tool in tools}
    assert (frozenset(ours["tools"][0]), frozenset(ours["tools"][0]["function"])) in keys


def test_no_error_of_a_recording_is_foreign() -> None:
    """Streams with chunks in a wrong order, or of a wrong shape, fail as a `ModelError` if they fail."""
    for exchange in [one for one in answered() if one.stream][:10]:
        events = exchange.events()
        for place in range(0, len(events) - 1, 3):
            odd: Json = {**events[place], "choices": [{"delta": {"tool_calls": [5], "content": {}}}]}
            sequences: list[list[Json]] = [[events[place + 1], events[place]], [odd], [{}]]
            for broken in sequences:
                try:
                    from_wire([*events[:place], *broken, *events[place + 2 :]], model=MODEL)
                except ModelError:
                    continue
