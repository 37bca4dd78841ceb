"""Signed webhook deliveries: queued inside a change, sent outside of it, kept for redelivery."""

from __future__ import annotations

import hashlib
import hmac
import json
import queue
import secrets
import ssl
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

import httpx

from bot.testing.hub.errors import not_found
from bot.testing.hub.records import App, Delivery

TIMEOUT_S = 10.0
"""A receiver that takes longer has failed (https://docs.github.com/webhooks/using-webhooks/best-practices-for-using-webhooks)."""

FAILED_TO_CONNECT = 502
TIMED_OUT = 504
OK_BELOW = 400


@dataclass(slots=True)
class Modes:
    """How unreliable delivery is."""

    copies: int = 1
    """How often each delivery is sent."""
    delay_s: float = 0.0
    """Seconds before each delivery is sent."""
    hold: int = 0
    """Collect this many deliveries, then send them newest first; 0 sends in order."""
    drop: bool = False
    """Lose every delivery: it is listed as failed and never sent."""
    timeout_s: float = TIMEOUT_S


class Hooks:
    """The delivery list of all Apps and the thread that sends it.

    Args:
        clock: the hub's time.
        lock: guards the list; never held while sending.
        next_id: gives delivery ids.
    """

    def __init__(self, *, clock: Callable[[], datetime], lock: threading.RLock, next_id: Callable[[], int]) -> None:
        self.modes = Modes()
        self.deliveries: list[Delivery] = []
        """Oldest first."""
        self._clock, self._lock, self._next_id = clock, lock, next_id
        self._queue: queue.Queue[Delivery | None] = queue.Queue()
        self._pending = 0
        self._idle = threading.Condition()
        self._held: list[Delivery] = []
        self._thread: threading.Thread | None = None

    def send(
        self,
        app: App,
        event: str,
        payload: Mapping[str, object],
        *,
        installation_id: int | None = None,
        repository_id: int | None = None,
    ) -> Delivery | None:
        """Queue a delivery; the payload is frozen now. Without a webhook URL nothing happens."""
        if app.webhook_url is None:
            return None
        now = self._clock()
        action = payload.get("action")
        delivery = Delivery(
            id=self._next_id(),
            # random, so that a second hub never repeats the GUIDs that a receiver's store remembers of the first
            guid=str(uuid.UUID(bytes=secrets.token_bytes(16), version=4)),
            app=app,
            event=event,
            action=str(action) if action is not None else None,
            body=json.dumps(payload, separators=(",", ":"), ensure_ascii=False).encode(),
            created_at=now,
            delivered_at=now,
            installation_id=installation_id,
            repository_id=repository_id,
        )
        self._enqueue(delivery)
        return delivery

    def redeliver(self, app: App, delivery_id: int) -> Delivery:
        """Send a delivery again under its old GUID and a new id.

        Raises:
            HubError: 404 when the App has no such delivery.
        """
        old = self.get(app, delivery_id)
        again = Delivery(
            id=self._next_id(),
            guid=old.guid,
            app=app,
            event=old.event,
            action=old.action,
            body=old.body,
            created_at=self._clock(),
            delivered_at=self._clock(),
            installation_id=old.installation_id,
            repository_id=old.repository_id,
            redelivery=True,
        )
        self._enqueue(again)
        return again

    def get(self, app: App, delivery_id: int) -> Delivery:
        """Return one delivery of an App.

        Raises:
            HubError: 404 when the App has no such delivery.
        """
        with self._lock:
            for delivery in self.deliveries:
                if delivery.id == delivery_id and delivery.app is app:
                    return delivery
        raise not_found()

    def release(self) -> None:
        """Send what `Modes.hold` keeps back, newest first."""
        with self._idle:
            held, self._held = self._held[::-1], []
        for delivery in held:
            self._queue.put(delivery)

    def wait_idle(self, timeout_s: float) -> bool:
        """Wait until nothing is queued, held back excepted, and tell whether that came in time."""
        with self._idle:
            return self._idle.wait_for(lambda: self._pending - len(self._held) <= 0, timeout_s)

    def close(self) -> None:
        """Stop the sending thread; what is queued is sent first."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()
            self._thread = None

    def _enqueue(self, delivery: Delivery) -> None:
        with self._lock:
            self.deliveries.append(delivery)
        with self._idle:
            self._pending += 1
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="hub-webhooks", daemon=True)
                self._thread.start()
            if not self.modes.hold:
                self._queue.put(delivery)
                return
            self._held.append(delivery)
            full = len(self._held) >= self.modes.hold
        if full:
            self.release()

    def _work(self) -> None:
        with httpx.Client(trust_env=False, verify=_tls()) as client:
            while (delivery := self._queue.get()) is not None:
                try:
                    self._deliver(client, delivery)
                finally:
                    with self._idle:
                        self._pending -= 1
                        self._idle.notify_all()

    def _deliver(self, client: httpx.Client, delivery: Delivery) -> None:
        if self.modes.delay_s:
            time.sleep(self.modes.delay_s)
        for _ in range(self.modes.copies):
            self._post(client, delivery)

    def _post(self, client: httpx.Client, delivery: Delivery) -> None:
        headers = signed_headers(delivery)
        begun = time.monotonic()
        code, text, answer = FAILED_TO_CONNECT, "failed to connect to host", {}
        try:
            if not self.modes.drop and delivery.app.webhook_url is not None:
                reply = client.post(
                    delivery.app.webhook_url, content=delivery.body, headers=headers, timeout=self.modes.timeout_s
                )
                code, text, answer = reply.status_code, reply.text, dict(reply.headers)
        except httpx.TimeoutException:
            code, text = TIMED_OUT, "timed out"
        except httpx.HTTPError:
            code = FAILED_TO_CONNECT
        with self._lock:
            delivery.delivered_at = self._clock()
            delivery.duration = round(time.monotonic() - begun, 2)
            delivery.status_code, delivery.response_body = code, text
            delivery.status = "OK" if code < OK_BELOW else text if not answer else f"Invalid HTTP Response: {code}"
            delivery.request_headers, delivery.response_headers = headers, answer


@lru_cache(maxsize=1)
def _tls() -> ssl.SSLContext:
    """Return one context for all hubs of the process: loading certificates takes longer than starting a hub."""
    return ssl.create_default_context()


def signed_headers(delivery: Delivery) -> dict[str, str]:
    """Return the headers that GitHub sends with a delivery."""
    headers = {
        "Accept": "*/*",
        "Content-Type": "application/json",
        "User-Agent": "GitHub-Hookshot/0a1b2c3",
        "X-GitHub-Delivery": delivery.guid,
        "X-GitHub-Event": delivery.event,
        "X-GitHub-Hook-ID": str(delivery.app.hook_id),
        "X-GitHub-Hook-Installation-Target-ID": str(delivery.app.id),
        "X-GitHub-Hook-Installation-Target-Type": "integration",
    }
    if delivery.app.webhook_secret:
        key = delivery.app.webhook_secret.encode()
        headers["X-Hub-Signature"] = "sha1=" + hmac.new(key, delivery.body, hashlib.sha1).hexdigest()
        headers["X-Hub-Signature-256"] = "sha256=" + hmac.new(key, delivery.body, hashlib.sha256).hexdigest()
    return headers
