"""From a delivery to what is to be done about it; shared by webhook, Actions and replay."""

from collections.abc import Callable
from datetime import datetime

from bot.commands.interpret import interpret
from bot.commands.permissions import WRITERS, check
from bot.domain.command import Command, Review
from bot.domain.trigger import (
    CiFinished,
    Closed,
    Commented,
    Edited,
    Pushed,
    ReviewDismissed,
    Reviewed,
    ThreadCommented,
    Trigger,
    TriggerContext,
    Unlabelled,
)
from bot.errors import NotAllowed, UserError
from bot.github import comments, requests
from bot.github.base import GitHub, GitHubApp
from bot.github.webhooks import BadPayload, decode, to_trigger
from bot.settings.server import ServerSettings
from bot.store.base import Delivery, TaskStore
from bot.tasks import decisions, independent
from bot.tasks.effects import reply
from bot.tasks.orders import Handled, Orders
from bot.tasks.plans import open_plan, put_back
from bot.tasks.repairs import Repairs


class Intake:
    """Understands deliveries and acts on them; handling one twice changes nothing."""

    def __init__(  # noqa: PLR0913 - it stands where everything meets
        self,
        store: TaskStore,
        app: GitHubApp,
        settings: ServerSettings,
        *,
        ids: Callable[[], str],
        clock: Callable[[], datetime],
        stop: Callable[[str], None],
        served: bool = True,
        repairs: Repairs | None = None,
    ) -> None:
        """Make an intake.

        Args:
            store: where requests are kept.
            app: GitHub.
            settings: the operator's.
            ids: makes ids of 32 hexadecimal digits.
            clock: the present time.
            stop: tells a run of this process that it has to stop.
            served: whether deliveries come to a server, where each names the installation that it is for.
            repairs: what acts on the checks of others, where runs that end ask the same one.
        """
        self._store = store
        self._app = app
        self._settings = settings
        self._served = served
        self._clock = clock
        self._orders = Orders(store, settings, ids=ids, clock=clock, stop=stop)
        self._repairs = repairs or Repairs(store, settings, clock)

    async def handle(self, delivery: Delivery) -> Handled:
        """Act on one delivery.

        Raises:
            GitHubError: GitHub could not be asked; nothing was begun, and trying again is safe.
        """
        try:
            trigger = to_trigger(delivery.event, decode(delivery.body))
        except BadPayload as error:
            return Handled("ignored", f"payload: {error}")
        if trigger is None:
            return Handled("ignored", f"nothing to do for `{delivery.event}`")
        context = trigger.context
        if not self._settings.covers(context.thread.repository.full_name):
            return Handled("ignored", f"repository {context.thread.repository.full_name} is not in `repositories`")
        if self._served and context.installation_id is None:
            return Handled(
                "ignored", "the delivery names no installation: point the App's webhook here, not the repository's"
            )
        github = self._app.installation(context.installation_id)
        if isinstance(trigger, CiFinished):
            return await self._repairs.heard(trigger, github)
        handled = await self._act(trigger, context, github)
        # Behind it: who approved a plan has asked for the work.
        if self._settings.independent_review and isinstance(trigger, Reviewed | ReviewDismissed | Pushed):
            await independent.heard(self._store, github, trigger)
        return handled

    async def _act(self, trigger: Trigger, context: TriggerContext, github: GitHub) -> Handled:
        if isinstance(trigger, Pushed | Edited):
            if isinstance(trigger, Edited):
                heard = self._edited(trigger, github)
            else:
                heard = self._orders.check_pushed(trigger, github)
            return await heard
        try:
            alias = await _alias(trigger, github)
            command = interpret(trigger, label=self._settings.label, word=self._settings.command, alias=alias)
            if command is None:
                return await self._orders.talk(trigger, github)
            if isinstance(command, Review) and (why := await self._why_unheard(command, context, github)):
                return Handled("ignored", why)
            if isinstance(trigger, Closed | Unlabelled):
                why = "closed" if isinstance(trigger, Closed) else "label removed"
                return await self._orders.halt(trigger, github, why)
            await self._allowed(command, context, github)
            return await self._orders.obey(command, trigger, context, github)
        except UserError as error:
            await reply(self._store, github, context, str(error))
            return Handled("done", f"{type(error).__name__}: {error}")

    async def _why_unheard(self, command: Review, context: TriggerContext, github: GitHub) -> str:
        """Say why a review without a command is passed over: anybody may review what is public."""
        if why := await self._orders.why_unheard(command, context):
            return why
        if (await github.pull(context.thread.repository, context.thread.number)).state != "open":
            return "a review of a closed pull request"
        actor = context.actor
        writes = actor is not None and await github.permission(context.thread.repository, actor) in WRITERS
        return "" if writes else "a review of somebody who may not write"

    async def _edited(self, trigger: Edited, github: GitHub) -> Handled:
        """Let a request wait no more whose comment others changed."""
        thread, actor = trigger.context.thread, trigger.context.actor
        task = await self._store.task_of(thread.repository.id, thread.number)
        if task is None or (actor is not None and actor.id == (await github.identity()).id):
            return Handled("ignored", "no command")
        now, on_line = self._clock(), trigger.on_line
        void = await decisions.edited(self._store, task, trigger.comment_id, now, on_line=on_line)
        plan = await open_plan(self._store, task)
        if plan is not None and (plan.comment_id, False) == (trigger.comment_id, on_line):
            back = await put_back(self._store, github, task, plan)
            return Handled("done", "the comment of the plan that waits is as it was posted" if back else "no change")
        if void is None:
            return Handled("ignored", "no command")
        await reply(self._store, github, trigger.context, requests.edited(void, self._settings.command))
        return Handled("done", "the comment of a request was changed: it waits no more")

    async def _allowed(self, command: Command, context: TriggerContext, github: GitHub) -> None:
        if context.actor is None:
            raise NotAllowed(comments.unknown_actor())
        level = await github.permission(context.thread.repository, context.actor)
        check(command, level, context.actor)


async def _alias(trigger: Trigger, github: GitHub) -> str:
    """Return how people call us by our name, where somebody calls anybody; else nobody is asked who we are."""
    if not isinstance(trigger, Commented | ThreadCommented | Reviewed) or not trigger.text.lstrip().startswith("@"):
        return ""
    return "@" + (await github.identity()).login.removesuffix("[bot]")
