"""Counts what requests to models use, and asks nothing more once a ceiling is reached."""

from collections.abc import Callable
from dataclasses import dataclass, field

from bot.domain.messages import Prompt, Reply, Usage
from bot.errors import LimitReached, ModelError
from bot.llm.base import Model, OnText
from bot.llm.discarded import usage_of

PriceOf = Callable[[str, Usage], float | None]
"""Tells what one request to a model (`provider:model`) costs in US dollars; None where that is not known."""


@dataclass(frozen=True, slots=True)
class Amount:
    """What requests used."""

    usage: Usage = field(default_factory=Usage)
    usd: float | None = 0.0
    """US dollars; None as soon as one price is unknown."""

    def __add__(self, other: "Amount") -> "Amount":
        usd = None if self.usd is None or other.usd is None else self.usd + other.usd
        return Amount(self.usage + other.usage, usd)


@dataclass(frozen=True, slots=True)
class Ceiling:
    """What all requests together may use."""

    tokens: int
    """Input and output, cached ones included; binds alone where a price is unknown."""
    usd: float


class Meter:
    """Adds up all requests of a run, those whose replies were thrown away too."""

    def __init__(self, price_of: PriceOf) -> None:
        self._price_of = price_of
        self._spent = Amount()
        self._turn = Amount()
        self._ceiling: Ceiling | None = None
        self.unpriced: list[str] = []
        """Models of which the price is not known."""

    @property
    def turn(self) -> Amount:
        """What was used since `begin`."""
        return self._turn

    @property
    def remark(self) -> str:
        """What people have to know of the limits; empty where each price is known."""
        names = ", ".join(self.unpriced)
        return f"the price of {names} is not known, so that only tokens count" if names else ""

    def begin(self, spent: Amount, ceiling: Ceiling) -> None:
        """Begin a turn.

        Args:
            spent: what the run used before it.
            ceiling: of the whole run.
        """
        self._spent, self._turn, self._ceiling = spent, Amount(), ceiling

    def check(self) -> None:
        """Raise LimitReached where the next request would go beyond the ceiling."""
        total, ceiling = self._spent + self._turn, self._ceiling
        if ceiling is None:
            return
        if total.usage.total_tokens >= ceiling.tokens:
            raise LimitReached("tokens", total.usage.total_tokens, ceiling.tokens, self.remark)
        if total.usd is not None and total.usd >= ceiling.usd:
            raise LimitReached("usd", total.usd, ceiling.usd)

    def count(self, name: str, usage: Usage) -> None:
        """Add what one request to a model used; of one that nobody counted the price is not known."""
        usd = None if usage == Usage() else self._price_of(name, usage)
        if usd is None and name not in self.unpriced:
            self.unpriced.append(name)
        self._turn += Amount(usage, usd)


class Metered:
    """A model whose requests are counted, each attempt for itself; stands around the one that asks the API."""

    def __init__(self, model: Model, meter: Meter) -> None:
        self._model = model
        self._meter = meter

    @property
    def name(self) -> str:
        """`provider:model` of the wrapped model."""
        return self._model.name

    async def ask(self, prompt: Prompt, *, on_text: OnText | None = None) -> Reply:
        """Ask and count; errors as `Model.ask` says.

        Raises:
            LimitReached: the ceiling is reached, and nothing was asked.
        """
        self._meter.check()
        try:
            reply = await self._model.ask(prompt, on_text=on_text)
        except ModelError as error:
            # One that says nothing of tokens has cost none, as far as anybody knows.
            if (used := usage_of(error)) != Usage():
                self._meter.count(self.name, used)
            raise
        self._meter.count(self.name, reply.usage)
        return reply

    async def close(self) -> None:
        """Close the wrapped model."""
        await self._model.close()
