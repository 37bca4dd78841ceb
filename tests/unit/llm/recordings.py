"""Recorded traffic with Anthropic's API."""

from functools import cache

from tests.unit.llm.cassettes import Exchange, exchanges

Recording = Exchange


@cache
def recordings() -> tuple[Recording, ...]:
    """Read all requests to `/v1/messages` or its token counter, with their answers."""
    found = tuple(one for one in exchanges("anthropic") if "anthropic" in one.url and "/v1/messages" in one.url)
    assert len(found) > 200, "the folder of recordings has lost its content"
    return found
