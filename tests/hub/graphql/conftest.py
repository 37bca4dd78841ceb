"""A served hub with GraphQL, and a pull request with two review threads."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.testing.hub.graphql.app import routes
from bot.testing.hub.hub import Hub
from bot.testing.hub.server import HubServer
from bot.testing.hub.state.reviews import LineComment
from tests.hub.graphql.asker import Scene
from tests.hub.oracle import RestJudge, webhook_errors
from tests.hub.world import FILES, Clock, Receiver, World


@pytest.fixture
def scene(tmp_path: Path, private_key: str, receiver: Receiver) -> Iterator[Scene]:
    """The world with GraphQL, a pull request of the bot and a review of two threads."""
    clock = Clock()
    hub = Hub(tmp_path / "hub", clock=clock)
    with HubServer(hub, extra_routes=routes(hub)) as server:
        owner = hub.create_user("acme")
        repository = hub.create_repository(owner, "web", files=FILES)
        app = hub.create_app(
            owner, "Agent Bot", webhook_url=receiver.url, webhook_secret="s3cret", private_key=private_key
        )
        installation = hub.install(app, [repository.id])
        world = World(hub, server, clock, RestJudge(), owner, repository, app, installation)
        issue = hub.open_issue(repository, owner, "Wrong sum", "It subtracts.")
        hub.commit_files(repository, app.bot, "agent/1", {"src/app.py": "def add(a, b):\n    return a + b\n"})
        pull = hub.open_pull(repository, app.bot, "Fix", head="agent/1", body="Closes #1")
        lines = [LineComment("src/app.py", 2, "Why plus?"), LineComment("src/app.py", 1, "A test?")]
        hub.review(pull, owner, "COMMENTED", "Two things", lines)
        yield Scene(world, issue, pull)
        for client in world.clients:
            client.close()
    for delivery in hub.deliveries():
        errors = webhook_errors(delivery.event, delivery.action, delivery.body)
        assert not errors, (delivery.event, delivery.action, errors)
