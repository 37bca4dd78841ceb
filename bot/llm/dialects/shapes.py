"""Parameters of a tool between text and JSON values, as its schema has them."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import cast

from bot.domain.messages import ToolCall, ToolSpec, Unreadable

FREE = frozenset(
    {"body", "code", "content", "diff", "message", "new", "new_text", "old", "old_text", "patch", "summary", "text"}
)
"""Names of parameters that hold free text, mostly of many lines; a schema says so of others with `"x-raw": true`."""


_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "array": list,
    "boolean": bool,
    "integer": int,
    "null": type(None),
    "number": (int, float),
    "object": dict,
}
_DEEP = "nested too deep"


class Shape:
    """What one tool takes."""

    def __init__(self, tool: ToolSpec) -> None:
        self.name = tool.name
        self.description = tool.description
        # The schema of an object, as `ToolSpec` promises.
        self._properties = cast("Mapping[str, Mapping[str, object]]", tool.parameters.get("properties", {}))
        self.names: Sequence[str] = tuple(self._properties)
        needed = cast("Sequence[str]", tool.parameters.get("required", ()))
        self.required: Sequence[str] = tuple(name for name in self.names if name in needed)

    @property
    def allowed(self) -> str:
        """The names of all parameters; optional ones with `?`."""
        return ", ".join(name if name in self.required else f"{name}?" for name in self.names) or "none"

    def is_free(self, name: str) -> bool:
        """Whether a parameter is text of any length."""
        found = self._properties.get(name, {})
        return found.get("type") == "string" and (name in FREE or found.get("x-raw") is True)

    @property
    def heading(self) -> str:
        """The tool and what it is for."""
        return f"## {self.name}\n{self.description}"

    @property
    def options(self) -> str:
        """Lines on what must be given and is no string, on what may be left out, and on what the schema describes."""
        needed = [self._described(name) for name in self.required if self._kind(name) != "string"]
        optional = [self._described(name) for name in self.names if name not in self.required]
        lines = [f"{word}: {', '.join(named)}" for word, named in (("Needed", needed), ("Optional", optional)) if named]
        meant = {name: found["description"] for name, found in self._properties.items() if "description" in found}
        return "".join(f"\n{line}" for line in [*lines, *(f"`{name}`: {meaning}" for name, meaning in meant.items())])

    def value(self, name: str, text: str) -> object:
        """Turn what was written into the value that the schema asks for.

        A string stays as it is. Where the schema names no type, what is no JSON is a string.

        Raises:
            ValueError: it is of another type; the text says so.
        """
        kind = self._kind(name)
        if kind == "string":
            return text
        try:
            found = strict(text)
        except ValueError as error:
            if not kind:
                return text
            raise ValueError(f"`{name}` must be {kind}: {error}") from None
        if not _is(kind, found):
            raise ValueError(f"`{name}` must be {kind}")
        return found

    def spelled(self, name: str, value: object) -> str:
        """Write a value such that `value` gives it back."""
        kind = self._kind(name)
        if isinstance(value, str) and (kind == "string" or (not kind and not _is_json(value))):
            return value
        return json.dumps(value, ensure_ascii=False)

    def _described(self, name: str) -> str:
        found = self._properties[name]
        default = f", else {json.dumps(found['default'])}" if "default" in found else ""
        return f"`{name}` ({_outlined(found)}{default})"

    def _kind(self, name: str) -> str:
        """Return the one type of a parameter; empty where the schema allows several or names none."""
        kind = self._properties.get(name, {}).get("type")
        return kind if isinstance(kind, str) else ""


class Given:
    """What a call has given so far."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self._values: dict[str, object] = {}

    def add(self, name: str, text: str) -> None:
        """Add a parameter as it was written.

        Raises:
            ValueError: the tool does not know it, it is given twice, or it is of another type.
        """
        if name not in self.shape.names:
            raise ValueError(f"unknown parameter `{name}`; allowed: {self.shape.allowed}")
        if name in self._values:
            raise ValueError(f"`{name}` is given twice")
        self._values[name] = self.shape.value(name, text)

    @property
    def missing(self) -> Sequence[str]:
        """What the tool needs and has not got, in the order of its schema."""
        return [name for name in self.shape.required if name not in self._values]

    @property
    def arguments(self) -> str:
        """All values as a JSON object."""
        return json.dumps(self._values)


def shapes(tools: Sequence[ToolSpec]) -> Mapping[str, Shape]:
    """Return the shapes of the tools, sorted by name."""
    return {tool.name: Shape(tool) for tool in sorted(tools, key=lambda tool: tool.name)}


def strict(text: str) -> object:
    """Read JSON in which no name is given twice and every number is one.

    Raises:
        ValueError: it is none.
    """
    try:
        value: object = json.loads(text, object_pairs_hook=_once, parse_constant=_refuse, parse_float=_finite)
    except RecursionError:
        raise ValueError(_DEEP) from None
    if _is_deep(value):
        raise ValueError(_DEEP)
    return value


def told(call: ToolCall) -> tuple[str, Mapping[str, object] | None]:
    """Return what a model wrote as a call of the transcript, and the arguments in it; None where it has none."""
    unreadable = Unreadable.found_in(call.arguments)
    text = (call.arguments or "{}") if unreadable is None else unreadable.written
    return text, arguments_of(text)


def arguments_of(text: str) -> Mapping[str, object] | None:
    """Read a JSON object; None where there is none."""
    try:
        value = strict(text)
    except ValueError:
        return None
    return cast("Mapping[str, object]", value) if isinstance(value, dict) else None


class UnfitError(ValueError):
    """The JSON is whole, but must not be used: it names something twice, or has a number that is none."""


def _outlined(schema: object) -> str:
    """Say in a few words what a schema asks for: its type, and what lists and objects hold."""
    found = schema if isinstance(schema, dict) else {}
    kind, inner = found.get("type", "JSON"), found.get("properties")
    if kind == "array" and "items" in found:
        return f"array of {_outlined(found['items'])}"
    if kind == "object" and isinstance(inner, dict):
        needed = found.get("required", ())
        words = [f"{json.dumps(name)}{'' if name in needed else '?'}: {_outlined(one)}" for name, one in inner.items()]
        return f"{{{', '.join(words)}}}"
    return " or ".join(map(str, kind)) if isinstance(kind, list) else str(kind)


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise UnfitError("a name is given twice")
    return made


def _refuse(constant: str) -> object:
    raise UnfitError(f"{constant} is no JSON")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise UnfitError(f"{text[:40]} is too large a number")
    return value


def _is_deep(value: object, room: int = 100) -> bool:
    """Say whether a value is nested so deep that writing it might fail where reading did not."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return room == 0 or any(_is_deep(item, room - 1) for item in inner)


def _is_json(text: str) -> bool:
    try:
        strict(text)
    except ValueError:
        return False
    return True


def _is(kind: str, value: object) -> bool:
    """Say whether a value is of a type of JSON Schema; a type that is none takes anything."""
    if kind not in _TYPES:
        return True
    return kind == "boolean" if isinstance(value, bool) else isinstance(value, _TYPES[kind])
