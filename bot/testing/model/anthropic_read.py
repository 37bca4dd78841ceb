"""Read the body of an Anthropic Messages request; pure. `anthropic_check` has approved it before."""

from collections.abc import Iterator, Mapping, Sequence

from bot.testing.model.body import Body, mappings, spelled
from bot.testing.model.cache import Segment
from bot.testing.model.request import Message, Request, Text, ToolCall, ToolResult


def read_request(body: Body) -> Request:
    """Return the request in no vendor's words."""
    names: dict[str, str] = {}
    messages = tuple(_message(message, names) for message in mappings(body.get("messages")))
    thinking = body.get("thinking")
    max_tokens = body.get("max_tokens")
    return Request(
        model=str(body.get("model", "")),
        messages=messages,
        system="\n".join(str(block.get("text", "")) for block in blocks(body.get("system"))),
        tools=tuple(str(tool.get("name", "")) for tool in mappings(body.get("tools"))),
        stream=body.get("stream") is True,
        thinking=isinstance(thinking, Mapping) and thinking.get("type") in ("enabled", "adaptive"),
        max_tokens=max_tokens if isinstance(max_tokens, int) else 0,
    )


def segments(body: Body) -> list[Segment]:
    """Return the prompt as the cache sees it: tools, system, messages.

    Another model is another cache. `tool_choice` and `thinking` count from the messages on, as the API documents.
    A `cache_control` at the top of the body is a breakpoint on the last block.
    """
    found = [Segment(spelled({"model": body.get("model")}))]
    found += [_segment(tool) for tool in mappings(body.get("tools"))]
    found += [_segment(block) for block in blocks(body.get("system"))]
    found.append(Segment(spelled({key: body[key] for key in ("tool_choice", "thinking") if key in body})))
    for message in mappings(body.get("messages")):
        found += [_segment(block, str(message.get("role", ""))) for block in blocks(message.get("content"))]
    automatic = lifetime(body)
    if automatic and found[-1].lifetime is None:
        found[-1] = Segment(found[-1].data, automatic)
    return found


def blocks(content: object) -> list[Body]:
    """Return content as blocks; a bare text is one block."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return mappings(content)


def lifetime(block: Body) -> str | None:
    """Return `5m` or `1h` for a block with a breakpoint, else None."""
    control = block.get("cache_control")
    if not isinstance(control, Mapping):
        return None
    return "1h" if control.get("ttl") == "1h" else "5m"


def _segment(block: Body, role: str = "") -> Segment:
    bare = {key: value for key, value in block.items() if key != "cache_control"}
    return Segment(role.encode() + spelled(bare), lifetime(block))


def _message(message: Body, names: dict[str, str]) -> Message:
    """Return one message; `names` collects the tool of each call id for the results to come."""
    role = message.get("role")
    parts = tuple(_parts(blocks(message.get("content")), names))
    return Message("assistant" if role == "assistant" else "system" if role == "system" else "user", parts)


def _parts(content: Sequence[Body], names: dict[str, str]) -> Iterator[Text | ToolCall | ToolResult]:
    for block in content:
        match block.get("type"):
            case "text" | "image":
                yield from map(Text, _words([block]))
            case "tool_use":
                given = block.get("input")
                call = ToolCall(str(block.get("id")), str(block.get("name")), given if isinstance(given, dict) else {})
                names[call.id] = call.name
                yield call
            case "tool_result":
                call_id = str(block.get("tool_use_id"))
                words = "\n".join(_words(blocks(block.get("content"))))
                yield ToolResult(call_id, names.get(call_id, ""), words, block.get("is_error") is True)


def _words(content: Sequence[Body]) -> Iterator[str]:
    """Give the texts; a picture is its type in brackets, as `[image/png]`."""
    for block in content:
        source = block.get("source")
        if block.get("type") == "text":
            yield str(block.get("text", ""))
        elif block.get("type") == "image" and isinstance(source, Mapping):
            yield f"[{source.get('media_type', 'image')}]"
