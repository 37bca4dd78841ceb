"""Refuse the schemas of tools that Google's API refuses, in its words; pure.

Source: https://ai.google.dev/api/caching#Schema
"""

from collections.abc import Iterator, Mapping

from bot.testing.model.body import Body
from bot.testing.model.google_fields import given, listed

_TYPES = ("STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL")
_FORMATS = {"STRING": ("enum", "date-time"), "INTEGER": ("int32", "int64"), "NUMBER": ("float", "double")}


def check_schema(schema: Body, where: str) -> Iterator[str]:
    """Yield what is wrong with one schema and all within it; unknown names are told by `google_fields`.

    Args:
        schema: of an object or of anything within one.
        where: its place, from `tools` on.
    """
    kind = str(given(schema, "type") or "").upper()
    if kind and kind not in _TYPES:
        yield f"Invalid value at '{where}.type' (type.googleapis.com/google.ai.generativelanguage.v1beta.Type), {kind}"
    if kind == "ARRAY" and not given(schema, "items"):
        yield f"{where}.items: missing field."
    form = given(schema, "format")
    if form and kind in _FORMATS and form not in _FORMATS[kind]:
        allowed = " and ".join(f"'{one}'" for one in _FORMATS[kind])
        yield f"{where}.format: only {allowed} are supported for {kind} type"
    yield from _enum(schema, kind, where)
    yield from _within(schema, where)


def _enum(schema: Body, kind: str, where: str) -> Iterator[str]:
    values = given(schema, "enum")
    if not isinstance(values, list):
        return
    if kind != "STRING":
        yield f"{where}.enum: only allowed for STRING type"
    for number, value in enumerate(values):
        if not isinstance(value, str):
            yield f"Invalid value at '{where}.enum[{number}]' (TYPE_STRING), {value}"
        elif not value:
            yield f"{where}.enum[{number}]: cannot be empty"


def _within(schema: Body, where: str) -> Iterator[str]:
    properties = given(schema, "properties")
    named = properties if isinstance(properties, Mapping) else {}
    required = given(schema, "required")
    for number, name in enumerate(required if isinstance(required, list) else []):
        if name not in named:
            yield f"{where}.required[{number}]: property is not defined"
    for name, inner in named.items():
        yield from check_schema(inner, f"{where}.properties[{name}]")
    for inner in listed(given(schema, "items")):
        yield from check_schema(inner, f"{where}.items")
    for number, inner in enumerate(listed(given(schema, "anyOf"))):
        yield from check_schema(inner, f"{where}.any_of[{number}]")
