"""One reply of Anthropic's Messages API, put together event by event; pure."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from bot.domain.messages import Message, Part, Reply, StopReason, TextPart, ThinkingPart, ToolCall, Usage
from bot.errors import MalformedReply, ModelUnavailable
from bot.llm.anthropic_errors import ANTHROPIC, Host, error_for
from bot.llm.clean import clean

Event = Mapping[str, Any]  # Any: the provider's JSON

STOPS: Mapping[str, StopReason] = {
    "end_turn": "end",
    "stop_sequence": "end",
    "tool_use": "tool",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
    "pause_turn": "pause",
}
"""A reason that is not here becomes `error`."""

_FIELDS = {
    "input_tokens": "input_tokens",
    "cache_read_input_tokens": "cache_read_tokens",
    "cache_creation_input_tokens": "cache_write_tokens",
    "output_tokens": "output_tokens",
}
_TEXTS = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "input_json_delta": "partial_json",
    "signature_delta": "signature",
}


@dataclass(slots=True)
class _Open:
    """A block whose end has not come."""

    block: Event
    pieces: list[str] = field(default_factory=list)
    signature: str = ""


class ReplyBuilder:
    """Takes the events of one stream in order; nothing of it counts before `finish` has returned."""

    def __init__(self, model: str, host: Host = ANTHROPIC) -> None:
        """Begin.

        Args:
            model: `provider:model` that was asked; noted on its thinking.
            host: whom errors inside the stream name.
        """
        self.usage = Usage()
        """What the provider has counted so far."""
        self.refusal = ""
        """Why the model declined, where the provider says so."""
        self.unknown: Counter[str] = Counter()
        """Names of events, blocks and deltas that were passed over, and how often."""
        self._asked = model
        self._host = host
        self._answered = ""
        self._stop: StopReason | None = None
        self._open: dict[int, _Open] = {}
        self._parts: dict[int, Part] = {}
        self._is_started = False
        self._is_done = False

    def feed(self, event: Event) -> str:
        """Take the next event and return the text it adds to the reply, often none.

        Raises:
            ModelUnavailable: an error event that may pass, as `overloaded_error`.
            MalformedReply: the event breaks the protocol.
            ModelError: another error event, by its type.
        """
        try:
            return self._feed(event)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise MalformedReply(f"The stream has an event of a shape nobody knows: {error!r}") from error

    def finish(self) -> Reply:
        """Return the reply.

        Raises:
            ModelUnavailable: the stream ended before the reply did.
            MalformedReply: the reply has no reason why it stopped.
        """
        if not self._is_done:
            raise ModelUnavailable("The reply broke off before its end")
        if self._stop is None:
            raise MalformedReply("The reply ended without a reason")
        message = Message("assistant", tuple(self._parts[index] for index in sorted(self._parts)))
        stop: StopReason = "tool" if self._stop == "end" and message.calls else self._stop
        return Reply(message, stop, self.usage, self._answered)

    def _feed(self, event: Event) -> str:
        kind = event["type"]
        if kind == "error":
            raise error_for(None, event, host=self._host)
        if self._is_done or kind == "ping":
            return ""
        if not self._is_started and kind != "message_start":
            raise ValueError(f"{kind} before message_start")
        match kind:
            case "message_start":
                self._start(event["message"])
            case "message_delta":
                self._count(event.get("usage") or {})
                self._stopped(event["delta"])
            case "message_stop":
                if self._open:
                    raise ValueError("message_stop within a block")
                self._is_done = True
            case _:
                return self._feed_block(kind, event)
        return ""

    def _feed_block(self, kind: str, event: Event) -> str:
        match kind:
            case "content_block_start":
                return self._start_block(event["index"], event["content_block"])
            case "content_block_delta":
                return self._extend(self._open[event["index"]], event["delta"])
            case "content_block_stop":
                self._close(event["index"], self._open.pop(event["index"]))
            case _:
                self.unknown[str(kind)] += 1
        return ""

    def _start(self, message: Event) -> None:
        if self._is_started:
            raise ValueError("message_start twice")
        self._is_started = True
        self._answered = clean(str(message.get("model", "")))
        self._count(message.get("usage") or {})

    def _count(self, usage: Event) -> None:
        """Replace what is there: all counts are of the whole reply so far, none is an increment."""
        self.usage = replace(
            self.usage,
            **{ours: int(usage[theirs]) for theirs, ours in _FIELDS.items() if usage.get(theirs) is not None},
        )

    def _stopped(self, delta: Event) -> None:
        if reason := delta.get("stop_reason"):
            self._stop = STOPS.get(reason, "error")
            if reason not in STOPS:
                self.unknown[f"stop_reason {reason}"] += 1
        self.refusal = clean((delta.get("stop_details") or {}).get("explanation") or "")

    def _start_block(self, index: int, block: Event) -> str:
        if index in self._open or index in self._parts:
            raise ValueError(f"block {index} begins twice")
        opened = self._open[index] = _Open(block)
        match block["type"]:
            case "text":
                return self._take(opened, block.get("text") or "")
            case "thinking":
                self._take(opened, block.get("thinking") or "")
                opened.signature = block.get("signature") or ""
            case "tool_use" | "redacted_thinking":
                pass
            case kind:
                self.unknown[f"block {kind}"] += 1
        return ""

    def _extend(self, opened: _Open, delta: Event) -> str:
        kind = delta["type"]
        if kind not in _TEXTS:
            self.unknown[f"delta {kind}"] += 1
            return ""
        text = delta[_TEXTS[kind]]
        if kind == "signature_delta":
            opened.signature += text
            return ""
        added = self._take(opened, text)
        return added if opened.block["type"] == "text" else ""

    def _take(self, opened: _Open, text: str) -> str:
        """Keep a piece; thinking stays raw until its end, where a change costs its seal."""
        piece = text if opened.block["type"] == "thinking" else clean(text)
        opened.pieces.append(piece)
        return piece

    def _close(self, index: int, opened: _Open) -> None:
        block, text = opened.block, "".join(opened.pieces)
        match block["type"]:
            case "text":
                self._parts[index] = TextPart(text)
            case "thinking":
                is_whole = clean(text) == text
                signature = opened.signature if is_whole else ""
                self._parts[index] = ThinkingPart(clean(text), signature=signature, model=self._asked)
            case "redacted_thinking":
                self._parts[index] = ThinkingPart("", data=block["data"], model=self._asked)
            case "tool_use":
                self._parts[index] = ToolCall(block["id"], clean(block["name"]), _arguments(block, text))


def _arguments(block: Event, text: str) -> str:
    """Return what the model wrote; `{}` for nothing, and the object itself where it came in one piece."""
    if text.strip():
        return text
    given = block.get("input") or {}
    return clean(json.dumps(given, ensure_ascii=False, separators=(",", ":")))
