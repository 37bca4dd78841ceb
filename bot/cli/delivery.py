"""What `receive` and `ci` share: one delivery through the same intake as a webhook, worked on in this process."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from bot import bootstrap
from bot.cli.play import executor, worked
from bot.cli.screen import Screen
from bot.domain.task import Run
from bot.github.base import GitHubApp
from bot.sandbox.choose import Chosen
from bot.settings.resolve import RunSettings
from bot.settings.server import ServerSettings
from bot.store.base import Delivery
from bot.tasks.gates import nobody
from bot.tasks.intake import Intake
from bot.tasks.liveness import Liveness
from bot.tasks.on_github import GitHubPublisher
from bot.tasks.oneshot import OneShot
from bot.tasks.orders import Handled
from bot.tools.base import Tool

ASK = "ask_person"


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
    """Hand a delivery to intake and work on what it begins.

    Args:
        settings: the operator's.
        stores: what is known.
        app: GitHub.
        delivery: what happened there.
        screen: shows the run.
        chosen: the sandbox.
        ids: makes a task's id.
        served: whether people can say more later that finds this run; a job knows nothing of the one before.
    """
    publisher = GitHubPublisher(stores.tasks, app, settings, shelter=bootstrap.shelter(chosen), answerable=served)
    permits = None if served else nobody
    desk = bootstrap.make_desk(settings, stores.tasks, publisher, chosen, permits=permits)
    if not served:
        desk = replace(desk, tools=_unasking)
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


def _unasking(settings: RunSettings) -> Sequence[Tool]:
    """Offer no question that nobody can answer."""
    return [tool for tool in bootstrap.offered_tools(settings) if tool.spec.name != ASK]
