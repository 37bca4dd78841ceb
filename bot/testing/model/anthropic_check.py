"""Refuse what the Anthropic Messages API refuses, in its words; pure.

Only what a harness can get wrong is checked. Where no recording shows the wording it follows the API's documentation.

Source: https://docs.anthropic.com/en/api/messages, https://docs.anthropic.com/en/api/errors
"""

import json
import re
from base64 import b64decode
from collections.abc import Iterator, Mapping

from bot.testing.model.anthropic_read import blocks, lifetime
from bot.testing.model.body import Asked, Body, Rejected, mappings
from bot.testing.model.seal import seal

MAX_BYTES = 32 * 1024 * 1024
"""Source: https://docs.anthropic.com/en/api/errors#request-size-limits"""
MAX_BREAKPOINTS = 4
MIN_THINKING_TOKENS = 1024
ID = re.compile(r"[a-zA-Z0-9_-]+")
MAX_ID = 64
TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
IMAGE_TYPES = ("image/jpeg", "image/png", "image/gif", "image/webp")


def check(asked: Asked, api_key: str | None) -> Body:
    """Return the decoded body of a request for a message if the API would accept it.

    Args:
        asked: as received.
        api_key: the only key accepted; None: any.

    Raises:
        Rejected: as `check_headers`, `check_body` and `check_signatures` say; the first thing found.
    """
    check_headers(asked.headers, api_key)
    body = check_body(asked.raw)
    check_signatures(body)
    return body


def check_headers(headers: Mapping[str, str], api_key: str | None) -> None:
    """Check the headers every request needs.

    Args:
        headers: names in lower case.
        api_key: the only key accepted; None: any.

    Raises:
        Rejected: 401 without a key or with a wrong one, 400 without a version.
    """
    key = headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ")
    if not key:
        raise Rejected("x-api-key header is required", 401)
    if api_key is not None and key != api_key:
        raise Rejected("invalid x-api-key", 401)
    if not headers.get("anthropic-version"):
        raise Rejected("anthropic-version: header is required")


def check_body(raw: bytes, *, counting: bool = False) -> Body:
    """Return the decoded body if the API would accept it.

    Args:
        raw: as received.
        counting: a request that only counts tokens needs no `max_tokens`.

    Raises:
        Rejected: 400, or 413 beyond 32 MiB; the first thing found.
    """
    if len(raw) > MAX_BYTES:
        raise Rejected("Request exceeds the maximum size", 413)
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise Rejected(f"The request body is not valid JSON: {error}") from error
    if not isinstance(body, dict):
        raise Rejected("Input should be a valid dictionary")
    for fault in _faults(body, counting=counting):
        raise Rejected(fault)
    return body


def check_signatures(body: Body) -> None:
    """Refuse thinking that was not replayed as it was sent.

    Raises:
        Rejected: 400, for the first such block.
    """
    for number, message in enumerate(mappings(body.get("messages"))):
        for place, block in enumerate(blocks(message.get("content"))):
            if block.get("type") == "thinking" and block.get("signature") != seal(str(block.get("thinking"))):
                raise Rejected(f"messages.{number}.content.{place}: Invalid `signature` in `thinking` block")


def _faults(body: Body, *, counting: bool) -> Iterator[str]:
    yield from _fields(body, counting=counting)
    yield from _thinking(body)
    yield from _tools(mappings(body.get("tools")))
    for block in blocks(body.get("system")):
        if not str(block.get("text", "")):
            yield "system: text content blocks must be non-empty"
    messages = mappings(body.get("messages"))
    for number, message in enumerate(messages):
        yield from _message(number, message, last=number == len(messages) - 1)
    yield from _breakpoints(body)
    yield from _pairs(messages)


def _fields(body: Body, *, counting: bool) -> Iterator[str]:
    needed = ["model", "messages"] if counting else ["model", "max_tokens", "messages"]
    for name in needed:
        if body.get(name) is None:
            yield f"{name}: Field required"
    max_tokens = body.get("max_tokens", 1)
    if not isinstance(max_tokens, int) or isinstance(max_tokens, bool):
        yield "max_tokens: Input should be a valid integer"
    elif max_tokens < 1:
        yield "max_tokens: must be greater than or equal to 1"
    if not isinstance(body.get("messages"), list):
        yield "messages: Input should be a valid list"
    elif not body["messages"]:
        yield "messages: at least one message is required"
    elif mappings(body["messages"])[:1] and mappings(body["messages"])[0].get("role") != "user":
        yield 'messages: first message must use the "user" role'


