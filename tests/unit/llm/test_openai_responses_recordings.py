"""Recorded traffic with the Responses API: what it said is what comes out, and what goes back is what it took."""

import itertools
import json
import re
from collections import Counter
from typing import Any

import pytest

from bot.domain.messages import Message, Part, Prompt, Reply, TextPart, ThinkingPart, ToolCall, ToolResult, Usage
from bot.errors import ModelError, ModelRejected, ModelUnavailable
from bot.llm.openai_errors import error_for
from bot.llm.openai_responses_reply import ReplyBuilder
from bot.llm.openai_responses_wire import Reasoning, events_of, from_wire, reasons, to_wire
from tests.unit.llm.cassettes import Exchange, Json, exchanges

MODEL = "openai:m"


def is_ours(exchange: Exchange) -> bool:
    """Whether the request asks this API for a reply."""
    return exchange.method == "POST" and exchange.url.endswith("/v1/responses")


def recorded() -> list[Exchange]:
    """All requests of this API."""
    return [one for one in exchanges("openai-responses") if is_ours(one)]


def final(exchange: Exchange) -> Json:
    """The whole reply, also where it ended a stream."""
    found: Json = exchange.events()[-1]["response"] if exchange.body is None else exchange.body
    return found


def items_of(exchange: Exchange) -> list[Json]:
    """The items of a reply: as they ended one by one in a stream, else as the whole has them."""
    done = {e["output_index"]: e["item"] for e in exchange.events() if e["type"] == "response.output_item.done"}
    return [done.get(place, item) for place, item in enumerate(final(exchange)["output"])]


def answered() -> list[Exchange]:
    """Those that got a reply which has ended."""
    return [one for one in recorded() if one.status == 200 and final(one)["status"] != "queued"]


def told(exchange: Exchange) -> list[Json]:
    """The answer as events."""
    return exchange.events() if exchange.body is None else [dict(event) for event in events_of(exchange.body)]


def tokens(usage: Json) -> Usage:
    """The counts of a recording, whose input includes what the cache had."""
    details = usage["input_tokens_details"]
    read, written = details["cached_tokens"], details.get("cache_write_tokens", 0)
    return Usage(usage["input_tokens"] - read - written, read, written, usage["output_tokens"])


def parts_of(reply: Reply, kind: type[Part]) -> list[Any]:
    """All parts of a kind."""
    return [part for part in reply.message.parts if isinstance(part, kind)]


def test_what_is_held_against_us_is_all_there_is() -> None:
    """Each request of the folder is of this API or of a kind listed here; of ours, five are only begun."""
    others = Counter(
        re.sub(r"/(conv_|file-|vs_|resp_)[^/]+", r"/\1", f"{one.method} {one.url.split('://')[1].split('?')[0]}")
        for one in exchanges("openai-responses")
        if not is_ours(one)
    )
    assert others == {
        "DELETE api.openai.com/v1/conversations/conv_": 5,
        "DELETE api.openai.com/v1/files/file-": 4,
        "DELETE api.openai.com/v1/vector_stores/vs_": 3,
        "GET api.openai.com/v1/responses/resp_": 9,
        "GET t3.ftcdn.net/jpg/00/85/79/92/360_F_85799278_0BBGV9OAdQDTLnKwAPBCcg1J7QtiieJY.jpg": 1,
        "GET www.w3.org/WAI/ER/tests/xhtml/testfiles/resources/pdf/dummy.pdf": 1,
        "POST api.cohere.com/v2/chat": 1,
        "POST api.mistral.ai/v1/chat/completions": 1,
        "POST api.openai.com/v1/chat/completions": 1,
        "POST api.openai.com/v1/conversations": 5,
        "POST api.openai.com/v1/files": 4,
        "POST api.openai.com/v1/responses/compact": 7,
        "POST api.openai.com/v1/responses/input_tokens": 1,
        "POST api.openai.com/v1/vector_stores": 3,
        "POST api.openai.com/v1/vector_stores/vs_/files": 3,
        "POST bedrock-runtime.us-east-1.amazonaws.com/model/us.anthropic.claude-sonnet-4-20250514-v1%3A0/converse": 1,
    }
    assert Counter(one.status for one in recorded()) == {200: 213, 400: 4}
    assert sum(one.stream is not None for one in recorded()) == 30
    assert len(answered()) == 208


