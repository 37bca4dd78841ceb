"""What a request costs, from prices that are part of an installed package; asks no network."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from bot.domain.messages import Usage


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


def price_usd(
    model_name: str, usage: Usage, *, overrides: Mapping[str, Price] | None = None, at: datetime | None = None
) -> float | None:
    """Return what the request cost in US dollars; None where the price is not known.

    Args:
        model_name: `provider:model`.
        usage: of one request, since some models cost more above a length; cache writes of five minutes.
        overrides: prices by `provider:model` that come before the package's.
        at: when the request was made, for prices that changed; None: now.
    """
    if overrides is not None and (price := overrides.get(model_name)) is not None:
        return price.of(usage)
    provider, _, model = model_name.partition(":")
    if not model:
        return None
    import genai_prices  # noqa: PLC0415 - costs 0.1 s of CPU

    counted = genai_prices.Usage(
        input_tokens=usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        output_tokens=usage.output_tokens,
    )
    try:
        found = genai_prices.calc_price(counted, model, provider_id=provider, genai_request_timestamp=at)
    except LookupError:
        return None
    return float(found.total_price)
