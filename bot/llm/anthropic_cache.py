"""Where Anthropic's prompt cache is told to keep a prefix; marks change nothing else in the request.

Source: https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching
"""

from typing import Any

CACHEABLE = frozenset({"text", "image", "tool_use", "tool_result"})
"""Blocks of ours that may carry a mark; thinking may not."""
LOOKBACK = 20
"""Blocks that the API looks back from a mark for a prefix that it already has."""

Block = dict[str, Any]  # Any: the provider's JSON


def mark(body: dict[str, Any]) -> None:
    """Set at most four marks: one on what never changes, two or three on the newest messages.

    The mark on the last user message is written, the one on the user message before it is read: it is where the
    request before this one was written. A turn of more blocks than the API looks back gets one mark more.

    Args:
        body: a request with `messages` as lists of blocks; changed in place.
    """
    fixed = body.get("system") or body.get("tools")
    if fixed:
        _set(fixed[-1])
    blocks: list[Block] = []
    ends: list[int] = []
    for message in body["messages"]:
        start = len(blocks)
        blocks += message["content"]
        if message["role"] == "user":
            ends += _cacheable(blocks, start, len(blocks))[-1:]
    for end in ends[-2:]:
        _set(blocks[end])
    if len(ends) > 1 and ends[-1] - ends[-2] > LOOKBACK:
        for between in _cacheable(blocks, ends[-1] - LOOKBACK, ends[-1])[:1]:
            _set(blocks[between])


def _cacheable(blocks: list[Block], start: int, stop: int) -> list[int]:
    return [place for place in range(start, stop) if blocks[place]["type"] in CACHEABLE]


def _set(block: Block) -> None:
    block["cache_control"] = {"type": "ephemeral"}
