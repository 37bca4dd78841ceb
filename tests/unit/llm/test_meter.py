"""What requests use is counted, and nothing is asked beyond a ceiling."""

import random

import pytest

from bot.domain.messages import Usage
from bot.errors import LimitReached, ModelRefused, ModelUnavailable
from bot.llm.discarded import DroppedReply, RefusedReply
from bot.llm.fallback import Fallback
from bot.llm.meter import Amount, Ceiling, Meter, Metered
from bot.llm.retrying import Retrying
from tests.unit.llm.flaky import PROMPT, Flaky

WIDE = Ceiling(1_000_000, 1000.0)


def a_cent(name: str, usage: Usage) -> float | None:
    """Take a cent for each token; nobody knows what `free:` models cost."""
    return None if name.startswith("free:") else usage.total_tokens / 100


async def no_sleep(_: float) -> None:
    """Wait for nothing."""


def test_nothing_is_spent_at_first() -> None:
    """A meter that was not told a ceiling stops nobody."""
    meter = Meter(a_cent)
    meter.check()
    assert meter.turn == Amount()


async def test_a_reply_is_counted() -> None:
    """Tokens as the provider says, dollars as the price says."""
    meter = Meter(a_cent)
    meter.begin(Amount(), WIDE)
    await Metered(Flaky(usage=Usage(1, 2, 3, 4)), meter).ask(PROMPT)
    assert meter.turn == Amount(Usage(1, 2, 3, 4), 0.1)
    meter.begin(meter.turn, WIDE)
    assert meter.turn == Amount()


async def test_replies_that_were_thrown_away_are_counted_once() -> None:
    """Of a dropped one what is known; the reply says what it used itself."""
    meter = Meter(a_cent)
    meter.begin(Amount(), WIDE)
    inner = Flaky(DroppedReply("gone", usage=Usage(10)), ModelUnavailable("away"), usage=Usage(5))
    model = Retrying(Metered(inner, meter), sleep=no_sleep, random=random.random)
    reply = await model.ask(PROMPT)
    assert inner.asked == 3
    assert (meter.turn.usage, reply.usage) == (Usage(15), Usage(5))


async def test_a_failed_request_is_counted() -> None:
    """The model declined, and the provider takes money for that."""
    meter = Meter(a_cent)
    meter.begin(Amount(), WIDE)
    with pytest.raises(ModelRefused):
        await Metered(Flaky(RefusedReply("no", usage=Usage(7))), meter).ask(PROMPT)
    assert meter.turn.usage == Usage(7)


@pytest.mark.parametrize(
    ("spent", "ceiling", "what"),
    [
        (Amount(Usage(90), 0.9), Ceiling(100, 1.0), ""),
        (Amount(Usage(100), 0.5), Ceiling(100, 1.0), "tokens: 100 of 100"),
        (Amount(Usage(90), 1.0), Ceiling(100, 1.0), "usd: 1 of 1"),
        (Amount(Usage(90), None), Ceiling(100, 0.0001), ""),
        (Amount(Usage(2_000_000), None), Ceiling(2_000_000, 1.0), "tokens: 2,000,000 of 2,000,000"),
    ],
)
async def test_beyond_the_ceiling_nothing_is_asked(spent: Amount, ceiling: Ceiling, what: str) -> None:
    """What was used before the turn counts; where a price is unknown, tokens alone do."""
    meter, inner = Meter(a_cent), Flaky()
    meter.begin(spent, ceiling)
    model = Metered(inner, meter)
    if not what:
        await model.ask(PROMPT)
    else:
        with pytest.raises(LimitReached) as raised:
            await model.ask(PROMPT)
        assert str(raised.value) == what
    assert inner.asked == (0 if what else 1)


async def test_the_ceiling_binds_between_two_attempts() -> None:
    """A reply that broke off used the rest up, so it is not asked for again."""
    meter = Meter(a_cent)
    meter.begin(Amount(Usage(90), 0.9), Ceiling(1000, 1.0))
    inner = Flaky(DroppedReply("gone", usage=Usage(20)))
    model = Retrying(Metered(inner, meter), sleep=no_sleep, random=random.random)
    with pytest.raises(LimitReached):
        await model.ask(PROMPT)
    assert inner.asked == 1


async def test_a_model_without_a_price_is_named() -> None:
    """Whoever reads the end of the run learns why dollars did not count."""
    meter = Meter(a_cent)
    meter.begin(Amount(Usage(90), 0.9), Ceiling(100, 1.0))
    model = Metered(Flaky(name="free:llama", usage=Usage(20)), meter)
    await model.ask(PROMPT)
    assert meter.turn == Amount(Usage(20), None)
    with pytest.raises(LimitReached, match=r"of 100 \(the price of free:llama is not known, so that only tokens"):
        await model.ask(PROMPT)


async def test_a_reply_that_nobody_counted_is_not_free() -> None:
    """A server that says nothing of tokens leaves the price unknown; an attempt that failed so cost nothing."""
    meter = Meter(a_cent)
    meter.begin(Amount(), WIDE)
    model = Metered(Flaky(ModelUnavailable("away"), usage=Usage()), meter)
    with pytest.raises(ModelUnavailable):
        await model.ask(PROMPT)
    assert meter.turn == Amount()
    await model.ask(PROMPT)
    assert meter.turn == Amount(Usage(), None)


async def test_each_model_has_its_own_price() -> None:
    """The first model's lost tokens cost what it takes, the reply what the second takes."""
    prices = {"dear:a": 10.0, "cheap:b": 1.0}
    meter = Meter(lambda name, usage: prices[name] * usage.total_tokens)
    meter.begin(Amount(), WIDE)
    first = Metered(Flaky(DroppedReply("gone", usage=Usage(2)), name="dear:a"), meter)
    second = Metered(Flaky(name="cheap:b", usage=Usage(3)), meter)
    reply = await Fallback([first, second], lambda *_: None).ask(PROMPT)
    assert reply.usage == Usage(3)
    assert meter.turn == Amount(Usage(5), 23.0)


async def test_closing_closes_the_model() -> None:
    """Connections are given back."""
    inner = Flaky()
    await Metered(inner, Meter(a_cent)).close()
    assert inner.is_closed
