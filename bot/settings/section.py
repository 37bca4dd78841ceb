"""What all groups of settings share: frozen, no unknown keys, lists that an environment variable can hold."""

import json
import shlex
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field


class Section(BaseModel):
    """A group of settings."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True, ser_json_inf_nan="null")


def split(value: object) -> object:
    """Turn the text of an environment variable, `a, b` or `["a", "b"]`, into a list; leave everything else alone."""
    if not isinstance(value, str):
        return value
    if value.lstrip().startswith("["):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return [part.strip() for part in value.split(",") if part.strip()]


def words(value: object) -> object:
    """Turn a command in one line, quoted as for a shell, or in JSON as a list, into its words; leave all else alone."""
    if not isinstance(value, str) or value.lstrip().startswith("["):
        return split(value)
    return shlex.split(value)


Texts = Annotated[tuple[str, ...], BeforeValidator(split)]
"""A list of texts; in an environment variable separated by commas."""
Paths = Annotated[tuple[Path, ...], BeforeValidator(split)]
"""A list of paths, as one of texts."""
CommandLine = Annotated[tuple[str, ...], BeforeValidator(words)]
"""A command and its words; no shell reads it."""


def _url(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        msg = "must be a URL that begins with https:// or http://"
        raise ValueError(msg)
    if parts.username or parts.password:
        msg = "must not hold a user name or password"
        raise ValueError(msg)
    return value.rstrip("/")


Url = Annotated[str, AfterValidator(_url)]
ModelName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*:\S+$", max_length=200)]
"""`provider:name`."""
