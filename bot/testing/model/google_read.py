"""Read the body of a generateContent request; pure. `google_check` has approved it before."""

import json
from collections.abc import Iterator, Mapping
from itertools import groupby

from bot.testing.model.body import Body, spelled
from bot.testing.model.cache import Segment
from bot.testing.model.google_fields import given, listed
from bot.testing.model.request import NO_CAP, Message, Part, Request, Text, ToolCall, ToolResult, heard_as

AUTOMATIC = "5m"
"""Each block may end a cached prefix: Google caches by itself."""


def read_request(body: Body) -> Request:
    """Return the request in no vendor's words: what one side says at a time is one message; thoughts are left out."""
    names: dict[str, str] = {}
    messages: list[Message] = []
    contents = listed(given(body, "contents"))
    for is_model, group in groupby(contents, key=lambda content: content.get("role") == "model"):
        parts = [part for content in group for part in _parts(content, names)]
        messages += [Message("assistant", tuple(parts))] if is_model else heard_as(parts)
    config = next(iter(listed(given(body, "generationConfig"))), {})
    thinking = next(iter(listed(given(config, "thinkingConfig"))), {})
    cap = given(config, "maxOutputTokens")
    declared = [one for tool in listed(given(body, "tools")) for one in listed(given(tool, "functionDeclarations"))]
    system = next(iter(listed(given(body, "systemInstruction"))), {})
    return Request(
        model=str(body.get("model", "")),
        messages=tuple(messages),
        system="\n".join(str(part.get("text", "")) for part in listed(system.get("parts"))),
        tools=tuple(str(one.get("name", "")) for one in declared),
        stream=body.get("stream") is True,
        thinking=given(thinking, "includeThoughts") is True,
        max_tokens=cap if isinstance(cap, int) else NO_CAP,
    )


def segments(body: Body) -> list[Segment]:
    """Return the prompt as the cache sees it."""
    fixed = [body.get("model"), given(body, "systemInstruction"), given(body, "tools")]
    said = [Segment(spelled(content), AUTOMATIC) for content in listed(given(body, "contents"))]
    return [Segment(spelled(fixed), AUTOMATIC), *said]


def _parts(content: Body, names: dict[str, str]) -> Iterator[Part]:
    """Yield the parts of one content; `names` collects the tool of each call id for the results to come."""
    for part in listed(content.get("parts")):
        for call in listed(given(part, "functionCall")):
            identifier, name, arguments = str(call.get("id", "")), str(call.get("name")), call.get("args")
            names[identifier] = name
            yield ToolCall(identifier, name, arguments if isinstance(arguments, Mapping) else {})
        for result in listed(given(part, "functionResponse")):
            response = result.get("response")
            told = response if isinstance(response, Mapping) else {}
            identifier = str(result.get("id", ""))
            name = names.get(identifier, str(result.get("name")))
            words = "\n".join([_words(told), *(seen for one in listed(result.get("parts")) for seen in _pictures(one))])
            yield ToolResult(identifier, name, words, is_error="error" in told)
        if part.get("text") and part.get("thought") is not True:
            yield Text(str(part["text"]))
        yield from map(Text, _pictures(part))


def _pictures(part: Body) -> Iterator[str]:
    """Give a picture as its type in brackets, as `[image/png]`."""
    for blob in listed(given(part, "inlineData")):
        yield f"[{given(blob, 'mimeType')}]"


def _words(response: Body) -> str:
    """Return what a tool answered: the API's documented fields, or the whole object as JSON."""
    told = response.get("error", response.get("output", response))
    return told if isinstance(told, str) else json.dumps(told, ensure_ascii=False)
