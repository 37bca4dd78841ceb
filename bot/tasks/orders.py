"""What people ask for, carried out: a run is queued or hears it, a decision is kept, or a person is answered."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Literal, assert_never

from bot.agent.modes import FINISH
from bot.commands.catalogue import usages
from bot.commands.permissions import WRITERS
from bot.domain.command import (
    Answer,
    Approve,
    Ask,
    Budget,
    Check,
    ChooseModel,
    Command,
    Deny,
    Fix,
    Help,
    Plan,
    Retry,
    Review,
    Status,
    Stop,
    Update,
    name_of,
)
from bot.domain.proposal import short
from bot.domain.refs import RepositoryRef
from bot.domain.task import Intent, Run, Task, branch_name
from bot.domain.trigger import Commented, Labelled, Pushed, Reviewed, ThreadCommented, Trigger, TriggerContext
from bot.errors import Forbidden, NotFound, RunEnding, TaskRefused
from bot.github import commanding, comments, questions
from bot.github.base import GitHub
from bot.settings.server import ServerSettings
from bot.store.base import Accepted, NewRequest, TaskStore
from bot.tasks import decisions, pushes
from bot.tasks.effects import ensure_comment, progress_slot, reply
from bot.tasks.engines.base import ABI
from bot.tasks.plans import OpenPlan, deciding_run, judge, open_plan, vote
from bot.tasks.sheets import holds, require_head
from bot.tasks.standing import progress_view, stand
from bot.tasks.statuses import show_status

log = logging.getLogger(__name__)

ROUND_COMMENTS = 2
"""Comments on lines with which a review begins a round though it asks for no changes."""


@dataclass(frozen=True, slots=True)
class Handled:
    """What became of a delivery."""

    state: Literal["done", "ignored"]
    note: str
    accepted: Accepted | None = None


class Orders:
    """Carries commands out; doing so twice changes nothing."""

    def __init__(
        self,
        store: TaskStore,
        settings: ServerSettings,
        *,
        ids: Callable[[], str],
        clock: Callable[[], datetime],
        stop: Callable[[str], None],
    ) -> None:
        """Take what commands act on.

        Args:
            store: where requests are kept.
            settings: the operator's.
            ids: makes ids of 32 hexadecimal digits.
            clock: the present time.
            stop: tells a run of this process that it has to stop.
        """
        self._store = store
        self._settings = settings
        self._ids = ids
        self._clock = clock
        self._stop = stop
        self._voting = asyncio.Lock()
        """Held while a vote is counted: two that come at once are two."""

    @property
    def _word(self) -> str:
        return self._settings.command

    async def obey(self, command: Command, trigger: Trigger, context: TriggerContext, github: GitHub) -> Handled:  # noqa: C901, PLR0911, PLR0912 - one case for each command
        """Do what a person asks who may.

        Raises:
            UserError: it cannot be done as things stand; the text is for them.
        """
        match command:
            case Fix():
                if not isinstance(trigger, Labelled):
                    await self._require_one(context)
                return await self._work(command, trigger, context, github)
            case Plan() | Ask():
                request = await self._request(Fix(command.text), trigger, context, github)
                intent: Intent = "plan" if isinstance(command, Plan) else "ask"
                return await self._queue(replace(request, intent=intent, joins=False), command, context, github)
            case Review():
                return await self._review(command, trigger, context, github)
            case Approve() | Deny():
                return await self._decide(command, trigger, context, github)
            case Answer():
                if not await self._is_awaited(context):
                    raise TaskRefused(questions.nothing_asked(self._word))
                await self._require_one(context)
                return await self._work(Fix(command.text), trigger, context, github)
            case Update() | Check():
                return await self._alone(command, trigger, context, github)
            case Retry() | Budget():
                return await self._again(command, trigger, context, github)
            case ChooseModel():
                return await self._choose(command, context, github)
            case Stop():
                handled = await self.halt(context, github, "asked")
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

    async def _work(self, command: Fix, trigger: Trigger, context: TriggerContext, github: GitHub) -> Handled:
        return await self._queue(await self._request(command, trigger, context, github), command, context, github)

    async def _queue(self, request: NewRequest, command: Command, context: TriggerContext, github: GitHub) -> Handled:
        """Queue a run for a request, or let the one at work hear it."""
        accepted = await self._store.accept(request, self._clock())
        if accepted.kind == "busy":
            if await self._is_ending(accepted.task, accepted.run):
                raise RunEnding(f"run {accepted.run.id} is about to end")
            raise TaskRefused(commanding.busy(name_of(command), self._word))
        handled = await self._accepted(accepted, context)
        try:
            await github.react(context.thread.repository, context.thread.number, request.comment_id, "eyes")
        except (NotFound, Forbidden) as error:
            # A comment may be deleted and a thread locked; the request stands all the same.
            log.warning("eyes.refused", extra={"run": accepted.run.id, "error": str(error)})
        return handled

    async def _is_ending(self, task: Task, run: Run) -> bool:
        """Whether a run has done its part: people see its plan, its answer or its end a moment before it is closed."""
        standing = stand(await self._store.events(task.id), run.seq)
        waits = standing.proposed is not None and standing.proposed.waits and standing.has_plan_open
        answered = run.intent == "ask" and bool(standing.tools) and standing.tools[-1].name == FINISH
        return standing.finished is not None or waits or answered

    async def _accepted(self, accepted: Accepted, context: TriggerContext) -> Handled:
        await self._store.audit(
            self._clock(), _login(context), f"run.{accepted.kind}", accepted.run.id, context.event_key
        )
        log.info("run.accepted", extra={"run": accepted.run.id, "kind": accepted.kind})
        return Handled("done", f"{accepted.kind}: {accepted.run.id}", accepted)

    async def _decide(
        self, command: Approve | Deny, trigger: Trigger, context: TriggerContext, github: GitHub
    ) -> Handled:
        """Take a decision about the plan or the call that waits."""
        task, comment_id = await self._task(context), _comment_of(trigger)
        thread = trigger.thread_root_id if isinstance(trigger, ThreadCommented) else None
        in_thread = thread is not None and await decisions.in_thread(self._store, task, thread) is not None
        if isinstance(command, Approve) and not command.always and (command.hash or not in_thread):
            plan, events = await open_plan(self._store, task), await self._store.events(task.id)
            said_at = trigger.at if isinstance(trigger, ThreadCommented) else None
            if judge(plan, events, command.hash, comment_id, said_at, word=self._word):
                if plan and isinstance(trigger, Reviewed) and not command.hash:
                    await require_head(github, self._store, task, plan.fact, trigger, self._word)
                return await self._approved(plan, trigger, context, github)
        if command.hash is None and isinstance(trigger, Reviewed):
            # It may have been written long before the call waited.
            raise TaskRefused(commanding.hash_needed(self._word))
        decide = (
            partial(decisions.approve, always=command.always, required=self._settings.require_approvals)
            if isinstance(command, Approve)
            else partial(decisions.deny, reason=command.reason)
        )
        decided = await decide(
            self._store,
            github,
            context,
            short_hash=command.hash,
            comment_created_at=trigger.at if isinstance(trigger, Commented | ThreadCommented) else None,
            in_thread_of=thread,
            clock=self._clock,
            comment_id=comment_id,
            word=self._word,
        )
        await self._store.audit(self._clock(), _login(context), f"call.{decided.kind}", task.id, context.event_key)
        await reply(self._store, github, context, decided.text)
        if decided.kind in {"approved", "denied"}:
            return await self._work(Fix(""), trigger, context, github)
        return Handled("done", f"call {decided.kind}")

    async def _approved(
        self, plan: OpenPlan | None, trigger: Trigger, context: TriggerContext, github: GitHub
    ) -> Handled:
        """Let a plan's work begin, once enough people want it."""
        task, actor = await self._task(context), context.actor
        async with self._voting:
            missing = await vote(self._store, github, task, plan, actor) if plan and actor else 0
        if not plan or not missing:
            return await self._work(Fix(""), trigger, context, github)
        told = commanding.more_needed(_login(context), plan.approvals, short(plan.fact.hash), self._word)
        await reply(self._store, github, context, told)
        return Handled("done", f"plan: {missing} more")

    async def _require_one(self, context: TriggerContext) -> None:
        """Refuse to carry a plan out at the word of one person where it takes several."""
        task = await self._store.task_of(context.thread.repository.id, context.thread.number)
        plan = await open_plan(self._store, task) if task else None
        if plan and plan.approvals > 1:
            raise TaskRefused(commanding.takes_several(plan.approvals, short(plan.fact.hash), self._word))

    async def _review(self, command: Review, trigger: Trigger, context: TriggerContext, github: GitHub) -> Handled:
        """Begin a round where a review asks for one; a comment alone waits for the others.

        While a plan waits, a review decides about that: a yes lets its work begin, and changes are made to the plan.
        """
        task = await self._task(context)
        plan = await open_plan(self._store, task)
        if command.approves and plan is not None and isinstance(trigger, Reviewed):
            await require_head(github, self._store, task, plan.fact, trigger, self._word)
            return await self._approved(plan, trigger, context, github)
        if plan is not None and not command.wants_changes:
            return Handled("ignored", "a review that only comments on a plan")
        if plan is not None:
            request = await self._request(Fix(command.text), trigger, context, github)
            return await self._queue(replace(request, intent="plan", joins=False), command, context, github)
        if not command.wants_changes and isinstance(trigger, Reviewed):
            reviews = await github.reviews.reviews(context.thread.repository, context.thread.number)
            comments = next((one.comments for one in reviews if one.id == trigger.review_id), 0)
            if comments < ROUND_COMMENTS:
                return Handled("ignored", "a single comment: it waits for a command or a review")
        return await self._work(Fix(command.text), trigger, context, github)

    async def why_unheard(self, command: Review, context: TriggerContext) -> str:
        """Say why a review is passed over, whoever wrote it; empty where it is not."""
        if not await self.is_ours(context):
            return "a review of a pull request that is none of ours"
        task = await self._task(context)
        plan = await open_plan(self._store, task) if command.approves else None
        if command.approves and (plan is None or not await holds(self._store, task, plan.fact)):
            return "an approval where no plan waits"
        return ""

    async def said_to_us(self, trigger: ThreadCommented, github: GitHub) -> Fix | None:
        """Take a writer's reply in a thread that we began for words to the run that is open; else it is no command."""
        context, actor = trigger.context, trigger.context.actor
        thread = context.thread
        task = await self._store.task_of(thread.repository.id, thread.number)
        is_person = actor is not None and not actor.is_bot and not trigger.via_app
        if task is None or not is_person or await self._store.open_run(task.id) is None:
            return None
        threads = await github.reviews.review_threads(thread.repository, thread.number)
        began = (one.comments[0] for one in threads)
        if not any(first.is_ours and first.id == trigger.thread_root_id for first in began):
            return None
        writes = actor is not None and await github.permission(thread.repository, actor) in WRITERS
        return Fix(trigger.text) if writes else None

    async def is_ours(self, context: TriggerContext) -> bool:
        """Say whether a thread is a pull request that a task of ours opened."""
        thread = context.thread
        task = await self._store.task_of(thread.repository.id, thread.number)
        return task is not None and task.pull_number == thread.number and task.kind == "issue"

    async def _again(
        self, command: Retry | Budget, trigger: Trigger, context: TriggerContext, github: GitHub
    ) -> Handled:
        """Queue the last run's request once more, or what its budget cut short."""
        task = await self._task(context)
        last = await deciding_run(self._store, task)
        if isinstance(command, Budget):
            if last.state == "finished" and last.outcome != "budget":
                raise TaskRefused(commanding.no_budget_reached(self._word))
            request = await self._request(Fix(""), trigger, context, github)
            return await self._queue(replace(request, usd=command.usd, joins=False), command, context, github)
        if not command.fresh and await open_plan(self._store, task):
            # Who wants another try of a plan that waits does not want it carried out.
            request = await self._request(Fix("", last.model), trigger, context, github)
            return await self._queue(replace(request, intent="plan", joins=False), command, context, github)
        request = await self._request(Fix(last.request, last.model), trigger, context, github)
        again = replace(request, intent=last.intent, fresh=command.fresh, joins=False)
        return await self._queue(again, command, context, github)

    async def _alone(
        self, command: Update | Check, trigger: Trigger, context: TriggerContext, github: GitHub
    ) -> Handled:
        """Queue what is done to the branch of a task, or of a person's pull request."""
        if context.thread.kind == "issue" and (await self._task(context)).pull_number is None:
            raise TaskRefused(commanding.no_branch(name_of(command), self._word))
        request = await self._request(Fix(""), trigger, context, github)
        intent: Intent = "update" if isinstance(command, Update) else "check"
        return await self._queue(replace(request, intent=intent, joins=False), command, context, github)

    async def check_pushed(self, trigger: Pushed, github: GitHub) -> Handled:
        """Queue the checks of what others pushed to a pull request of ours; GitHub itself decides who may push."""
        context, thread = trigger.context, trigger.context.thread
        task = await self._store.task_of(thread.repository.id, thread.number)
        if task is None or not await self.is_ours(context):
            return Handled("ignored", "a push to a pull request that is none of ours")
        if context.actor is not None and context.actor.id == (await github.identity()).id:
            return Handled("ignored", "our own push")
        try:
            request = await self._request(Fix(""), trigger, context, github)
        except TaskRefused as error:
            return Handled("ignored", f"push: {error}")
        check = replace(request, intent="check", joins=False)
        accepted = await pushes.take(self._store, check, task, self._clock())
        if accepted is None:
            return Handled("done", "a push while a run is open: checked after that")
        return await self._accepted(accepted, context)

    async def _choose(self, command: ChooseModel, context: TriggerContext, github: GitHub) -> Handled:
        task = await self._task(context)
        if not self._settings.models.permits(command.name):
            raise TaskRefused(commanding.model_refused(command.name))
        await self._store.choose_model(task.id, command.name)
        await self._store.audit(self._clock(), _login(context), "task.model", task.id, command.name)
        await reply(self._store, github, context, commanding.model_chosen(command.name))
        return Handled("done", f"model: {command.name}")

    async def _task(self, context: TriggerContext) -> Task:
        """Return the thread's task."""
        task = await self._store.task_of(context.thread.repository.id, context.thread.number)
        if task is None:
            raise TaskRefused(commanding.nothing_here(self._word))
        return task

    async def _is_awaited(self, context: TriggerContext) -> bool:
        """Say whether the thread's task waits for an answer, or is at work and hears it at its next turn."""
        task = await self._store.task_of(context.thread.repository.id, context.thread.number)
        if task is None:
            return False
        last = await deciding_run(self._store, task)
        if last.state != "finished" or last.outcome != "waiting":
            return last.state != "finished"
        standing = stand(await self._store.events(task.id), last.seq)
        return bool(standing.question or (standing.proposed and standing.proposed.questions))

    async def _request(self, command: Fix, trigger: Trigger, context: TriggerContext, github: GitHub) -> NewRequest:
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
            comment_id=_comment_of(trigger),
            commanded=not isinstance(trigger, Labelled | Pushed),
            installation_id=context.installation_id,
            branch=branch,
            base_branch=base,
            pull_number=pull_number,
            abi=ABI,
            asked_at=trigger.at if isinstance(trigger, Labelled | Commented | ThreadCommented | Reviewed) else None,
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
        run = await deciding_run(self._store, task)
        standing = stand(await self._store.events(task.id), run.seq)
        return comments.status(progress_view(standing, marker="", word=self._word), word=self._word)

    async def halt(self, context: TriggerContext, github: GitHub, why: str) -> Handled:
        """Stop the thread's open run; GitHub itself decides who may close or take a label away."""
        thread = context.thread
        task = await self._store.task_of(thread.repository.id, thread.number)
        run = await self._store.open_run(task.id) if task else None
        if task is None:
            return Handled("ignored", "nothing runs")
        if thread.number not in {task.number, task.pull_number}:
            return Handled("ignored", "a pull request that the task left behind")
        if run is None:
            await decisions.drop(self._store, task, _login(context), self._clock())
            return await self._drop(task, context, github, why)
        # A delivery that comes twice must not stop what was begun behind it.
        if await self._store.post(task.id, "stop", author=_login(context), text=why, event_key=context.event_key):
            await decisions.drop(self._store, task, _login(context), self._clock())
            await self._store.audit(self._clock(), _login(context), "run.stop", run.id, why)
            self._stop(run.id)
        return Handled("done", f"stop: {run.id}")

    async def _drop(self, task: Task, context: TriggerContext, github: GitHub, why: str) -> Handled:
        """End the wait of a task for a decision or an answer: what was asked is asked no more."""
        last = await deciding_run(self._store, task)
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
        await show_status(self._store, github, task, self._word)
        return Handled("done", f"dropped: {last.id}")


def _login(context: TriggerContext) -> str:
    return context.actor.login if context.actor else "ghost"


def _comment_of(trigger: Trigger) -> int | None:
    """Return the comment of the conversation that asks; those on lines are counted apart."""
    return trigger.comment_id if isinstance(trigger, Commented) else None
