"""A model's window: how much of it may be used, and where compaction begins and ends."""

from dataclasses import dataclass, replace

REPLY_TOKENS = 8_192
"""Kept free for a reply, even where the model's own cap is lower."""
MARGIN = 0.05
"""Share of the window that stays free for what an estimate may be off."""
COMPACT_AT = 0.8
TARGET = 0.5
"""Shares of what is usable. Far apart, since each compaction makes the provider's cache useless from its place on."""
TAIL_TOKENS = 20_000
"""Newest turns that a summary leaves as they are; Cline and Codex keep as much."""
WORDS_BYTES = 60_000
"""Of people's words that are told again to the letter, about 20,000 tokens; older ones are cut first."""


@dataclass(frozen=True, slots=True)
class Window:
    """Figures in tokens."""

    tokens: int
    """Input and output together."""
    usable: int
    """For a request, so that there is room for the reply."""

    @classmethod
    def of(cls, tokens: int, output: int) -> "Window":
        """Make it from what is known of a model.

        Args:
            tokens: of input and output together.
            output: tokens of one reply, at most; that much is asked for, and some providers refuse a request which
                leaves less.
        """
        free = max(output, REPLY_TOKENS) + int(tokens * MARGIN)
        # A cap near the window itself says nothing: half is for the request then.
        return cls(tokens, max(tokens - free, tokens // 2))

    def refused(self, tokens: int) -> "Window":
        """Return what is left to believe when the provider found a request of so many tokens too long."""
        return replace(self, usable=min(self.usable, tokens))

    @property
    def compact_at(self) -> int:
        """From here on the transcript is made shorter."""
        return int(self.usable * COMPACT_AT)

    @property
    def target(self) -> int:
        """What a compaction has to come down to."""
        return int(self.usable * TARGET)

    @property
    def tail(self) -> int:
        """Of the newest turns that a summary leaves as they are."""
        return min(TAIL_TOKENS, self.target // 2)


@dataclass(frozen=True, slots=True)
class Room:
    """The same in bytes, for one compaction."""

    limit: int
    """Of all messages together, behind it."""
    tail: int
    """Of the newest turns that a summary leaves as they are."""
    words: int
    """Of people's words that are told again."""
    whole: int
    """Of the largest request that makes sense, with the system prompt and the tools."""

    @classmethod
    def of(cls, window: Window, bytes_per_token: float, *, fixed: int) -> "Room":
        """Make it from a window.

        Args:
            window: of the model.
            bytes_per_token: of the prompt that is too long.
            fixed: bytes of the system prompt and the tools.
        """
        limit = max(0, int(window.target * bytes_per_token) - fixed)
        return cls(
            limit,
            tail=int(window.tail * bytes_per_token),
            words=min(WORDS_BYTES, limit // 4),
            whole=int(window.usable * bytes_per_token),
        )
