"""The hub on a socket: the ASGI application and a server of its own thread."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Self

import uvicorn
from starlette.applications import Starlette
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import Scope
from uvicorn.protocols.http.h11_impl import H11Protocol

from bot.testing.hub.githttp.app import GitApp
from bot.testing.hub.hub import Hub
from bot.testing.hub.logs import LogApp
from bot.testing.hub.wire import Drop, Faulty, RestApp

START_S = 20.0
"""Longest time from start to the first connection."""

RESET_AT_CLOSE = struct.pack("ii", 1, 0)
"""SO_LINGER on and zero: closing sends RST."""


def create_app(hub: Hub, *, extra_routes: Sequence[BaseRoute] = (), drop: Drop | None = None) -> Starlette:
    """Return the hub as an ASGI application.

    Args:
        hub: what is served.
        extra_routes: tried before the hub's own, such as pages and GraphQL.
        drop: breaks a connection, for failures; None raises `ConnectionResetError` into the server.
    """
    git, rest = GitApp(hub), RestApp(hub)
    routes: list[BaseRoute] = [
        *extra_routes,
        Route("/{owner}/{repo}/info/refs", git),
        Route("/{owner}/{repo}/git-upload-pack", git),
        Route("/{owner}/{repo}/git-receive-pack", git),
        Route("/actions-logs/{code}", LogApp(hub)),
        Mount("/", rest),
    ]
    app = Starlette(routes=routes)
    app.add_middleware(Faulty, hub=hub, drop=drop or _raise)
    return app


def _raise(_: Scope) -> None:
    raise ConnectionResetError("the hub dropped this connection on purpose")


class HubServer:
    """Serves a hub on 127.0.0.1 from a thread of its own, as a context manager, `async` or not.

    Args:
        hub: what is served; its `base_url` is set to this server's.
        port: 0 takes a free one.
        extra_routes: see `create_app`.
    """

    def __init__(self, hub: Hub, *, port: int = 0, extra_routes: Sequence[BaseRoute] = ()) -> None:
        self.hub = hub
        self._port = port
        self._routes = extra_routes
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None
        self._connections: dict[tuple[str, int], asyncio.Transport] = {}

    @property
    def url(self) -> str:
        """Root of pages and git, without a slash at the end."""
        return self.hub.base_url

    @property
    def api_url(self) -> str:
        """Root of the REST API."""
        return self.hub.api_url

    @property
    def graphql_url(self) -> str:
        """Where GraphQL is."""
        return f"{self.hub.base_url}/api/graphql"

    def start(self) -> None:
        """Bind, then serve in a thread; returns when connections are taken."""
        listener = socket.create_server(("127.0.0.1", self._port))
        self.hub.base_url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        config = uvicorn.Config(
            create_app(self.hub, extra_routes=self._routes, drop=self._drop),
            http=_protocol(self._connections),
            ws="none",
            loop="asyncio",
            lifespan="off",
            log_config=None,
            access_log=False,
            date_header=False,  # answers carry the hub's own clock
            timeout_graceful_shutdown=1,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, args=([listener],), name="hub", daemon=True)
        self._thread.start()
        deadline = time.monotonic() + START_S
        while not self._server.started:
            if time.monotonic() > deadline or not self._thread.is_alive():
                raise RuntimeError("the hub did not start")
            time.sleep(0.005)

    def stop(self) -> None:
        """Stop serving; the hub's state stays."""
        if self._server is not None and self._thread is not None:
            self._server.should_exit = True
            self._thread.join()
        self.hub.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self.start)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.stop)

    def _drop(self, scope: Scope) -> None:
        """Reset the connection of a request."""
        transport = self._connections.get(tuple(scope["client"]))
        if transport is not None:
            transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_AT_CLOSE)
            transport.abort()


def _protocol(connections: dict[tuple[str, int], asyncio.Transport]) -> type[H11Protocol]:
    """Return uvicorn's protocol, which also notes each connection by the client's address."""

    class Noted(H11Protocol):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            connections[transport.get_extra_info("peername")] = transport
            super().connection_made(transport)

        def connection_lost(self, exc: Exception | None) -> None:
            connections.pop(self.transport.get_extra_info("peername"), None)
            super().connection_lost(exc)

    return Noted
