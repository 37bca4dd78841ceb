"""One reply of Google's generateContent, put together chunk by chunk; pure.

A stream has no event that ends it: its last chunk has a `finishReason`. Its parts are pieces as well: what a stream
sends as ten texts comes in one piece from the same model as one part, so texts that follow each other are one.

Where a `thoughtSignature` lives in our messages, since texts and calls have no room for one:

- the seal of a text or a call: `ThinkingPart("", signature=seal)` directly before it;
- the seal of thoughts: `ThinkingPart(thoughts, signature=seal)`;
- a seal that came with an empty text, in a part of its own: `ThinkingPart("", data=seal)`.

Source: https://ai.google.dev/api/generate-content, https://ai.google.dev/gemini-api/docs/thought-signatures
"""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bot.domain.messages import Message, Part, Reply, StopReason, TextPart, ThinkingPart, ToolCall, Usage
from bot.errors import MalformedReply, ModelUnavailable
from bot.llm.clean import clean
from bot.llm.google_errors import error_for

Chunk = Mapping[str, Any]  # Any: the provider's JSON

STOPS: Mapping[str, StopReason] = {
    "STOP": "end",
    "MAX_TOKENS": "length",
    "SAFETY": "refusal",
    "RECITATION": "refusal",
    "LANGUAGE": "refusal",
    "BLOCKLIST": "refusal",
    "PROHIBITED_CONTENT": "refusal",
    "SPII": "refusal",
    "MODEL_ARMOR": "refusal",
    "IMAGE_SAFETY": "refusal",
    "IMAGE_PROHIBITED_CONTENT": "refusal",
    "IMAGE_RECITATION": "refusal",
    "OTHER": "error",
}
"""A reason that is neither here nor below becomes `error`."""
MALFORMED = frozenset({"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MALFORMED_RESPONSE"})
"""Reasons to throw the reply away and ask again: the model wrote a call that the API could not read."""

_CHUNK = frozenset({"candidates", "usageMetadata", "modelVersion", "responseId", "promptFeedback", "createTime"})
_CANDIDATE = frozenset(
    {"content", "finishReason", "finishMessage", "index", "avgLogprobs", "tokenCount", "safetyRatings"}
)
_PART = frozenset({"text", "thought", "thoughtSignature", "functionCall"})


@dataclass(slots=True)
class _Run:
    """Texts that follow each other."""

    is_thought: bool
    seal: str = ""
    pieces: list[str] = field(default_factory=list)


