"""Both stores, on SQLite and on a real Postgres."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from bot.store.base import DeliveryStore, TaskStore
from bot.store.tasks import SqlTaskStore
from tests.unit.store.places import Lazy, Place


@pytest.fixture(scope="session")
def postgres() -> Iterator[Lazy]:
    """One server for all tests; it starts when the first asks for a database."""
    lazy = Lazy()
    yield lazy
    lazy.close()


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path, postgres: Lazy) -> Place:
    """A fresh place for both stores, on either database."""
    return Place(tmp_path / "state", None if request.param == "sqlite" else postgres.database())


@pytest.fixture
async def stores(place: Place) -> AsyncIterator[tuple[SqlTaskStore, DeliveryStore]]:
    """Both stores, open."""
    tasks, deliveries = place.open()
    yield tasks, deliveries
    await tasks.close()
    await deliveries.close()


@pytest.fixture
def store(stores: tuple[SqlTaskStore, DeliveryStore]) -> TaskStore:
    """The task store."""
    return stores[0]


@pytest.fixture
def deliveries(stores: tuple[SqlTaskStore, DeliveryStore]) -> DeliveryStore:
    """The delivery store."""
    return stores[1]
