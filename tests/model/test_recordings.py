"""The wire compared with recorded traffic of the real API."""

import gzip
import json
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from bot.testing.model.anthropic_check import check_body
from bot.testing.model.anthropic_read import read_request, segments
from bot.testing.model.anthropic_wire import ERRORS, message_body, message_events
from bot.testing.model.cache import Usage, count
from bot.testing.model.reply import Call, Fault, Reply, Thinking
from bot.testing.model.request import Text
from bot.testing.model.script import Conversation, Script, Turn
from tests.model.conftest import Serve

Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
REPLY = Reply([Thinking("Hm."), Text("Yes, I do."), Call("run", {"command": "make"})], key="k")


@pytest.fixture(scope="module")
def parsed() -> dict[Path, Any]:
    """Recordings already read, since reading them is slow."""
    return {}


@pytest.fixture
def exchanges(recordings: list[Path], parsed: dict[Path, Any]) -> list[tuple[Any, Any]]:
    """Return request and response of every recorded call of the Messages API."""
    for file in recordings:
        if file not in parsed:
            parsed[file] = yaml.load(file.read_text(), Loader)["interactions"]
    found = [(item["request"], item["response"]) for items in parsed.values() for item in items]
    return [pair for pair in found if "anthropic.com/v1/messages" in pair[0]["uri"]]


def _json(message: Any) -> Any:
    """Return the JSON body of a recorded message, or None."""
    if (body := message.get("parsed_body")) is not None:
        return body
    text: Any = message.get("body")
    text = text.get("string") if isinstance(text, dict) else text
    try:
        return json.loads(text)
    except (TypeError, ValueError):
        return None


def _events(response: Any) -> Iterator[tuple[str, Any]]:
    """Yield name and data of each event of a recorded stream."""
    body = response.get("body")
    text = body.get("string") if isinstance(body, dict) else None
    if isinstance(text, bytes):
        text = (gzip.decompress(text) if text.startswith(b"\x1f\x8b") else text).decode()
    if isinstance(text, str) and text.startswith("event: "):
        for frame in text.strip().split("\n\n"):
            name, data = frame.split("\n")
            yield name.removeprefix("event: "), json.loads(data.removeprefix("data: "))


def _shape(value: Any) -> frozenset[str]:
    """Return the paths of the keys of a JSON value; the input of a tool is anybody's."""
    if not isinstance(value, dict):
        return frozenset()
    inner = {f"{key}.{path}" for key, item in value.items() if key != "input" for path in _shape(item)}
    return frozenset(value) | inner


def _kind(event: Any) -> str:
    inner = event.get("delta") or event.get("content_block") or {}
    return f"{event['type']}/{inner.get('type', '')}"


def test_each_event_has_the_keys_of_recorded_ones(exchanges: list[tuple[Any, Any]]) -> None:
    """Every kind of event that we send was recorded with exactly these keys, nested ones included."""
    real = defaultdict(set)
    for _, response in exchanges:
        for name, event in _events(response):
            assert name == event["type"]
            real[_kind(event)].add(_shape(event))
    ours = list(message_events(REPLY, Usage(1), "m"))
    assert len({_kind(event) for event in ours}) == 12
    for event in ours:
        assert _shape(event) in real[_kind(event)], _kind(event)


def test_events_come_in_the_recorded_order(exchanges: list[tuple[Any, Any]]) -> None:
    """Message, then block by block start, deltas, stop, then the ending; the ping follows the first block's start."""
    follows = set()
    for _, response in exchanges:
        names = [name for name, _ in _events(response)]
        follows |= set(pairwise(names))
    ours = [str(event["type"]) for event in message_events(REPLY, Usage(1), "m")]
    assert set(pairwise(ours)) <= follows


def test_arguments_begin_with_an_empty_delta(exchanges: list[tuple[Any, Any]]) -> None:
    """The first delta of a call was empty in every recording, and is in ours."""

    def firsts(events: list[Any]) -> list[str]:
        pairs = pairwise(event for event in events if event["type"] != "ping")
        starts = [after for before, after in pairs if _kind(before) == "content_block_start/tool_use"]
        return [event["delta"]["partial_json"] for event in starts]

    real = [first for _, response in exchanges for first in firsts([event for _, event in _events(response)])]
    assert set(real) == set(firsts(list(message_events(REPLY, Usage(1), "m")))) == {""}


def test_bodies_have_the_keys_of_recorded_ones(exchanges: list[tuple[Any, Any]]) -> None:
    """A body has the keys that some recorded message has, and so has each of its blocks."""
    real = [body for _, response in exchanges if (body := _json(response)) and body.get("type") == "message"]
    ours: Any = message_body(REPLY, Usage(1), "m")
    assert _shape(ours) in {_shape(body) for body in real}
    blocks = {(block["type"], _shape(block)) for body in real for block in body["content"]}
    for block in ours["content"]:
        assert (block["type"], _shape(block)) in blocks


def test_errors_have_the_keys_and_types_of_recorded_ones(exchanges: list[tuple[Any, Any]]) -> None:
    """The error bodies that were recorded are spelled as ours, status and type included."""
    errors = [(response["status"]["code"], _json(response)) for _, response in exchanges]
    errors = [(status, body) for status, body in errors if status != 200]
    assert errors
    for status, body in errors:
        assert _shape(body) == {"type", "error", "error.type", "error.message", "request_id"}
        assert body["error"]["type"] == ERRORS[status][0]


def test_what_the_real_api_took_is_taken(exchanges: list[tuple[Any, Any]]) -> None:
    """Every recorded request that was answered with 200 passes the check and can be read."""
    taken = 0
    for request, response in exchanges:
        body = _json(request)
        if response["status"]["code"] != 200 or not isinstance(body, dict):
            continue
        raw = json.dumps(body).encode()
        check_body(raw, counting="count_tokens" in request["uri"])
        read = read_request(body)
        assert len(read.messages) == len(body["messages"])
        assert count(segments(body)) > 0
        taken += 1
    assert taken > 100


async def test_the_bytes_are_framed_as_recorded(serve: Serve, exchanges: list[tuple[Any, Any]]) -> None:
    """A stream that is read byte by byte parses as the recordings do, and has their content type."""
    model, _ = await serve(Script([Conversation("c", [Turn(text="Yes.")])]))
    async with httpx.AsyncClient(base_url=model.url, headers={"x-api-key": "x", "anthropic-version": "1"}) as http:
        response = await http.post(
            "/v1/messages",
            json={"model": "m", "max_tokens": 9, "stream": True, "messages": [{"role": "user", "content": "Hi"}]},
        )
    events = list(_events({"body": {"string": response.text}}))
    assert [name for name, _ in events] == [data["type"] for _, data in events]
    assert events[-1] == ("message_stop", {"type": "message_stop"})
    types = {
        value
        for _, recorded in exchanges
        if list(_events(recorded))
        for name, values in recorded["headers"].items()
        if name.lower() == "content-type"
        for value in values
    }
    assert response.headers["content-type"] in types


def test_faults_have_a_type_for_each_status() -> None:
    """A fault without words of its own uses the documented type of its status."""
    assert ERRORS[Fault(status=529).status][0] == "overloaded_error"
