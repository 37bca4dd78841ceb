"""The prompt cache that the scripted model pretends to have, after Anthropic's rules.

Source: https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching
"""

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

LOOKBACK = 20
"""Blocks before a breakpoint that are searched for an entry, the breakpoint's own included."""
LIFETIMES_S = {"5m": 300.0, "1h": 3600.0}
BYTES_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class Segment:
    """One block of a prompt, in the order tools, system, messages."""

    data: bytes
    """What the block says, without its breakpoint; one byte changed is another prefix."""
    lifetime: str | None = None
    """`5m` or `1h` where a breakpoint stands on this block."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one prompt, each counted once: the three sum up to the prompt."""

    fresh: int
    """Neither read from the cache nor written to it: what follows the last breakpoint."""
    read: int = 0
    written_5m: int = 0
    written_1h: int = 0

    @property
    def written(self) -> int:
        """Tokens written to the cache."""
        return self.written_5m + self.written_1h

    @property
    def total(self) -> int:
        """All tokens of the prompt."""
        return self.fresh + self.read + self.written


class PromptCache:
    """Prefixes that were marked in earlier requests, until they expire. Not for more than one thread."""

    def __init__(self, *, min_tokens: int = 1024, clock: Callable[[], float] = time.monotonic) -> None:
        """Start cold.

        Args:
            min_tokens: shorter prefixes are not cached; 1,024 for most models, 4,096 for some.
            clock: seconds, never going back.
        """
        self._min_tokens = min_tokens
        self._clock = clock
        self._entries: dict[bytes, tuple[float, float]] = {}
        """Digest of a prefix to its lifetime in seconds and the moment it ends."""

    def charge(self, segments: Sequence[Segment]) -> Usage:
        """Count the tokens of a prompt and remember its marked prefixes. A read makes an entry young again."""
        prefixes, ends = _prefixes(segments), _ends(segments)
        marks = [n for n, s in enumerate(segments) if s.lifetime and ends[n] >= self._min_tokens]
        total = ends[-1] if ends else 0
        if not marks:
            return Usage(total)
        hit = self._longest(prefixes, marks)
        read = 0 if hit is None else ends[hit]
        if hit is not None:
            self._keep(prefixes[hit], self._entries[prefixes[hit]][0])
        for mark in marks:
            self._keep(prefixes[mark], LIFETIMES_S[segments[mark].lifetime or "5m"])
        last = ends[marks[-1]]
        hour = max([ends[mark] for mark in marks if segments[mark].lifetime == "1h"], default=0)
        written_1h = max(0, hour - read)
        return Usage(total - last, read, max(0, last - read) - written_1h, written_1h)

    def _longest(self, prefixes: list[bytes], marks: list[int]) -> int | None:
        """Return the number of the last block of the longest living prefix within reach of a breakpoint."""
        now = self._clock()
        for mark in reversed(marks):
            for number in range(mark, max(-1, mark - LOOKBACK), -1):
                if self._entries.get(prefixes[number], (0.0, now))[1] > now:
                    return number
        return None

    def _keep(self, prefix: bytes, lifetime_s: float) -> None:
        self._entries[prefix] = (lifetime_s, self._clock() + lifetime_s)


def count(segments: Sequence[Segment]) -> int:
    """Return the tokens of a whole prompt."""
    return _ends(segments)[-1] if segments else 0


def _prefixes(segments: Sequence[Segment]) -> list[bytes]:
    digest, found = hashlib.sha256(), list[bytes]()
    for segment in segments:
        digest.update(len(segment.data).to_bytes(8, "big") + segment.data)
        found.append(digest.digest())
    return found


def _ends(segments: Sequence[Segment]) -> list[int]:
    """Return the tokens up to and with each block; rounded once, so that differences always add up."""
    size, found = 0, list[int]()
    for segment in segments:
        size += len(segment.data)
        found.append(-(-size // BYTES_PER_TOKEN))
    return found
