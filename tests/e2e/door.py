"""Deliveries made by hand, and what became of them: for stories in which GitHub is not as it should be."""

import hashlib
import hmac
import json
import sqlite3
import uuid
from collections.abc import Mapping
from typing import cast

import httpx

from bot.store.opening import DELIVERIES_FILE
from tests.e2e.stage import Stage, until

Payload = dict[str, object]


def payload_of(stage: Stage, event: str, action: str) -> Payload:
    """Return the body of the hub's newest delivery of a kind, decoded."""
    found: Payload = json.loads(stage.hub.deliveries(event, action)[-1].body)
    return found


def part(payload: Payload, *path: str) -> Payload:
    """Return an object inside a payload."""
    for name in path:
        payload = cast("Payload", payload[name])
    return payload


def sign(stage: Stage, body: bytes) -> str:
    """Return the header's value that GitHub would send."""
    return "sha256=" + hmac.new(stage.secret.encode(), body, hashlib.sha256).hexdigest()


def post(
    stage: Stage, event: str, body: bytes | Payload, *, guid: str | None = None, headers: Mapping[str, str | bytes] = {}
) -> httpx.Response:
    """Post a delivery as GitHub does, signed; `headers` replace or, where empty, take away."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    usual: dict[str, str | bytes] = {
        "Content-Type": "application/json",
        "X-GitHub-Event": event,
        "X-GitHub-Delivery": guid or str(uuid.uuid4()),
        "X-Hub-Signature-256": sign(stage, raw),
    }
    sent = [(name.encode(), _raw(value)) for name, value in {**usual, **headers}.items() if value]
    return httpx.post(f"http://127.0.0.1:{stage.port}/webhook", content=raw, headers=sent, timeout=30)


def _raw(value: str | bytes) -> bytes:
    return value if isinstance(value, bytes) else value.encode()


def kept(stage: Stage) -> dict[str, tuple[str, str]]:
    """Return state and note of each delivery that the server keeps, by GUID."""
    file = stage.folder / "state" / DELIVERIES_FILE
    with sqlite3.connect(f"file:{file}?mode=ro", uri=True) as database:
        rows = database.execute("select guid, state, note from deliveries").fetchall()
    database.close()
    return {guid: (state, note) for guid, state, note in rows}


def settled(stage: Stage, guid: str) -> tuple[str, str]:
    """Wait until a delivery is handled; return its state and note."""

    def look() -> tuple[str, str] | None:
        found = kept(stage).get(guid)
        return None if found is None or found[0] == "received" else found

    return until(look, f"delivery {guid}; the server said: {stage.log()}")


def all_settled(stage: Stage) -> list[tuple[str, str]]:
    """Wait until all that the hub sent is handled; return states and notes."""
    assert stage.hub.hooks.wait_idle(30)
    return [settled(stage, guid) for guid in kept(stage)]


def tasks(stage: Stage) -> list[Payload]:
    """Return the server's tasks, each with its runs."""
    with httpx.Client(base_url=f"http://127.0.0.1:{stage.port}", timeout=10) as client:
        listed = client.get("/api/tasks").raise_for_status().json()["tasks"]
        return [client.get(f"/api/tasks/{task['id']}").raise_for_status().json() for task in listed]


def minted(stage: Stage) -> int:
    """Count the installation tokens that were made."""
    with stage.hub.lock:
        return sum(token.kind == "installation" for token in stage.hub.tokens.values())
