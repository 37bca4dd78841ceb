"""A world on the real SQLite store."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.store.opening import open_store
from tests.unit.tasks.made import Clock, World


@pytest.fixture(scope="session")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of a store with its tables and nothing in them: making them is what takes time."""
    folder = tmp_path_factory.mktemp("empty") / "state"

    async def make() -> None:
        tasks, deliveries = open_store(folder, None, now=Clock())
        await tasks.close()
        await deliveries.close()

    asyncio.run(make())
    return folder


@pytest.fixture
async def world(tmp_path: Path, empty: Path) -> AsyncIterator[World]:
    """A world whose store lies in a fresh folder."""
    clock, state = Clock(), tmp_path / "state"
    shutil.copytree(empty, state)
    tasks, deliveries = open_store(state, None, now=clock)
    yield World(tasks, deliveries, clock)
    await tasks.close()
    await deliveries.close()
