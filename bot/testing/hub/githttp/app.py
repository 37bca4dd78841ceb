"""Clone, fetch and push: who may, and what a push sets off."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from urllib.parse import parse_qs

from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from bot.testing.hub.errors import HubError
from bot.testing.hub.githttp.backend import Backend, Head, configuration, hook_folder
from bot.testing.hub.hub import Hub
from bot.testing.hub.identity import Caller, identify
from bot.testing.hub.permissions import check_repository, read, write
from bot.testing.hub.records import Repository
from bot.testing.hub.wire import header_map
from bot.testing.hub.workflows import may_write_workflows

CHALLENGE = {"WWW-Authenticate": 'Basic realm="GitHub"'}
ADVERT = "info/refs"
UNAUTHORIZED, FORBIDDEN, NOT_FOUND = 401, 403, 404


class GitApp:
    """Serves the repositories of a hub to git clients."""

    def __init__(self, hub: Hub) -> None:
        self.hub = hub

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        tail = _tail(scope)
        service = parse_qs(scope["query_string"].decode()).get("service", [""])[0] if tail == ADVERT else tail
        pushing = service == "git-receive-pack"
        try:
            caller, repository = await asyncio.to_thread(self._admit, scope, pushing)
        except HubError as refusal:
            headers = CHALLENGE if refusal.status == UNAUTHORIZED else None
            await PlainTextResponse(refusal.message, refusal.status, headers)(scope, receive, send)
            return
        backend = Backend(self._environment(scope, caller, repository))
        try:
            head = await backend.start(_body(receive))
            if pushing and scope["method"] == "POST":
                await self._finish_push(backend, head, caller, repository)
            await _send(head, backend, send)
        finally:
            await backend.finish()

    def _admit(self, scope: Scope, pushing: bool) -> tuple[Caller, Repository]:  # noqa: FBT001 -- which of two
        headers, params = header_map(scope), scope["path_params"]
        try:
            caller = identify(self.hub, headers.get("authorization"))
        except HubError as refusal:
            if refusal.status == FORBIDDEN:
                raise
            raise HubError(UNAUTHORIZED, "Invalid username or token.") from None
        with self.hub.lock:
            try:
                repository = self.hub.repository(params["owner"], params["repo"].removesuffix(".git"))
                need = write("contents") if pushing else read("contents")
                check_repository(self.hub, need, caller, repository)
            except HubError as refusal:
                raise _worded(refusal, caller, params) from None
        return caller, repository

    def _environment(self, scope: Scope, caller: Caller, repository: Repository) -> dict[str, str]:
        headers = header_map(scope)
        tail = _tail(scope)
        environment = {
            "GIT_PROJECT_ROOT": str(repository.path.parent),
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": f"/{repository.path.name}/{tail}",
            "QUERY_STRING": scope["query_string"].decode(),
            "REQUEST_METHOD": scope["method"],
            "CONTENT_TYPE": headers.get("content-type", ""),
            "GIT_PROTOCOL": headers.get("git-protocol", ""),
            "REMOTE_ADDR": "127.0.0.1",
        }
        if caller.user is not None:
            environment["REMOTE_USER"] = caller.user.login
        if "content-encoding" in headers:
            environment["HTTP_CONTENT_ENCODING"] = headers["content-encoding"]
        if "content-length" in headers:
            environment["CONTENT_LENGTH"] = headers["content-length"]
        if tail == "git-receive-pack" and not may_write_workflows(caller):
            hooks = hook_folder(self.hub.root)
            environment |= configuration({"core.hooksPath": str(hooks), "receive.procReceiveRefs": "refs"})
        return environment

    async def _finish_push(self, backend: Backend, head: Head, caller: Caller, repository: Repository) -> None:
        """Read git's whole answer, so that pull requests have moved before the client hears of success."""
        head.rest += b"".join([chunk async for chunk in backend.chunks()])
        if caller.user is not None:
            await asyncio.to_thread(self.hub.refs_changed, repository, caller.user)


def _tail(scope: Scope) -> str:
    """Return what is asked of a repository: `info/refs` or a service."""
    return ADVERT if scope["path"].endswith(ADVERT) else str(scope["path"]).rpartition("/")[2]


def _worded(refusal: HubError, caller: Caller, params: dict[str, str]) -> HubError:
    """Return a refusal as git clients get it; whoever is unknown is asked for credentials first."""
    if caller.kind in ("anonymous", "app"):
        return HubError(UNAUTHORIZED, "Authentication required")
    if refusal.status == NOT_FOUND or caller.user is None:
        return HubError(NOT_FOUND, "Repository not found.")
    name = f"{params['owner']}/{params['repo'].removesuffix('.git')}.git"
    return HubError(FORBIDDEN, f"Permission to {name} denied to {caller.user.login}.")


async def _body(receive: Receive) -> AsyncIterator[bytes]:
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        if message.get("body"):
            yield message["body"]
        more = message.get("more_body", False)


async def _send(head: Head, backend: Backend, send: Send) -> None:
    await send({"type": "http.response.start", "status": head.status, "headers": head.headers})
    if head.rest:
        await send({"type": "http.response.body", "body": head.rest, "more_body": True})
    async for chunk in backend.chunks():
        await send({"type": "http.response.body", "body": chunk, "more_body": True})
    await send({"type": "http.response.body", "body": b""})
