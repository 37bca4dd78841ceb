"""ASGI below the routes: request parts, failures on the wire, and the REST API as an application."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from starlette.types import ASGIApp, Receive, Scope, Send

from bot.testing.hub.errors import HubError
from bot.testing.hub.faults import Fault
from bot.testing.hub.hub import Hub
from bot.testing.hub.rest.call import Answer
from bot.testing.hub.rest.dispatch import Dispatcher, Request

PREFIX = "/api/v3"
"""Where a GitHub Enterprise Server has its REST API; it is served at the root too."""

Drop = Callable[[Scope], None]
"""Breaks the connection that a request came by."""

BEFORE = ("status", "reset", "unauthorized", "secondary")
"""Failures that keep the request from being done."""

SECONDARY = (
    "You have exceeded a secondary rate limit. Please wait a few minutes before you try again. If you reach out to "
    "GitHub Support for help, please include the request ID."
)


def header_map(scope: Scope) -> dict[str, str]:
    """Return the request headers by lower-case name."""
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}


def quoted_path(scope: Scope) -> str:
    """Return the path as sent, still quoted."""
    raw = scope.get("raw_path")
    return raw.decode("latin-1").partition("?")[0] if raw else str(scope["path"])


async def read_body(receive: Receive) -> bytes:
    """Return the whole request body."""
    parts, more = [], True
    while more:
        message = await receive()
        parts.append(message.get("body", b""))
        more = message.get("more_body", False)
    return b"".join(parts)


@dataclass(frozen=True, slots=True)
class Faulty:
    """Wraps an application so that planned failures happen to its requests.

    Args:
        app: what is wrapped.
        hub: its `faults` are the plan.
        drop: breaks a connection.
    """

    app: ASGIApp
    hub: Hub
    drop: Drop

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or fail it."""
        fault = None
        if scope["type"] == "http":
            fault = self.hub.faults.take(scope["method"], quoted_path(scope).removeprefix(PREFIX))
        if fault is None:
            await self.app(scope, receive, send)
            return
        if fault.kind == "delay":
            await asyncio.sleep(fault.seconds)
            await self.app(scope, receive, send)
            return
        body = await read_body(receive)
        if fault.kind in BEFORE:
            await self._refuse(fault, scope, send)
            return
        await self._after(fault, body, scope, send)

    async def _refuse(self, fault: Fault, scope: Scope, send: Send) -> None:
        if fault.kind == "reset":
            self.drop(scope)
            return
        await send_answer(refusal(fault), send)

    async def _after(self, fault: Fault, body: bytes, scope: Scope, send: Send) -> None:
        messages: list[dict[str, object]] = []

        async def keep(message: object) -> None:
            assert isinstance(message, dict)  # noqa: S101 -- ASGI messages are
            messages.append(message)

        await self.app(scope, _replay(body), keep)
        if fault.kind == "status_after":
            await send_answer(refusal(fault), send)
            return
        if fault.kind == "timeout_after":
            await asyncio.sleep(fault.seconds)
        if fault.kind == "truncate":
            await _send_half(messages, send)
            await asyncio.sleep(0.05)  # the half must leave before the connection breaks
        self.drop(scope)


def refusal(fault: Fault) -> Answer:
    """Return the answer of a failure that has one."""
    retry = {"retry-after": fault.retry_after} if fault.retry_after is not None else {}
    if fault.kind == "unauthorized":
        error = HubError(401, "Bad credentials")
    elif fault.kind == "secondary":
        error = HubError(fault.status if fault.status in (403, 429) else 403, SECONDARY, headers=retry)
    else:
        error = HubError(fault.status, "Server Error", headers=retry)
    headers = {"content-type": "application/json; charset=utf-8", "x-ratelimit-remaining": "4999", **error.headers}
    return Answer(error.body(), error.status, headers)


def _replay(body: bytes) -> Callable[[], Awaitable[dict[str, object]]]:
    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": body, "more_body": False}

    return receive


async def _send_half(messages: list[dict[str, object]], send: Send) -> None:
    whole = b"".join(part for part in (message.get("body", b"") for message in messages) if isinstance(part, bytes))
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(whole)).encode())]
    await send({"type": "http.response.start", "status": messages[0]["status"], "headers": headers})
    await send({"type": "http.response.body", "body": whole[: len(whole) // 2], "more_body": True})


async def send_answer(answer: Answer, send: Send) -> None:
    """Send an answer; its length is stated unless it has no body."""
    body = answer.encoded()
    headers = [(name.lower().encode(), value.encode("latin-1")) for name, value in answer.headers.items()]
    headers.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


class RestApp:
    """The REST API, at the root and below `/api/v3`."""

    def __init__(self, hub: Hub) -> None:
        self.dispatcher = Dispatcher(hub)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        request = Request(
            method=scope["method"],
            path=quoted_path(scope).removeprefix(PREFIX) or "/",
            query=scope["query_string"].decode("latin-1"),
            headers=header_map(scope),
            body=await read_body(receive),
        )
        await send_answer(await asyncio.to_thread(self.dispatcher.answer, request), send)
