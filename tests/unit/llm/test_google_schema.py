"""JSON Schema, reduced to what Google's API takes."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.llm.google_schema import reduced
from bot.tools.standard import standard_tools

KNOWN = {
    "type",
    "format",
    "description",
    "nullable",
    "enum",
    "items",
    "minItems",
    "maxItems",
    "properties",
    "required",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "pattern",
    "minProperties",
    "maxProperties",
    "anyOf",
}
TYPES = {"STRING", "INTEGER", "NUMBER", "BOOLEAN", "ARRAY", "OBJECT"}


def check(schema: Any) -> None:
    """Fail on what the API would answer with 400."""
    assert schema.keys() <= KNOWN
    if "anyOf" in schema:
        assert schema.keys() <= {"anyOf", "description", "nullable"}
        assert len(schema["anyOf"]) > 1
        for one in schema["anyOf"]:
            check(one)
        return
    assert schema["type"] in TYPES
    if "enum" in schema:
        assert schema["type"] == "STRING"
        assert all(isinstance(value, str) and value for value in schema["enum"])
    assert ("items" in schema) is (schema["type"] == "ARRAY")
    if "items" in schema:
        check(schema["items"])
    for inner in schema.get("properties", {}).values():
        check(inner)
    assert set(schema.get("required", ())) <= set(schema.get("properties", ()))


@pytest.mark.parametrize(
    ("given_schema", "made"),
    [
        ({}, {"type": "STRING"}),
        ({"type": "object"}, {"type": "OBJECT", "properties": {}}),
        ({"properties": {"a": True}}, {"type": "OBJECT", "properties": {"a": {"type": "STRING"}}}),
        (
            {"type": "object", "additionalProperties": False, "$schema": "x", "title": "T", "required": ["a", "b"],
             "properties": {"a": {"type": "integer", "default": 1, "minimum": 0, "exclusiveMaximum": 9}}},
            {"type": "OBJECT", "properties": {"a": {"type": "INTEGER", "minimum": 0}}, "required": ["a"]},
        ),
        ({"type": ["string", "null"]}, {"type": "STRING", "nullable": True}),
        ({"type": ["string"]}, {"type": "STRING"}),
        ({"type": "null"}, {"type": "STRING"}),
        ({"type": ["null"]}, {"type": "STRING", "nullable": True}),
        (
            {"type": ["string", "integer"], "description": "d", "minimum": 1},
            {
                "description": "d",
                "anyOf": [
                    {"type": "STRING", "description": "d", "minimum": 1},
                    {"type": "INTEGER", "description": "d", "minimum": 1},
                ],
            },
        ),
        (
            {"anyOf": [{"type": "integer", "minimum": 2}, {"type": "null"}], "description": "d", "default": None},
            {"type": "INTEGER", "description": "d", "minimum": 2, "nullable": True},
        ),
        ({"oneOf": [{"type": "string"}, {"type": "array"}]},
         {"anyOf": [{"type": "STRING"}, {"type": "ARRAY", "items": {"type": "STRING"}}]}),
        ({"type": "array", "items": {"type": "number", "format": "float"}},
         {"type": "ARRAY", "items": {"type": "NUMBER", "format": "float"}}),
        ({"type": "string", "format": "uri", "pattern": "^h"}, {"type": "STRING", "pattern": "^h"}),
        ({"type": "string", "format": "date-time"}, {"type": "STRING", "format": "date-time"}),
        ({"enum": ["a", "b"]}, {"type": "STRING", "enum": ["a", "b"]}),
        ({"const": "a"}, {"type": "STRING", "enum": ["a"]}),
        ({"type": "string", "enum": ["", "a"]}, {"type": "STRING"}),
        ({"type": "integer", "enum": [1, 2], "description": "d"}, {"type": "INTEGER", "description": "d One of: 1, 2"}),
        ({"enum": [1, "ü"]}, {"type": "STRING", "description": 'One of: 1, "ü"'}),
        (
            {"allOf": [{"properties": {"a": {"type": "string"}}, "required": ["a"]}, {"$ref": "#/$defs/B"}, True],
             "$defs": {"B": {"type": "object", "properties": {"b": {"type": "boolean"}}, "required": ["b", "a"]}}},
            {"type": "OBJECT", "properties": {"b": {"type": "BOOLEAN"}, "a": {"type": "STRING"}},
             "required": ["a", "b"]},
        ),
        (
            {"type": "object", "properties": {"n": {"$ref": "#/definitions/N", "description": "own"}},
             "definitions": {"N": {"type": "string", "description": "theirs"}}},
            {"type": "OBJECT", "properties": {"n": {"type": "STRING", "description": "own"}}},
        ),
        ({"$ref": "#/elsewhere", "description": "d"}, {"type": "OBJECT", "description": "d", "properties": {}}),
    ],
)  # fmt: skip
def test_each_word_has_its_place_or_none(given_schema: dict[str, Any], made: dict[str, Any]) -> None:
    """What the API takes is kept, what it can say otherwise is said so, the rest is left out."""
    found = reduced(given_schema)
    assert found == made
    check(found)


def test_a_schema_that_holds_itself_ends() -> None:
    """The second time round it is any object."""
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}, "v": {"type": "integer"}}}
    found = reduced({"$ref": "#/$defs/Node", "$defs": {"Node": node}})
    assert found["properties"]["next"] == {"type": "OBJECT", "properties": {}}
    check(found)
    loop = {"allOf": [{"$ref": "#/$defs/A"}]}
    check(reduced({"$ref": "#/$defs/A", "$defs": {"A": loop}}))
    check(reduced({**loop, "$defs": {"A": loop}}))


def test_our_own_tools_lose_nothing_but_defaults() -> None:
    """Names, descriptions, types and what is required are all there."""
    for tool in standard_tools():
        found = reduced(tool.spec.parameters)
        check(found)
        properties: Any = tool.spec.parameters["properties"]
        assert found["properties"].keys() == properties.keys()
        assert [p.get("description") for p in found["properties"].values()] == [
            p.get("description") for p in properties.values()
        ]
        assert found.get("required", []) == tool.spec.parameters["required"]


leaves = st.sampled_from(
    [{"type": "string"}, {"type": ["integer", "null"]}, {"enum": [1, "a"]}, {"$ref": "#/$defs/D"}, {"const": 3}, True]
)
schemas: st.SearchStrategy[Any] = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.fixed_dictionaries(
            {"type": st.just("object"), "properties": st.dictionaries(st.sampled_from("abc"), inner)},
            optional={"required": st.just(["a", "z"]), "additionalProperties": inner},
        ),
        st.fixed_dictionaries({"type": st.just("array")}, optional={"items": inner, "minItems": st.just(1)}),
        st.fixed_dictionaries({"anyOf": st.lists(inner, min_size=1, max_size=3)}, optional={"title": st.just("t")}),
        st.fixed_dictionaries({"allOf": st.lists(inner, min_size=1, max_size=3)}),
        st.fixed_dictionaries({"type": st.lists(st.sampled_from(["string", "null", "object"]), unique=True)}),
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from("abc"), schemas, max_size=3), schemas)
def test_any_schema_becomes_one_that_the_api_takes(properties: dict[str, Any], defined: Any) -> None:
    """Whatever is nested in what; the same schema gives the same bytes."""
    schema = {"type": "object", "properties": properties, "$defs": {"D": defined}}
    found = reduced(schema)
    check(found)
    assert json.dumps(found) == json.dumps(reduced(json.loads(json.dumps(schema))))
