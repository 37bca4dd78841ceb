"""One chat completion, put together chunk by chunk; pure.

Source: https://platform.openai.com/docs/api-reference/chat-streaming
"""

from collections import Counter
from collections.abc import Mapping

from bot.domain.messages import Message, Part, Reply, StopReason, TextPart, Usage
from bot.errors import MalformedReply, ModelUnavailable
from bot.llm.clean import clean
from bot.llm.openai_chat_calls import Calls
from bot.llm.openai_chat_thinking import DETAILS, WORDS, Thinking
from bot.llm.openai_errors import OPENAI, Provider, error_for
from bot.llm.openai_events import DONE, Event
from bot.llm.openai_usage import usage_of

STOPS: Mapping[str, StopReason] = {
    "stop": "end",
    "tool_calls": "tool",
    "function_call": "tool",
    "length": "length",
    "model_length": "length",
    "content_filter": "refusal",
}
"""A reason that is not here becomes `error`."""
_BROKEN = frozenset({"error", "insufficient_system_resource", "abort"})
"""Reasons that say that the server failed: of OpenRouter and Mistral, DeepSeek, vLLM."""
_KNOWN = frozenset({"role", "content", "refusal", "tool_calls", DETAILS, *WORDS})


class ReplyBuilder:
    """Takes the chunks of one stream in order; nothing of it counts before `finish` has returned."""

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
        """Names of fields, contents and reasons that were passed over, and how often."""
        self._asked = model
        self._provider = provider
        self._answered = ""
        self._id = ""
        self._reason = ""
        self._is_done = False
        self._text: list[str] = []
        self._thinking = Thinking()
        self._calls = Calls()

    def feed(self, event: Event) -> str:
        """Take the next chunk and return the text it adds to the reply, often none.

        Raises:
            MalformedReply: the chunk breaks the protocol.
            ModelError: it is an error, by its code.
        """
        try:
            if not event.get("error"):
                return self._feed(event)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise MalformedReply(f"The stream has a chunk of a shape nobody knows: {error!r}") from error
        raise error_for(None, event, provider=self._provider)

    def finish(self) -> Reply:
        """Return the reply.

        Raises:
            ModelUnavailable: the stream ended before the reply did, or the server says that it failed.
            MalformedReply: a call has no name.
        """
        if not (self._reason or self._is_done):
            raise ModelUnavailable("The reply broke off before its end")
        if self._reason in _BROKEN:
            raise ModelUnavailable(f"{self._provider.name} broke the reply off: {self._reason}")
        try:
            calls = self._calls.finish(self._id)
        except ValueError as error:
            raise MalformedReply(f"The reply has {error}") from error
        text = "".join(self._text)
        parts: list[Part] = [*self._thinking.finish(self._asked), *([TextPart(text)] if text else []), *calls]
        message = Message("assistant", tuple(parts))
        return Reply(message, self._stop(message), self.usage, self._answered)

    def _feed(self, chunk: Event) -> str:
        if chunk == DONE:
            self._is_done = True
            return ""
        self._answered = self._answered or clean(str(chunk.get("model") or ""))
        self._id = self._id or str(chunk.get("id") or "")
        self._count(chunk.get("usage") or (chunk.get("x_groq") or {}).get("usage"))
        added = ""
        for choice in chunk["choices"] or ():
            if choice.get("index"):
                self.unknown["choice"] += 1
                continue
            self._count(choice.get("usage"))
            added += self._take(choice.get("delta") or {})
            self._reason = choice.get("finish_reason") or self._reason
        return added

    def _count(self, counted: Event | None) -> None:
        """Replace what is there: counts are of the whole reply so far, none is an increment."""
        if counted:
            self.usage = usage_of(counted)

    def _take(self, delta: Event) -> str:
        self._thinking.take(delta)
        for piece in delta.get("tool_calls") or ():
            self._calls.take(piece)
        if declined := delta.get("refusal"):
            self.refusal += clean(declined)
        self.unknown.update(f"field {key}" for key, value in delta.items() if value and key not in _KNOWN)
        text = self._said(delta.get("content"))
        self._text += [text] if text else []
        return text

    def _said(self, content: object) -> str:
        """Return the words of a content, which Mistral sends in typed pieces where its model thinks."""
        if not isinstance(content, list):
            if not isinstance(content, str | None):
                raise TypeError(f"content is {type(content).__name__}")
            return clean(content or "")
        words = ""
        for piece in content:
            match piece["type"]:
                case "text":
                    words += clean(piece["text"])
                case "thinking":
                    self._thinking.take_words("".join(inner.get("text") or "" for inner in piece["thinking"]))
                case kind:
                    self.unknown[f"content {kind}"] += 1
        return words

    def _stop(self, message: Message) -> StopReason:
        if self._reason and self._reason not in STOPS:
            self.unknown[f"finish_reason {self._reason}"] += 1
        # Some servers give no reason: the end of the stream and whole arguments have to do.
        is_whole = not self._reason and self._calls.are_whole
        stop: StopReason = "end" if is_whole else STOPS.get(self._reason, "error")
        if self.refusal and stop == "end":
            return "refusal"
        if stop in ("end", "tool"):
            return "tool" if message.calls else "end"
        return stop
