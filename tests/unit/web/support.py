"""A real uvicorn in a thread, a store in memory, and how GitHub signs."""

import asyncio
import contextlib
import hmac
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import uvicorn

from bot.store.base import Delivery, DeliveryState

SECRET = b"s3cret"
NOW = datetime(2026, 11, 30, tzinfo=UTC)


class MemoryDeliveries:
    """Implements `DeliveryStore` in memory; can be told to fail or to hang."""

    def __init__(self) -> None:
        self.rows: dict[str, Delivery] = {}
        self.fault: Exception | None = None
        self.hang_s = 0.0

    async def add(self, delivery: Delivery) -> bool:
        """Keep a delivery."""
        await asyncio.sleep(self.hang_s)
        if self.fault:
            raise self.fault
        keys = {row.event_key for row in self.rows.values()} - {None}
        if delivery.guid in self.rows or delivery.event_key in keys:
            return False
        self.rows[delivery.guid] = delivery
        return True

    async def pending(self, *, limit: int = 100) -> Sequence[Delivery]:
        """Return what waits."""
        if self.fault:
            raise self.fault
        return [row for row in self.rows.values() if row.state == "received"][:limit]

    async def settle(self, guid: str, state: DeliveryState, note: str = "") -> None:
        """Not needed here."""
        raise NotImplementedError

    async def get(self, guid: str) -> Delivery | None:
        """Return one delivery."""
        return self.rows.get(guid)

    async def close(self) -> None:
        """Do nothing."""


def sign(body: bytes, secret: bytes = SECRET) -> str:
    """Sign as GitHub does."""
    return "sha256=" + hmac.digest(secret, body, "sha256").hex()


def headers(body: bytes, *, guid: str = "g-1", event: str = "issues", **more: str) -> dict[str, str]:
    """Make the headers of a delivery."""
    made = {
        "content-type": "application/json",
        "x-github-delivery": guid,
        "x-github-event": event,
        "x-hub-signature-256": sign(body),
    }
    return made | {name.replace("_", "-"): value for name, value in more.items()}


class _Server(uvicorn.Server):
    def install_signal_handlers(self) -> None:
        """Leave signals to pytest."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@contextlib.contextmanager
def serving(app: Any, *, http: str = "httptools", lifespan: str = "on") -> Iterator[str]:
    """Serve an application on a free port; gives its URL."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    config = uvicorn.Config(app, http=http, ws="none", lifespan=lifespan, log_config=None, access_log=False)  # type: ignore[arg-type]
    server = _Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        until = time.monotonic() + 20
        while not server.started:
            assert thread.is_alive(), "the server did not start"
            assert time.monotonic() < until, "the server did not start within 20 seconds"
            time.sleep(0.005)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(20)
        listener.close()


def label_event(number: int = 1, *, stamp: str = "2026-11-30T00:00:00Z") -> dict[str, object]:
    """Make the payload of a label that was added."""
    person = {"id": 7, "login": "ann", "type": "User"}
    return {
        "action": "labeled",
        "sender": person,
        "repository": {"id": 5, "full_name": "acme/app", "default_branch": "main", "private": False},
        "installation": {"id": 3},
        "issue": {"id": 9, "number": number, "title": "t", "body": "b", "user": person, "updated_at": stamp},
        "label": {"id": 2, "name": "agent"},
    }
