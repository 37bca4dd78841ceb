"""What people ask for, carried out: a run is queued or hears it, a decision is kept, or a person is answered."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Literal, assert_never

from bot.agent.modes import FINISH
from bot.agent.threads import replied
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
from bot.domain.task import ASIDE, Intent, Run, Task
from bot.domain.trigger import Commented, Labelled, Pushed, Reviewed, ThreadCommented, Trigger, TriggerContext
from bot.errors import Forbidden, NotFound, RunEnding, TaskRefused
from bot.github import commanding, comments, markers, questions
from bot.github.base import GitHub
from bot.settings.server import ServerSettings
from bot.store.base import Accepted, Effect, NewRequest, TaskStore
from bot.tasks import decisions, pushes
from bot.tasks.effects import reply
from bot.tasks.engines.base import ABI
from bot.tasks.places import place_of
from bot.tasks.plans import OpenPlan, deciding_run, judge, open_plan, require_read, vote
from bot.tasks.sheets import holds, require_seen
from bot.tasks.standing import progress_view, stand
from bot.tasks.stopping import halt

log = logging.getLogger(__name__)

CHOSEN = "model"
"""The slot of the effect that says after which run a model was chosen for the further ones."""
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
        known = await self._store.accepted(context.event_key)
        if known is not None and await self._store.decided_by(context.event_key) is None:
            # It was done before GitHub or this process was away; as things stand now it means something else.
            return await self._accepted(known, context)
        match command:
            case Fix():
                return await self._work(command, trigger, context, github, is_round=_is_round(command, trigger))
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
                return await self._work(Fix(command.text), trigger, context, github)
            case Update() | Check():
                return await self._alone(command, trigger, context, github)
            case Retry() | Budget():
                return await self._again(command, trigger, context, github)
            case ChooseModel():
                return await self._choose(command, context, github)
            case Stop():
                handled = await self.halt(trigger, github, "asked")
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

    async def _work(
        self, command: Fix, trigger: Trigger, context: TriggerContext, github: GitHub, *, is_round: bool = False
    ) -> Handled:
        """Queue work that a person asks for, also at once where a plan waits.

        Raises:
            TaskRefused: a plan waits that several people have to approve.
        """
        request = await self._request(command, trigger, context, github)
        # Last, since a plan may be put while GitHub is asked.
        task = await self._store.task_of(context.thread.repository.id, context.thread.number)
        plan = await open_plan(self._store, task) if task and request.commanded else None
        if plan and request.comment_id and plan.comment_id and request.comment_id < plan.comment_id:
            # What was said before it stood there decides nothing about it.
            request = replace(request, commanded=False)
        elif plan and plan.approvals > 1:
            raise TaskRefused(commanding.takes_several(plan.approvals, short(plan.fact.hash), self._word))
        return await self._queue(replace(request, is_round=is_round), command, context, github)

    async def _approved_work(self, said: str, trigger: Trigger, context: TriggerContext, github: GitHub) -> Handled:
        """Queue the run that does what was approved."""
        command = Fix(said)
        return await self._queue(await self._request(command, trigger, context, github), command, context, github)

    async def _queue(self, request: NewRequest, command: Command, context: TriggerContext, github: GitHub) -> Handled:
        """Queue a run for a request, or let the one at work hear it."""
        accepted = await self._store.accept(request, self._clock())
        if accepted.kind == "busy":
            raise await self._busy(accepted.task, accepted.run, command)
        handled = await self._accepted(accepted, context)
        try:
            await github.react(context.thread.repository, context.thread.number, request.comment_id, "eyes")
        except (NotFound, Forbidden) as error:
            # A comment may be deleted and a thread locked; the request stands all the same.
            log.warning("eyes.refused", extra={"run": accepted.run.id, "error": str(error)})
        return handled

    async def _busy(self, task: Task, run: Run, command: Command) -> RunEnding | TaskRefused:
        """Say why something cannot be done beside a run: later, where people see its end already."""
        if await self._is_ending(task, run):
            return RunEnding(f"run {run.id} is about to end")
        return TaskRefused(commanding.busy(name_of(command), self._word))

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
            if judge(plan, events, command.hash, comment_id, word=self._word):
                if plan:
                    placed = bool(command.hash) or comment_id is not None
                    await require_read(self._store, github, task, plan, trigger, placed=placed, word=self._word)
                return await self._approved(plan, trigger, context, github, said=command.text)
        if isinstance(command, Deny) and not in_thread:
            plan = await open_plan(self._store, task)
            if plan is not None and plan.fact.hash.startswith(command.hash or ""):
                raise TaskRefused(commanding.no_call(short(plan.fact.hash), self._word))
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
            in_thread_of=thread,
            clock=self._clock,
            comment_id=comment_id,
            word=self._word,
        )
        await self._store.audit(self._clock(), _login(context), f"call.{decided.kind}", task.id, context.event_key)
        handled = Handled("done", f"call {decided.kind}")
        if decided.kind in {"approved", "denied"}:
            # First, since nobody says it again where GitHub does not take the answer.
            said = command.text if isinstance(command, Approve) else ""
            handled = await self._approved_work(said, trigger, context, github)
        try:
            await reply(self._store, github, context, decided.text)
        except (NotFound, Forbidden) as error:
            # The thread may be locked; what was decided counts all the same.
            log.warning("reply.refused", extra={"task": task.id, "error": str(error)})
        return handled

    async def _approved(
        self, plan: OpenPlan | None, trigger: Trigger, context: TriggerContext, github: GitHub, said: str = ""
    ) -> Handled:
        """Let a plan's work begin, once enough people want it; the work hears what the last of them said beside."""
        task, actor = await self._task(context), context.actor
        async with self._voting:
            missing = await vote(self._store, github, task, plan, actor) if plan and actor else 0
        if not plan or not missing:
            return await self._approved_work(said, trigger, context, github)
        told = commanding.more_needed(_login(context), plan.approvals, short(plan.fact.hash), self._word)
        await reply(self._store, github, context, told)
        return Handled("done", f"plan: {missing} more")

    async def _review(self, command: Review, trigger: Trigger, context: TriggerContext, github: GitHub) -> Handled:
        """Begin a round where a review asks for one; a comment alone waits for the others.

        While a plan waits, a review decides about that: a yes lets its work begin, and changes are made to the plan.
        """
        task = await self._task(context)
        plan = await open_plan(self._store, task)
        if command.approves and plan is not None and isinstance(trigger, Reviewed):
            await require_seen(github, self._store, task, plan.fact, self._word, commit=trigger.commit)
            return await self._approved(plan, trigger, context, github)
        if plan is not None and not command.wants_changes:
            return Handled("ignored", "a review that only comments on a plan")
        if plan is not None:
            return await self.obey(Plan(command.text), trigger, context, github)
        if not command.wants_changes and isinstance(trigger, Reviewed):
            reviews = await github.reviews.reviews(context.thread.repository, context.thread.number)
            comments = next((one.comments for one in reviews if one.id == trigger.review_id), 0)
            if comments < ROUND_COMMENTS:
                return Handled("ignored", "a single comment: it waits for a command or a review")
            if await self._asks(task):
                await reply(self._store, github, context, questions.first(self._word))
                return Handled("done", "comments on lines: they wait for the answer to a question")
        return await self._work(Fix(command.text), trigger, context, github, is_round=True)

    async def why_unheard(self, command: Review, context: TriggerContext) -> str:
        """Say why a review is passed over, whoever wrote it; empty where it is not."""
        if not await self.is_ours(context):
            return "a review of a pull request that is none of ours"
        task = await self._task(context)
        plan = await open_plan(self._store, task) if command.approves else None
        if command.approves and (plan is None or not await holds(self._store, task, plan.fact)):
            return "an approval where no plan waits"
        return ""

    async def talk(self, trigger: Trigger, github: GitHub) -> Handled:
        """Let the open run hear a writer's reply in a thread that we began; such words begin and decide nothing."""
        context, actor = trigger.context, trigger.context.actor
        thread = context.thread
        task = await self._store.task_of(thread.repository.id, thread.number)
        if not isinstance(trigger, ThreadCommented) or trigger.via_app or actor is None or actor.is_bot:
            return Handled("ignored", "no command")
        if task is None or await self._store.open_run(task.id) is None:
            return Handled("ignored", "no command")
        threads = await github.reviews.review_threads(thread.repository, thread.number)
        firsts = (one.comments[0] for one in threads)
        ours = next((one for one in firsts if one.is_ours and one.id == trigger.thread_root_id), None)
        if ours is None or await github.permission(thread.repository, actor) not in WRITERS:
            return Handled("ignored", "no command")
        words = replied(trigger.path, trigger.line, markers.strip(ours.body), trigger.text)
        request = replace(await self._request(Fix(words), trigger, context, github), commanded=False, is_talk=True)
        accepted = await self._store.accept(request, self._clock())
        if accepted.kind == "unheard":
            return Handled("ignored", "a reply where no run is open any more")
        return await self._accepted(accepted, context)

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
            if last.state != "finished":
                # How it ends decides, and not that it may be over by the time that this is queued.
                raise await self._busy(task, last, command)
            if last.outcome != "budget":
                raise TaskRefused(commanding.no_budget_reached(self._word))
            # What was asked for work is known to what goes on; and who wanted a plan first gets one.
            request = await self._request(Fix(last.request if last.intent in ASIDE else ""), trigger, context, github)
            again = replace(request, intent=last.intent, usd=command.usd, joins=False)
            return await self._queue(again, command, context, github)
        chosen = await self._store.effect(task.id, CHOSEN)
        # What was chosen since then counts for this try too.
        model = None if chosen and int(chosen.remote_id) >= last.seq else last.model
        if not command.fresh and await open_plan(self._store, task):
            # Who wants another try of a plan that waits does not want it carried out.
            request = await self._request(Fix("", model), trigger, context, github)
            return await self._queue(replace(request, intent="plan", joins=False), command, context, github)
        request = await self._request(Fix("" if last.is_repair else last.request, model), trigger, context, github)
        again = replace(request, intent=last.intent, fresh=command.fresh, joins=False)
        return await self._queue(again, command, context, github)

    async def _alone(
        self, command: Update | Check, trigger: Trigger, context: TriggerContext, github: GitHub
    ) -> Handled:
        """Queue what is done to the branch of a task, or of a person's pull request."""
        request = await self._request(Fix(""), trigger, context, github)
        if context.thread.kind == "issue" and ((await self._task(context)).pull_number is None or request.merged):
            raise TaskRefused(commanding.no_branch(name_of(command), self._word))
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
        newest = (await self._store.runs(task.id))[-1]
        await self._store.keep_effect(task.id, Effect(CHOSEN, "run", str(newest.seq)))
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
        return await self._asks(task) or (await deciding_run(self._store, task)).state != "finished"

    async def _asks(self, task: Task) -> bool:
        """Say whether the task waits for an answer."""
        last = await deciding_run(self._store, task)
        standing = stand(await self._store.events(task.id), last.seq)
        asked = standing.question or (standing.proposed and standing.proposed.questions)
        return last.outcome == "waiting" and bool(asked)

    async def _request(self, command: Fix, trigger: Trigger, context: TriggerContext, github: GitHub) -> NewRequest:
        thread, repository, task_id = context.thread, context.thread.repository, self._ids()
        known = await self._store.task_of(repository.id, thread.number)
        place = await place_of(github, thread, known, task_id, self._word)
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
            branch=place.branch,
            base_branch=place.base,
            pull_number=place.pull_number,
            abi=ABI,
            merged=place.merged,
            asked_at=trigger.at if isinstance(trigger, Labelled | Commented | ThreadCommented | Reviewed) else None,
        )

    async def _status(self, context: TriggerContext) -> str:
        thread = context.thread
        task = await self._store.task_of(thread.repository.id, thread.number)
        if task is None:
            return comments.status(None, word=self._word)
        run = await deciding_run(self._store, task)
        standing = stand(await self._store.events(task.id), run.seq)
        return comments.status(progress_view(standing, marker="", word=self._word), word=self._word)

    async def halt(self, trigger: Trigger, github: GitHub, why: str) -> Handled:
        """Stop the thread's open run; GitHub itself decides who may close or take a label away."""
        halted = await halt(self._store, github, trigger, why, word=self._word, now=self._clock(), signal=self._stop)
        return Handled(halted.state, halted.note)


def _login(context: TriggerContext) -> str:
    return context.actor.login if context.actor else "ghost"


def _is_round(command: Fix, trigger: Trigger) -> bool:
    """Whether it asks for what an open run does not know: it stands in a thread, or says nothing on a pull request."""
    is_bare = not command.text and trigger.context.thread.kind == "pull" and not isinstance(trigger, Labelled)
    return isinstance(trigger, ThreadCommented) or is_bare


def _comment_of(trigger: Trigger) -> int | None:
    """Return the comment of the conversation that asks; those on lines are counted apart."""
    return trigger.comment_id if isinstance(trigger, Commented) else None
