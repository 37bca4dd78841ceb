"""From a delivery to a queued run, a message to a running one, or an answer; shared by webhook, Actions and replay."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal, assert_never

from bot.commands.catalogue import usages
from bot.commands.interpret import interpret
from bot.commands.permissions import check
from bot.domain.command import Answer, Command, Fix, Help, Status, Stop
from bot.domain.refs import RepositoryRef
from bot.domain.task import Task, branch_name
from bot.domain.trigger import Closed, Trigger, TriggerContext, Unlabelled
from bot.errors import Forbidden, NotAllowed, NotFound, TaskRefused, UserError
from bot.github import comments, questions
from bot.github.base import GitHub, GitHubApp
from bot.github.webhooks import BadPayload, decode, to_trigger
from bot.settings.server import ServerSettings
from bot.store.base import Accepted, Delivery, NewRequest, TaskStore
from bot.tasks.effects import ensure_comment, progress_slot, reply
from bot.tasks.engines.base import ABI
from bot.tasks.standing import progress_view, stand

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Handled:
    """What became of a delivery."""

    state: Literal["done", "ignored"]
    note: str
    accepted: Accepted | None = None


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
        """
        self._store = store
        self._app = app
        self._settings = settings
        self._ids = ids
        self._clock = clock
        self._stop = stop
        self._served = served

    @property
    def _word(self) -> str:
        return self._settings.command

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
        return await self._act(trigger, context, self._app.installation(context.installation_id))

    async def _act(self, trigger: Trigger, context: TriggerContext, github: GitHub) -> Handled:
        try:
            command = interpret(trigger, label=self._settings.label, word=self._settings.command)
            if command is None:
                return Handled("ignored", "no command")
            if isinstance(trigger, Closed | Unlabelled):
                return await self._halt(context, github, "closed" if isinstance(trigger, Closed) else "label removed")
            await self._allowed(command, context, github)
            return await self._obey(command, trigger, context, github)
        except UserError as error:
            await reply(self._store, github, context, str(error))
            return Handled("done", f"{type(error).__name__}: {error}")

    async def _allowed(self, command: Command, context: TriggerContext, github: GitHub) -> None:
        if context.actor is None:
            raise NotAllowed(comments.unknown_actor())
        level = await github.permission(context.thread.repository, context.actor)
        check(command, level, context.actor)

    async def _obey(self, command: Command, trigger: Trigger, context: TriggerContext, github: GitHub) -> Handled:
        match command:
            case Fix():
                return await self._fix(command, trigger, context, github)
            case Answer():
                if not await self._is_awaited(context):
                    raise TaskRefused(questions.nothing_asked(self._word))
                return await self._fix(Fix(command.text), trigger, context, github)
            case Stop():
                handled = await self._halt(context, github, "asked")
                if handled.state == "ignored":
                    await reply(self._store, github, context, comments.nothing_to_stop(self._word))
                return Handled("done", handled.note)
            case Status():
                await reply(self._store, github, context, await self._status(context))
                return Handled("done", "status")
            case Help():
                text = comments.help_text(self._word, self._settings.label, usages(self._word))
                await reply(self._store, github, context, text)
                return Handled("done", "help")
            case _:
                assert_never(command)

    async def _fix(self, command: Fix, trigger: Trigger, context: TriggerContext, github: GitHub) -> Handled:
        comment_id = getattr(trigger, "comment_id", None)
        accepted = await self._store.accept(await self._request(command, comment_id, context, github), self._clock())
        await self._store.audit(
            self._clock(), _login(context), f"run.{accepted.kind}", accepted.run.id, context.event_key
        )
        try:
            await github.react(context.thread.repository, context.thread.number, comment_id, "eyes")
        except (NotFound, Forbidden) as error:
            # A comment may be deleted and a thread locked; the request stands all the same.
            log.warning("eyes.refused", extra={"run": accepted.run.id, "error": str(error)})
        log.info("run.accepted", extra={"run": accepted.run.id, "kind": accepted.kind})
        return Handled("done", f"{accepted.kind}: {accepted.run.id}", accepted)

    async def _is_awaited(self, context: TriggerContext) -> bool:
        """Say whether the thread's task waits for an answer, or is at work and hears it at its next turn."""
        task = await self._store.task_of(context.thread.repository.id, context.thread.number)
        if task is None:
            return False
        last = (await self._store.runs(task.id))[-1]
        if last.state != "finished" or last.outcome != "waiting":
            return last.state != "finished"
        standing = stand(await self._store.events(task.id), last.seq)
        return bool(standing.question or (standing.proposed and standing.proposed.questions))

    async def _request(
        self, command: Fix, comment_id: int | None, context: TriggerContext, github: GitHub
    ) -> NewRequest:
        thread, task_id = context.thread, self._ids()
        known = await self._store.task_of(thread.repository.id, thread.number)
        repository = thread.repository
        branch, base, pull_number = branch_name(thread.number, task_id), repository.default_branch, None
        if thread.kind == "pull":
            branch, base, pull_number = await self._pull(repository, thread.number, github)
        if known is not None:
            branch, base = known.branch, known.base_branch
        base = base or (await github.repository(repository.id)).default_branch
        if not base:
            raise TaskRefused(comments.no_default_branch())
        return NewRequest(
            task_id=task_id,
            event_key=context.event_key,
            repository=repository,
            number=thread.number,
            kind=thread.kind,
            title=context.title,
            body=context.body,
            requester=_login(context),
            requester_id=context.actor.id if context.actor else 0,
            request=command.text,
            model=command.model,
            comment_id=comment_id,
            installation_id=context.installation_id,
            branch=branch,
            base_branch=base,
            pull_number=pull_number,
            abi=ABI,
        )

    async def _pull(self, repository: RepositoryRef, number: int, github: GitHub) -> tuple[str, str, int]:
        pull = await github.pull(repository, number)
        if pull.head_repository_id != repository.id:
            raise TaskRefused(comments.fork_refused(self._word))
        if pull.state != "open":
            raise TaskRefused(comments.thread_closed(self._word))
        return pull.head_branch, pull.base_branch, number

    async def _status(self, context: TriggerContext) -> str:
        thread = context.thread
        task = await self._store.task_of(thread.repository.id, thread.number)
        if task is None:
            return comments.status(None, word=self._word)
        run = (await self._store.runs(task.id))[-1]
        standing = stand(await self._store.events(task.id), run.seq)
        return comments.status(progress_view(standing, marker="", word=self._word), word=self._word)

    async def _halt(self, context: TriggerContext, github: GitHub, why: str) -> Handled:
        """Stop the thread's open run; GitHub itself decides who may close or take a label away."""
        thread = context.thread
        task = await self._store.task_of(thread.repository.id, thread.number)
        run = await self._store.open_run(task.id) if task else None
        if task is None:
            return Handled("ignored", "nothing runs")
        if run is None:
            return await self._drop(task, context, github, why)
        await self._store.post(task.id, "stop", author=_login(context), text=why, event_key=context.event_key)
        await self._store.audit(self._clock(), _login(context), "run.stop", run.id, why)
        self._stop(run.id)
        return Handled("done", f"stop: {run.id}")

    async def _drop(self, task: Task, context: TriggerContext, github: GitHub, why: str) -> Handled:
        """End the wait of a task for a decision or an answer: what was asked is asked no more."""
        last = (await self._store.runs(task.id))[-1]
        if last.outcome != "waiting":
            return Handled("ignored", "nothing runs")
        reason = f"{_login(context)} dropped what waited here."
        finished = stand(await self._store.events(task.id), last.seq).finished
        if finished is not None:
            # What the run used stands in its first end; told again, it would count twice on its day.
            fact = replace(finished, outcome="stopped", reason=reason, turns=0, tokens=0, cost_usd=0.0)
            await self._store.record(task.id, last.seq, "dropped", fact, self._clock())
        await self._store.finish(task.id, last.seq, "stopped", reason, self._clock())
        await self._store.audit(self._clock(), _login(context), "run.dropped", last.id, why)
        shown = stand(await self._store.events(task.id), last.seq)
        body = comments.progress(progress_view(shown, marker="", word=self._word))
        slot = progress_slot(last)
        await ensure_comment(self._store, github, task.repository, last.number, task_id=task.id, slot=slot, body=body)
        return Handled("done", f"dropped: {last.id}")


def _login(context: TriggerContext) -> str:
    return context.actor.login if context.actor else "ghost"
