"""OpenAI's Responses API as JSON: a prompt into a request, stream events into a reply; pure.

Source: https://platform.openai.com/docs/api-reference/responses,
https://platform.openai.com/docs/guides/reasoning#encrypted-reasoning-items
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bot.domain.messages import Image, Message, Prompt, Reply, TextPart, ThinkingPart, ToolCall
from bot.errors import ModelUnavailable
from bot.llm.clean import clean, clean_json
from bot.llm.images import data_url
from bot.llm.openai_events import Event
from bot.llm.openai_responses_reply import ReplyBuilder
from bot.llm.pairing import Answer, Pairs, cache_key, wire_arguments, wire_name

Item = dict[str, Any]  # Any: the provider's JSON

_PLAIN = re.compile(r"(?:chatgpt-|ft:)?(?:gpt-3|gpt-4|4o)|gpt-5-chat|computer-use")
"""Models of OpenAI's that do not reason: they refuse a request that asks for sealed reasoning."""
_ENDINGS = {"completed": "response.completed", "complete": "response.completed", "incomplete": "response.incomplete"}


@dataclass(frozen=True, slots=True)
class Reasoning:
    """How the model reasons before it answers."""

    effort: str | None = None
    """`minimal` to `xhigh`, as the model knows them; None: the model's own default."""
    summary: str | None = None
    """`auto`, `concise` or `detailed`; None: no summary is asked for."""


def reasons(model: str) -> bool:
    """Whether a model of OpenAI's reasons, by its name without the provider; what is new does."""
    return _PLAIN.match(model) is None


def to_wire(
    prompt: Prompt,
    *,
    model: str,
    wire_model: str | None = None,
    max_output_tokens: int,
    reasoning: Reasoning | None = None,
) -> dict[str, Any]:  # Any: the provider's JSON
    """Spell the prompt as the body of a request, without `stream`.

    The same prompt always gives the same bytes, and a longer history only appends to them. What the API would answer
    with 400 is mended: empty texts, foreign ids and names, results without a call, calls without a result, arguments
    that are no JSON, reasoning without what it led to. Nothing is stored at the provider.

    Args:
        prompt: as the seam has it.
        model: `provider:model`; only this model's own reasoning goes back.
        wire_model: what the API calls it, as the name of a deployment; None: the part behind the colon.
        max_output_tokens: cap of the reply, reasoning included.
        reasoning: None for a model that does not reason.
    """
    body: dict[str, Any] = {
        "model": wire_model or model.partition(":")[2],
        "max_output_tokens": max_output_tokens,
        "store": False,
        "prompt_cache_key": cache_key(prompt.system, prompt.messages[0].text if prompt.messages else ""),
    }
    if reasoning is not None:
        body["include"] = ["reasoning.encrypted_content"]
        asked = {"effort": reasoning.effort, "summary": reasoning.summary}
        if wanted := {key: value for key, value in asked.items() if value}:
            body["reasoning"] = wanted
    if prompt.system.strip():
        body["instructions"] = clean(prompt.system)
    if prompt.tools:
        body["tools"] = [
            {
                "type": "function",
                "name": tool.name,
                "description": clean(tool.description),
                "parameters": clean_json(tool.parameters),
                "strict": False,
            }
            for tool in sorted(prompt.tools, key=lambda tool: tool.name)
        ]
    body["input"] = _Writer(model).write(prompt.messages)
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


def events_of(response: Mapping[str, Any]) -> Iterable[Event]:  # Any: the provider's JSON
    """Tell a reply that came in one piece as the events of a stream.

    Raises:
        KeyError: it is no reply.
        ModelUnavailable: it is one that has not ended.
    """
    status = response["status"]
    if status == "failed":
        yield {"type": "response.failed", "response": response}
        return
    if status not in _ENDINGS:
        raise ModelUnavailable(f"The reply has not ended: it is {clean(str(status))}")
    for index, item in enumerate(response["output"]):
        for content in item.get("content") or () if item["type"] == "message" else ():
            if content["type"] == "output_text":
                yield {"type": "response.output_text.delta", "output_index": index, "delta": content["text"]}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": _ENDINGS[status], "response": response}


class _Writer:
    """Writes one conversation from its beginning."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._pairs = Pairs()

    def write(self, messages: Sequence[Message]) -> list[Item]:
        items: list[Item] = []
        for message in messages:
            items += self._user(message) if message.role == "user" else self._assistant(message)
        return items

    def _user(self, message: Message) -> list[Item]:
        answers, said = self._pairs.heard(message)
        words = [{"role": "user", "content": _content(said)}] if said else []
        return [*map(_output, answers), *words]

    def _assistant(self, message: Message) -> list[Item]:
        items = [_output(answer) for answer in self._pairs.unanswered()]
        phase: Item = {}
        for part in message.parts:
            if isinstance(part, TextPart) and part.text.strip():
                items.append({"role": "assistant", "content": clean(part.text), **phase})
            elif isinstance(part, ThinkingPart) and part.model == self._model:
                kept = _kept(part)
                phase = {key: kept[key] for key in ("phase",) if key in kept}
                items += [kept] if kept.get("type") == "reasoning" else []
            elif isinstance(part, ToolCall):
                items.append(self._call(part))
        while items and items[-1].get("type") == "reasoning":  # the API takes none without what it led to
            items.pop()
        return items

    def _call(self, call: ToolCall) -> Item:
        return {
            "type": "function_call",
            "call_id": self._pairs.call(call),
            "name": wire_name(call.name),
            "arguments": wire_arguments(call.arguments),
        }


def _output(answer: Answer) -> Item:
    output = _content([answer.text, *answer.images])
    return {"type": "function_call_output", "call_id": answer.id, "output": output}


def _content(pieces: Sequence[str | Image]) -> str | list[Item]:
    """Spell what a user or a tool says: as one text where there is no picture, which every server takes."""
    texts = [piece for piece in pieces if isinstance(piece, str)]
    if len(texts) == len(pieces):
        return "\n\n".join(texts)
    return [_image(piece) if isinstance(piece, Image) else {"type": "input_text", "text": piece} for piece in pieces]


def _image(image: Image) -> Item:
    # `auto` is the default; servers that check against the SDK's types miss it all the same.
    return {"type": "input_image", "detail": "auto", "image_url": data_url(image)}


def _kept(part: ThinkingPart) -> Item:
    """Return what goes back as it came: a sealed item, or the phase of the text behind it; empty for neither."""
    try:
        kept = json.loads(part.data)
    except ValueError:
        return {}
    return kept if isinstance(kept, dict) else {}
