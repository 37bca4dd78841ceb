"""The transcript: messages as all providers agree on them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

Role = Literal["user", "assistant"]
StopReason = Literal["end", "tool", "length", "refusal", "pause", "error"]
ImageType = Literal["image/png", "image/jpeg", "image/gif", "image/webp"]


@dataclass(frozen=True, slots=True)
class TextPart:
    """Plain text."""

    text: str


@dataclass(frozen=True, slots=True)
class ThinkingPart:
    """A model's reasoning; goes back verbatim, and only to the model that made it."""

    text: str
    signature: str = ""
    """The provider's seal; a redacted part has a seal in `data` and no text."""
    data: str = ""
    model: str = ""
    """`provider:name` of the model that made it."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A model asks for one tool."""

    id: str
    name: str
    arguments: str
    """JSON text exactly as the model wrote it: rewriting it breaks the provider's prompt cache. Or `Unreadable`."""


_UNREADABLE = "!"
"""Begins arguments that must not be read: no JSON begins so, and nothing takes them for any by mistake."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Stands in the arguments of a call that a dialect of `bot.llm.dialects` could not read, so that it never runs."""

    fault: str
    """What is wrong, for the model."""
    written: str
    """What the model wrote, or the arguments of a call that only its neighbours spoil."""

    @property
    def arguments(self) -> str:
        """Spell it as the arguments of a call."""
        return _UNREADABLE + json.dumps([self.fault, self.written])

    @classmethod
    def found_in(cls, arguments: str) -> "Unreadable | None":
        """Return what stands in the arguments of a call; None where a model wrote them."""
        if not arguments.startswith(_UNREADABLE):
            return None
        try:
            fault, written = json.loads(arguments.removeprefix(_UNREADABLE))
        except (ValueError, TypeError, RecursionError):
            return None
        return cls(str(fault), str(written))


@dataclass(frozen=True, slots=True)
class Image:
    """A picture in a tool result, or by itself in a user message."""

    media_type: ImageType
    data: str = field(repr=False)
    """Base64 with padding and without line breaks: plain JSON, and the same bytes in every request."""

    @property
    def size_bytes(self) -> int:
        """Of the picture itself."""
        return len(self.data) // 4 * 3 - self.data.count("=")


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What one tool call gave."""

    call_id: str
    text: str
    is_error: bool = False
    images: tuple[Image, ...] = ()


Part = TextPart | ThinkingPart | ToolCall | ToolResult | Image


@dataclass(frozen=True, slots=True)
class Message:
    """One message; in a user message the tool results come before any text or picture."""

    role: Role
    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        """All plain text, joined by blank lines."""
        return "\n\n".join(part.text for part in self.parts if isinstance(part, TextPart))

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The tool calls in the model's order."""
        return tuple(part for part in self.parts if isinstance(part, ToolCall))


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one request, in disjoint fields."""

    input_tokens: int = 0
    """Neither read from nor written to the provider's cache."""
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    output_tokens: int = 0

    @property
    def total_tokens(self) -> int:
        """All tokens of the request and its reply."""
        return self.input_tokens + self.cache_read_tokens + self.cache_write_tokens + self.output_tokens

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.input_tokens + other.input_tokens,
            self.cache_read_tokens + other.cache_read_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
            self.output_tokens + other.output_tokens,
        )


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as the model sees it."""

    name: str
    description: str
    parameters: Mapping[str, object]
    """JSON Schema of an object."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """One request to a model; everything before the last user message is stable over a task."""

    system: str
    tools: Sequence[ToolSpec]
    """Sorted by name: another order would miss the provider's cache."""
    messages: Sequence[Message]
    """Oldest first; starts and ends with a user message."""


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer of a model."""

    message: Message
    stop: StopReason
    usage: Usage = field(default_factory=Usage)
    model: str = ""
    """The model that answered, as the provider names it."""
