"""The server's HTTP side, as `serve`, the demo and tests start it."""

import signal
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from types import FrameType

import uvicorn
from starlette.types import ASGIApp

from bot import __version__, bootstrap, serving
from bot.web.app import Services, create_app
from bot.web.webhook import understanding

GRACE_S = 35
"""Seconds from a signal to the end: the steps in flight have 30 of them."""


def web_app(
    server: serving.Server,
    *,
    missing: Sequence[str] = (),
    running: Callable[[], AbstractAsyncContextManager[None]] | None = None,
) -> ASGIApp:
    """Put the web face in front of a server.

    Args:
        server: whom it serves.
        missing: what set-up still lacks.
        running: what runs while it is served; the server's own work by default.
    """
    settings = server.settings
    return create_app(
        Services(
            deliveries=server.stores.deliveries,
            tasks=server.stores.tasks,
            secrets=settings.github.webhook_secrets,
            missing=missing,
            facts={
                "version": __version__,
                "sandbox": {
                    "level": server.chosen.level,
                    "commands": server.chosen.shell,
                    "missing": list(server.chosen.missing),
                    "remedy": server.chosen.remedy,
                },
            },
            host=settings.host,
            understand=understanding(settings.covers, own_app_id=settings.github.app_id),
            clock=bootstrap.now,
            on_delivery=server.inlet.wake,
            running=running or server.running,
        )
    )


class Listener(uvicorn.Server):
    """Listens until a signal, and leaves it to the process how it ends: uvicorn would raise the signal once more."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End gracefully; a second interrupt ends at once."""
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.should_exit = True


def listener(app: ASGIApp, *, host: str, port: int, grace_s: int = GRACE_S) -> Listener:
    """Make what listens for the web face."""
    return Listener(
        uvicorn.Config(app, host=host, port=port, log_config=None, access_log=False, timeout_graceful_shutdown=grace_s)
    )
