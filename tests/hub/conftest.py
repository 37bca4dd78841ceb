"""The world of the tests, judged: every answer and every webhook payload is checked against GitHub's description."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.testing.hub.hub import Hub
from bot.testing.hub.server import HubServer
from bot.testing.hub.state.apps import new_key
from tests.hub.oracle import RestJudge, webhook_errors
from tests.hub.world import FILES, Clock, Receiver, World


@pytest.fixture(scope="session")
def private_key() -> str:
    """One RSA key for all Apps of the tests."""
    return new_key()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A webhook receiver."""
    receiver = Receiver()
    yield receiver
    receiver.close()


@pytest.fixture
def judge() -> RestJudge:
    """Who judges the answers: the shared subset."""
    return RestJudge()


@pytest.fixture
def world(tmp_path: Path, private_key: str, receiver: Receiver, judge: RestJudge) -> Iterator[World]:
    """A served hub with a public repository and an App installed on it."""
    clock = Clock()
    hub = Hub(tmp_path / "hub", clock=clock)
    with HubServer(hub) as server:
        owner = hub.create_user("acme")
        repository = hub.create_repository(owner, "web", files=FILES)
        app = hub.create_app(
            owner, "Agent Bot", webhook_url=receiver.url, webhook_secret="s3cret", private_key=private_key
        )
        installation = hub.install(app, [repository.id])
        world = World(hub, server, clock, judge, owner, repository, app, installation)
        yield world
        for client in world.clients:
            client.close()
    for delivery in hub.deliveries():
        errors = webhook_errors(delivery.event, delivery.action, delivery.body)
        assert not errors, (delivery.event, delivery.action, errors)
