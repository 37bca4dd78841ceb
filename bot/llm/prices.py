"""What a request costs, from prices that are part of an installed package; asks no network."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from bot.domain.messages import Usage

PROVIDERS: Mapping[str, str] = {"bedrock": "aws", "vertex": "google", "openai-chat": ""}
"""What the package calls providers; whose server one speaks Chat Completions to only the address tells."""


@dataclass(frozen=True, slots=True)
class Price:
    """Prices of one model, in US dollars per million tokens."""

    input_usd_per_mtok: float
    output_usd_per_mtok: float
    cache_read_usd_per_mtok: float
    cache_write_usd_per_mtok: float

    def of(self, usage: Usage) -> float:
        """Return US dollars."""
        return (
            usage.input_tokens * self.input_usd_per_mtok
            + usage.output_tokens * self.output_usd_per_mtok
            + usage.cache_read_tokens * self.cache_read_usd_per_mtok
            + usage.cache_write_tokens * self.cache_write_usd_per_mtok
        ) / 1e6


def price_usd(model_name: str, usage: Usage, *, api_url: str | None = None, at: datetime | None = None) -> float | None:
    """Return what the request cost in US dollars; None where the price is not known.

    Args:
        model_name: `provider:model`.
        usage: of one request, since some models cost more above a length; cache writes of five minutes.
        api_url: where it was asked, for providers that only say how one speaks to them (`openai-chat`).
        at: when the request was made, for prices that changed; None: now.
    """
    import genai_prices  # noqa: PLC0415 - costs 0.1 s of CPU

    provider, _, model = model_name.partition(":")
    counted = genai_prices.Usage(
        input_tokens=usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        output_tokens=usage.output_tokens,
    )
    try:
        found = (
            genai_prices.calc_price(counted, model, provider_api_url=api_url, genai_request_timestamp=at)
            if api_url
            else genai_prices.calc_price(
                counted, model, provider_id=PROVIDERS.get(provider, provider), genai_request_timestamp=at
            )
        )
    except LookupError:
        return None
    return float(found.total_price)


def window_tokens(model_name: str) -> int | None:
    """Return the published window of a model (`provider:model`) in tokens; None where it is not known."""
    from genai_prices import data_snapshot  # noqa: PLC0415 - costs 0.1 s of CPU

    provider, _, model = model_name.partition(":")
    try:
        found = data_snapshot.get_snapshot().find_provider_model(model, None, PROVIDERS.get(provider, provider), None)
    except LookupError:
        return None
    return found[1].context_window