def _thinking(body: Body) -> Iterator[str]:
    thinking, max_tokens = body.get("thinking"), body.get("max_tokens")
    if not isinstance(thinking, Mapping) or thinking.get("type") not in ("enabled", "adaptive"):
        return
    if body.get("temperature", 1) != 1:
        yield "`temperature` may only be set to 1 when thinking is enabled."
    if thinking["type"] == "adaptive":
        return
    budget, choice = thinking.get("budget_tokens"), body.get("tool_choice")
    if not isinstance(budget, int):
        yield "thinking.enabled.budget_tokens: Field required"
    elif budget < MIN_THINKING_TOKENS:
        yield "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024"
    elif isinstance(max_tokens, int) and max_tokens <= budget:
        yield "`max_tokens` must be greater than `thinking.budget_tokens`."
    if isinstance(choice, Mapping) and choice.get("type") in ("any", "tool"):
        yield "Thinking may not be enabled when tool_choice forces tool use."


def _tools(tools: list[Body]) -> Iterator[str]:
    names = [str(tool.get("name", "")) for tool in tools if "input_schema" in tool or "type" not in tool]
    for number, tool in enumerate(tools):
        if tool.get("type", "custom") != "custom":
            continue
        if not TOOL_NAME.fullmatch(str(tool.get("name", ""))):
            yield f"tools.{number}.custom.name: String should match pattern '^{TOOL_NAME.pattern}$'"
        schema = tool.get("input_schema")
        if not isinstance(schema, Mapping):
            yield f"tools.{number}.custom.input_schema: Field required"
        elif schema.get("type") != "object":
            yield f"tools.{number}.custom.input_schema.type: Input should be 'object'"
    if len(set(names)) != len(names):
        yield "tools: Tool names must be unique."


def _message(number: int, message: Body, *, last: bool) -> Iterator[str]:
    role, content = message.get("role"), message.get("content")
    if role not in ("user", "assistant", "system"):
        yield f"messages.{number}.role: Input should be 'user' or 'assistant'"
    if content is None:
        yield f"messages.{number}.content: Field required"
    elif not isinstance(content, str | list):
        yield f"messages.{number}.content: Input should be a valid list"
    elif not content and not (last and role == "assistant"):
        allowed = "except for the optional final assistant message"
        yield f"messages.{number}: all messages must have non-empty content {allowed}"
    content_blocks = blocks(content)
    for place, block in enumerate(content_blocks):
        yield from _block(f"messages.{number}.content.{place}", block, str(role))
    if last and role == "assistant" and content_blocks:
        text = content_blocks[-1].get("text")
        if isinstance(text, str) and text != text.rstrip():
            yield "messages: final assistant content cannot end with trailing whitespace"


def _block(where: str, block: Body, role: str) -> Iterator[str]:
    match block.get("type"):
        case None:
            yield f"{where}.type: Field required"
        case "text":
            yield from _text(block, blank=role == "assistant")
        case "tool_use":
            if role != "assistant":
                yield f"{where}: `tool_use` blocks can only be in `assistant` messages"
            yield from _id(f"{where}.tool_use.id", block.get("id"))
            if not isinstance(block.get("input"), Mapping):
                yield f"{where}.tool_use.input: Input should be a valid dictionary"
        case "tool_result":
            if role != "user":
                yield f"{where}: `tool_result` blocks can only be in `user` messages"
            yield from _result(f"{where}.tool_result", block)
        case "image":
            yield from _image(f"{where}.image.source.base64", block.get("source"))
        case "thinking" | "redacted_thinking" as kind if "cache_control" in block:
            yield f"{where}.{kind}.cache_control: Extra inputs are not permitted"


def _result(where: str, block: Body) -> Iterator[str]:
    yield from _id(f"{where}.tool_use_id", block.get("tool_use_id"))
    for inner in blocks(block.get("content")) if block.get("content") else []:
        if block.get("is_error") is True and inner.get("type") != "text":
            yield f"{where}: all content must be type 'text' if 'is_error' is true"
        yield from _block(f"{where}.content", inner, "user")


