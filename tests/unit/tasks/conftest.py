"""A world on the real SQLite store."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.store.opening import open_store
from tests.unit.tasks.made import Clock, World


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    """A world whose store lies in a fresh folder."""
    clock = Clock()
    tasks, deliveries = open_store(tmp_path / "state", None, now=clock)
    yield World(tasks, deliveries, clock)
    await tasks.close()
    await deliveries.close()
