"""What Google's API refuses is refused by the scripted model too, and what it took is taken."""

import copy
import json
from typing import Any

import httpx
import pytest

from bot.testing.model.body import Rejected
from bot.testing.model.google_check import NO_KEY, WRONG_KEY, check_body
from bot.testing.model.google_read import read_request, segments
from bot.testing.model.play import play
from bot.testing.model.script import Turn
from bot.testing.model.seal import letter
from bot.testing.model.server import ScriptedModel
from tests.model.test_openai_wires import one
from tests.unit.llm.cassettes import Json
from tests.unit.llm.google_traffic import talks

DECLARED: Json = {"name": "run", "description": "Run", "parameters": {"type": "OBJECT", "properties": {}}}
TOOLS: Any = [{"function_declarations": [DECLARED]}]
GO: Json = {"role": "user", "parts": [{"text": "Go"}]}
ASK: Json = {"contents": [GO], "tools": TOOLS}
CALL: Json = {"functionCall": {"name": "run", "args": {}, "id": "a"}, "thoughtSignature": letter("a")}
SECOND: Json = {"functionCall": {"name": "run", "args": {}, "id": "b"}}
RESULT: Json = {"functionResponse": {"name": "run", "id": "a", "response": {"output": "ok"}}}
OTHER: Json = {"functionResponse": {"name": "run", "id": "b", "response": {"output": "ok"}}}
PASS = "skip_thought_signature_validator"
KEY = {"x-goog-api-key": "k"}
PATH = "/v1beta/models/gemini-3-pro:generateContent"


def said(role: str, *parts: Json) -> Json:
    """Contents of one side."""
    return {"role": role, "parts": list(parts)}


def picture(kind: str, data: str = "aGk=") -> Json:
    """A part with a picture."""
    return {"inlineData": {"mimeType": kind, "data": data}}


def shown(kind: str) -> Json:
    """A result with a picture."""
    return {"functionResponse": {**RESULT["functionResponse"], "parts": [picture(kind)]}}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ([], "Root element must be a message"),
        ({**ASK, "contents": []}, "contents is not specified"),
        ({"tools": TOOLS}, "contents is not specified"),
        ({"contents": "Go"}, "Invalid value at 'contents'"),
        ({"contents": [said("assistant", {"text": "x"})]}, "valid role: user, model"),
        ({"contents": [said("user")]}, "contents[0].parts: contents.parts must not be empty"),
        ({"contents": [said("user", {"thought": True})]}, "parts[0].data: required oneof field 'data'"),
        ({**ASK, "max_tokens": 5}, 'Unknown name "max_tokens": Cannot find field'),
        ({"contents": [{**GO, "content": "x"}]}, "Unknown name \"content\" at 'contents[0]'"),
        ({"contents": [said("user", {"text": "x", "cache_control": {}})]}, "at 'contents[0].parts[0]'"),
        ({**ASK, "generationConfig": {"max_tokens": 5}}, "at 'generation_config'"),
        ({**ASK, "generationConfig": {"maxOutputTokens": 0}}, "max_output_tokens must be positive"),
        ({**ASK, "generationConfig": {"thinkingConfig": {"thinkingBudget": -2}}}, "thinking budget (-2) is invalid"),
        ({"contents": [said("user", picture("image/gif"))]}, "Unsupported MIME type: image/gif"),
        (
            {"contents": [said("user", picture("image/png", "?"))]},
            "contents[0].parts[0].inline_data.data' (TYPE_BYTES)",
        ),
        (
            {"contents": [GO, said("model", CALL), said("user", shown("image/gif"))]},
            "Unsupported MIME type: image/gif",
        ),
        # Calls and their results.
        ({"contents": [GO, said("model", CALL)]}, "number of function response parts is equal"),
        ({"contents": [GO, said("model", CALL), GO]}, "number of function response parts is equal"),
        ({"contents": [GO, said("model", CALL, SECOND), said("user", RESULT)]}, "number of function response parts"),
        ({"contents": [GO, said("model", CALL), said("user", RESULT, RESULT)]}, "number of function response parts"),
        (
            {"contents": [GO, said("model", CALL), said("user", {"functionResponse": {"name": "other", "id": "a"}})]},
            "number of function response parts",
        ),
        ({"contents": [said("user", RESULT)]}, "function response turn comes immediately after a function call turn"),
        ({"contents": [said("model", CALL), said("user", RESULT)]}, "function call turn comes immediately after"),
        ({"contents": [GO, said("model", {"functionCall": {}})]}, "function_call.name: Name cannot be empty"),
        # Seals.
        (
            {"contents": [GO, said("model", SECOND, CALL), said("user", OTHER, RESULT)]},
            "missing a thought_signature in functionCall parts",
        ),
        (
            {"contents": [GO, said("model", {**CALL, "thoughtSignature": "bm8="}), said("user", RESULT)]},
            "Corrupted thought signature",
        ),
        (
            {"contents": [GO, said("model", {**CALL, "thoughtSignature": letter("b")}), said("user", RESULT)]},
            "Corrupted thought signature",
        ),
        ({"contents": [GO, said("model", {"text": "", "thoughtSignature": "x"}), GO]}, "Corrupted thought signature"),
    ],
)
async def test_what_the_api_refuses_is_refused(body: Any, words: str) -> None:
    """With 400, in its words, and the test is told."""
    async with (
        ScriptedModel(one(Turn(text="x"))) as model,
        httpx.AsyncClient(base_url=model.base_url("google"), headers=KEY) as http,
    ):
        answer = await http.post(PATH, json=body)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["status"]) == (400, 400, "INVALID_ARGUMENT")
    assert words in error["message"]
    assert answer.headers["x-scripted-model"] == "true"
    assert len(model.problems) == 1


