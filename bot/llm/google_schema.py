"""JSON Schema in the words that Google's API takes: no references, no unions of types, enums of texts only; pure.

Source: https://ai.google.dev/api/caching#Schema
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from bot.llm.clean import clean_json

Schema = dict[str, Any]  # Any: JSON

_KEPT = (
    "description",
    "minItems",
    "maxItems",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "pattern",
    "minProperties",
    "maxProperties",
)
_FORMATS = {
    "STRING": ("date-time", "enum"),
    "INTEGER": ("int32", "int64"),
    "NUMBER": ("float", "double"),
}
"""What may stand in `format`; the API answers another one with 400."""
_TYPES = ("string", "integer", "number", "boolean", "array", "object")
_REFERENCE = ("#/$defs/", "#/definitions/")


def reduced(schema: Mapping[str, Any]) -> Schema:
    """Return what the API takes of a schema: as much of its meaning as can be said, and nothing unknown.

    References are replaced by what they point at, a reference to itself by any object; `null` among the types becomes
    `nullable`, other alternatives `anyOf`; an enum that is not of texts goes into the description.

    Raises:
        ValueError: nested deeper than 64.
    """
    defined = {**schema.get("definitions", {}), **schema.get("$defs", {})}
    return _Reducer(defined).reduce(clean_json(schema), frozenset())


class _Reducer:
    def __init__(self, defined: Mapping[str, Any]) -> None:
        self._defined = clean_json(defined)

    def reduce(self, schema: object, seen: frozenset[str]) -> Schema:
        if not isinstance(schema, Mapping):  # `true`: anything
            return {"type": "STRING"}
        if isinstance(reference := schema.get("$ref"), str):
            return self._followed(reference, schema, seen)
        if parts := schema.get("allOf"):
            followed = {part["$ref"] for part in parts if isinstance(part, Mapping) and "$ref" in part}
            told = [self._shallow(part, seen) for part in parts]
            return self.reduce(_merged([{**schema, "allOf": None}, *told]), seen | followed)
        variants = schema.get("anyOf") or schema.get("oneOf") or _types(schema)
        if len(variants) != 1 or variants[0] is not schema:
            return self._any_of(schema, variants, seen)
        return self._plain(schema, seen)

    def _followed(self, reference: str, schema: Mapping[str, Any], seen: frozenset[str]) -> Schema:
        target = self._target(reference)
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        if target is None or reference in seen:
            return self.reduce({"type": "object", **beside}, seen)
        return self.reduce({**target, **beside}, seen | {reference})

    def _target(self, reference: str) -> Mapping[str, Any] | None:
        name = next((reference.removeprefix(start) for start in _REFERENCE if reference.startswith(start)), "")
        target = self._defined.get(name)
        return target if isinstance(target, Mapping) else None

    def _shallow(self, part: object, seen: frozenset[str]) -> Mapping[str, Any]:
        """Return one of `allOf` with its own reference followed."""
        if not isinstance(part, Mapping):
            return {}
        reference = part.get("$ref")
        if isinstance(reference, str) and reference not in seen:
            return {**(self._target(reference) or {}), **{key: value for key, value in part.items() if key != "$ref"}}
        return part

    def _any_of(self, schema: Mapping[str, Any], variants: Sequence[Any], seen: frozenset[str]) -> Schema:
        beside = {key: value for key, value in schema.items() if key not in ("anyOf", "oneOf", "type")}
        real = [variant for variant in variants if not _is_null(variant)]
        if len(real) == 1:
            made = self.reduce(_merged([beside, real[0]]) if isinstance(real[0], Mapping) else beside, seen)
        elif not real:
            made = {"type": "STRING"}
        else:
            made = {"anyOf": [self.reduce(variant, seen) for variant in real]}
            if "description" in schema:
                made = {"description": schema["description"], **made}
        return {**made, "nullable": True} if len(real) < len(variants) else made

    def _plain(self, schema: Mapping[str, Any], seen: frozenset[str]) -> Schema:
        made: Schema = {"type": _type(schema).upper(), **{key: schema[key] for key in _KEPT if key in schema}}
        if schema.get("format") in _FORMATS.get(made["type"], ()):
            made["format"] = schema["format"]
        made |= _enum(schema, made)
        if made["type"] == "ARRAY":
            made["items"] = self.reduce(schema.get("items", True), seen)
        elif made["type"] == "OBJECT":
            properties = schema.get("properties") or {}
            made["properties"] = {name: self.reduce(inner, seen) for name, inner in properties.items()}
            if required := [name for name in schema.get("required") or () if name in properties]:
                made["required"] = required
        return made


def _types(schema: Mapping[str, Any]) -> Sequence[Any]:
    """Return one schema for each of the types, or the schema itself where it has one type or none."""
    types = schema.get("type")
    if not isinstance(types, list):
        return (schema,)
    return [{**schema, "type": one} for one in types]


def _is_null(schema: object) -> bool:
    return isinstance(schema, Mapping) and schema.get("type") == "null"


def _type(schema: Mapping[str, Any]) -> str:
    """Return the type, or the one that the other words tell of."""
    if schema.get("type") in _TYPES:
        return str(schema["type"])
    if "properties" in schema:
        return "object"
    return "array" if "items" in schema else "string"


def _enum(schema: Mapping[str, Any], made: Schema) -> Schema:
    """Return the allowed values: as an enum if they are texts, in words if not."""
    values = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if not isinstance(values, list) or not values:
        return {}
    if made["type"] == "STRING" and all(isinstance(value, str) for value in values):
        return {"enum": values} if all(values) else {}
    told = "One of: " + ", ".join(json.dumps(value, ensure_ascii=False) for value in values)
    return {"description": f"{made['description']} {told}" if made.get("description") else told}


def _merged(schemas: Sequence[Mapping[str, Any]]) -> Schema:
    """Return one schema that says what all of them say; the earlier one wins where they differ."""
    made: Schema = {}
    for schema in schemas:
        for key, value in schema.items():
            if value is None:
                continue
            if key == "properties":
                made[key] = {**value, **made.get(key, {})}
            elif key == "required":
                made[key] = [*made.get(key, []), *(name for name in value if name not in made.get(key, []))]
            else:
                made.setdefault(key, value)
    return made
