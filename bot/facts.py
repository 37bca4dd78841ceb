"""What we know of a model, from the catalogue and from published figures; None stands for unknown."""

from dataclasses import dataclass

from bot.domain.messages import Usage
from bot.llm.meter import PriceOf
from bot.llm.prices import Price, price_usd, window_tokens
from bot.settings.catalogue import UNKNOWN_OUTPUT, UNKNOWN_WINDOW, Catalogue
from bot.settings.server import ServerSettings

REPLY_TOKENS = 64_000
"""No reply is asked to be longer: what a model may write has to be kept free in its window."""
_SAMPLE_TOKENS = 1000
"""A request so small that no model has a higher price for it."""


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What `issuewright models` shows of a model."""

    name: str
    window: int | None
    """Tokens of input and output together."""
    output: int | None
    """Tokens of one reply, at most."""
    input_usd: float | None
    """For a million tokens that no cache knows."""
    output_usd: float | None
    """For a million tokens."""
    dialect: str
    thinking: str
    caching: bool
    images: bool
    known: bool
    """Whether the catalogue has it."""


def known_as(settings: ServerSettings, name: str) -> str:
    """Return the name under which a model is known: a deployment's name says nothing of the model behind it."""
    told = {
        "azure": settings.azure.facts_of,
        "bedrock": settings.bedrock.facts_of,
        "vertex": settings.vertex.facts_of,
    }
    return told.get(name.partition(":")[0]) or name


def window_of(settings: ServerSettings, catalogue: Catalogue, name: str) -> int | None:
    """Return the window of a model in tokens."""
    known = known_as(settings, name)
    entry = catalogue.entry(known)
    if entry.window is not None:
        return entry.window
    provider, _, model = known.partition(":")
    vendor = entry.vendor or provider
    return None if vendor == "openai-chat" else window_tokens(f"{vendor}:{model}")


def usable_window(settings: ServerSettings, catalogue: Catalogue, name: str) -> int:
    """Return the window of a model in tokens, a cautious guess where it is not known."""
    return window_of(settings, catalogue, name) or UNKNOWN_WINDOW


def reply_cap(settings: ServerSettings, catalogue: Catalogue, name: str) -> int:
    """Return the tokens that one reply may have: never more than a quarter of the window."""
    output = catalogue.entry(known_as(settings, name)).output
    return min(output or UNKNOWN_OUTPUT, REPLY_TOKENS, usable_window(settings, catalogue, name) // 4)


def price(settings: ServerSettings, catalogue: Catalogue) -> PriceOf:
    """Make what tells the price of a request in US dollars; None where it is not known."""

    def tell(name: str, usage: Usage) -> float | None:
        known = known_as(settings, name)
        entry = catalogue.entry(known)
        if own := entry.prices:
            return Price(own.input, own.output, own.cache_read, own.cache_write).of(usage)
        if not known.startswith("openai-chat:"):
            return price_usd(known, usage)
        # What such a server takes is told by whose it is; only where none is named yet by whose the model is.
        if (address := settings.openai_chat.base_url) is not None:
            return price_usd(known, usage, api_url=address)
        return price_usd(f"{entry.vendor or ''}:{known.partition(':')[2]}", usage)

    return tell


def facts_of(settings: ServerSettings, catalogue: Catalogue, name: str) -> ModelFacts:
    """Gather what is known of a model."""
    entry = catalogue.entry(known_as(settings, name))
    cost = price(settings, catalogue)
    million = 1e6 / _SAMPLE_TOKENS
    inward, outward = cost(name, Usage(_SAMPLE_TOKENS)), cost(name, Usage(output_tokens=_SAMPLE_TOKENS))
    return ModelFacts(
        name=name,
        window=window_of(settings, catalogue, name),
        output=entry.output,
        input_usd=None if inward is None else inward * million,
        output_usd=None if outward is None else outward * million,
        dialect=settings.models.dialect or entry.dialect,
        thinking=entry.thinking,
        caching=entry.caching,
        images=entry.images,
        known=entry.known,
    )
