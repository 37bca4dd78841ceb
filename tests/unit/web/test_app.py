"""Health, readiness and the API behind the door."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from bot.domain.events import Notice
from bot.domain.refs import RepositoryRef
from bot.store.base import NewRequest
from bot.store.opening import open_store
from bot.web.app import Services, create_app
from bot.web.webhook import understanding
from tests.unit.web.support import NOW, SECRET, headers, label_event, serving

TASK = "a" * 32
REQUEST = NewRequest(
    task_id=TASK,
    event_key="k",
    repository=RepositoryRef(5, "acme/app", "main"),
    number=3,
    kind="issue",
    title="Broken",
    body="It is.",
    requester="ann",
    requester_id=7,
    request="",
    model=None,
    comment_id=None,
    installation_id=1,
    branch="agent/3-aaaaaaaa",
    base_branch="main",
    pull_number=None,
    abi=1,
)


class World:
    """What runs while the server serves."""

    def __init__(self) -> None:
        self.life: list[str] = []

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Note when it is entered and left."""
        self.life.append("up")
        yield
        self.life.append("down")


@pytest.fixture
def services(tmp_path: Path) -> Iterator[Services]:
    """Make real stores with one task in them."""
    tasks, deliveries = open_store(tmp_path, None, now=lambda: NOW)

    async def prepare() -> None:
        await tasks.accept(REQUEST, NOW)
        await tasks.record(TASK, 1, "n", Notice("hello"), NOW)

    async def close() -> None:
        await deliveries.close()
        await tasks.close()

    asyncio.run(prepare())
    yield Services(
        deliveries=deliveries,
        tasks=tasks,
        secrets=(SECRET,),
        missing=(),
        facts={"version": "0", "sandbox": "bubblewrap"},
        host="127.0.0.1",
        understand=understanding(lambda _: True),
        clock=lambda: NOW,
        on_delivery=lambda: None,
        running=World().running,
    )
    asyncio.run(close())


@pytest.fixture
def client(services: Services) -> Iterator[httpx.Client]:
    """Serve them."""
    with serving(create_app(services)) as url, httpx.Client(base_url=url, timeout=30) as http:
        yield http


def test_life_of_the_server(services: Services) -> None:
    """What belongs to the server runs from before the first request to after the last."""
    world = World()
    with serving(create_app(replace(services, running=world.running))) as url:
        assert httpx.get(f"{url}/healthz").status_code == 200
        assert world.life == ["up"]
    assert world.life == ["up", "down"]


def test_health(client: httpx.Client) -> None:
    """The process says that it is alive, its version and its sandbox."""
    assert client.get("/healthz").json() == {"status": "ok", "version": "0", "sandbox": "bubblewrap"}


def test_ready(client: httpx.Client) -> None:
    """With databases and App there, work can be done."""
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()) == (200, {"status": "ready", "reasons": []})


def test_door_in_front(client: httpx.Client) -> None:
    """Deliveries go through the door."""
    body = json.dumps(label_event()).encode()
    assert client.post("/webhook", content=body, headers=headers(body)).json() == {"status": "accepted"}
    assert client.get("/webhook").status_code == 405


def test_set_up_mode(services: Services) -> None:
    """Before set-up the server runs, says what is missing, and takes no delivery."""
    reason = "The App's id is missing: set `github.app_id`."
    with serving(create_app(replace(services, secrets=(), missing=(reason,)))) as url:
        assert reason in httpx.get(url).text
        ready = httpx.get(f"{url}/readyz")
        assert (ready.status_code, ready.json()["reasons"]) == (503, [reason])
        body = json.dumps(label_event()).encode()
        assert httpx.post(f"{url}/webhook", content=body, headers=headers(body)).status_code == 503
        assert httpx.get(f"{url}/healthz").status_code == 200


def test_home_when_all_is_well(client: httpx.Client) -> None:
    """The first page says that the server runs."""
    assert "is running" in client.get("/").text


