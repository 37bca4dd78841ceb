"""What a request costs."""

from datetime import UTC, datetime

import pytest

from bot.domain.messages import Usage
from bot.llm.prices import Price, price_usd

AT = datetime(2026, 11, 30, tzinfo=UTC)


def test_each_kind_of_token_has_its_price() -> None:
    """Claude Sonnet 4.5: 3, 0.30, 3.75 and 15 dollars a million for short requests."""
    name = "anthropic:claude-sonnet-4-5"
    assert price_usd(name, Usage(10_000), at=AT) == pytest.approx(0.03)
    assert price_usd(name, Usage(0, 10_000), at=AT) == pytest.approx(0.003)
    assert price_usd(name, Usage(0, 0, 10_000), at=AT) == pytest.approx(0.0375)
    assert price_usd(name, Usage(0, 0, 0, 10_000), at=AT) == pytest.approx(0.15)
    assert price_usd(name, Usage(10_000, 20_000, 30_000, 40_000), at=AT) == pytest.approx(0.03 + 0.006 + 0.1125 + 0.6)
    assert price_usd(name, Usage(), at=AT) == 0


def test_a_dated_name_costs_the_same() -> None:
    """Providers answer with it."""
    usage = Usage(1000, 1000, 1000, 1000)
    dated = price_usd("anthropic:claude-sonnet-4-5-20250929", usage, at=AT)
    assert dated == price_usd("anthropic:claude-sonnet-4-5", usage, at=AT)


@pytest.mark.parametrize(
    "name", ["anthropic:nope", "nope:claude-sonnet-4-5", "openai:claude-sonnet-4-5", "x", "", ":", "a:"]
)
def test_an_unknown_price_is_none(name: str) -> None:
    """Never a guess, never zero."""
    assert price_usd(name, Usage(1000)) is None


def test_the_operators_price_comes_first() -> None:
    """Also for a model that nobody else knows."""
    overrides = {"own:llama": Price(1, 2, 3, 4)}
    assert price_usd("own:llama", Usage(10, 20, 30, 40), overrides=overrides) == pytest.approx(
        (10 * 1 + 40 * 2 + 20 * 3 + 30 * 4) / 1e6
    )
    assert price_usd("own:other", Usage(10), overrides=overrides) is None
