"""Refuse what Google's generateContent refuses, in its words; pure.

Only what a harness can get wrong is checked. Where no recording shows the wording it is that of reports of users, or
follows the API's documentation.

Source: https://ai.google.dev/api/generate-content, https://ai.google.dev/gemini-api/docs/thought-signatures,
https://ai.google.dev/gemini-api/docs/troubleshooting
"""

import base64
import json
import re
from collections.abc import Iterator, Mapping
from itertools import groupby
from operator import itemgetter

from bot.testing.model.body import Asked, Body, Rejected
from bot.testing.model.google_fields import given, listed, unknown
from bot.testing.model.google_schema_check import check_schema
from bot.testing.model.seal import opened

MAX_BYTES = 20 * 1024 * 1024
"""Source: https://ai.google.dev/gemini-api/docs/files"""
STREAM = "streamGenerateContent"
NO_KEY = (
    "Method doesn't allow unregistered callers (callers without established identity). Please use API Key or other "
    "form of API consumer identity to call this API."
)
WRONG_KEY = "API key not valid. Please pass a valid API key."
UNSEALED = (
    "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, "
    "and missing thought_signature may lead to degraded model performance. Additional data, function call "
    "`default_api:{name}` , position {position}. Please refer to "
    "https://ai.google.dev/gemini-api/docs/thought-signatures for more details."
)
UNEQUAL = (
    "Please ensure that the number of function response parts is equal to the number of function call parts of the "
    "function call turn."
)
FIRST = "Please ensure that function call turn comes immediately after a user turn or after a function response turn."
AFTER = "Please ensure that function response turn comes immediately after a function call turn."
PASSES = frozenset({"skip_thought_signature_validator", "context_engineering_is_the_way_to_go"})
"""Stand for the seal of a call that another model made. Source: the page on thought signatures, its FAQ"""
PICTURES = frozenset({"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"})
"""Source: https://ai.google.dev/gemini-api/docs/image-understanding"""
_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}")
_PATH = re.compile(r"/v1(?:beta)?/(?P<model>.+):(?P<method>\w+)")
_SEALING = 3
"""The first generation of models whose calls need their seals."""

Turns = list[tuple[str, list[tuple[int, Body]]]]
"""Role and parts of what one side says at a time; contents of one role in a row count as one."""


def check(asked: Asked, api_key: str | None) -> Body:
    """Return the decoded body if the API would accept it, with what the path says in `model` and `stream`.

    Args:
        asked: as received.
        api_key: the only key accepted; None: any.

    Raises:
        Rejected: 403 without a key, else 400; the first thing found.
    """
    check_key(asked.headers, asked.query, api_key)
    body = check_body(asked.raw, asked.path)
    if body["stream"] and asked.query.get("alt") != "sse":
        raise Rejected("The scripted model streams events only, not a list: ask with `alt=sse`.")
    return body


def check_key(headers: Mapping[str, str], query: Mapping[str, str], api_key: str | None) -> None:
    """Check the key, in its header or in the address.

    Args:
        headers: names in lower case.
        query: what stands behind the `?`.
        api_key: the only key accepted; None: any.

    Raises:
        Rejected: 403 without one, 400 with a wrong one.
    """
    key = headers.get("x-goog-api-key") or query.get("key")
    if not key:
        raise Rejected(NO_KEY, 403)
    if api_key is not None and key != api_key:
        raise Rejected(WRONG_KEY)


def check_body(raw: bytes, path: str) -> Body:
    """Return the decoded body, with what the path says in `model` (without `models/`) and `stream`.

    Raises:
        Rejected: 400; the first thing found.
    """
    if len(raw) > MAX_BYTES:
        raise Rejected(f"Request payload size exceeds the limit: {MAX_BYTES} bytes.")
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise Rejected(f"Invalid JSON payload received. {error}") from error
    if not isinstance(body, dict):
        raise Rejected('Invalid JSON payload received. Unknown name "": Root element must be a message.')
    found = _PATH.fullmatch(path)
    model = found["model"].removeprefix("models/") if found else ""
    for fault in _faults(body, model):
        raise Rejected(fault)
    return {**body, "model": model, "stream": found is not None and found["method"] == STREAM}


def _faults(body: Body, model: str) -> Iterator[str]:
    yield from unknown(body)
    yield from _config(body)
    for number, tool in enumerate(listed(given(body, "tools"))):
        yield from _tool(f"tools[{number}]", tool)
    contents = listed(given(body, "contents"))
    if not contents:
        yield "* GenerateContentRequest.contents: contents is not specified\n"
    for number, content in enumerate(contents):
        yield from _content(f"contents[{number}]", content)
    sided = groupby(_said(contents), key=itemgetter(0))
    turns = [(role, [(place, part) for _, place, part in said]) for role, said in sided]
    yield from _pairs(turns)
    yield from _seals(turns, needed=_needs_seals(model))


