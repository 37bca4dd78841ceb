"""Say in one sentence what is wrong with a setting, where it stands and what was probably meant."""

import difflib
from collections.abc import Callable, Mapping
from typing import get_args

from pydantic import BaseModel, SecretStr, ValidationError

Key = tuple[str | int, ...]
"""The way to a value: names of keys, and positions in lists from 0."""


def dotted(key: Key) -> str:
    """Write a key as people do, `checks[0].run`."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in key)
    return text.removeprefix(".")


def quoted(text: str) -> str:
    """Put foreign text into a Markdown code span that it cannot leave, at most 80 characters of it."""
    shown = "".join(char if char.isprintable() and char != "`" else "\N{REPLACEMENT CHARACTER}" for char in text)
    return f"`{shown[:80]}{'…' if len(shown) > 80 else ''}`"  # noqa: PLR2004 - the length named above


def hint(name: str, known: Mapping[str, object]) -> str:
    """Name what was probably meant, else all that there is."""
    close = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.6)
    if close:
        return f"did you mean `{close[0]}`?"
    return "known here: " + ", ".join(f"`{key}`" for key in known)


def _inner(annotation: object) -> type[BaseModel] | None:
    """Find the group of settings inside an annotation as `tuple[Check, ...]`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for argument in get_args(annotation):
        if found := _inner(argument):
            return found
    return None


def group_at(model: type[BaseModel], key: Key) -> type[BaseModel] | None:
    """Return the group of settings to which a key belongs."""
    group: type[BaseModel] | None = model
    for part in key[:-1]:
        if isinstance(part, str) and group is not None:
            field = group.model_fields.get(part)
            group = _inner(field.annotation) if field else None
    return group


def secret_keys(model: type[BaseModel], above: tuple[str, ...] = ()) -> tuple[tuple[str, ...], ...]:
    """Return the keys of all secrets in a group of settings and the groups inside it."""
    found: list[tuple[str, ...]] = []
    for name, field in model.model_fields.items():
        if inner := _inner(field.annotation):
            found += secret_keys(inner, (*above, name))
        elif field.annotation is SecretStr or SecretStr in get_args(field.annotation):
            found.append((*above, name))
    return tuple(found)


def explain(error: ValidationError, model: type[BaseModel], where: Callable[[Key], str]) -> list[str]:
    """Turn what pydantic found into sentences, each beginning with the place; values are not repeated.

    Args:
        error: what pydantic raised for `model`.
        model: says which keys there are.
        where: names the place of a key for people, as `config/server.yaml:3:5`.
    """
    lines = []
    for item in error.errors(include_url=False, include_context=False, include_input=False):
        key: Key = item["loc"]
        name = quoted(dotted(key) or "the file")
        if item["type"] == "extra_forbidden":
            group = group_at(model, key)
            known = group.model_fields if group else {}
            lines.append(f"{where(key)}: {name}: no such key; {hint(str(key[-1]), known)}")
        elif item["type"] == "missing":
            lines.append(f"{where(key)}: {name}: is missing")
        elif item["type"] in {"model_type", "model_attributes_type"}:
            lines.append(f"{where(key)}: {name}: is a group of settings, not a value")
        else:
            text = item["msg"].removeprefix("Value error, ")
            lines.append(f"{where(key)}: {name}: {text[:1].lower()}{text[1:]}")
    return lines