class ReplyBuilder:
    """Takes the chunks of one stream in order; nothing of it counts before `finish` has returned."""

    def __init__(self, model: str, *, turn: int = 0) -> None:
        """Begin.

        Args:
            model: `provider:model` that was asked; noted on its thinking.
            turn: how many messages came before; tells calls apart that have no id and are otherwise alike.
        """
        self.usage = Usage()
        """What the provider has counted so far."""
        self.refusal = ""
        """Why the model declined, where the provider says so."""
        self.unknown: Counter[str] = Counter()
        """Names of parts and fields that were passed over, and how often."""
        self._asked = model
        self._turn = turn
        self._answered = ""
        self._response_id = ""
        self._reason = ""
        self._said = ""
        self._is_blocked = False
        self._parts: list[Part] = []
        self._run: _Run | None = None

    def feed(self, chunk: Chunk) -> str:
        """Take the next chunk and return the text it adds to the reply, often none.

        Raises:
            ModelError: an error inside the stream, by its code.
            MalformedReply: the chunk breaks the protocol.
        """
        try:
            if "error" in chunk:
                raise error_for(None, chunk)
            return self._feed(chunk)
        except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
            raise MalformedReply(f"The stream has a chunk of a shape nobody knows: {error!r}") from error

    def finish(self) -> Reply:
        """Return the reply.

        Raises:
            ModelUnavailable: the stream ended before the reply did.
            MalformedReply: the model wrote a call that the API could not read.
        """
        self._close()
        if self._reason in MALFORMED:
            raise MalformedReply(f"The model's reply ended with {self._reason}: {self._said or 'nothing more'}")
        if not (self._reason or self._is_blocked):
            raise ModelUnavailable("The reply broke off before its end")
        message = Message("assistant", tuple(self._parts))
        stop: StopReason = "refusal" if self._is_blocked else STOPS.get(self._reason, "error")
        return Reply(message, "tool" if stop == "end" and message.calls else stop, self.usage, self._answered)

    def _feed(self, chunk: Chunk) -> str:
        self._count_unknown("", chunk, _CHUNK)
        self._answered = clean(chunk.get("modelVersion") or self._answered)
        self._response_id = chunk.get("responseId") or self._response_id
        if counted := chunk.get("usageMetadata"):
            self.usage = _usage(counted)
        if blocked := (chunk.get("promptFeedback") or {}).get("blockReason"):
            self._is_blocked = True
            self.refusal = clean(
                chunk["promptFeedback"].get("blockReasonMessage") or f"the prompt was blocked: {blocked}"
            )
        added = ""
        for candidate in chunk.get("candidates") or ():
            if candidate.get("index", 0) == 0:
                added += self._candidate(candidate)
            else:
                self.unknown["candidate"] += 1
        return added

    def _candidate(self, candidate: Chunk) -> str:
        self._count_unknown("candidate ", candidate, _CANDIDATE)
        content = candidate.get("content") or {}
        added = "".join([self._part(part) for part in content.get("parts") or ()])
        reason = candidate.get("finishReason")
        if reason and reason != "FINISH_REASON_UNSPECIFIED":
            self._reason = clean(reason)
            self._said = clean(candidate.get("finishMessage") or "")
            if STOPS.get(reason) == "refusal":
                self.refusal = self._said or reason
            if reason not in STOPS and reason not in MALFORMED:
                self.unknown[f"finishReason {reason}"] += 1
        return added

    def _part(self, part: Chunk) -> str:
        self._count_unknown("part ", part, _PART)
        seal = clean(part.get("thoughtSignature") or "")
        if "functionCall" in part:
            self._close()
            self._call(part["functionCall"], seal)
        elif "text" in part:
            return self._text(part["text"], seal, is_thought=bool(part.get("thought")))
        return ""

    def _text(self, text: str, seal: str, *, is_thought: bool) -> str:
        """Take one piece; a run has one seal, whichever of its pieces brings it."""
        piece = clean(text)
        if not (piece or seal):
            return ""
        run = self._run
        if run is None or run.is_thought != is_thought or (seal and run.seal not in ("", seal)):
            self._close()
            run = self._run = _Run(is_thought)
        run.seal = seal or run.seal
        run.pieces.append(piece)
        return "" if is_thought else piece

    def _close(self) -> None:
        run, self._run = self._run, None
        if run is None:
            return
        text = "".join(run.pieces)
        if not text:
            self._parts.append(ThinkingPart("", data=run.seal, model=self._asked))
        elif run.is_thought:
            self._parts.append(ThinkingPart(text, signature=run.seal, model=self._asked))
        else:
            self._seal(run.seal)
            self._parts.append(TextPart(text))

    def _call(self, call: Chunk, seal: str) -> None:
        if call.get("partialArgs") or call.get("willContinue"):
            raise ValueError("a call in pieces, which nobody asked for")
        arguments = _arguments(call.get("args"))
        name = clean(call["name"])
        self._seal(seal)
        self._parts.append(ToolCall(clean(call.get("id") or self._made_id(name, arguments)), name, arguments))

    def _seal(self, seal: str) -> None:
        if seal:
            self._parts.append(ThinkingPart("", signature=seal, model=self._asked))

    def _made_id(self, name: str, arguments: str) -> str:
        """Return an id for a call that came without one: always the same for the same reply, and one of its own."""
        place = sum(isinstance(part, ToolCall) for part in self._parts)
        told = json.dumps([self._response_id, self._turn, place, name, arguments])
        return f"call_{hashlib.sha256(told.encode()).hexdigest()[:24]}"

    def _count_unknown(self, where: str, found: Chunk, known: frozenset[str]) -> None:
        self.unknown.update(where + clean(key) for key in found if key not in known)


def _usage(counted: Chunk) -> Usage:
    """Read the newest count, which replaces all before it.

    The prompt's tokens include those of the cache; those of results of Google's own tools come on top of it.
    """
    cached = int(counted.get("cachedContentTokenCount") or 0)
    prompt = int(counted.get("promptTokenCount") or 0) + int(counted.get("toolUsePromptTokenCount") or 0)
    output = int(counted.get("candidatesTokenCount") or 0) + int(counted.get("thoughtsTokenCount") or 0)
    return Usage(max(0, prompt - cached), cached, 0, output)


def _arguments(given: object) -> str:
    """Return the arguments as text, always the same for the same object."""
    if isinstance(given, str):
        return clean(given)
    return clean(json.dumps({} if given is None else given, ensure_ascii=False, separators=(",", ":")))