def test_replies_are_read_as_they_were_sent() -> None:
    """Text, calls with their very arguments, reasoning with its seal, usage, stop reason and model of each reply."""
    counted: Counter[str] = Counter()
    for exchange in answered():
        response = final(exchange)
        reply = from_wire(told(exchange), model=MODEL)
        items = items_of(exchange)
        texts = [piece["text"] for item in items if item["type"] == "message" for piece in item["content"]]
        assert [part.text for part in parts_of(reply, TextPart)] == texts, exchange.name
        calls = [(i["call_id"], i["name"], i["arguments"]) for i in items if i["type"] == "function_call"]
        assert [(c.id, c.name, c.arguments) for c in reply.message.calls] == calls, exchange.name
        thoughts = [i for i in items if i["type"] == "reasoning"]
        read = [part for part in parts_of(reply, ThinkingPart) if '"phase"' not in part.data]
        assert [t.text for t in read] == ["\n\n".join(s["text"] for s in i["summary"]) for i in thoughts]
        for part, item in zip(read, thoughts, strict=True):
            sealed = {key: item[key] for key in ("type", "id", "summary", "encrypted_content")} if part.data else None
            assert (json.loads(part.data) if part.data else None) == sealed, exchange.name
            assert bool(part.data) is bool(item.get("encrypted_content"))
            assert part.model == MODEL
        if response.get("usage"):
            assert reply.usage == tokens(response["usage"]), exchange.name
            assert reply.usage.total_tokens == response["usage"]["total_tokens"]
        assert (reply.stop, reply.model) == ("tool" if calls else "end", response["model"]), exchange.name
        counted.update({"texts": len(texts), "calls": len(calls), "thoughts": len(thoughts)})
    assert counted == {"texts": 154, "calls": 59, "thoughts": 110}


def test_what_streamed_is_what_was_whole() -> None:
    """The pieces of text that were heard are the texts of the reply, in their order."""
    for exchange in answered():
        builder = ReplyBuilder(MODEL)
        heard = "".join(builder.feed(event) for event in told(exchange))
        assert heard == "".join(part.text for part in parts_of(builder.finish(), TextPart)), exchange.name


def test_nothing_is_dropped_silently() -> None:
    """What no reply of ours has is counted by name: tools that the provider runs itself."""
    unknown: Counter[str] = Counter()
    for exchange in answered():
        builder = ReplyBuilder(MODEL)
        for event in told(exchange):
            builder.feed(event)
        builder.finish()
        unknown += builder.unknown
    items = Counter(i["type"] for one in answered() for i in final(one)["output"])
    ours = {"message", "function_call", "reasoning"}
    expected = {f"item {kind}": count for kind, count in items.items() if kind not in ours}
    assert {name: count for name, count in unknown.items() if name.startswith("item ")} == expected
    hosted = re.compile(r"response\.(code_interpreter|file_search|mcp|web_search|image_generation)\w*\.\w+")
    assert [name for name in unknown if not name.startswith("item ") and not hosted.fullmatch(name)] == []


def test_a_reply_that_has_only_begun_is_none() -> None:
    """A reply in the background, which no bot of ours asks for."""
    queued = [one for one in recorded() if one.status == 200 and final(one)["status"] == "queued"]
    assert len(queued) == 5
    for exchange in queued:
        with pytest.raises(ModelUnavailable, match="queued"):
            told(exchange)


