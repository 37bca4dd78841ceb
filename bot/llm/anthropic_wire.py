"""Anthropic's Messages API as JSON: a prompt into a request, stream events into a reply; pure.

Source: https://docs.anthropic.com/en/api/messages, https://docs.anthropic.com/en/docs/build-with-claude/streaming
"""

import hashlib
import json
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from bot.domain.messages import Image, Message, Prompt, Reply, TextPart, ThinkingPart, ToolCall, ToolResult
from bot.llm.anthropic_cache import Block, mark
from bot.llm.anthropic_reply import Event, ReplyBuilder
from bot.llm.clean import clean, clean_json

Thinking = int | Literal["adaptive"] | None
"""Tokens a reply may spend on thinking (1,024 or more), or the model's own measure; None: no thinking is asked for."""

INVALID_JSON = "INVALID_JSON"
"""The one field of the wire's `input` where the model's arguments are no JSON object; its value is their text."""
NO_RESULT = "No result: the call was not carried out."
NO_TEXT = "(no text)"
ORPHAN = "Result of a tool call that is no longer shown:\n"

_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def to_wire(prompt: Prompt, *, model: str, max_output_tokens: int, thinking: Thinking = None) -> dict[str, Any]:
    """Spell the prompt as the body of a request, without `stream`.

    The same prompt always gives the same bytes; apart from cache marks a longer history only appends to them. What
    the API would answer with 400 is mended: a model that speaks first, empty texts, foreign ids and names, results
    without a call, calls without a result, arguments that are no JSON.

    Args:
        prompt: as the seam has it; may also end with an assistant message, which the model then continues.
        model: `provider:model`; only this model's own thinking goes back.
        max_output_tokens: cap of the reply, thinking included.
        thinking: left out of a request whose tool loop began without thinking, which the API does not take.
    """
    messages = _Writer(model).write(prompt.messages)
    body: dict[str, Any] = {"model": model.partition(":")[2], "max_tokens": max_output_tokens}
    if thinking == "adaptive":
        body["thinking"] = {"type": "adaptive"}
    elif thinking is not None and not _began_without_thinking(messages):
        body["thinking"] = {"type": "enabled", "budget_tokens": thinking}
    if prompt.tools:
        body["tools"] = [
            {"name": tool.name, "description": clean(tool.description), "input_schema": clean_json(tool.parameters)}
            for tool in sorted(prompt.tools, key=lambda tool: tool.name)
        ]
    if prompt.system.strip():
        body["system"] = [{"type": "text", "text": clean(prompt.system)}]
    body["messages"] = messages
    mark(body)
    return body


def from_wire(events: Iterable[Event], *, model: str) -> Reply:
    """Build the reply from all events of one stream; errors as in `ReplyBuilder`.

    Args:
        events: decoded `data` of the stream, in order.
        model: `provider:model` that was asked; noted on its thinking.
    """
    builder = ReplyBuilder(model)
    for event in events:
        builder.feed(event)
    return builder.finish()


def events_of(message: Mapping[str, Any]) -> Iterable[Event]:  # Any: the provider's JSON
    """Tell a reply that came in one piece as the events of a stream."""
    yield {"type": "message_start", "message": message}
    for index, block in enumerate(message["content"]):
        yield {"type": "content_block_start", "index": index, "content_block": block}
        yield {"type": "content_block_stop", "index": index}
    keys = ("stop_reason", "stop_sequence", "stop_details")
    delta = {key: message.get(key) for key in keys}
    yield {"type": "message_delta", "delta": delta, "usage": message.get("usage", {})}
    yield {"type": "message_stop"}


def wire_id(call_id: str) -> str:
    """Return the id as the API takes it; equal ids stay equal, different ones different."""
    if _ID.fullmatch(call_id):
        return call_id
    seal = hashlib.sha256(call_id.encode(errors="surrogatepass")).hexdigest()[:16]
    return re.sub(r"[^a-zA-Z0-9_-]", "_", call_id)[:40] + "_" + seal


def wire_input(arguments: str) -> dict[str, Any]:  # Any: JSON
    """Return the arguments as an object; what is no JSON object comes back as text in one field."""
    try:
        value = clean_json(json.loads(arguments, parse_constant=_refuse, parse_float=_finite) if arguments else {})
    except (ValueError, RecursionError):
        return {INVALID_JSON: clean(arguments)}
    return value if isinstance(value, dict) else {INVALID_JSON: clean(arguments)}


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is no JSON")


