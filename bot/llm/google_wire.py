"""Google's generateContent as JSON: a prompt into a request, chunks into a reply; pure.

Source: https://ai.google.dev/api/generate-content, https://ai.google.dev/gemini-api/docs/function-calling
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from bot.domain.messages import (
    Image,
    ImageType,
    Message,
    Prompt,
    Reply,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolResult,
    ToolSpec,
)
from bot.llm.anthropic_wire import NO_RESULT, NO_TEXT, ORPHAN, Thinking, wire_id
from bot.llm.clean import clean
from bot.llm.google_reply import Chunk, ReplyBuilder
from bot.llm.google_schema import reduced
from bot.llm.images import caption, without_images
from bot.llm.pairing import wire_arguments, wire_name

UNSEALED = "skip_thought_signature_validator"
"""Stands for the signature of a call that another model made; without one Gemini 3 answers 400.

Source: https://ai.google.dev/gemini-api/docs/thought-signatures
"""

SEEN: frozenset[ImageType] = frozenset({"image/png", "image/jpeg", "image/webp"})
"""Pictures that the API takes.

Source: https://ai.google.dev/gemini-api/docs/image-understanding
"""
_FLAT = re.compile(r"(?:.*/)?(?:gemini-(?:live-|robotics-er-)?[12](?!\d)|gemma)")
"""Models that take no pictures inside of a result but behind it; what is new refuses them there.