def test_a_stream_that_is_cut_anywhere_is_no_reply() -> None:
    """Whatever event is the last one: without the ending there is an error and never a half-written call."""
    streams = [one for one in answered() if one.stream]
    for exchange in streams:
        events = exchange.events()
        for end in range(len(events)):
            with pytest.raises(ModelUnavailable, match="broke off"):
                from_wire(events[:end], model=MODEL)
    assert sum(any(i["type"] == "function_call" for i in final(one)["output"]) for one in streams) == 6


def test_recorded_errors_become_ours() -> None:
    """Each recorded 400 is a rejection that repeats the API's words, and never an overflow."""
    found = [one for one in recorded() if one.status != 200]
    for exchange in found:
        assert exchange.body is not None
        error = error_for(exchange.status, exchange.body)
        assert type(error) is ModelRejected
        assert exchange.body["error"]["message"].rstrip(".") in str(error)
        is_model = exchange.body["error"]["code"] == "model_not_found"
        assert ("Set the model" in str(error)) is is_model


def test_sealed_reasoning_is_asked_for_where_it_was() -> None:
    """Each recorded model that was asked for it and answered reasons by our rule; those that never were do not."""
    asked = {
        m["model"] for o in answered() for m in [o.request] if "reasoning.encrypted_content" in m.get("include", ())
    }
    never = {one.request["model"] for one in answered()} - asked
    assert {model for model in asked if not reasons(model)} == set()
    assert {model for model in never if reasons(model)} == set()


TEXTS = {"input_text", "output_text"}


OURS = {"reasoning", "function_call", "function_call_output"}


def foreign(exchange: Exchange) -> str:
    """What the request has that the bot does not send; empty where it is texts, reasoning, calls and results."""
    request = exchange.request
    if isinstance(request["input"], str):
        return "no items"
    if "previous_response_id" in request or "conversation" in request:
        return "stored at the provider"
    return next((found for item in request["input"] if (found := foreign_item(item))), "")


def foreign_item(item: Json) -> str:
    """What an item has that none of ours has."""
    content, kind = item.get("content") or "", item.get("type", "message")
    if kind != "message":
        return "namespace" if "namespace" in item else "" if kind in OURS else "item of another tool or kind"
    if content == "" and item["role"] == "user":
        return "empty text"
    pieces = [] if isinstance(content, str) else content
    return "" if all(piece["type"] in TEXTS for piece in pieces) else "file or picture"


def words(content: Any) -> str:
    """The words of a content, in one piece or in several."""
    return content if isinstance(content, str) else "".join(piece["text"] for piece in content)


def parts_in(item: Json) -> list[Part]:
    """Read a recorded item into ours."""
    match item.get("type", "message"):
        case "reasoning":
            return [ThinkingPart("", data=json.dumps(item), model=MODEL)]
        case "function_call":
            return [ToolCall(item["call_id"], item["name"], item["arguments"])]
        case "function_call_output":
            return [ToolResult(item["call_id"], item["output"])]
        case _:
            phase = (
                [ThinkingPart("", data=json.dumps({"phase": item["phase"]}), model=MODEL)] if "phase" in item else []
            )
            return [*phase, TextPart(words(item["content"]))]


def conversation(items: list[Json]) -> list[Message]:
    """Read recorded items into our messages: what one side says at a time is one of ours."""
    sided = [
        ("user" if item.get("role") == "user" or item.get("type") == "function_call_output" else "assistant", item)
        for item in items
        if item.get("role") != "system"
    ]
    return [
        Message("user" if side == "user" else "assistant", tuple(part for _, item in group for part in parts_in(item)))
        for side, group in itertools.groupby(sided, key=lambda pair: pair[0])
    ]


def normal(items: list[Json]) -> list[Json]:
    """Leave out what may differ: ids of stored items, and the ways to write words."""
    told = []
    for item in items:
        if item.get("role") == "system" or (item.get("role") == "assistant" and item["content"] == ""):
            continue
        if item.get("type", "message") == "message":
            phase = {key: item[key] for key in ("phase",) if key in item}
            told.append({"role": item["role"], "content": words(item["content"]), **phase})
        elif item["type"] == "reasoning":
            told.append(item)
        else:
            told.append({key: value for key, value in item.items() if key not in ("id", "status")})
    return told


