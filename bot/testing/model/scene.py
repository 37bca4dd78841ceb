"""Find where a request stands in the script, from the request alone."""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass

from bot.testing.model.request import Message, Request, ToolCall, ToolResult
from bot.testing.model.script import Conversation, Script


@dataclass(frozen=True, slots=True)
class Moment:
    """What the model has in front of it when one turn is due: all that came since the turn before."""

    turn: int
    said: str = ""
    results: tuple[ToolResult, ...] = ()

    @property
    def heard(self) -> str:
        """What captures are searched in: the results, or the user's words where there are none."""
        return "\n".join(result.text for result in self.results) if self.results else self.said


@dataclass(frozen=True, slots=True)
class Scene:
    """A conversation that is going on; the last moment is the turn now due."""

    conversation: Conversation
    moments: tuple[Moment, ...]
    key: str
    """Identifies the turn; holds `<conversation>T<turn>`, which is found again in the ids of calls."""


def find_scene(script: Script, request: Request) -> Scene | None:
    """Return the conversation that answers the request and its moments so far, or None if none fits."""
    found = _find(script, request.messages)
    if found is None:
        return None
    conversation, start = found
    moments = tuple(_moments(conversation, request.messages[start:]))
    digest = _digest(f"{script.name}\0{start}\0{request.messages[start].text}", 8)
    return Scene(conversation, moments, f"{_tag(conversation)}T{moments[-1].turn:04d}{digest}")


def _find(script: Script, messages: tuple[Message, ...]) -> tuple[Conversation, int] | None:
    """Apply the rules that `script` describes."""
    opening = next((number for number, message in enumerate(messages) if message.role == "user"), None)
    if opening is None:
        return None
    first = messages[opening].text
    for number in range(len(messages) - 1, opening, -1):
        if messages[number].is_plain:
            for conversation in script.conversations:
                if _follows(conversation, first, messages[number].text):
                    return conversation, number
    starters = [conversation for conversation in script.conversations if conversation.match_last is None]
    fitting = [c for c in starters if c.match is not None and _fits(c.match, first)]
    default = [c for c in starters if c.match is None]
    return next(((conversation, opening) for conversation in fitting + default), None)


def _follows(conversation: Conversation, first: str, later: str) -> bool:
    if conversation.match_last is None or not _fits(conversation.match_last, later):
        return False
    return conversation.match is None or _fits(conversation.match, first)


def _fits(pattern: str, text: str) -> bool:
    """Tell whether a substring, or a regular expression between slashes, is in the text."""
    if len(pattern) > 1 and pattern.startswith("/") and pattern.endswith("/"):
        return re.search(pattern[1:-1], text, re.MULTILINE) is not None
    return pattern in text


def _moments(conversation: Conversation, messages: tuple[Message, ...]) -> Iterator[Moment]:
    turn, heard = 0, list[Message]()
    for message in messages:
        if message.role != "assistant":
            heard.append(message)
            continue
        marked = _turn_in_ids(conversation, message)
        turn = turn if marked is None else marked
        yield _moment(turn, heard)
        turn, heard = turn + 1, []
    yield _moment(turn, heard)


def _moment(turn: int, heard: list[Message]) -> Moment:
    said = "\n".join(message.text for message in heard if message.text)
    return Moment(turn, said, tuple(result for message in heard for result in message.results))


def _turn_in_ids(conversation: Conversation, message: Message) -> int | None:
    for part in message.parts:
        if isinstance(part, ToolCall) and (found := re.search(rf"{_tag(conversation)}T(\d{{4}})", part.id)):
            return int(found[1])
    return None


def _tag(conversation: Conversation) -> str:
    return _digest(conversation.name, 6)


def _digest(text: str, length: int) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:length]
