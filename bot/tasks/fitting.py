"""How much of a review's threads one round is told: what writers ask for first, and nothing left out unseen."""

from collections.abc import Sequence
from dataclasses import replace

from bot.domain.review import OpenThread, Said

COMMENT_CHARS = 4_000
HUNK_CHARS = 2_000
"""Of its end, where the line stands that the thread is about."""
THREAD_CHARS = 20_000
ROUND_CHARS = 60_000
"""About 20,000 tokens."""
_AROUND = 150
"""What each comment and each hunk takes beside its text."""


def fitted(threads: Sequence[OpenThread]) -> list[OpenThread]:
    """Shorten what is long, and leave for a later round what does not fit; no thread is missing from what is returned.

    First comes the thread in which the request stands, then those in which writers ask, and of those again what we
    have not answered yet, so that what is left is told sooner or later.

    Args:
        threads: in the order in which they were begun.
    """
    room = ROUND_CHARS
    kept: list[OpenThread] = []
    for thread in sorted(threads, key=lambda one: (not one.asks, not one.is_asked, one.is_answered)):
        shortened = _shortened(thread)
        size = _AROUND + len(thread.path) + len(shortened.hunk) + sum(map(_size, shortened.said))
        if size <= room:
            room -= size
            kept.append(shortened)
        else:
            kept.append(replace(thread, hunk="", said=(), told=False))
    return kept


def _shortened(thread: OpenThread) -> OpenThread:
    said = [replace(one, text=_head(one.text)) for one in thread.said]
    room, fits = THREAD_CHARS, set[int]()
    # What writers ask for last counts most, and so does our own last word: where that is an answer, none is due.
    counts = [one.writes or (one.ours and one is said[-1]) for one in said]
    for index in sorted(range(len(said)), key=lambda index: (not counts[index], -index)):
        if _size(said[index]) <= room:
            room -= _size(said[index])
            fits.add(index)
    kept = [one for index, one in enumerate(said) if index in fits]
    return replace(thread, hunk=_end(thread.hunk), said=kept, omitted=len(said) - len(kept))


def _size(one: Said) -> int:
    return _AROUND + len(one.text)


def _head(text: str) -> str:
    left = len(text) - COMMENT_CHARS
    return text if left <= 0 else f"{text[:COMMENT_CHARS]}\n[left out for length: {left} more characters]"


def _end(hunk: str) -> str:
    left = len(hunk) - HUNK_CHARS
    return hunk if left <= 0 else f"[left out for length: {left} characters before this]\n{hunk[-HUNK_CHARS:]}"
