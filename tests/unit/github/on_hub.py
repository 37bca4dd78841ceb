"""A repository on a local GitHub, with our App installed on it."""

import random
from dataclasses import dataclass
from datetime import UTC, datetime

from bot.domain.refs import RepositoryRef
from bot.github.client import GitHubAppClient
from bot.testing.hub.hub import Hub
from bot.testing.hub.records import App, Installation, Repository, User
from bot.testing.hub.server import HubServer


@dataclass
class OnHub:
    """A repository of Ada's with our App installed on it."""

    hub: Hub
    server: HubServer
    ada: User
    repository: Repository
    app: App
    installation: Installation

    @property
    def ref(self) -> RepositoryRef:
        """The repository in our words."""
        return RepositoryRef(self.repository.id, self.repository.full_name, "main")

    def client(self, **more: object) -> GitHubAppClient:
        """Make a client of it."""
        known: dict[str, object] = {
            "api_url": self.server.api_url,
            "app_id": self.app.id,
            "private_key": self.app.private_key,
            "clock": lambda: datetime.now(UTC),
            "random": random.Random(1).random,
            "write_interval_s": 0.0,
        }
        return GitHubAppClient(**{**known, **more})  # type: ignore[arg-type]
