"""What a client asked, in no vendor's words: the play reads this and nothing else."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Role = Literal["user", "assistant", "system"]
NO_CAP = 1_000_000
"""Tokens of a reply where the client names no limit."""


@dataclass(frozen=True, slots=True)
class Text:
    """Plain words of either side."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call as the client sent it back."""

    id: str
    name: str
    arguments: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool answered; `name` is looked up from the call it belongs to, empty where that is gone."""

    call_id: str
    name: str
    text: str
    is_error: bool = False


Part = Text | ToolCall | ToolResult


@dataclass(frozen=True, slots=True)
class Message:
    """One message of the transcript."""

    role: Role
    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        """The words of the message, blocks joined by line feeds."""
        return "\n".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def results(self) -> tuple[ToolResult, ...]:
        """The tool results it carries, in order."""
        return tuple(part for part in self.parts if isinstance(part, ToolResult))

    @property
    def is_plain(self) -> bool:
        """Whether a person or the harness speaks here: a user message without any tool result."""
        return self.role == "user" and not self.results


@dataclass(frozen=True, slots=True)
class Request:
    """One request for one turn."""

    model: str
    messages: tuple[Message, ...]
    system: str = ""
    tools: tuple[str, ...] = ()
    """Names of the tools offered, in the order sent."""
    stream: bool = False
    thinking: bool = False
    """Whether the client asked for thinking; without it scripted thinking is not sent."""
    max_tokens: int = 4096


def heard_as(parts: Sequence[Part]) -> list[Message]:
    """Tell what the user's side said at a time, on wires that have no messages or merge them.

    Results and the words behind them are one message; words without results are one message each.
    """
    if any(isinstance(part, ToolResult) for part in parts):
        return [Message("user", tuple(parts))]
    return [Message("user", (part,)) for part in parts]
