"""What `receive` and `ci` share: one delivery through the same intake as a webhook, worked on in this process."""

import asyncio
import os
import signal
import socket
from collections.abc import Callable
from dataclasses import dataclass

from bot import bootstrap
from bot.cli.screen import Screen
from bot.domain.task import Run
from bot.github.base import GitHubApp
from bot.sandbox.choose import Chosen
from bot.settings.server import ServerSettings
from bot.store.base import Delivery
from bot.tasks.intake import Handled, Intake
from bot.tasks.liveness import Liveness
from bot.tasks.on_github import GitHubPublisher
from bot.tasks.oneshot import OneShot


@dataclass(frozen=True, slots=True)
class Played:
    """What one delivery led to."""

    handled: Handled
    run: Run | None
    """The finished run; None where the delivery began none."""
    stores: bootstrap.Stores


async def play(
    settings: ServerSettings,
    stores: bootstrap.Stores,
    app: GitHubApp,
    delivery: Delivery,
    screen: Screen,
    *,
    chosen: Chosen,
    ids: Callable[[], str],
    served: bool,
) -> Played:
    """Hand a delivery to intake and work on what it begins."""
    publisher = GitHubPublisher(stores.tasks, app, settings, shelter=bootstrap.shelter(chosen))
    desk = bootstrap.make_desk(settings, stores.tasks, publisher, chosen)
    intake = Intake(
        stores.tasks,
        app,
        settings,
        ids=ids,
        clock=bootstrap.now,
        stop=lambda run_id: desk.stop_of(run_id).set(),
        served=served,
    )
    handled = await intake.handle(delivery)
    accepted = handled.accepted
    if accepted is None or accepted.kind == "joined":
        screen.say(handled.note)
        return Played(handled, None, stores)
    shot = OneShot(desk, Liveness(settings.state_dir / "executors"), executor())
    run = await worked(shot, accepted.run, screen, stores)
    return Played(handled, run, stores)


async def worked(shot: OneShot, run: Run, screen: Screen, stores: bootstrap.Stores) -> Run:
    """Work on a run while its events are shown; the first interrupt asks it to stop and keeps what was done."""
    loop = asyncio.get_running_loop()
    stopping: set[asyncio.Task[None]] = set()

    def stop() -> None:
        stopping.add(loop.create_task(shot.stop(run)))
        loop.remove_signal_handler(signal.SIGINT)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)
    shown = asyncio.create_task(screen.follow(stores.tasks, run))
    try:
        done = await shot.work(run)
        await asyncio.wait_for(shown, 10)
    finally:
        shown.cancel()
        await asyncio.gather(shown, *stopping, return_exceptions=True)
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
    return done


def executor() -> str:
    """Name this process among those that share a state folder."""
    return f"{socket.gethostname()}-{os.getpid()}-{bootstrap.new_id()[:8]}"
