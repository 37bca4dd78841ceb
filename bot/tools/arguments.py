"""Arguments of a tool: one model checks them and gives the schema that the provider sees."""

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from bot.domain.messages import ToolSpec
from bot.errors import MalformedCall


class Arguments(BaseModel):
    """Base of all; nothing is converted, nothing unknown is let through."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def _plain(path: str) -> str:
    """Write a path in one way, so that it names the same entry of the ledger; `..` is kept for the kernel to judge."""
    return PurePosixPath(path).as_posix() if path else path


RelativePath = Annotated[str, AfterValidator(_plain), Field(max_length=4096)]
"""Relative to the workspace; whether it stays inside is the sandbox's to judge."""

Words = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
"""What people read: more than blanks."""

Made = TypeVar("Made", bound=Arguments)


def parse(kind: type[Made], arguments: Mapping[str, object]) -> Made:
    """Check the arguments of one call.

    Raises:
        ToolError: names what is wrong and what is allowed.
    """
    try:
        return kind.model_validate(dict(arguments))
    except ValidationError as error:
        wrong = [f"{'.'.join(map(str, item['loc'])) or 'arguments'}: {item['msg']}" for item in error.errors()]
        allowed = ", ".join(_described(kind))
        raise MalformedCall(f"bad_arguments: {'; '.join(wrong)}. Allowed: {allowed}") from None


def _described(kind: type[Arguments]) -> list[str]:
    return [name if field.is_required() else f"{name}?" for name, field in kind.model_fields.items()]


def specify(name: str, description: str, kind: type[Arguments]) -> ToolSpec:
    """Describe a tool in as few tokens as possible: no titles, no bounds, nothing that the check says anyway."""
    schema = kind.model_json_schema()
    return ToolSpec(name, description, _slim(schema, schema.get("$defs", {})))


def _slim(schema: Mapping[str, Any], defined: Mapping[str, Any]) -> dict[str, Any]:
    """Keep what the model needs, with references replaced by what they point at."""
    found = defined[schema["$ref"].removeprefix("#/$defs/")] if "$ref" in schema else schema
    kept = {word: found[word] for word in ("type", "description", "default") if word in found}
    if "properties" in found:
        kept.pop("description", None)
        kept["properties"] = {key: _slim(one, defined) for key, one in found["properties"].items()}
        kept["required"] = found.get("required", [])
    if "items" in found:
        kept["items"] = _slim(found["items"], defined)
    return kept
