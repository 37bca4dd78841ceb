"""Calls and results of one conversation as every wire needs them: each call with one result, right behind it; pure."""

import hashlib
import json
import re
from collections import defaultdict
from dataclasses import dataclass, replace

from bot.domain.messages import Image, Message, TextPart, ToolCall, ToolResult
from bot.llm.anthropic_wire import INVALID_JSON, NO_RESULT, NO_TEXT, ORPHAN, wire_id, wire_input
from bot.llm.clean import clean

FAILED = "Error: "
"""Begins a failed result on a wire that has no field for that."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of one call, as words and pictures."""

    id: str
    """The call's id on the wire."""
    name: str
    """The tool's on the wire."""
    text: str
    images: tuple[Image, ...] = ()


class Pairs:
    """Follows one conversation from its beginning; looks only back, so that a longer one begins with the same bytes."""

    def __init__(self) -> None:
        self._uses: defaultdict[str, int] = defaultdict(int)
        self._waiting: defaultdict[str, list[Answer]] = defaultdict(list)
        """Call id to what is said of calls that have no result yet; a model may use an id twice."""

    def call(self, call: ToolCall) -> str:
        """Return the call's id on the wire: unique, and as every provider takes it."""
        uses = self._uses[call.id]
        self._uses[call.id] += 1
        identifier = wire_id(f"{call.id}#{uses}" if uses else call.id)
        self._waiting[call.id].append(Answer(identifier, wire_name(call.name), FAILED + NO_RESULT))
        return identifier

    def heard(self, message: Message) -> tuple[list[Answer], list[str | Image]]:
        """Return the answers of a user message, and the texts and pictures that are none.

        The answers come in the message's order, then words for each call that has none. A result that belongs to no
        call is among the texts, and a message with nothing in it says so.
        """
        answers: list[Answer] = []
        said: list[str | Image] = []
        for part in message.parts:
            if isinstance(part, TextPart):
                said += [clean(part.text)] if part.text.strip() else []
            elif isinstance(part, Image):
                said.append(part)
            elif isinstance(part, ToolResult):
                if waiting := self._waiting[part.call_id]:
                    answers.append(replace(waiting.pop(0), text=_words(part), images=part.images))
                else:
                    said += [clean(ORPHAN + part.text), *part.images]
        answers += self.unanswered()
        return answers, said if said or answers else [NO_TEXT]

    def unanswered(self) -> list[Answer]:
        """Return words for each call that waits for a result; none waits any more."""
        left = [answer for answers in self._waiting.values() for answer in answers]
        self._waiting.clear()
        return left


def wire_name(name: str) -> str:
    """Return a tool's name as every provider takes it."""
    return re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:64] or "unnamed"


def wire_arguments(arguments: str) -> str:
    """Return the arguments as the text of a JSON object.

    The model's own bytes, unless a server would stumble over them: an object inside a string is taken out, texts that
    no API takes are cleaned, and what is no object is kept as text in one field.
    """
    text = arguments if arguments.strip() else "{}"
    found = wire_input(text)
    if found == {INVALID_JSON: clean(text)}:
        inner = _inside(text)
        if inner is None:
            return json.dumps(found, ensure_ascii=False)
        text, found = inner, wire_input(inner)
    # Only an escape can hide what the text itself does not show.
    is_clean = clean(text) == text and ("\\u" not in text or json.loads(text) == found)
    return text if is_clean else json.dumps(found, ensure_ascii=False)


def cache_key(*stable: str) -> str:
    """Return a key for requests that begin alike: 32 characters from what a conversation never changes."""
    return hashlib.sha256("\0".join(stable).encode(errors="surrogatepass")).hexdigest()[:32]


def _inside(text: str) -> str | None:
    """Return the object that a JSON string holds."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    is_object = isinstance(value, str) and value.strip() and wire_input(value) != {INVALID_JSON: clean(value)}
    return str(value) if is_object else None


def _words(result: ToolResult) -> str:
    text = clean(result.text) if result.text.strip() else NO_TEXT
    is_said = not result.is_error or text.lower().startswith("error")
    return text if is_said else FAILED + text