def _image(where: str, source: object) -> Iterator[str]:
    if not isinstance(source, Mapping) or source.get("type") != "base64":
        return
    if source.get("media_type") not in IMAGE_TYPES:
        yield f"{where}.media_type: Input should be {IMAGE_TYPES}"
    try:
        b64decode(str(source.get("data") or "?"), validate=True)
    except ValueError:
        yield f"{where}.data: The image data is not valid base64"


def _text(block: Body, *, blank: bool = False) -> Iterator[str]:
    """Check a text; recorded traffic shows that an assistant's own text may be `blank`."""
    text = block.get("text")
    if not isinstance(text, str) or not text:
        yield "messages: text content blocks must be non-empty"
    elif not blank and not text.strip():
        yield "messages: text content blocks must contain non-whitespace text"


def _id(where: str, value: object) -> Iterator[str]:
    if not isinstance(value, str):
        yield f"{where}: Field required"
    elif not ID.fullmatch(value):
        yield f"{where}: String should match pattern '^[a-zA-Z0-9_-]+$'"
    elif len(value) > MAX_ID:
        yield f"{where}: String should have at most {MAX_ID} characters"


def _breakpoints(body: Body) -> Iterator[str]:
    content = [block for message in mappings(body.get("messages")) for block in blocks(message.get("content"))]
    marked = [*mappings(body.get("tools")), *blocks(body.get("system")), *content, body]
    lifetimes = [found for block in marked if (found := lifetime(block))]
    if len(lifetimes) > MAX_BREAKPOINTS:
        yield f"A maximum of 4 blocks with cache_control may be provided. Found {len(lifetimes)}."
    if "5m" in lifetimes and "1h" in lifetimes[lifetimes.index("5m") :]:
        yield "A ttl='1h' cache_control block must not come after a ttl='5m' cache_control block."


def _pairs(messages: list[Body]) -> Iterator[str]:
    """Each call is answered first thing in the next user message; messages of one role in a row count as one."""
    merged = list(_merged(messages))
    seen: set[object] = set()
    for place, (number, role, content) in enumerate(merged):
        if role == "user":
            yield from _answers(number, content, _ids(merged[place - 1][2], "tool_use", "id") if place else [])
            continue
        calls = _ids(content, "tool_use", "id")
        if seen & set(calls) or len(set(calls)) != len(calls):
            yield "messages: `tool_use` ids must be unique"
        seen |= set(calls)
        answered = _leading_results(merged[place + 1][2]) if place + 1 < len(merged) else []
        if missing := [str(call) for call in calls if call not in answered]:
            yield (
                f"messages.{number}: `tool_use` ids were found without `tool_result` blocks immediately after: "
                f"{', '.join(missing)}. Each `tool_use` block must have a corresponding `tool_result` block "
                "in the next message."
            )


def _answers(number: int, content: list[Body], calls: list[object]) -> Iterator[str]:
    seen: set[object] = set()
    for place, block in enumerate(content):
        if block.get("type") != "tool_result":
            continue
        call = block.get("tool_use_id")
        if call not in calls:
            yield (
                f"messages.{number}.content.{place}: unexpected `tool_use_id` found in `tool_result` blocks: {call}. "
                "Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
            )
        if call in seen:
            yield (
                f"messages.{number}.content.{place}: each tool_use must have a single result. "
                f"Found multiple `tool_result` blocks with id: {call}"
            )
        seen.add(call)


def _merged(messages: list[Body]) -> Iterator[tuple[int, str, list[Body]]]:
    """Yield number, role and blocks; a `system` message in the middle stands apart from the turns."""
    number, role, content = 0, "", list[Body]()
    for place, message in enumerate(messages):
        if message.get("role") == "system":
            continue
        if content and message.get("role") != role:
            yield number, role, content
            content = []
        if not content:
            number, role = place, str(message.get("role"))
        content = [*content, *blocks(message.get("content"))]
    if content:
        yield number, role, content


def _ids(content: list[Body], kind: str, field: str) -> list[object]:
    return [block.get(field) for block in content if block.get("type") == kind]


def _leading_results(content: list[Body]) -> list[object]:
    """Return the calls answered before the first block that is no result."""
    found: list[object] = []
    for block in content:
        if block.get("type") != "tool_result":
            break
        found.append(block.get("tool_use_id"))
    return found
