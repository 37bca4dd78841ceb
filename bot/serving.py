"""Puts the server together; apart from `bootstrap`, since a command of the terminal needs nothing of it."""

import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from bot import bootstrap
from bot.domain.ceilings import Ceilings
from bot.github.base import GitHubApp
from bot.sandbox.choose import Chosen
from bot.settings.server import ServerSettings
from bot.tasks.admission import Admission
from bot.tasks.desk import Desk
from bot.tasks.engines.base import Engine
from bot.tasks.engines.dbos import DbosEngine
from bot.tasks.inlet import Inlet
from bot.tasks.intake import Intake
from bot.tasks.later import Later
from bot.tasks.liveness import Liveness
from bot.tasks.on_github import GitHubPublisher
from bot.tasks.repairs import Repairs

DRAIN_S = 30.0
"""Seconds that steps in flight have at a shutdown."""


@dataclass(frozen=True, slots=True)
class Server:
    """A running server's parts."""

    settings: ServerSettings
    stores: bootstrap.Stores
    app: GitHubApp
    desk: Desk
    intake: Intake
    inlet: Inlet
    admission: Admission
    chosen: Chosen
    repairs: Repairs
    later: Later

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Work from here on, and let steps in flight end at the close."""
        await self.admission.start()
        self.inlet.start()
        try:
            await self.repairs.began(self.app)
            yield
        finally:
            await self.inlet.stop()
            await self.admission.stop(grace_s=DRAIN_S)
            await self.later.close()
            await self.app.close()
            await self.stores.close()


def make_server(
    settings: ServerSettings, chosen: Chosen, *, around: Callable[[Engine], Engine] | None = None
) -> Server:
    """Put a server together; nothing runs yet.

    Args:
        settings: the operator's.
        chosen: what shuts commands in.
        around: wraps the engine, for tests that end the process at a chosen step.
    """
    stores, app = bootstrap.open_stores(settings), bootstrap.make_app(settings)
    later = Later()
    repairs = Repairs(stores.tasks, settings, bootstrap.now, later)
    publisher = GitHubPublisher(stores.tasks, app, settings, shelter=bootstrap.shelter(chosen), repairs=repairs)
    desk = bootstrap.make_desk(settings, stores.tasks, publisher, chosen)
    executor = f"{socket.gethostname()}-{os.getpid()}-{bootstrap.new_id()[:8]}"
    url = settings.database_url.get_secret_value() if settings.database_url else None
    engine: Engine = DbosEngine(settings.state_dir, url, executor)
    admission = Admission(
        desk,
        around(engine) if around else engine,
        Liveness(settings.state_dir / "executors"),
        executor,
        slots=settings.worker.tasks,
        per_installation=settings.worker.per_installation,
        ceilings=Ceilings(settings.daily.usd, settings.daily.usd_per_installation, settings.daily.usd_per_repository),
    )
    intake = Intake(
        stores.tasks,
        app,
        settings,
        ids=bootstrap.new_id,
        clock=bootstrap.now,
        stop=lambda run_id: desk.stop_of(run_id).set(),
        repairs=repairs,
    )
    inlet = Inlet(stores.deliveries, intake, bootstrap.now, queued=admission.wake)
    return Server(settings, stores, app, desk, intake, inlet, admission, chosen, repairs, later)
