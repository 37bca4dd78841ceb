"""How large things are, in bytes: the measure of what no provider has counted yet."""

import json
from collections.abc import Sequence

from bot.domain.messages import Image, Message, Part, Prompt, TextPart, ThinkingPart, ToolCall, ToolResult

BYTES_PER_TOKEN = 3
"""Real sessions on code have 2.9 to 3.3; the usual 4 is too low for code by a fifth."""
IMAGE_TOKENS = 1_600
"""What a picture of the largest useful size costs, whatever its file's size.

Source: https://docs.anthropic.com/en/docs/build-with-claude/vision
"""


def size_of(messages: Sequence[Message]) -> int:
    """Return bytes of all parts."""
    return sum(part_size(part) for message in messages for part in message.parts)


def part_size(part: Part) -> int:
    """Return bytes of what the model reads of it; a picture counts as so much text."""
    match part:
        case TextPart():
            return _bytes(part.text)
        case ThinkingPart():
            return _bytes(part.text) + len(part.signature) + len(part.data)
        case ToolCall():
            return _bytes(part.name) + _bytes(part.arguments)
        case ToolResult():
            return _bytes(part.text) + len(part.images) * IMAGE_TOKENS * BYTES_PER_TOKEN
        case Image():
            return IMAGE_TOKENS * BYTES_PER_TOKEN


def prompt_size(prompt: Prompt) -> int:
    """Return bytes of the messages, and of the system prompt and the tools before them."""
    tools = sum(len(spec.name) + _bytes(spec.description) + len(json.dumps(spec.parameters)) for spec in prompt.tools)
    return _bytes(prompt.system) + tools + size_of(prompt.messages)


def _bytes(text: str) -> int:
    # Counts a lone surrogate too: what adapters put in its place is no longer.
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
