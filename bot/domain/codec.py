"""Messages as plain JSON values and back; what a later version added is passed over."""

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import cast

from bot.domain.messages import Message, Part, Role, TextPart, ThinkingPart, ToolCall, ToolResult

_PARTS: dict[str, type[Part]] = {"text": TextPart, "thinking": ThinkingPart, "call": ToolCall, "result": ToolResult}
_NAMES = {made: name for name, made in _PARTS.items()}


def message_to_data(message: Message) -> dict[str, object]:
    """Turn a message into plain JSON values."""
    return {"role": message.role, "parts": [{"kind": _NAMES[type(part)], **asdict(part)} for part in message.parts]}


def message_from_data(data: Mapping[str, object]) -> Message:
    """Turn stored values back into a message.

    Raises:
        KeyError: a kind of part that this version does not know; leaving it out would break the provider's protocol.
    """
    # The values were written by `message_to_data`.
    parts = cast("list[Mapping[str, object]]", data["parts"])
    return Message(cast("Role", data["role"]), tuple(_part(part) for part in parts))


def _part(data: Mapping[str, object]) -> Part:
    made = _PARTS[cast("str", data["kind"])]
    known = {field.name for field in fields(made)}
    # As above.
    return made(**{name: value for name, value in data.items() if name in known})  # type: ignore[arg-type]
