"""A served shop with pages: an issue at work and a pull request in review."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.testing.hub.hub import Hub
from bot.testing.hub.pages import routes
from bot.testing.hub.server import HubServer
from tests.hub.pages.shop import Shop, furnish


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory, private_key: str) -> Iterator[Shop]:
    """One shop for all tests that only look."""
    yield from _open(tmp_path_factory.mktemp("shop"), private_key)


@pytest.fixture
def fresh(tmp_path: Path, private_key: str) -> Iterator[Shop]:
    """A shop of a test that changes it."""
    yield from _open(tmp_path, private_key)


def _open(folder: Path, private_key: str) -> Iterator[Shop]:
    hub = Hub(folder)
    with HubServer(hub, extra_routes=routes(hub)) as server, furnish(hub, server, private_key) as shop:
        yield shop
