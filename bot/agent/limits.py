"""Limits of one run: turns, tokens, money, time, broken replies, and going in circles."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from bot.agent.conduct import Circles
from bot.domain.context import thousands
from bot.domain.messages import ToolCall, ToolResult, Usage
from bot.errors import LimitReached

FORMAT_ERRORS = 3
"""Replies in a row whose calls could not be read; mini-swe-agent and Cline stop at the same number."""
NEARING = 0.75
"""Share of a limit from which on the model is told that it comes near."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one run may use."""

    turns: int
    tokens: int
    """Of all requests and replies together; binds alone where the price is unknown."""
    usd: float
    minutes: float


@dataclass(frozen=True, slots=True)
class Spent:
    """What one run has used."""

    turns: int = 0
    usage: Usage = field(default_factory=Usage)
    usd: float | None = 0.0
    """None as soon as one price is unknown."""
    seconds: float = 0.0


class LimitGuard:
    """Counts what a run uses and ends it at a limit.

    It has no clock: seconds come with each reply as they were recorded, so that a replay decides the same.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.spent = Spent()
        self._format_errors = 0
        self._circles = Circles()
        self._told: set[tuple[str, str]] = set()

    def check(self) -> None:
        """Raise LimitReached where the next request would go beyond a limit."""
        for what, used, limit, _ in self._figures():
            if used >= limit:
                raise LimitReached(what, used, limit)

    def nearing(self, ending: str) -> Sequence[str]:
        """Return a line for the model for each limit that comes near, each once to who ends with this tool."""
        lines = []
        for what, used, limit, words in self._figures():
            if used >= NEARING * limit and (what, ending) not in self._told:
                self._told.add((what, ending))
                lines.append(
                    f"The harness: {words} are used. At the limit your work is taken as it stands, so come to an end: "
                    f"complete what you have begun, check it, and call `{ending}`."
                )
        return lines

    @property
    def budget(self) -> str:
        """What is used of each limit, in a sentence for the model."""
        return f"Used so far: {', '.join(words for _, _, _, words in self._figures())}."

    def replied(self, usage: Usage, usd: float | None, elapsed_s: float) -> None:
        """Count one reply.

        Args:
            usage: tokens of the request and the reply.
            usd: its price; None where unknown.
            elapsed_s: seconds from the start of the run to the end of this reply.
        """
        total = None if usd is None or self.spent.usd is None else self.spent.usd + usd
        self.spent = Spent(self.spent.turns + 1, self.spent.usage + usage, total, elapsed_s)

    def formatted(self, *, well: bool) -> None:
        """Count a reply whose calls could (or could not) be read; too many broken ones in a row end the run."""
        self._format_errors = 0 if well else self._format_errors + 1
        if self._format_errors >= FORMAT_ERRORS:
            raise LimitReached("format_errors", self._format_errors, FORMAT_ERRORS)

    def repeated(self, call: ToolCall, result: ToolResult, *, changed: bool = False) -> bool:
        """Count a call with its result; True where the model should be told that it repeats itself.

        The result is part of the key: a test that is run again and again with other outcomes is no repetition.

        Args:
            call: as the model wrote it.
            result: what it gave.
            changed: whether it is known to have changed the work tree, as `ToolOutput.changed` has it.
        """
        return self._circles.count(_digest(call, result), changed=changed)

    def _figures(self) -> Iterator[tuple[str, float, float, str]]:
        """Name each limit that binds, what is used of it, the limit itself, and both in words."""
        spent, limits = self.spent, self.limits
        yield "turns", spent.turns, limits.turns, f"{spent.turns} of {limits.turns} turns"
        tokens = spent.usage.total_tokens
        yield "tokens", tokens, limits.tokens, f"{thousands(tokens)} of {thousands(limits.tokens)} tokens"
        if spent.usd is not None:
            yield "usd", spent.usd, limits.usd, f"{spent.usd:.2f} of {limits.usd:.2f} US dollars"
        minutes = spent.seconds / 60
        yield "minutes", minutes, limits.minutes, f"{minutes:.0f} of {limits.minutes:g} minutes"


def _digest(call: ToolCall, result: ToolResult) -> str:
    try:
        arguments = json.dumps(json.loads(call.arguments or "{}"), sort_keys=True)
    except ValueError:
        arguments = call.arguments
    seen = "\0".join(image.data for image in result.images)
    return hashlib.sha256(f"{call.name}\0{arguments}\0{result.text}\0{seen}".encode("utf-8", "replace")).hexdigest()
