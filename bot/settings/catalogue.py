"""What we know of models: windows, caps and habits, read from `config/models.yaml`."""

import re
from collections.abc import Mapping
from datetime import date
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, ValidationError

from bot.errors import OperatorError
from bot.settings.problems import explain
from bot.settings.reading import packed, read_document
from bot.settings.section import ModelName, Section, Url

UNKNOWN_WINDOW = 128_000
UNKNOWN_OUTPUT = 8_192
"""What a model that is not in the catalogue is taken for: small enough to be true of what is in use."""

_DATE = re.compile(r"-\d{8}\Z")


def _or_unknown(value: object) -> object:
    return None if value == "unknown" else value


class Prices(Section):
    """What a model costs, in US dollars for a million tokens."""

    input: float = Field(ge=0, allow_inf_nan=False, description="Dollars for a million input tokens.")
    output: float = Field(ge=0, allow_inf_nan=False, description="Dollars for a million output tokens.")
    cache_read: float = Field(0, ge=0, allow_inf_nan=False, description="Dollars for a million tokens from the cache.")
    cache_write: float = Field(0, ge=0, allow_inf_nan=False, description="Dollars for a million tokens to the cache.")


class ModelEntry(Section):
    """One model."""

    name: ModelName = Field(description="`provider:name`; the same name with a date behind it is the same model.")
    vendor: str | None = Field(
        None, description="Whose figures `genai-prices` has for it. `null` is the provider of the name."
    )
    window: int | None = Field(
        None, ge=1000, description="Tokens of input and output together. `null` is what `genai-prices` says."
    )
    output: Annotated[int | None, BeforeValidator(_or_unknown)] = Field(
        None, ge=100, description="Tokens of one reply, at most, or `unknown`."
    )
    prices: Prices | None = Field(None, description="Prices that replace the published ones.")
    dialect: Literal["native", "xml", "json", "prose"] = Field("native", description="How the model calls tools.")
    thinking: Literal["none", "budget", "adaptive", "effort"] = Field(
        "none", description="How the model's thinking is measured; `adaptive` and `effort`: by itself."
    )
    caching: bool = Field(False, description="Whether prefixes of prompts can be cached.")  # noqa: FBT003 - a default
    images: bool = Field(False, description="Whether the model sees pictures.")  # noqa: FBT003 - a default
    source: Url | None = Field(None, description="Where the figures of this entry were read.")
    read_on: date | None = Field(None, description="The day on which they were read.")
    known: bool = Field(True, exclude=True, description="False where nothing is known of the model.")  # noqa: FBT003


class Defaults(Section):
    """Which model does what where the operator says nothing."""

    act: ModelName = Field(description="The model that does the work.")
    plan: ModelName = Field(description="The model that plans it.")


class _File(Section):
    version: Literal[1] = Field(description="Version of this format, 1.")
    defaults: Defaults | None = Field(None, description="The model for each mode; only the packed file has it.")
    models: tuple[ModelEntry, ...] = Field(description="Each model once.")


class Catalogue:
    """All models we know."""

    def __init__(self, entries: Mapping[str, ModelEntry], defaults: Defaults | None = None) -> None:
        self._entries = dict(entries)
        self.defaults = defaults

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all models we know, in the order of the file."""
        return tuple(self._entries)

    def entry(self, name: str) -> ModelEntry:
        """Return what is known of a model; of an unknown one a cautious guess with `known` false."""
        found = self._entries.get(name) or self._entries.get(_DATE.sub("", name))
        # Not checked: a command may ask for a name that the operator's pattern lets through and that is none.
        return found or ModelEntry.model_construct(name=name, known=False)


def load_catalogue(own: Path | None = None) -> Catalogue:
    """Read the packed catalogue, with the operator's file in front of it.

    Raises:
        OperatorError: with `file:line:column`.
    """
    packed_file = _read(packed("models.yaml"))
    models = (*packed_file.models, *(_read(own).models if own else ()))
    return Catalogue({entry.name: entry for entry in models}, packed_file.defaults)


@cache
def default_model(mode: Literal["act", "plan"]) -> str:
    """Return the model that does this where the operator says nothing."""
    defaults = load_catalogue().defaults
    if defaults is None:
        raise OperatorError("the packed catalogue of models names no defaults")
    return str(getattr(defaults, mode))


def _read(path: Path) -> _File:
    try:
        text = path.expanduser().read_bytes()
    except OSError as error:
        raise OperatorError(f"{path}: cannot be read: {error.strerror}") from None
    document = read_document(text, str(path), OperatorError)
    try:
        return _File.model_validate(document.values)
    except ValidationError as error:
        raise OperatorError("\n".join(explain(error, _File, document.where))) from None
