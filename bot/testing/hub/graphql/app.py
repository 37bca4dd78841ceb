"""The routes of GraphQL: HTTP around a query."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Mapping, Sequence
from datetime import UTC
from email.utils import format_datetime

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from bot.testing.hub.errors import HubError
from bot.testing.hub.graphql.asking import Ask
from bot.testing.hub.graphql.engine import Query, answer
from bot.testing.hub.hub import Hub
from bot.testing.hub.identity import ANONYMOUS, Caller, bad_credentials, identify
from bot.testing.hub.rest.call import JSON_TYPE
from bot.testing.hub.shapes.common import Json

DOCS = "https://docs.github.com/graphql"
PATHS = ("/graphql", "/api/graphql")
"""Where github.com has it, and where an Enterprise Server has it."""


def routes(hub: Hub) -> Sequence[BaseRoute]:
    """Return the routes of GraphQL of a hub, to be tried before its others."""

    async def endpoint(request: Request) -> Response:
        body, authorization = await request.body(), request.headers.get("authorization")
        return await asyncio.to_thread(_respond, hub, authorization, body)

    return [Route(path, endpoint, methods=["POST"]) for path in PATHS]


def _respond(hub: Hub, authorization: str | None, raw: bytes) -> Response:
    """Answer one request under the hub's lock."""
    caller, status = ANONYMOUS, 200
    with hub.lock:
        try:
            caller = _caller(hub, authorization)
            body = _answer(hub, caller, raw)
        except HubError as refusal:
            status, body = refusal.status, {**refusal.body(), "documentation_url": DOCS}
        return Response(json.dumps(body, ensure_ascii=False), status, _headers(hub, caller))


def _caller(hub: Hub, authorization: str | None) -> Caller:
    """Return who asks; GraphQL is for nobody without a token.

    Raises:
        HubError: 401; 403 for a suspended installation.
    """
    caller = identify(hub, authorization)
    if caller.kind in ("anonymous", "app"):
        raise bad_credentials()
    return caller


def _answer(hub: Hub, caller: Caller, raw: bytes) -> Json:
    try:
        hub.meter.check(caller.key)
    except HubError as refusal:
        return {"errors": [{"type": "RATE_LIMITED", "message": refusal.message}]}
    hub.meter.count(caller.key)
    try:
        given = json.loads(raw)
    except (ValueError, RecursionError):
        raise HubError(400, "Problems parsing JSON") from None
    if not isinstance(given, dict) or not isinstance(given.get("query"), str):
        return {"errors": [{"message": "A query attribute must be specified and must be a string."}]}
    variables, operation = given.get("variables"), given.get("operationName")
    if not isinstance(variables, Mapping | None):
        return {"errors": [{"message": "Variables must be an object."}]}
    query = Query(given["query"], variables or {}, operation if isinstance(operation, str) else None)
    return answer(Ask(hub, caller), query)


def _headers(hub: Hub, caller: Caller) -> dict[str, str]:
    return {
        "Content-Type": JSON_TYPE,
        "Date": format_datetime(hub.clock().astimezone(UTC), usegmt=True),
        "X-GitHub-Media-Type": "github.v4; format=json",
        "X-GitHub-Request-Id": secrets.token_hex(12).upper(),
        **hub.meter.headers(caller.key),
        "x-ratelimit-resource": "graphql",
    }
