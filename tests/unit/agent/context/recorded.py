"""A real coding session of 453 turns, read into our words."""

import json
import os
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from bot.domain.messages import Message, Part, TextPart, ThinkingPart, ToolCall, ToolResult, Usage

ROOT = Path(__file__).parents[4]
_KINDS = {"text", "toolCall", "thinking"}


@dataclass(frozen=True, slots=True)
class Request:
    """One request of the session that the provider answered."""

    messages: tuple[Message, ...]
    """All messages up to the request."""
    reply: Message
    usage: Usage
    cost_usd: float
    """As it was recorded."""
    at: datetime


def place() -> Path:
    """Return where the recording has to be."""
    shared = Path(os.environ.get("SHARED_DIR", ROOT.parent / "shared"))
    return shared / "data" / "sessions" / "coding-agent" / "large-session.jsonl"


def session() -> list[Request]:
    """Read the session; skips the test where it is absent, or fails it under REQUIRE_SHARED=1."""
    if not place().exists():
        if os.environ.get("REQUIRE_SHARED") == "1":
            pytest.fail(f"{place()} is absent, and REQUIRE_SHARED=1")
        pytest.skip(f"{place()} is absent: set SHARED_DIR to the folder with the recorded sessions")
    return _read()


@cache
def _read() -> list[Request]:
    made: list[Request] = []
    messages: list[Message] = []
    for line in place().read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        if entry["type"] != "message":
            continue
        said = entry["message"]
        message = _message(said)
        if message.role == "user":
            _append(messages, message)
            continue
        usage = said["usage"]
        counted = Usage(usage["input"], usage["cacheRead"], usage["cacheWrite"], usage["output"])
        if counted.total_tokens:
            at = datetime.fromisoformat(entry["timestamp"])
            made.append(Request(tuple(messages), message, counted, usage["cost"]["total"], at))
        if message.parts:
            _append(messages, message)
    return made


def _append(messages: list[Message], message: Message) -> None:
    """Append a message; neighbours of one role become one, and what was called and then given up gets a result."""
    calls = messages[-1].calls if messages else ()
    given = {part.call_id for part in message.parts if isinstance(part, ToolResult)}
    if messages and messages[-1].role == message.role:
        messages[-1] = Message(message.role, (*messages[-1].parts, *message.parts))
        return
    if calls and not given:
        left_open = tuple(ToolResult(call.id, "aborted", is_error=True) for call in calls)
        message = Message("user", (*left_open, *message.parts))
    messages.append(message)


def _message(said: dict[str, Any]) -> Message:
    if said["role"] == "toolResult":
        text = "".join(part["text"] for part in said["content"] if part["type"] == "text")
        return Message("user", (ToolResult(said["toolCallId"], text, bool(said.get("isError"))),))
    parts = tuple(_part(part) for part in said["content"] if part["type"] in _KINDS)
    return Message(said["role"], parts)


def _part(part: dict[str, Any]) -> Part:
    match part["type"]:
        case "toolCall":
            return ToolCall(part["id"], part["name"], json.dumps(part["arguments"], ensure_ascii=False))
        case "thinking":
            return ThinkingPart(part["thinking"])
        case _:
            return TextPart(part["text"])