def _config(body: Body) -> Iterator[str]:
    where = "* GenerateContentRequest.generation_config"
    for config in listed(given(body, "generationConfig")):
        cap = given(config, "maxOutputTokens")
        if cap is not None and (not isinstance(cap, int) or cap < 1):
            yield f"{where}.max_output_tokens: max_output_tokens must be positive.\n"
        for thinking in listed(given(config, "thinkingConfig")):
            budget = given(thinking, "thinkingBudget")
            if budget is not None and (not isinstance(budget, int) or budget < -1):
                yield f"The thinking budget ({budget}) is invalid."


def _tool(where: str, tool: Body) -> Iterator[str]:
    names: set[object] = set()
    for number, declared in enumerate(listed(given(tool, "functionDeclarations"))):
        place = f"* GenerateContentRequest.{where}.function_declarations[{number}]"
        name = declared.get("name")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            yield (
                f"{place}.name: Invalid function name. Must start with a letter or an underscore. Must be alphameric "
                "(a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 64.\n"
            )
        if name in names:
            yield f"Duplicate function declaration found: {name}"
        names.add(name)
        for schema in listed(given(declared, "parameters")):
            for fault in check_schema(schema, f"{place}.parameters"):
                yield f"{fault}\n"


def _content(where: str, content: Body) -> Iterator[str]:
    if content.get("role") not in (None, "user", "model"):
        yield "Please use a valid role: user, model."
    parts = listed(content.get("parts"))
    if not parts:
        yield f"* GenerateContentRequest.{where}.parts: contents.parts must not be empty.\n"
    for number, part in enumerate(parts):
        place = f"* GenerateContentRequest.{where}.parts[{number}]"
        if not set(part) - {"thought", "thoughtSignature", "thought_signature", "partMetadata"}:
            yield f"{place}.data: required oneof field 'data' must have one initialized field\n"
        for field, name in (("functionCall", "function_call"), ("functionResponse", "function_response")):
            for one in listed(given(part, field)):
                if not one.get("name"):
                    yield f"{place}.{name}.name: Name cannot be empty.\n"
                for inner in listed(one.get("parts")):
                    yield from _picture(f"{where}.parts[{number}].{name}.parts", inner)
        yield from _picture(f"{where}.parts[{number}]", part)


def _picture(where: str, part: Body) -> Iterator[str]:
    for blob in listed(given(part, "inlineData")):
        kind, data = given(blob, "mimeType"), blob.get("data")
        if kind not in PICTURES:
            yield f"Unsupported MIME type: {kind}"
        try:
            base64.b64decode(str(data), validate=True)
        except ValueError:
            yield f"Invalid value at '{where}.inline_data.data' (TYPE_BYTES), Base64 decoding failed for \"{data}\""


def _said(contents: list[Body]) -> Iterator[tuple[str, int, Body]]:
    """Yield each part with its role and the place of its content, from 1 on as the API counts."""
    for place, content in enumerate(contents, 1):
        for part in listed(content.get("parts")):
            yield "model" if content.get("role") == "model" else "user", place, part


def _pairs(turns: Turns) -> Iterator[str]:
    """Each call is answered by one result in the next turn, and nothing else is."""
    calls: list[Body] = []
    for number, (role, parts) in enumerate(turns):
        results = [one for _, part in parts for one in listed(given(part, "functionResponse"))]
        if results and not calls:
            yield AFTER
        if len(results) != len(calls) or _unasked(calls, results):
            yield UNEQUAL
        calls = [one for _, part in parts for one in listed(given(part, "functionCall"))] if role == "model" else []
        if calls and number == 0:
            yield FIRST
    if calls:
        yield UNEQUAL


def _unasked(calls: list[Body], results: list[Body]) -> list[Body]:
    """Return the results that belong to no call: by id where they have one, else by name."""
    asked = {(call.get("id"), call.get("name")) for call in calls}
    names = {call.get("name") for call in calls}
    return [
        one
        for one in results
        if ((one["id"], one.get("name")) not in asked if one.get("id") else one.get("name") not in names)
    ]


def _seals(turns: Turns, *, needed: bool) -> Iterator[str]:
    """A seal that comes back is one of ours, and on its own call; the current turn's first calls need theirs."""
    begun = max((n for n, (role, parts) in enumerate(turns) if role == "user" and not _answers(parts)), default=0)
    for number, (_, parts) in enumerate(turns):
        is_first = True
        for place, part in parts:
            sealed, calls = given(part, "thoughtSignature"), listed(given(part, "functionCall"))
            if sealed is None:
                if calls and is_first and needed and number > begun:
                    yield UNSEALED.format(name=calls[0].get("name"), position=place)
            elif sealed not in PASSES:
                words = opened(str(sealed))
                if words is None or any(call.get("id", words) != words for call in calls):
                    yield "Corrupted thought signature."
            is_first = is_first and not calls


def _answers(parts: list[tuple[int, Body]]) -> bool:
    return any(given(part, "functionResponse") for _, part in parts)


def _needs_seals(model: str) -> bool:
    """Whether calls of this model need them; a name that tells no generation is taken for a new one."""
    found = re.search(r"gemini-(\d+)", model)
    return found is None or int(found[1]) >= _SEALING
