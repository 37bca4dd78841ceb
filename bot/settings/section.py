"""What all groups of settings share: frozen, no unknown keys, lists that an environment variable can hold."""

import json
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict


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


Texts = Annotated[tuple[str, ...], BeforeValidator(split)]
"""A list of texts; in an environment variable separated by commas."""
Paths = Annotated[tuple[Path, ...], BeforeValidator(split)]
"""A list of paths, as one of texts."""
