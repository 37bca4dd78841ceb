"""Refuse what OpenAI's two APIs refuse, in their words; pure.

Only what a harness can get wrong is checked. Where no recording shows the wording it follows the API's documentation.

Source: https://platform.openai.com/docs/api-reference/responses, https://platform.openai.com/docs/api-reference/chat,
https://platform.openai.com/docs/guides/error-codes
"""

import json
import re
from collections.abc import Iterator, Mapping

from bot.testing.model.body import Asked, Body, Rejected, mappings
from bot.testing.model.seal import seal

MAX_ID = 64
NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
DATA_URL = re.compile(r"data:image/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+={0,2}")
KINDS = ("input_text", "input_image", "input_file")
ROLES = ("system", "developer", "user", "assistant", "tool")


def responses(asked: Asked, api_key: str | None) -> Body:
    """Return the decoded body of a request to the Responses API if it would accept it.

    Raises:
        Rejected: as `check_key`, `decode` and `check_responses` say; the first thing found.
    """
    check_key(asked.headers, api_key)
    body = decode(asked.raw)
    check_responses(body)
    return body


def chat(asked: Asked, api_key: str | None) -> Body:
    """Return the decoded body of a request for a chat completion if the API would accept it.

    Raises:
        Rejected: as `check_key`, `decode` and `check_chat` say; the first thing found.
    """
    check_key(asked.headers, api_key)
    body = decode(asked.raw)
    check_chat(body)
    return body


def check_key(headers: Mapping[str, str], api_key: str | None) -> None:
    """Check the key, as a bearer or as Azure sends it.

    Args:
        headers: names in lower case.
        api_key: the only key accepted; None: any, also none.

    Raises:
        Rejected: 401.
    """
    given = headers.get("api-key") or headers.get("authorization", "").removeprefix("Bearer ")
    if api_key is not None and given != api_key:
        raise Rejected(
            f"Incorrect API key provided: {given[:3]}***." if given else "You didn't provide an API key.", 401
        )


def decode(raw: bytes) -> Body:
    """Return the decoded body.

    Raises:
        Rejected: 400.
    """
    try:
        body = json.loads(raw)
        raw.decode()
    except (ValueError, RecursionError) as error:
        raise Rejected(f"We could not parse the JSON body of your request: {error}") from error
    if not isinstance(body, dict):
        raise Rejected("Invalid type for request body: expected an object.")
    if _has_nul(body):
        raise Rejected("Invalid body: failed to parse: unsupported Unicode escape sequence")
    return body


def check_responses(body: Body) -> None:
    """Check a request to the Responses API.

    Raises:
        Rejected: 400; the first thing found.
    """
    for fault in _responses(body):
        raise Rejected(fault)


def check_chat(body: Body) -> None:
    """Check a request for a chat completion.

    Raises:
        Rejected: 400; the first thing found.
    """
    for fault in _chat(body):
        raise Rejected(fault)


def _responses(body: Body) -> Iterator[str]:
    yield from _needed(body, "model", "input")
    if body.get("store") is not False:
        yield "Invalid 'store': a harness stores nothing here."
    for number, tool in enumerate(mappings(body.get("tools"))):
        yield from _tool(f"tools[{number}]", tool)
    items = mappings(body.get("input"))
    for number, item in enumerate(items):
        yield from _item(f"input[{number}]", item, items[number + 1 : number + 2])
    calls = [str(item.get("call_id")) for item in items if item.get("type") == "function_call"]
    outputs = [str(item.get("call_id")) for item in items if item.get("type") == "function_call_output"]
    yield from _paired(calls, outputs)


def _item(where: str, item: Body, following: list[Body]) -> Iterator[str]:
    match item.get("type", "message"):
        case "message":
            if item.get("role") not in ROLES[:-1]:
                yield f"Invalid value: '{item.get('role')}'. Supported values are: {ROLES[:-1]}."
            if not item.get("content"):
                yield f"Invalid '{where}.content': empty."
            yield from _pieces(f"{where}.content", item.get("content"), *KINDS, "output_text", "refusal")
        case "reasoning":
            yield from _reasoning(item, following)
        case "function_call":
            yield from _named(f"{where}.name", item.get("name"))
            yield from _id(f"{where}.call_id", item.get("call_id"))
            yield from _object(f"{where}.arguments", item.get("arguments"))
        case "function_call_output":
            yield from _id(f"{where}.call_id", item.get("call_id"))
            if not isinstance(item.get("output"), str | list):
                yield f"Missing required parameter: '{where}.output'."
            yield from _pieces(f"{where}.output", item.get("output"), *KINDS)
        case kind:
            yield f"Invalid value: '{kind}'."


def _reasoning(item: Body, following: list[Body]) -> Iterator[str]:
    said = "\n\n".join(str(piece.get("text")) for piece in mappings(item.get("summary")))
    if item.get("encrypted_content") != seal(said):
        yield f"The encrypted content for item {item.get('id')} could not be verified."
    led_to = following[0] if following else {}
    is_followed = led_to.get("role") == "assistant" or led_to.get("type") in ("function_call", "reasoning")
    if not is_followed:
        yield f"Item '{item.get('id')}' of type 'reasoning' was provided without its required following item."