def respaced(items: list[Json]) -> list[Json]:
    """Leave out blanks in arguments too, which some clients write anew, and the recorder's own quotation marks."""
    plain = str.maketrans("\u2018\u2019\u201c\u201d", "''\"\"")
    return [
        {**item, "arguments": json.dumps(json.loads(item["arguments"]))}
        if "arguments" in item
        else {**item, "content": item["content"].translate(plain)}
        if "content" in item
        else item
        for item in normal(items)
    ]


def written(messages: list[Message]) -> list[Json]:
    """Write a conversation."""
    body = to_wire(Prompt("", (), messages), model=MODEL, max_output_tokens=100, reasoning=Reasoning())
    found: list[Json] = body["input"]
    return found


def is_loop(exchange: Exchange) -> bool:
    """Whether a tool has answered."""
    sent = exchange.request["input"]
    return not isinstance(sent, str) and any(item.get("type") == "function_call_output" for item in sent)


def test_recorded_requests_come_out_as_they_went_in() -> None:
    """Each recorded conversation of texts, reasoning and tool loops, read into our messages, is written the same."""
    reasons_not: Counter[str] = Counter()
    for exchange in answered():
        sent = exchange.request["input"]
        if why := foreign(exchange):
            reasons_not[why] += 1
        else:
            assert normal(written(conversation(sent))) == normal(sent), exchange.name
    assert reasons_not == {
        "no items": 1,
        "empty text": 1,
        "file or picture": 6,
        "stored at the provider": 32,
        "item of another tool or kind": 36,
    }


def test_recorded_loops_that_are_not_ours_are_listed() -> None:
    """Why a recorded tool loop cannot be told in our messages."""
    assert Counter(foreign(one) for one in answered() if is_loop(one)) == {
        "": 25,
        "stored at the provider": 5,
        "item of another tool or kind": 18,
    }


def test_a_recorded_loop_goes_on_with_the_reply_that_was_read() -> None:
    """A reply read from a recording and written back is what the recorded next request has in its place."""
    checked = others = 0
    for first, second in itertools.pairwise(answered()):
        if first.path != second.path or foreign(first) or foreign(second) or not is_loop(second):
            continue
        before, after = first.request["input"], second.request["input"]
        reply = from_wire(told(first), model=MODEL)
        if normal(after[: len(before)]) != normal(before) or not reply.message.calls:
            continue
        called = [item["call_id"] for item in after[len(before) :] if item.get("type") == "function_call"]
        if [call.id for call in reply.message.calls] != called:  # one returned an item's id, one added a call
            others += 1
            continue
        history, whole = conversation(before), conversation(after)
        assert respaced(written([*history, reply.message, *whole[len(history) + 1 :]])) == respaced(after), first.name
        checked += 1
    assert (checked, others) == (22, 2)


def test_a_request_has_the_keys_of_recorded_ones() -> None:
    """What the bot sends was sent, and taken, in recordings; the cap apart."""
    ours = to_wire(Prompt("s", (), ()), model=MODEL, max_output_tokens=100, reasoning=Reasoning("low", "auto"))
    known = {key for one in answered() for key in one.request}
    assert set(ours) - known == {"max_output_tokens"}


def test_no_error_of_a_recording_is_foreign() -> None:
    """Streams with events in a wrong order, or of a wrong shape, fail as a `ModelError` if they fail."""
    for exchange in [one for one in answered() if one.stream][:10]:
        events = exchange.events()
        for place in range(0, len(events) - 1, 5):
            odd = {"type": events[place]["type"], "response": 5, "delta": [], "item": 5}
            for broken in ([events[place + 1], events[place]], [odd]):
                try:
                    from_wire([*events[:place], *broken, *events[place + 2 :]], model=MODEL)
                except ModelError:
                    continue
