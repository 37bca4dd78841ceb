"""Messages as plain JSON values and back; what a later version added is passed over."""

from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from typing import cast

from bot.domain.messages import Image, Message, Part, Role, TextPart, ThinkingPart, ToolCall, ToolResult

_PARTS: dict[str, type[Part]] = {
    "text": TextPart,
    "thinking": ThinkingPart,
    "call": ToolCall,
    "result": ToolResult,
    "image": Image,
}
_NAMES = {made: name for name, made in _PARTS.items()}


def message_to_data(message: Message) -> dict[str, object]:
    """Turn a message into plain JSON values."""
    return {"role": message.role, "parts": [{"kind": _NAMES[type(part)], **_data(part)} for part in message.parts]}


def message_from_data(data: Mapping[str, object]) -> Message:
    """Turn stored values back into a message.

    Raises:
        KeyError: a kind of part that this version does not know; leaving it out would break the provider's protocol.
    """
    # The values were written by `message_to_data`.
    parts = cast("list[Mapping[str, object]]", data["parts"])
    return Message(cast("Role", data["role"]), tuple(_part(part) for part in parts))


def images_from_data(data: object) -> tuple[Image, ...]:
    """Turn the stored `images` of a result back; None, as in what an earlier version stored, is none."""
    # As above.
    return tuple(cast("Image", _made(Image, image)) for image in cast("list[Mapping[str, object]]", data or []))


def _data(part: Part) -> dict[str, object]:
    data = asdict(part)
    if isinstance(part, ToolResult):
        data["images"] = list(data["images"])
    return data


def _part(data: Mapping[str, object]) -> Part:
    part = _made(_PARTS[cast("str", data["kind"])], data)
    return replace(part, images=images_from_data(part.images)) if isinstance(part, ToolResult) else part


def _made(made: type[Part], data: Mapping[str, object]) -> Part:
    known = {field.name for field in fields(made)}
    # As above.
    return made(**{name: value for name, value in data.items() if name in known})  # type: ignore[arg-type]