def _chat(body: Body) -> Iterator[str]:
    yield from _needed(body, "model", "messages")
    for number, tool in enumerate(mappings(body.get("tools"))):
        function = tool.get("function")
        yield from _tool(f"tools[{number}].function", function if isinstance(function, Mapping) else {})
    waiting: list[str] = []
    for number, message in enumerate(mappings(body.get("messages"))):
        where, role = f"messages[{number}]", message.get("role")
        if role not in ROLES:
            yield f"Invalid value: '{role}'. Supported values are: {ROLES}."
        if role == "tool":
            if message.get("tool_call_id") not in waiting:
                yield (
                    f"Invalid parameter: messages with role 'tool' must be a response to a preceding message with "
                    f"'tool_calls' ({where})."
                )
            waiting = [call for call in waiting if call != message.get("tool_call_id")]
            yield from _pieces(f"{where}.content", message.get("content"), "text")
            continue
        if waiting:
            yield (
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
                f"'tool_call_id'. The following tool_call_ids did not have response messages: {', '.join(waiting)}"
            )
        waiting = [str(call.get("id")) for call in mappings(message.get("tool_calls"))]
        yield from _calls(where, message)
        shown = ("image_url", "input_audio", "file") if role == "user" else ("refusal",)
        yield from _pieces(f"{where}.content", message.get("content"), "text", *shown)
        if not waiting and not message.get("content"):
            yield f"Invalid value for 'content': expected a string, got null ({where})."
    if waiting:
        yield "An assistant message with 'tool_calls' must be followed by tool messages."


def _pieces(where: str, content: object, *kinds: str) -> Iterator[str]:
    """Check content that came in pieces; a text has none."""
    for place, piece in enumerate(mappings(content)):
        kind, url = piece.get("type"), piece.get("image_url", "")
        if kind not in kinds:
            yield f"Invalid value: '{kind}'. Supported values are: {kinds} ({where}[{place}])."
        if kind == "input_image" and "detail" not in piece:
            yield f"Missing required parameter: '{where}[{place}].detail'."
        url = url.get("url") if isinstance(url, Mapping) else url
        if str(url).startswith("data:") and not DATA_URL.fullmatch(str(url)):
            yield f"Invalid '{where}[{place}].image_url'. Expected a valid URL, but got a value with an invalid format."


def _calls(where: str, message: Body) -> Iterator[str]:
    calls = mappings(message.get("tool_calls"))
    ids = [str(call.get("id")) for call in calls]
    if len(set(ids)) != len(ids):
        yield f"Duplicate tool_call_id in {where}."
    for place, call in enumerate(calls):
        function = call.get("function")
        told = function if isinstance(function, Mapping) else {}
        yield from _id(f"{where}.tool_calls[{place}].id", call.get("id"))
        yield from _named(f"{where}.tool_calls[{place}].function.name", told.get("name"))
        yield from _object(f"{where}.tool_calls[{place}].function.arguments", told.get("arguments"))


def _needed(body: Body, *names: str) -> Iterator[str]:
    for name in names:
        if body.get(name) is None:
            yield f"Missing required parameter: '{name}'."


def _tool(where: str, tool: Body) -> Iterator[str]:
    yield from _named(f"{where}.name", tool.get("name"))
    parameters = tool.get("parameters")
    if not isinstance(parameters, Mapping) or parameters.get("type") != "object":
        yield f"Invalid schema for function '{tool.get('name')}': schema must be a JSON Schema of 'type: \"object\"'."


def _named(where: str, name: object) -> Iterator[str]:
    if not isinstance(name, str) or not NAME.fullmatch(name):
        yield f"Invalid '{where}': string does not match pattern. Expected a string that matches '^[a-zA-Z0-9_-]+$'."


def _id(where: str, value: object) -> Iterator[str]:
    if not isinstance(value, str) or len(value) > MAX_ID:
        yield f"Invalid '{where}': string too long. Expected a string with maximum length {MAX_ID}."
    elif not ID.fullmatch(value):
        yield f"Invalid '{where}'."


def _object(where: str, arguments: object) -> Iterator[str]:
    """Check arguments as servers do that parse them again for their template."""
    try:
        value = json.loads(arguments) if isinstance(arguments, str) else None
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict) or _has_nul(value):
        yield f"Invalid '{where}': expected the JSON of an object."


def _has_nul(value: object) -> bool:
    """Whether a text or a key has a NUL, which no database behind an API takes."""
    if isinstance(value, str):
        return "\0" in value
    if isinstance(value, Mapping):
        return any(_has_nul(key) or _has_nul(inner) for key, inner in value.items())
    return isinstance(value, list) and any(map(_has_nul, value))


def _paired(calls: list[str], outputs: list[str]) -> Iterator[str]:
    for call in calls:
        if call not in outputs:
            yield f"No tool output found for function call {call}."
    for output in outputs:
        if output not in calls:
            yield f"No tool call found for function call output with call_id {output}."
    for name, ids in (("call", calls), ("output", outputs)):
        if len(set(ids)) != len(ids):
            yield f"Duplicate item found: more than one function {name} has the same call_id."
