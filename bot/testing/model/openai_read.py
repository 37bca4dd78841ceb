"""Read the bodies of OpenAI's two kinds of request; pure. `openai_check` has approved them before."""

import json
from collections.abc import Iterator, Mapping
from itertools import groupby

from bot.testing.model.body import Body, mappings, spelled
from bot.testing.model.cache import Segment
from bot.testing.model.request import NO_CAP, Message, Part, Request, Text, ToolCall, ToolResult, heard_as

FAILED = "error"
"""With this word begins the text of a failed result, since the wire has no field for that; in lower case."""
AUTOMATIC = "5m"
"""Each block may end a cached prefix: OpenAI caches by itself."""


def read_responses(body: Body) -> Request:
    """Return a request to the Responses API in no vendor's words: what one side says at a time is one message."""
    names: dict[str, str] = {}
    sided = [(_side(item), item) for item in mappings(body.get("input")) if item.get("type") != "reasoning"]
    messages: list[Message] = []
    for side, group in groupby(sided, key=lambda pair: pair[0]):
        parts = [part for _, item in group for part in _item_parts(item, names)]
        messages += [Message("assistant", tuple(parts))] if side == "assistant" else heard_as(parts)
    cap, include = body.get("max_output_tokens"), body.get("include")
    return Request(
        model=str(body.get("model", "")),
        messages=tuple(messages),
        system=str(body.get("instructions") or ""),
        tools=tuple(str(tool.get("name", "")) for tool in mappings(body.get("tools"))),
        stream=body.get("stream") is True,
        thinking=isinstance(include, list) and "reasoning.encrypted_content" in include,
        max_tokens=cap if isinstance(cap, int) else NO_CAP,
    )


def read_chat(body: Body) -> Request:
    """Return a request for a chat completion in no vendor's words; results and the words after them are one message."""
    names: dict[str, str] = {}
    messages: list[Message] = []
    system: list[str] = []
    heard: list[Part] = []
    for message in mappings(body.get("messages")):
        match message.get("role"):
            case "assistant":
                messages += [*heard_as(heard), Message("assistant", tuple(_said(message, names)))]
                heard = []
            case "tool":
                heard.append(_result(message.get("tool_call_id"), message.get("content"), names))
            case "user":
                heard.append(Text(_words(message.get("content"))))
            case _:
                system.append(_words(message.get("content")))
    cap = body.get("max_completion_tokens") or body.get("max_tokens")
    functions = [tool.get("function") for tool in mappings(body.get("tools"))]
    return Request(
        model=str(body.get("model", "")),
        messages=(*messages, *heard_as(heard)),
        system="\n".join(system),
        tools=tuple(str(function.get("name", "")) for function in functions if isinstance(function, Mapping)),
        stream=body.get("stream") is True,
        thinking="reasoning_effort" in body,
        max_tokens=cap if isinstance(cap, int) else NO_CAP,
    )


def counts_usage(body: Body) -> bool:
    """Whether the client of a chat completion asked for the usage at the end of a stream."""
    options = body.get("stream_options")
    return isinstance(options, Mapping) and options.get("include_usage") is True


def segments(body: Body, conversation: str) -> list[Segment]:
    """Return the prompt as the cache sees it.

    Args:
        body: of either kind.
        conversation: the key of what was said, `input` or `messages`.
    """
    fixed = {key: body.get(key) for key in ("model", "tools", "instructions")}
    said = [Segment(spelled(item), AUTOMATIC) for item in mappings(body.get(conversation))]
    return [Segment(spelled(fixed), AUTOMATIC), *said]


def _side(item: Body) -> str:
    is_user = item.get("role") == "user" or item.get("type") == "function_call_output"
    return "user" if is_user else "assistant"


def _item_parts(item: Body, names: dict[str, str]) -> Iterator[Part]:
    match item.get("type", "message"):
        case "function_call":
            yield _call(item.get("call_id"), item, names)
        case "function_call_output":
            yield _result(item.get("call_id"), item.get("output"), names)
        case _:
            yield Text(_words(item.get("content")))


def _said(message: Body, names: dict[str, str]) -> Iterator[Part]:
    if words := _words(message.get("content")):
        yield Text(words)
    for call in mappings(message.get("tool_calls")):
        function = call.get("function")
        yield _call(call.get("id"), function if isinstance(function, Mapping) else {}, names)


def _call(identifier: object, function: Body, names: dict[str, str]) -> ToolCall:
    """Return a call; `names` collects the tool of each id for the results to come."""
    name = names[str(identifier)] = str(function.get("name"))
    arguments = json.loads(str(function.get("arguments")))
    return ToolCall(str(identifier), name, arguments)


def _result(identifier: object, content: object, names: dict[str, str]) -> ToolResult:
    words = _words(content)
    return ToolResult(str(identifier), names.get(str(identifier), ""), words, words.lower().startswith(FAILED))


def _words(content: object) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(map(_piece, mappings(content)))


def _piece(piece: Body) -> str:
    """Return the text of a piece; a picture is its type in brackets, as `[image/png]`."""
    if "image_url" not in piece:
        return str(piece.get("text", ""))
    url = piece["image_url"]
    url = url.get("url") if isinstance(url, Mapping) else url
    return f"[{str(url).removeprefix('data:').partition(';')[0]}]"
