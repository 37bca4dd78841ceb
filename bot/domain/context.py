"""How full a model's window is, as people see it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ContextMeter:
    """What the next request takes of the window."""

    tokens: int
    window: int
    """Tokens of input and output together."""

    def __str__(self) -> str:
        """Write it as `ctx 127.7K/200K`."""
        return f"ctx {thousands(self.tokens)}/{thousands(self.window)}"


def thousands(tokens: int) -> str:
    """Write a number of tokens with at most one decimal, as `950`, `127.7K` or `1M`."""
    for size, unit in ((1_000_000, "M"), (1_000, "K")):
        # What would be rounded up to the next unit is written in it: 999,960 is 1M and not 1000K.
        if tokens >= size - size // 20_000:
            return f"{tokens / size:.1f}".removesuffix(".0") + unit
    return str(tokens)