def declaring(**fields: Any) -> Json:
    """A request with one tool."""
    return {**ASK, "tools": [{"functionDeclarations": [{**DECLARED, **fields}]}]}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"name": "1st"}, "name: Invalid function name. Must start with a letter"),
        ({"name": "a b"}, "tools[0].function_declarations[0].name: Invalid function name"),
        ({"name": "x" * 65}, "maximum length of 64"),
        ({"input_schema": {}}, "Unknown name \"input_schema\" at 'tools[0].function_declarations[0]'"),
        ({"parameters": {"type": "OBJECT", "additionalProperties": False}}, 'Unknown name "additionalProperties"'),
        (
            {"parameters": {"type": "OBJECT", "properties": {"a": {"type": "STRING", "const": "x"}}}},
            "Unknown name \"const\" at 'tools[0].function_declarations[0].parameters.properties[0].value'",
        ),
        ({"parameters": {"type": "list"}}, ".parameters.type' (type.googleapis.com"),
        ({"parameters": {"type": "ARRAY"}}, "parameters.items: missing field"),
        ({"parameters": {"type": "ARRAY", "items": {"type": "ARRAY"}}}, "parameters.items.items: missing field"),
        ({"parameters": {"anyOf": [{"type": "STRING", "format": "uri"}]}}, "any_of[0].format: only 'enum' and 'date"),
        ({"parameters": {"type": "INTEGER", "enum": ["1"]}}, "enum: only allowed for STRING type"),
        ({"parameters": {"type": "STRING", "enum": [""]}}, "enum[0]: cannot be empty"),
        ({"parameters": {"type": "STRING", "enum": [1]}}, "enum[0]' (TYPE_STRING), 1"),
        ({"parameters": {"type": "OBJECT", "required": ["a"]}}, "required[0]: property is not defined"),
    ],
)
def test_a_tool_that_the_api_refuses_is_refused(fields: Json, words: str) -> None:
    """By its name, and by what its schema says."""
    with pytest.raises(Rejected) as caught:
        check_body(json.dumps(declaring(**fields)).encode(), PATH)
    assert words in str(caught.value)


def test_two_tools_of_one_name_are_refused() -> None:
    """And a body that is no JSON, or too large."""
    twice = {**ASK, "tools": [{"functionDeclarations": [DECLARED, DECLARED]}]}
    for raw, words in (
        (json.dumps(twice).encode(), "Duplicate function declaration found: run"),
        (b"{", "Invalid JSON payload received"),
        (b"[" * 100_000, "Invalid JSON payload received"),
        (b" " * (20 * 1024 * 1024 + 1), "payload size exceeds the limit"),
    ):
        with pytest.raises(Rejected, match=words):
            check_body(raw, PATH)


@pytest.mark.parametrize(
    ("model", "contents"),
    [
        ("gemini-2.5-pro", [GO, said("model", SECOND, CALL), said("user", OTHER, RESULT)]),
        ("gemini-3-pro", [GO, said("model", {**SECOND, "thoughtSignature": PASS}), said("user", OTHER)]),
        ("gemini-3-pro", [GO, said("model", SECOND), said("user", OTHER), said("model", {"text": "Done."}), GO]),
    ],
)
def test_a_call_without_a_seal_passes_where_it_may(model: str, contents: list[Json]) -> None:
    """For a model before Gemini 3, with the word that stands for it, and in a turn that is over."""
    raw = json.dumps({"contents": contents}).encode()
    assert check_body(raw, f"/v1beta/models/{model}:generateContent")["model"] == model


async def test_a_key_is_needed() -> None:
    """In its header or in the address; a wrong one is told apart from none, and is not kept."""
    async with (
        ScriptedModel(one(Turn(text="Hello")), api_key="k") as model,
        httpx.AsyncClient(base_url=model.url) as http,
    ):
        answers = [
            await http.post(PATH, json=ASK, headers=headers, params=query)
            for headers, query in ((KEY, {}), ({}, {"key": "k"}), ({}, {}), ({"x-goog-api-key": "wrong"}, {}))
        ]
        listed = await http.post(PATH.replace("generate", "streamGenerate"), json=ASK, headers=KEY)
    assert [answer.status_code for answer in answers] == [200, 200, 403, 400]
    told = [answer.json()["error"] for answer in answers[2:]]
    assert [error["message"] for error in told] == [NO_KEY, WRONG_KEY]
    assert [error["status"] for error in told] == ["PERMISSION_DENIED", "INVALID_ARGUMENT"]
    assert told[1]["details"][0]["reason"] == "API_KEY_INVALID"
    assert "alt=sse" in listed.json()["error"]["message"]
    assert not {"k", "wrong"} & {value for request in model.requests for value in request.headers.values()}
    assert {request.path for request in model.requests} == {PATH, PATH.replace("generate", "streamGenerate")}


def test_what_the_real_api_took_is_taken() -> None:
    """Every recorded request that was answered passes the check and can be read, once its seals are ours."""
    taken = 0
    for talk in talks():
        if talk.status != 200:
            continue
        sent = copy.deepcopy(talk.request)
        contents = sent["contents"] if isinstance(sent["contents"], list) else [sent["contents"]]
        parts = [part for content in contents for part in content["parts"]]
        for part in parts:
            for name in {"thoughtSignature", "thought_signature"} & set(part):
                call = part.get("functionCall", part.get("function_call", {}))
                part[name] = letter(call.get("id", ""))
        model = next((chunk["modelVersion"] for chunk in talk.chunks if "modelVersion" in chunk), "")
        body = check_body(json.dumps(sent).encode(), f"/v1beta/models/{model}:generateContent")
        assert segments(body)
        play(one(Turn(text="x")), read_request(body))
        taken += 1
    assert taken == 115
