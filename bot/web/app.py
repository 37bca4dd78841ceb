"""The whole web face: the webhook in front, behind it health, readiness and a read-only API."""

import asyncio
import ipaddress
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import APIRouter, Depends, FastAPI, HTTPException, Path, Query, Request
from fastapi.responses import JSONResponse, PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from bot.domain.events import RunEvent, kind_of, to_data
from bot.domain.task import Run, Task
from bot.store.base import DeliveryStore, TaskStore
from bot.web.webhook import Understand, WebhookReceiver

READY_S = 3.0
"""Seconds that the database has to answer before it counts as away."""

_FORWARDING = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "cf-connecting-ip", "via")
"""Headers of proxies and tunnels: with one of them the client is not who connected."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """What the web face needs; made by who starts the server."""

    deliveries: DeliveryStore
    tasks: TaskStore
    secrets: Sequence[bytes]
    """The webhook secrets, the current one first; empty until the App is set up."""
    missing: Sequence[str]
    """What set-up still lacks, a sentence each with its remedy; empty when all is there."""
    facts: Mapping[str, object]
    """What `/healthz` shows: `version` and `sandbox`."""
    host: str
    """The address on which the server listens."""
    understand: Understand
    clock: Callable[[], datetime]
    """The time, with a time zone."""
    on_delivery: Callable[[], None]
    """Wakes whoever works on deliveries; must not raise."""
    running: Callable[[], AbstractAsyncContextManager[None]]
    """Gives what is entered before the first request and left after the last."""


class Front:
    """Sends `/webhook` to the door and everything else to the application behind it."""

    def __init__(self, webhook: WebhookReceiver, behind: ASGIApp) -> None:
        self._webhook = webhook
        self._behind = behind

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Take one connection."""
        if scope["type"] == "http" and scope["path"] == "/webhook":
            await self._webhook(scope, receive, send)
        else:
            await self._behind(scope, receive, send)


def create_app(services: Services) -> ASGIApp:
    """Put the web face together; nothing runs until the server starts it."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with services.running():
            yield

    behind = FastAPI(title="Issuewright", docs_url=None, redoc_url=None, openapi_url=None, lifespan=lifespan)
    behind.include_router(_health(services))
    behind.include_router(_api(services))
    webhook = WebhookReceiver(
        services.deliveries, services.secrets, services.understand, services.clock, services.on_delivery
    )
    return Front(webhook, behind)


def _health(services: Services) -> APIRouter:
    router = APIRouter()

    @router.get("/healthz")
    async def healthz() -> dict[str, object]:
        """Say that the process is alive."""
        return {"status": "ok", **services.facts}

    @router.get("/readyz")
    async def readyz() -> JSONResponse:
        """Say whether work can be done, and why not."""
        reasons = [*services.missing, *await _database(services)]
        if not services.secrets and not services.missing:
            reasons.append("No webhook secret is configured.")
        status = "not ready" if reasons else "ready"
        return JSONResponse({"status": status, "reasons": reasons}, 503 if reasons else 200)

    @router.get("/")
    async def home() -> PlainTextResponse:
        """Explain what is missing, or that all is well."""
        if not services.missing:
            return PlainTextResponse("Issuewright is running. Its tasks are at /api/tasks, on this machine only.\n")
        lines = "".join(f"- {reason}\n" for reason in services.missing)
        return PlainTextResponse(f"Issuewright is not set up yet. What is missing:\n\n{lines}")

    return router


async def _database(services: Services) -> list[str]:
    """Ask both stores something; a table that a migration did not make yet is an error too."""
    try:
        async with asyncio.timeout(READY_S):
            await services.tasks.tasks(limit=1)
            await services.deliveries.pending(limit=1)
    except Exception as error:
        # Any reason at all means not ready; its text may name hosts and accounts, so it goes to the log alone.
        logger.exception("web.database_away")
        return [f"The database does not answer ({type(error).__name__}); see the log."]
    return []


def _api(services: Services) -> APIRouter:
    async def local_only(request: Request) -> None:
        """Let in only people at this machine: the API has no login yet."""
        if reason := _stranger(request, services.host):
            raise HTTPException(403, reason)

    router = APIRouter(prefix="/api", dependencies=[Depends(local_only)])
    tasks = services.tasks

    @router.get("/tasks")
    async def list_tasks(limit: Annotated[int, Query(ge=1, le=200)] = 50) -> dict[str, object]:
        """List tasks, newest first."""
        return {"tasks": [_task(task) for task in await tasks.tasks(limit=limit)]}

    @router.get("/tasks/{task_id}")
    async def one_task(task_id: Annotated[str, Path(max_length=64)]) -> dict[str, object]:
        """Show a task and its runs."""
        task = await tasks.task(task_id)
        if task is None:
            raise HTTPException(404, "There is no such task.")
        return {**_task(task), "body": task.body, "runs": [_run(run) for run in await tasks.runs(task_id)]}

    @router.get("/tasks/{task_id}/events")
    async def events(
        task_id: Annotated[str, Path(max_length=64)],
        after: Annotated[int, Query(ge=0, lt=2**63)] = 0,
        limit: Annotated[int, Query(ge=1, le=10_000)] = 1000,
    ) -> dict[str, object]:
        """Show a task's stream behind a position."""
        if await tasks.task(task_id) is None:
            raise HTTPException(404, "There is no such task.")
        found = await tasks.events(task_id, after=after, limit=limit)
        return {"events": [_event(event) for event in found], "next": found[-1].seq if found else after}

    return router


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback


def _stranger(request: Request, bound_to: str) -> str | None:
    """Say why a request may not see tasks; None where it may."""
    if not _is_loopback(bound_to):
        return f"The API has no login yet, so it is closed while the server listens on {bound_to}."
    if request.client is None or not _is_loopback(request.client.host):
        return "The API has no login yet, so it is open on this machine only."
    if any(name in request.headers for name in _FORWARDING):
        return "The API has no login yet, so it is closed to what a proxy or tunnel brings."
    # A page of another site can make its own name mean 127.0.0.1 and then read our answers.
    try:
        asked = urlsplit(f"//{request.headers.get('host', '')}").hostname or ""
    except ValueError:
        asked = ""
    if not _is_loopback(asked):
        return "The API has no login yet, so it is open under the names localhost and 127.0.0.1 only."
    return None


def _task(task: Task) -> dict[str, object]:
    return {
        "id": task.id,
        "repository": task.repository.full_name,
        "number": task.number,
        "kind": task.kind,
        "title": task.title,
        "requester": task.requester,
        "branch": task.branch,
        "base_branch": task.base_branch,
        "pull_number": task.pull_number,
        "created_at": task.created_at.isoformat(),
    }


def _run(run: Run) -> dict[str, object]:
    return {
        "seq": run.seq,
        "state": run.state,
        "outcome": run.outcome,
        "reason": run.reason,
        "request": run.request,
        "requester": run.requester,
        "model": run.model,
        "created_at": run.created_at.isoformat(),
    }


def _event(event: RunEvent) -> dict[str, object]:
    return {
        "seq": event.seq,
        "run": event.run,
        "at": event.at.isoformat(),
        "kind": kind_of(event.fact),
        "data": to_data(event.fact),
    }
