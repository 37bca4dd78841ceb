"""One reply of OpenAI's Responses API, put together event by event; pure.

Source: https://platform.openai.com/docs/api-reference/responses-streaming
"""

import json
from collections import Counter
from collections.abc import Mapping

from bot.domain.messages import Message, Part, Reply, StopReason, TextPart, ThinkingPart, ToolCall, Usage
from bot.errors import MalformedReply, ModelUnavailable
from bot.llm.clean import clean, clean_json
from bot.llm.openai_errors import OPENAI, Provider, error_for
from bot.llm.openai_events import Event
from bot.llm.openai_usage import usage_of

STOPS: Mapping[str, StopReason] = {"max_output_tokens": "length", "content_filter": "refusal"}
"""By the reason of an incomplete reply; one that is not here becomes `error`."""

_ENDS = frozenset({"response.completed", "response.incomplete"})
_FAILED = frozenset({"response.failed", "response.cancelled"})
_TOLD_AGAIN = frozenset(
    {
        "response.created",
        "response.queued",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.content_part.done",
        "response.output_text.done",
        "response.output_text.annotation.added",
        "response.refusal.delta",
        "response.refusal.done",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
        "response.reasoning_summary_part.added",
        "response.reasoning_summary_part.done",
        "response.reasoning_summary_text.delta",
        "response.reasoning_summary_text.done",
        "response.reasoning_text.delta",
        "response.reasoning_text.done",
        "keepalive",
        "[DONE]",
    }
)
"""Events whose content comes again, whole, with the end of its item."""


class ReplyBuilder:
    """Takes the events of one stream in order; nothing of it counts before `finish` has returned."""

    def __init__(self, model: str, provider: Provider = OPENAI) -> None:
        """Begin.

        Args:
            model: `provider:model` that was asked; noted on its thinking.
            provider: whom errors name.
        """
        self.usage = Usage()
        """What the provider has counted so far."""
        self.refusal = ""
        """Why the model declined, where it says so."""
        self.unknown: Counter[str] = Counter()
        """Names of events, items and contents that were passed over, and how often."""
        self._asked = model
        self._provider = provider
        self._items: dict[int, Event] = {}
        self._final: Event | None = None

    def feed(self, event: Event) -> str:
        """Take the next event and return the text it adds to the reply, often none.

        Raises:
            MalformedReply: the event breaks the protocol.
            ModelError: an error event, by its code.
        """
        try:
            return self._feed(event)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise MalformedReply(f"The stream has an event of a shape nobody knows: {error!r}") from error

    def finish(self) -> Reply:
        """Return the reply.

        Raises:
            ModelUnavailable: the stream ended before the reply did.
            MalformedReply: an item has a shape nobody knows.
        """
        if self._final is None:
            raise ModelUnavailable("The reply broke off before its end")
        try:
            return self._reply(self._final)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise MalformedReply(f"The reply has an item of a shape nobody knows: {error!r}") from error

    def _feed(self, event: Event) -> str:
        kind = event["type"]
        if kind == "error":
            raise error_for(None, event, provider=self._provider)
        if self._final is not None:
            return ""
        if kind == "response.output_text.delta":
            return clean(event["delta"])
        if kind == "response.output_item.done":
            self._items[event["output_index"]] = event["item"]
        elif kind in _ENDS:
            self._end(event["response"])
        elif kind in _FAILED:
            self._count(event["response"])
            raise error_for(None, event["response"].get("error") or {}, provider=self._provider)
        elif kind not in _TOLD_AGAIN:
            self.unknown[str(kind)] += 1
        return ""

    def _end(self, response: Event) -> None:
        self._count(response)
        # What ended by itself comes first: seals are made anew for the ending, and clients return the earlier ones.
        self._items = dict(enumerate(response.get("output") or ())) | self._items
        self._final = response

    def _count(self, response: Event) -> None:
        """Replace what is there: counts are of the whole reply."""
        if counted := response.get("usage"):
            self.usage = usage_of(counted)

    def _reply(self, response: Event) -> Reply:
        parts = [part for index in sorted(self._items) for part in self._parts(self._items[index])]
        message = Message("assistant", tuple(parts))
        return Reply(message, self._stop(response, message), self.usage, clean(str(response.get("model") or "")))

    def _stop(self, response: Event, message: Message) -> StopReason:
        if response.get("status") == "incomplete":
            reason = str((response.get("incomplete_details") or {}).get("reason"))
            if reason not in STOPS:
                self.unknown[f"incomplete {reason}"] += 1
            return STOPS.get(reason, "error")
        if self.refusal:
            return "refusal"
        return "tool" if message.calls else "end"

    def _parts(self, item: Event) -> list[Part]:
        match item["type"]:
            case "message":
                texts = [TextPart(text) for content in item["content"] if (text := self._text(content)) is not None]
                return [*self._phase(item), *texts]
            case "function_call":
                return [_call(item)]
            case "reasoning":
                return [self._thinking(item)]
            case kind:
                self.unknown[f"item {kind}"] += 1
                return []

    def _phase(self, item: Event) -> list[Part]:
        """Return what newer models want to get back with a text: whether it is a remark on the way or the answer."""
        if not item.get("phase"):
            return []
        return [ThinkingPart("", data=json.dumps({"phase": clean(item["phase"])}), model=self._asked)]

    def _text(self, content: Event) -> str | None:
        match content["type"]:
            case "output_text":
                return clean(content["text"])
            case "refusal":
                self.refusal = clean(content["refusal"]) or "it gave no reason"
            case kind:
                self.unknown[f"content {kind}"] += 1
        return None

    def _thinking(self, item: Event) -> ThinkingPart:
        """Return the readable part of the reasoning, and the whole item where the API can take it back.

        Without a store the API knows no item again that has neither its seal nor its content.
        """
        contents = item.get("content") or []
        text = "\n\n".join(clean(piece["text"]) for piece in [*(item.get("summary") or []), *contents])
        kept = {key: item[key] for key in ("type", "id", "summary", "content", "encrypted_content") if item.get(key)}
        kept = {**kept, "summary": item.get("summary") or []}
        # What would have to be cleaned cannot go back as it came.
        if not (item.get("encrypted_content") or contents) or clean_json(kept) != kept:
            return ThinkingPart(text, model=self._asked)
        return ThinkingPart(text, data=json.dumps(kept, ensure_ascii=False, separators=(",", ":")), model=self._asked)


def _call(item: Event) -> ToolCall:
    """Return the call with the model's own arguments; `{}` for none."""
    arguments = item["arguments"]
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments or {}, ensure_ascii=False, separators=(",", ":"))
    name, identifier = item["name"], item.get("call_id") or item["id"]
    return ToolCall(str(identifier), clean(name), arguments if arguments.strip() else "{}")