Source: https://ai.google.dev/gemini-api/docs/function-calling#multimodal-function-responses
"""

Item = dict[str, Any]  # Any: the provider's JSON


def to_wire(prompt: Prompt, *, model: str, max_output_tokens: int, thinking: Thinking = None) -> Item:
    """Spell the prompt as the body of a request; the model's name is in the address (`path_of`).

    The same prompt always gives the same bytes, and a longer history only appends to them. What the API would answer
    with 400 is mended: roles that do not take turns, empty texts, foreign ids and names, results without a call, calls
    without a result or a signature, arguments that are no JSON, schemas with words that it does not know.

    Args:
        prompt: as the seam has it.
        model: `provider:model`; only this model's own thinking and signatures go back.
        max_output_tokens: cap of the reply, thinking included.
        thinking: tokens of that for thinking; `adaptive`: as many as the model likes, shown; None: nothing is said.
    """
    body: Item = {}
    if prompt.system.strip():
        body["systemInstruction"] = {"parts": [{"text": clean(prompt.system)}]}
    if prompt.tools:
        tools = sorted(prompt.tools, key=lambda tool: tool.name)
        body["tools"] = [{"functionDeclarations": [_declaration(tool) for tool in tools]}]
    body["generationConfig"] = {"maxOutputTokens": max_output_tokens}
    if thinking is not None:
        budget = {} if thinking == "adaptive" else {"thinkingBudget": thinking}
        body["generationConfig"]["thinkingConfig"] = {"includeThoughts": True, **budget}
    body["contents"] = _Writer(model).write(without_images(prompt, seen=SEEN).messages)
    return body


def from_wire(chunks: Iterable[Chunk], *, model: str, turn: int = 0) -> Reply:
    """Build the reply from all chunks of one stream, or from the one answer of generateContent; errors as there.

    Args:
        chunks: decoded, in order.
        model: `provider:model` that was asked; noted on its thinking.
        turn: how many messages came before.
    """
    builder = ReplyBuilder(model, turn=turn)
    for chunk in chunks:
        builder.feed(chunk)
    return builder.finish()


def path_of(model: str) -> str:
    """Return the path of the stream below the version, as `models/gemini-3-pro:streamGenerateContent?alt=sse`."""
    name = model.partition(":")[2]
    return f"{name if '/' in name else f'models/{name}'}:streamGenerateContent?alt=sse"


def _declaration(tool: ToolSpec) -> Item:
    return {"name": tool.name, "description": clean(tool.description), "parameters": reduced(tool.parameters)}


class _Writer:
    """Writes one conversation from its beginning; looks only back, so that a longer one begins with the same bytes."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._is_flat = _FLAT.match(model.partition(":")[2]) is not None
        self._uses: Counter[str] = Counter()
        self._waiting: list[tuple[str, Item]] = []
        """The calls without a result: their own ids, and id and name on the wire; a model may use an id twice."""

    def write(self, messages: Sequence[Message]) -> list[Item]:
        written: list[Item] = []
        for message in messages:
            parts = self._user(message) if message.role == "user" else self._model_parts(message)
            role = "user" if message.role == "user" else "model"
            if not written and role == "model":
                written.append({"role": "user", "parts": [{"text": NO_TEXT}]})
            if written and written[-1]["role"] == role:
                written[-1]["parts"] += parts
            elif parts:
                written.append({"role": role, "parts": parts})
        return written

    def _user(self, message: Message) -> list[Item]:
        """Return one result for each call, in the order of the calls, then the texts and pictures."""
        wanted = Counter(call_id for call_id, _ in self._waiting)
        results: defaultdict[str, list[ToolResult]] = defaultdict(list)
        said: list[Item] = []
        for part in message.parts:
            if isinstance(part, TextPart):
                said += [{"text": clean(part.text)}] if part.text.strip() else []
            elif isinstance(part, Image):
                said.append(_image(part))
            elif isinstance(part, ToolResult) and len(results[part.call_id]) < wanted[part.call_id]:
                results[part.call_id].append(part)
            elif isinstance(part, ToolResult):
                said += [{"text": clean(ORPHAN + part.text)}, *map(_image, part.images)]
        answers: list[Item] = []
        shown: list[Item] = []
        for call_id, call in self._waiting:
            result = results[call_id].pop(0) if results[call_id] else ToolResult(call_id, NO_RESULT, is_error=True)
            images = [_image(image) for image in result.images]
            answer: Item = {**call, "response": _response(result)}
            if images and self._is_flat:
                shown += [{"text": caption(f"`{call['name']}` ({call['id']})")}, *images]
            elif images:
                answer["parts"] = images
            answers.append({"functionResponse": answer})
        self._waiting.clear()
        return [*answers, *shown, *said] or [{"text": NO_TEXT}]

    def _model_parts(self, message: Message) -> list[Item]:
        parts: list[Item] = []
        seal = ""
        for part in message.parts:
            if isinstance(part, ThinkingPart):
                if part.model != self._model:
                    continue
                if part.text:
                    parts.append({"text": clean(part.text), "thought": True, **_sealed(part.signature)})
                elif part.data:
                    parts.append({"text": "", "thoughtSignature": part.data})
                else:
                    seal = part.signature
            elif isinstance(part, TextPart):
                if part.text:
                    parts.append({"text": clean(part.text), **_sealed(seal)})
                seal = ""
            elif isinstance(part, ToolCall):
                is_first = not any("functionCall" in one for one in parts)
                parts.append({"functionCall": self._call(part), **_sealed(seal or (UNSEALED if is_first else ""))})
                seal = ""
        return parts

    def _call(self, call: ToolCall) -> Item:
        uses = self._uses[call.id]
        self._uses[call.id] += 1
        named = {"id": wire_id(f"{call.id}#{uses}" if uses else call.id), "name": wire_name(call.name)}
        self._waiting.append((call.id, named))
        return {**named, "args": json.loads(wire_arguments(call.arguments))}


def _sealed(seal: str) -> Item:
    return {"thoughtSignature": seal} if seal else {}


def _image(image: Image) -> Item:
    return {"inlineData": {"mimeType": image.media_type, "data": image.data}}


def _response(result: ToolResult) -> Item:
    if result.is_error:
        return {"error": clean(result.text) if result.text.strip() else NO_TEXT}
    return {"output": clean(result.text)}
