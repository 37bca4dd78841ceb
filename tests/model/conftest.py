"""A served script and a real client on it."""

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from anthropic import AsyncAnthropic

from bot.testing.model.load import parse_script
from bot.testing.model.script import Script
from bot.testing.model.server import ScriptedModel

Serve = Callable[..., Awaitable[tuple[ScriptedModel, AsyncAnthropic]]]


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    """Serve scripts, as YAML or as values, until the test ends."""
    async with AsyncExitStack() as stack:

        async def start(script: str | Script, **options: object) -> tuple[ScriptedModel, AsyncAnthropic]:
            played = parse_script(script) if isinstance(script, str) else script
            model = await stack.enter_async_context(ScriptedModel(played, **options))  # type: ignore[arg-type]  # passed on
            client = AsyncAnthropic(base_url=model.url, api_key="x", max_retries=0)
            await stack.enter_async_context(client)
            return model, client

        yield start


@pytest.fixture
def recordings() -> list[Path]:
    """Real traffic with Anthropic, or skip; with `REQUIRE_SHARED=1` its absence is a failure."""
    shared = Path(os.environ.get("SHARED_DIR", Path(__file__).parents[2] / ".." / "shared"))
    found = sorted((shared / "data" / "traffic" / "anthropic").glob("*/*.yaml"))
    if not found and os.environ.get("REQUIRE_SHARED") == "1":
        pytest.fail(f"no recordings under {shared}, and REQUIRE_SHARED=1")
    if not found:
        pytest.skip(f"no recordings under {shared}; set SHARED_DIR")
    return found
