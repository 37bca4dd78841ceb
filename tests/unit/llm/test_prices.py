"""What a request costs."""

from datetime import UTC, datetime

import pytest

from bot.domain.messages import Usage
from bot.llm.prices import Price, price_usd, window_tokens

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


@pytest.mark.parametrize(
    ("url", "dollars"),
    [
        ("https://api.deepseek.com", 0.66),
        ("https://api.deepseek.com/v1", 0.66),
        ("http://127.0.0.1:8000/v1", None),
        ("https://llm.example.org/v1", None),
    ],
)
def test_an_address_tells_whose_price_it_is(url: str, dollars: float | None) -> None:
    """What a server of one's own costs nobody knows, whatever it serves."""
    told = price_usd("openai-chat:deepseek-v4-pro", Usage(1_000_000), api_url=url, at=AT)
    assert told == (None if dollars is None else pytest.approx(dollars))
    assert price_usd("openai-chat:gpt-4o", Usage(1000)) is None


def test_a_price_of_ones_own() -> None:
    """Each kind of token has its own."""
    assert Price(1, 2, 3, 4).of(Usage(10, 20, 30, 40)) == pytest.approx((10 * 1 + 40 * 2 + 20 * 3 + 30 * 4) / 1e6)


def test_windows() -> None:
    """As the package has them, where it has them."""
    assert window_tokens("anthropic:claude-sonnet-4-5") == 200_000
    assert window_tokens("bedrock:anthropic.claude-sonnet-4-5-20250929-v1:0") == 200_000
    assert window_tokens("google:gemini-2.5-pro") is None
    assert window_tokens("nobody:x") is None
    assert window_tokens("openai-chat:gpt-4o") is None