def test_database_away(services: Services) -> None:
    """A database that does not answer turns readiness red, and its details stay in the log."""

    class Away(type(services.deliveries)):  # type: ignore[misc]
        def __init__(self) -> None:
            pass

        async def pending(self, *, limit: int = 100) -> list[object]:
            raise ConnectionError("host=db.internal")

    with serving(create_app(replace(services, deliveries=Away()))) as url:
        answer = httpx.get(f"{url}/readyz")
    assert answer.status_code == 503
    assert answer.json()["reasons"] == ["The database does not answer (ConnectionError); see the log."]


def test_tasks(client: httpx.Client) -> None:
    """Tasks are listed, newest first, and each shows its runs."""
    (listed,) = client.get("/api/tasks").json()["tasks"]
    assert listed["repository"] == "acme/app"
    assert listed["created_at"] == "2026-11-30T00:00:00+00:00"
    task = client.get(f"/api/tasks/{TASK}").json()
    assert task["body"] == "It is."
    assert [run["state"] for run in task["runs"]] == ["queued"]


def test_events(client: httpx.Client) -> None:
    """A task's stream is read behind a position."""
    first = client.get(f"/api/tasks/{TASK}/events", params={"limit": 1}).json()
    assert [event["kind"] for event in first["events"]] == ["run.queued"]
    rest = client.get(f"/api/tasks/{TASK}/events", params={"after": first["next"]}).json()
    assert [event["data"] for event in rest["events"]] == [{"text": "hello"}]
    end = client.get(f"/api/tasks/{TASK}/events", params={"after": rest["next"]}).json()
    assert end == {"events": [], "next": rest["next"]}


def test_no_such_task(client: httpx.Client) -> None:
    """An unknown task gets 404, an ill-formed question 422."""
    for path in ("nope", "nope/events", "%00", "é"):
        assert client.get(f"/api/tasks/{path}").status_code == 404
    for query in ("after=-1", "after=x", "limit=0", f"after={2**63}"):
        assert client.get(f"/api/tasks/{TASK}/events?{query}").status_code == 422
    assert client.get(f"/api/tasks/{'x' * 65}").status_code == 422
    assert client.post("/api/tasks").status_code == 405
    assert client.get("/docs").status_code == client.get("/openapi.json").status_code == 404


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ({"host": "evil.test"}, "under the names localhost"),
        ({"host": "[::bad"}, "under the names localhost"),
        ({"x-forwarded-for": "127.0.0.1"}, "proxy or tunnel"),
        ({"forwarded": "for=1.2.3.4"}, "proxy or tunnel"),
        ({"cf-connecting-ip": "1.2.3.4"}, "proxy or tunnel"),
    ],
)
def test_api_is_closed_to_strangers(client: httpx.Client, sent: dict[str, str], said: str) -> None:
    """Without a login yet, another site's page and whatever a tunnel brings get 403 and the reason."""
    for path in ("/api/tasks", f"/api/tasks/{TASK}", f"/api/tasks/{TASK}/events"):
        answer = client.get(path, headers=sent)
        assert answer.status_code == 403
        assert said in answer.json()["detail"]


def test_api_is_closed_on_a_public_address(services: Services) -> None:
    """A server that listens on more than this machine shows no tasks, not even to this machine."""
    for host in ("0.0.0.0", "::", "10.0.0.5", "example.test"):
        with serving(create_app(replace(services, host=host))) as url:
            answer = httpx.get(f"{url}/api/tasks")
            assert answer.status_code == 403
            assert f"while the server listens on {host}" in answer.json()["detail"]


async def test_api_is_closed_to_other_machines(services: Services) -> None:
    """A client from elsewhere gets 403."""
    transport = httpx.ASGITransport(create_app(services), client=("10.0.0.9", 1))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        assert (await client.get("/api/tasks")).status_code == 403
