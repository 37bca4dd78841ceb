"""What we know of models: windows, caps and habits, read from `config/models.yaml`."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from bot.errors import OperatorError
from bot.settings.load import packed, read_document
from bot.settings.problems import explain
from bot.settings.section import Section
from bot.settings.server import ModelName

UNKNOWN_WINDOW = 128_000
UNKNOWN_OUTPUT = 8_192
"""What a model that is not in the catalogue is taken for: small enough to be true of what is in use."""

_DATE = re.compile(r"-\d{8}\Z")


class Prices(Section):
    """What a model costs, in US dollars for a million tokens."""

    input: float = Field(ge=0, allow_inf_nan=False, description="Dollars for a million input tokens.")
    output: float = Field(ge=0, allow_inf_nan=False, description="Dollars for a million output tokens.")
    cache_read: float = Field(0, ge=0, allow_inf_nan=False, description="Dollars for a million tokens from the cache.")
    cache_write: float = Field(0, ge=0, allow_inf_nan=False, description="Dollars for a million tokens to the cache.")


class ModelEntry(Section):
    """One model."""

    name: ModelName = Field(description="`provider:name`; the same name with a date behind it is the same model.")
    window: int = Field(ge=1000, description="Tokens of input and output together.")
    output: int = Field(ge=100, description="Tokens of one reply, at most.")
    prices: Prices | None = Field(None, description="Prices that replace the published ones.")
    dialect: Literal["native", "xml", "json", "prose"] = Field("native", description="How the model calls tools.")
    thinking: Literal["none", "budget", "adaptive"] = Field("none", description="How the model can be let think.")
    caching: bool = Field(False, description="Whether prefixes of prompts can be cached.")  # noqa: FBT003 - a default
    known: bool = Field(True, exclude=True, description="False where nothing is known of the model.")  # noqa: FBT003


class _File(Section):
    version: Literal[1] = Field(description="Version of this format, 1.")
    models: tuple[ModelEntry, ...] = Field(description="Each model once.")


class Catalogue:
    """All models we know."""

    def __init__(self, entries: Mapping[str, ModelEntry]) -> None:
        self._entries = dict(entries)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all models we know, in the order of the file."""
        return tuple(self._entries)

    def entry(self, name: str) -> ModelEntry:
        """Return what is known of a model; of an unknown one a cautious guess with `known` false."""
        found = self._entries.get(name) or self._entries.get(_DATE.sub("", name))
        return found or ModelEntry(name=name, window=UNKNOWN_WINDOW, output=UNKNOWN_OUTPUT, known=False)


def load_catalogue(path: Path | None = None) -> Catalogue:
    """Read the catalogue; None is the packed one.

    Raises:
        OperatorError: with `file:line:column`.
    """
    path = path or packed("models.yaml")
    try:
        text = path.read_bytes()
    except OSError as error:
        raise OperatorError(f"{path}: cannot be read: {error.strerror}") from None
    document = read_document(text, str(path), OperatorError)
    try:
        models = _File.model_validate(document.values).models
    except ValidationError as error:
        raise OperatorError("\n".join(explain(error, _File, document.where))) from None
    return Catalogue({entry.name: entry for entry in models})
