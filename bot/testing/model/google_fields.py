"""The fields that Google's generateContent knows, and what it says to others; pure.

A name may be spelled in camel case or in snake case; errors name places in snake case.

Source: https://ai.google.dev/api/generate-content, https://ai.google.dev/api/caching
"""

import json
import re
from collections.abc import Iterator, Mapping

from bot.testing.model.body import Body

_TYPE = "type.googleapis.com/google.ai.generativelanguage.v1beta"
_FREE = ""
"""What stands there is not looked into: a plain value, or JSON of the client's own."""


def _plain(names: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), _FREE)


FIELDS: Mapping[str, Mapping[str, str]] = {
    "GenerateContentRequest": {
        "contents": "Content",
        "systemInstruction": "Content",
        "tools": "Tool",
        "generationConfig": "GenerationConfig",
        **_plain("model toolConfig safetySettings cachedContent serviceTier store"),
    },
    "Content": {"parts": "Part", "role": _FREE},
    "Part": {
        "functionCall": "FunctionCall",
        "functionResponse": "FunctionResponse",
        "inlineData": "Blob",
        **_plain("text thought thoughtSignature fileData videoMetadata mediaResolution partMetadata"),
        **_plain("executableCode codeExecutionResult toolCall toolResponse"),
    },
    "FunctionCall": _plain("id name args"),
    "FunctionResponse": {"parts": "FunctionResponsePart", **_plain("id name response willContinue scheduling")},
    "FunctionResponsePart": {"inlineData": "Blob", "fileData": _FREE},
    "Blob": _plain("mimeType data displayName"),
    "Tool": {
        "functionDeclarations": "FunctionDeclaration",
        **_plain("googleSearch googleSearchRetrieval codeExecution urlContext fileSearch computerUse googleMaps"),
        **_plain("mcpServers"),
    },
    "FunctionDeclaration": {
        "parameters": "Schema",
        "response": "Schema",
        **_plain("name description behavior parametersJsonSchema responseJsonSchema"),
    },
    "Schema": {
        "properties": "{Schema}",
        "items": "Schema",
        "anyOf": "Schema",
        **_plain("type format title description nullable enum maxItems minItems required minProperties maxProperties"),
        **_plain("minLength maxLength pattern example propertyOrdering default minimum maximum"),
    },
    "GenerationConfig": {
        "thinkingConfig": "ThinkingConfig",
        "responseSchema": "Schema",
        **_plain("stopSequences responseMimeType responseJsonSchema responseModalities candidateCount"),
        **_plain("maxOutputTokens temperature topP topK seed presencePenalty frequencyPenalty responseLogprobs"),
        **_plain("logprobs enableEnhancedCivicAnswers speechConfig imageConfig mediaResolution"),
    },
    "ThinkingConfig": _plain("includeThoughts thinkingBudget thinkingLevel"),
}
"""Kind of a message to its fields, and each field to the kind of what stands in it; braces: under any name."""


def given(body: Body, name: str) -> object:
    """Return a field by its name in camel case, whichever way the client spelled it; None if it is absent."""
    return body.get(name, body.get(_snake(name)))


def listed(value: object) -> list[Body]:
    """Return the objects of a field that repeats; a single one may stand without its list."""
    return [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, Mapping)]


def unknown(value: object, kind: str = "GenerateContentRequest", where: str = "") -> Iterator[str]:
    """Yield what the API says to names that it does not know, and to values that are no objects.

    Args:
        value: the decoded body, or a part of it.
        kind: what stands there, a key of `FIELDS`.
        where: its place, empty for the body itself.
    """
    if isinstance(value, list):
        for number, item in enumerate(value):
            yield from unknown(item, kind, f"{where}[{number}]")
    elif not isinstance(value, Mapping):
        if value is not None:
            yield f"Invalid value at '{where}' ({_TYPE}.{kind.strip('{}')}), {json.dumps(value)}"
    elif kind.startswith("{"):
        for number, item in enumerate(value.values()):
            yield from unknown(item, kind.strip("{}"), f"{where}[{number}].value")
    else:
        for key, item in value.items():
            yield from _named(key, item, kind, where)


def _named(key: str, item: object, kind: str, where: str) -> Iterator[str]:
    fields, name = FIELDS[kind], _camel(key)
    if name not in fields:
        place = f" at '{where}'" if where else ""
        yield f'Invalid JSON payload received. Unknown name "{key}"{place}: Cannot find field.'
    elif fields[name] != _FREE:
        yield from unknown(item, fields[name], f"{where}.{_snake(name)}".removeprefix("."))


def _snake(name: str) -> str:
    return re.sub(r"[A-Z]", lambda found: f"_{found[0].lower()}", name)


def _camel(name: str) -> str:
    return re.sub(r"_([a-z])", lambda found: found[1].upper(), name)
