"""Limits of one run: turns, tokens, money, time, broken replies, and going in circles."""

import hashlib
import json
from collections import Counter
from dataclasses import dataclass, field

from bot.domain.messages import ToolCall, ToolResult, Usage
from bot.errors import LimitReached

FORMAT_ERRORS = 3
"""Replies in a row whose calls could not be read; mini-swe-agent and Cline stop at the same number."""
REPEATS_WARN = 3
REPEATS_STOP = 5
"""The same call with the same result; in 845 recorded real calls the longest such run was 1."""


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
        self._seen: set[str] = set()
        self._repeats: Counter[str] = Counter()

    def check(self) -> None:
        """Raise LimitReached where the next request would go beyond a limit."""
        spent, limits = self.spent, self.limits
        if spent.turns >= limits.turns:
            raise LimitReached("turns", spent.turns, limits.turns)
        if spent.usage.total_tokens >= limits.tokens:
            raise LimitReached("tokens", spent.usage.total_tokens, limits.tokens)
        if spent.usd is not None and spent.usd >= limits.usd:
            raise LimitReached("usd", spent.usd, limits.usd)
        if spent.seconds >= limits.minutes * 60:
            raise LimitReached("minutes", spent.seconds / 60, limits.minutes)

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

    def repeated(self, call: ToolCall, result: ToolResult) -> bool:
        """Count a call with its result; True where the model should be told that it repeats itself.

        The result is part of the key: a test that is run again and again with other outcomes is no repetition. What
        was never seen before is progress, behind which the count begins anew: a linter may pass after each of many
        edits.
        """
        key = _digest(call, result)
        if key not in self._seen:
            self._seen.add(key)
            self._repeats.clear()
        self._repeats[key] += 1
        if self._repeats[key] >= REPEATS_STOP:
            raise LimitReached("repeats", self._repeats[key], REPEATS_STOP)
        return self._repeats[key] >= REPEATS_WARN


def _digest(call: ToolCall, result: ToolResult) -> str:
    try:
        arguments = json.dumps(json.loads(call.arguments or "{}"), sort_keys=True)
    except ValueError:
        arguments = call.arguments
    return hashlib.sha256(f"{call.name}\0{arguments}\0{result.text}".encode("utf-8", "replace")).hexdigest()
