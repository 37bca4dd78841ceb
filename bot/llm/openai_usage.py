"""Tokens as OpenAI's APIs, and the servers that speak like them, count them; pure.

Source: https://platform.openai.com/docs/guides/prompt-caching, https://api-docs.deepseek.com/guides/kv_cache,
https://docs.x.ai/docs/key-information/consumption-and-rate-limits
"""

from collections.abc import Mapping
from typing import Any

from bot.domain.messages import Usage


def usage_of(counted: Mapping[str, Any]) -> Usage:  # Any: the provider's JSON
    """Return the counts in disjoint fields: OpenAI's input includes what was read from and written to the cache.

    Raises:
        TypeError: a count is no number.
        ValueError: the same.
    """
    prompt = _first(counted, "input_tokens", "prompt_tokens")
    details = counted.get("input_tokens_details") or counted.get("prompt_tokens_details") or {}
    read = _first(details, "cached_tokens") or _first(counted, "prompt_cache_hit_tokens", "cached_tokens")
    written = _first(details, "cache_write_tokens")
    said = _first(counted, "output_tokens", "completion_tokens")
    # xAI and Gemini leave reasoning out of the completion, and only in the total.
    output = max(said, _first(counted, "total_tokens") - prompt)
    return Usage(max(0, prompt - read - written), read, written, output)


def _first(counts: Mapping[str, Any], *names: str) -> int:
    """Return the first of these counts that is there, 0 if none is."""
    return next((max(0, int(counts[name])) for name in names if counts.get(name) is not None), 0)
