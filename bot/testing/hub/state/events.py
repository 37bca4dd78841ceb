"""Webhook events: which App hears of what, and the payload around it."""

from __future__ import annotations

from collections.abc import Mapping

from bot.testing.hub.core import Core
from bot.testing.hub.records import App, Installation, Repository, User
from bot.testing.hub.shapes.common import Json, installation_json, user_json
from bot.testing.hub.shapes.repositories import brief_json, repository_json

CHECK_EVENTS = frozenset({"check_run", "check_suite"})
"""Every App that may write checks hears of the checks of all Apps."""


class Events(Core):
    """Sends events to the Apps that subscribed to them."""

    def emit(self, repository: Repository, event: str, sender: User, fields: Mapping[str, object]) -> None:
        """Queue an event of a repository for each App installed on it."""
        for installation in self.installations.values():
            if not self.covers(installation, repository) or not _hears(installation, event):
                continue
            payload: Json = {
                **fields,
                "repository": repository_json(self, repository),
                "sender": user_json(self, sender),
                "installation": {"id": installation.id, "node_id": f"MDIzOkludGVncmF0aW9u{installation.id}"},
            }
            self.hooks.send(
                installation.app, event, payload, installation_id=installation.id, repository_id=repository.id
            )

    def emit_installation(self, installation: Installation, action: str, sender: User) -> None:
        """Queue an `installation` event for its App."""
        repositories = [brief_json(r) for r in self.repositories.values() if self.covers(installation, r, always=True)]
        payload: Json = {
            "action": action,
            "installation": installation_json(self, installation),
            "repositories": repositories,
            "requester": None,
            "sender": user_json(self, sender),
        }
        if action == "created":
            del payload["requester"]
        self.hooks.send(installation.app, "installation", payload, installation_id=installation.id)

    def ping(self, app: App) -> None:
        """Queue the `ping` that a fresh webhook gets."""
        config = {"content_type": "json", "insecure_ssl": "0", "url": app.webhook_url or ""}
        payload: Json = {
            "zen": "Keep it logically awesome.",
            "hook_id": app.hook_id,
            "hook": {
                "type": "App",
                "id": app.hook_id,
                "name": "web",
                "active": True,
                "app_id": app.id,
                "events": list(app.events),
                "config": config,
                "created_at": app.created_at.isoformat(),
                "updated_at": app.created_at.isoformat(),
                "deliveries_url": f"{self.api_url}/app/hook/deliveries",
            },
        }
        self.hooks.send(app, "ping", payload)

    def covers(self, installation: Installation, repository: Repository, *, always: bool = False) -> bool:
        """Tell whether an installation reaches a repository; `always` ignores suspension and removal."""
        alive = not installation.deleted and installation.suspended_at is None
        if not (alive or always) or repository.owner is not installation.account:
            return False
        return installation.selection == "all" or repository.id in installation.repository_ids


def _hears(installation: Installation, event: str) -> bool:
    if event in CHECK_EVENTS and installation.permissions.get("checks") == "write":
        return True
    return event in installation.app.events
