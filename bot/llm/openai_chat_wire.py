"""OpenAI's Chat Completions as JSON: a prompt into a request, chunks into a reply; pure.

Source: https://platform.openai.com/docs/api-reference/chat
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from bot.domain.messages import Image, Message, Prompt, Reply, TextPart, ThinkingPart, ToolCall
from bot.llm.clean import clean, clean_json
from bot.llm.images import caption, data_url
from bot.llm.openai_chat_reply import ReplyBuilder
from bot.llm.openai_chat_thinking import fields_of
from bot.llm.openai_events import Event
from bot.llm.pairing import Answer, Pairs, cache_key, wire_arguments, wire_name

Item = dict[str, Any]  # Any: the provider's JSON


@dataclass(frozen=True, slots=True)
class Habits:
    """What a server takes beyond what all of them take; strict ones answer a field they do not know with 400."""

    cap: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """The name of the output limit; OpenAI's reasoning models take the longer one only."""
    cache_key: bool = False
    """Whether it takes `prompt_cache_key`."""
    streamed_usage: bool = True
    """Whether it takes `stream_options`; one that does not counts unasked, or not at all."""


OPENAI = Habits(cap="max_completion_tokens", cache_key=True)
"""OpenAI's own, and Azure."""
COMPATIBLE = Habits()
"""Everything else that speaks like it."""


def to_wire(
    prompt: Prompt,
    *,
    model: str,
    wire_model: str | None = None,
    max_output_tokens: int,
    effort: str | None = None,
    habits: Habits = OPENAI,
) -> dict[str, Any]:  # Any: the provider's JSON
    """Spell the prompt as the body of a request, without `stream`.

    The same prompt always gives the same bytes, and a longer history only appends to them. What the API would answer
    with 400 is mended: empty texts, foreign ids and names, results without a call, calls without a result, arguments
    that are no JSON.

    Args:
        prompt: as the seam has it.
        model: `provider:model`; only this model's own reasoning goes back, and only with the calls it led to.
        wire_model: what the API calls it, as the name of a deployment; None: the part behind the colon.
        max_output_tokens: cap of the reply, reasoning included.
        effort: of reasoning, as the model knows it; None: its default, or it does not reason.
        habits: what the server takes.
    """
    body: dict[str, Any] = {"model": wire_model or model.partition(":")[2], habits.cap: max_output_tokens}
    if habits.cache_key:
        body["prompt_cache_key"] = cache_key(prompt.system, prompt.messages[0].text if prompt.messages else "")
    if effort:
        body["reasoning_effort"] = effort
    if prompt.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": clean(tool.description),
                    "parameters": clean_json(tool.parameters),
                },
            }
            for tool in sorted(prompt.tools, key=lambda tool: tool.name)
        ]
    body["messages"] = _Writer(model).write(prompt.system, prompt.messages)
    return body


def from_wire(events: Iterable[Event], *, model: str) -> Reply:
    """Build the reply from all chunks of one stream; errors as in `ReplyBuilder`.

    Args:
        events: decoded `data` of the stream, in order, with `DONE` where it is closed.
        model: `provider:model` that was asked; noted on its thinking.
    """
    builder = ReplyBuilder(model)
    for event in events:
        builder.feed(event)
    return builder.finish()


def events_of(completion: Mapping[str, Any]) -> Iterable[Event]:  # Any: the provider's JSON
    """Tell a completion that came in one piece as a chunk of a stream.

    Raises:
        KeyError: it is no completion.
    """
    choices = [
        {**{key: value for key, value in choice.items() if key != "message"}, "delta": _delta(choice["message"])}
        for choice in completion["choices"]
    ]
    yield {**completion, "choices": choices}


def _delta(message: Mapping[str, Any]) -> Item:
    """Number the calls, which have no index in a whole message."""
    calls = [{**call, "index": place} for place, call in enumerate(message.get("tool_calls") or ())]
    return {**message, "tool_calls": calls}


class _Writer:
    """Writes one conversation from its beginning."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._pairs = Pairs()

    def write(self, system: str, messages: Sequence[Message]) -> list[Item]:
        written: list[Item] = [{"role": "system", "content": clean(system)}] if system.strip() else []
        for message in messages:
            written += self._user(message) if message.role == "user" else self._assistant(message)
        return written

    def _user(self, message: Message) -> list[Item]:
        """Return the results and one message with all else: pictures may stand in a user's message only."""
        answers, said = self._pairs.heard(message)
        shown = [piece for answer in answers if answer.images for piece in _shown(answer)]
        words = [{"role": "user", "content": _content([*shown, *said])}] if shown or said else []
        return [*map(_tool, answers), *words]

    def _assistant(self, message: Message) -> list[Item]:
        before = [_tool(answer) for answer in self._pairs.unanswered()]
        text = "\n\n".join(clean(p.text) for p in message.parts if isinstance(p, TextPart) and p.text.strip())
        calls = [self._call(call) for call in message.calls]
        if not (text or calls):
            return before
        written: Item = {"role": "assistant", "content": text or None}
        if calls:
            written |= self._reasoning(message)
            written["tool_calls"] = calls
        return [*before, written]

    def _reasoning(self, message: Message) -> Item:
        """Return the model's own reasoning, which servers want back within a tool loop, and not after it."""
        fields: Item = {}
        for part in message.parts:
            if isinstance(part, ThinkingPart) and part.model == self._model:
                fields |= fields_of(part)
        return fields

    def _call(self, call: ToolCall) -> Item:
        function = {"name": wire_name(call.name), "arguments": wire_arguments(call.arguments)}
        return {"id": self._pairs.call(call), "type": "function", "function": function}


def _tool(answer: Answer) -> Item:
    return {"role": "tool", "tool_call_id": answer.id, "content": answer.text}


def _shown(answer: Answer) -> list[str | Image]:
    return [caption(f"`{answer.name}` ({answer.id})"), *answer.images]


def _content(pieces: Sequence[str | Image]) -> str | list[Item]:
    """Spell what a user says: as one text where there is no picture, which every server takes."""
    texts = [piece for piece in pieces if isinstance(piece, str)]
    if len(texts) == len(pieces):
        return "\n\n".join(texts)
    return [_image(piece) if isinstance(piece, Image) else {"type": "text", "text": piece} for piece in pieces]


def _image(image: Image) -> Item:
    return {"type": "image_url", "image_url": {"url": data_url(image)}}