def _finite(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _refuse(text)


class _Writer:
    """Writes one conversation from its beginning; looks only back, so that a longer one begins with the same bytes."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._uses: defaultdict[str, int] = defaultdict(int)
        self._waiting: defaultdict[str, list[str]] = defaultdict(list)
        """Call id to the wire ids of calls that have no result yet; a model may use an id twice."""

    def write(self, messages: Sequence[Message]) -> list[dict[str, Any]]:
        written: list[dict[str, Any]] = []
        for message in messages:
            content = self._user(message) if message.role == "user" else self._assistant(message)
            if content and not written and message.role == "assistant":
                written.append({"role": "user", "content": [_text(NO_TEXT)]})
            if content:
                written.append({"role": message.role, "content": content})
        if written and written[-1]["role"] == "assistant":
            last = written[-1]["content"][-1]
            if last["type"] == "text":
                last["text"] = last["text"].rstrip()
        return written

    def _user(self, message: Message) -> list[Block]:
        results: list[Block] = []
        said: list[Block] = []
        for part in message.parts:
            if isinstance(part, TextPart):
                said += [_text(part.text)] if part.text.strip() else []
            elif isinstance(part, Image):
                said.append(_image(part))
            elif isinstance(part, ToolResult):
                if waiting := self._waiting[part.call_id]:
                    results.append(_result(waiting.pop(0), part))
                    said += map(_image, part.images if part.is_error else ())
                else:
                    said += [_text(ORPHAN + part.text), *map(_image, part.images)]
        missing = ToolResult("", NO_RESULT, is_error=True)
        results += [_result(left, missing) for ids in self._waiting.values() for left in ids]
        self._waiting.clear()
        return results + said or [_text(NO_TEXT)]

    def _assistant(self, message: Message) -> list[Block]:
        blocks: list[Block] = []
        for part in message.parts:
            if isinstance(part, TextPart) and part.text.strip():
                blocks.append(_text(part.text))
            elif isinstance(part, ThinkingPart) and part.model == self._model:
                blocks += _thinking(part)
            elif isinstance(part, ToolCall):
                blocks.append(self._call(part))
        while blocks and _is_thinking(blocks[-1]):  # the API takes no message that ends with thinking
            blocks.pop()
        return blocks

    def _call(self, call: ToolCall) -> Block:
        uses = self._uses[call.id]
        self._uses[call.id] += 1
        identifier = wire_id(f"{call.id}#{uses}" if uses else call.id)
        self._waiting[call.id].append(identifier)
        name = re.sub(r"[^a-zA-Z0-9_-]", "_", call.name)[:64] or "unnamed"
        return {"type": "tool_use", "id": identifier, "name": name, "input": wire_input(call.arguments)}


def _text(text: str) -> Block:
    return {"type": "text", "text": clean(text)}


def _image(image: Image) -> Block:
    return {"type": "image", "source": {"type": "base64", "media_type": image.media_type, "data": image.data}}


def _result(identifier: str, result: ToolResult) -> Block:
    """Return a result with its pictures; the API takes none in a failed one."""
    block: Block = {"type": "tool_result", "tool_use_id": identifier}
    has_text = bool(result.text.strip())
    if result.images and not result.is_error:
        block["content"] = [*([_text(result.text)] if has_text else []), *map(_image, result.images)]
    elif has_text:
        block["content"] = clean(result.text)
    elif result.is_error:
        block["content"] = NO_TEXT
    if result.is_error:
        block["is_error"] = True
    return block


def _thinking(part: ThinkingPart) -> list[Block]:
    """Return the block as it came; none without its seal, as the API would not believe it."""
    if part.data:
        return [{"type": "redacted_thinking", "data": part.data}]
    if part.signature:
        return [{"type": "thinking", "thinking": part.text, "signature": part.signature}]
    return []


def _is_thinking(block: Block) -> bool:
    return block["type"] in ("thinking", "redacted_thinking")


def _began_without_thinking(messages: list[dict[str, Any]]) -> bool:
    """Whether the last message continues a tool loop whose first answer has no thinking at its head."""
    began = False
    for message in reversed(messages):
        content = message["content"]
        if message["role"] == "assistant":
            began = not _is_thinking(content[0]) and any(block["type"] == "tool_use" for block in content)
        elif not any(block["type"] == "tool_result" for block in content):
            break
    return began
