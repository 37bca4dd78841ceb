"""The server as such: starting, stopping, starting again, clients that leave."""

import asyncio
import logging
import time
from typing import Any

import httpx
import pytest

from bot.testing.model.load import parse_script
from bot.testing.model.server import ScriptedModel
from bot.testing.model.wires import WIRES

SCRIPT = """
script: two
conversations:
  - name: c
    turns:
      - calls: [{run: {}}]
        faults: [{status: 529, times: 1}]
      - text: Done.
        faults: [{kind: stall, seconds: 60, after: 2, times: 1}]
"""
HEADERS = {"x-api-key": "x", "anthropic-version": "2023-06-01"}
ASK: dict[str, Any] = {"model": "m", "max_tokens": 99, "tools": [{"name": "run", "input_schema": {"type": "object"}}]}
FIRST: list[Any] = [{"role": "user", "content": "Go"}]


def after(answer: Any) -> list[Any]:
    """Return the transcript after the first turn."""
    results = [{"type": "tool_result", "tool_use_id": answer["content"][0]["id"], "content": "ok"}]
    return [*FIRST, {"role": "assistant", "content": answer["content"]}, {"role": "user", "content": results}]


async def post(url: str, messages: list[Any], **more: Any) -> httpx.Response:
    """Send one request."""
    async with httpx.AsyncClient(base_url=url, headers=HEADERS) as http:
        return await http.post("/v1/messages", json={**ASK, "messages": messages, **more}, timeout=10)


async def test_a_restarted_server_goes_on() -> None:
    """A new server on the same port continues the conversation; only the counters of faults begin again."""
    script = parse_script(SCRIPT)
    async with ScriptedModel(script) as model:
        assert (await post(model.url, FIRST)).status_code == 529
        answer = (await post(model.url, FIRST)).json()
        port = int(model.url.rpartition(":")[2])
    async with ScriptedModel(script, port=port) as model:
        assert (await post(model.url, FIRST)).status_code == 529
        assert (await post(model.url, FIRST)).json()["content"] == answer["content"]
        with pytest.raises(httpx.ReadTimeout):
            async with httpx.AsyncClient(base_url=model.url, headers=HEADERS) as http:
                await http.post("/v1/messages", json={**ASK, "messages": after(answer), "stream": True}, timeout=0.2)
        assert (await post(model.url, after(answer))).json()["content"][0]["text"] == "Done."


async def test_stopping_does_not_wait_for_a_stall() -> None:
    """A server that is in the middle of a long silence stops within seconds, and the client sees the end."""
    model = ScriptedModel(parse_script(SCRIPT))
    model.start()
    await post(model.url, FIRST)
    answer = (await post(model.url, FIRST)).json()
    stalled = asyncio.ensure_future(post(model.url, after(answer), stream=True))
    while len(model.requests) < 3:  # noqa: ASYNC110 - the server runs in another thread
        await asyncio.sleep(0.01)
    began = time.monotonic()
    await asyncio.to_thread(model.stop)
    assert time.monotonic() - began < 5
    with pytest.raises(httpx.RemoteProtocolError):
        await stalled
    model.stop()


async def test_a_dropped_connection_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    """What goes wrong on purpose leaves no error in the log of the process."""
    script = parse_script(SCRIPT.replace("status: 529", "kind: drop"))
    async with ScriptedModel(script) as model:
        with pytest.raises(httpx.RemoteProtocolError):
            await post(model.url, FIRST, stream=True)
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


async def test_a_taken_port_is_an_error() -> None:
    """Two servers cannot have one port."""
    async with ScriptedModel(parse_script(SCRIPT)) as model:
        with pytest.raises(OSError, match="in use"):
            ScriptedModel(model.script, port=int(model.url.rpartition(":")[2])).start()


def test_each_wire_has_the_base_url_that_its_clients_take() -> None:
    """With OpenAI's version, without the others'; they add it themselves."""
    model = ScriptedModel(parse_script(SCRIPT), port=7)
    bases = {wire: model.base_url(wire).removeprefix(model.url) for wire in WIRES}
    assert bases == {"anthropic": "", "openai-responses": "/v1", "openai-chat": "/v1", "google": ""}
