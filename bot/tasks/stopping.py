"""A person says stop: the run that is open ends, or what waits is asked no more; what was begun behind it goes on."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from bot.domain.task import Run, Task
from bot.domain.trigger import Closed, Commented, Reviewed, ThreadCommented, Trigger, Unlabelled
from bot.errors import RunEnding
from bot.github import comments
from bot.github.base import GitHub
from bot.store.base import Effect, TaskStore
from bot.tasks import decisions
from bot.tasks.decisions import STOPPED
from bot.tasks.effects import ensure_comment, progress_slot
from bot.tasks.plans import deciding_run
from bot.tasks.standing import progress_view, stand
from bot.tasks.statuses import show_status


@dataclass(frozen=True, slots=True)
class Halted:
    """What became of a stop."""

    state: Literal["done", "ignored"]
    note: str


@dataclass(frozen=True, slots=True)
class _Said:
    """Who said it, why, and how the task answers."""

    by: str
    why: str
    word: str
    now: datetime


async def halt(  # noqa: PLR0913 - a stop has these sides
    store: TaskStore,
    github: GitHub,
    trigger: Trigger,
    why: str,
    *,
    word: str,
    now: datetime,
    signal: Callable[[str], None],
) -> Halted:
    """Stop what runs or waits on a thread; handled again it stops the same and nothing else.

    Args:
        store: what tasks are known by.
        github: as the right installation.
        trigger: that says it.
        why: as `asked` or `closed`, for the record.
        word: the command word.
        now: the present time.
        signal: tells a run of this process that it has to stop.

    Raises:
        RunEnding: the run ended meanwhile; handled again it is seen what is left to be stopped.
    """
    context, thread = trigger.context, trigger.context.thread
    task = await store.task_of(thread.repository.id, thread.number)
    if task is None:
        return Halted("ignored", "nothing runs")
    if thread.number not in {task.number, task.pull_number}:
        return Halted("ignored", "a pull request that the task left behind")
    slot = f"stop.{hashlib.sha256(context.event_key.encode()).hexdigest()[:16]}"
    run = await _meant(store, task, trigger, slot)
    if run is None:
        return Halted("ignored", "nothing runs")
    said = _Said(context.actor.login if context.actor else "ghost", why, word, now)
    # Before the rest: what was approved is taken back whatever happens to this process.
    waited = await decisions.drop(store, task, said.by, now)
    if run.state == "finished":
        halted = await _drop(store, github, task, run, said, slot)
        if halted.state == "done" and not waited:
            # An earlier handling let go of it, and may not have come to show that.
            waited = [one for one in await store.decisions(task.id) if (one.run, one.reason) == (run.seq, STOPPED)]
    else:
        if await store.post(task.id, "stop", author=said.by, text=why, event_key=context.event_key):
            await store.audit(now, said.by, "run.stop", run.id, why)
        elif await store.accepted(context.event_key) is None:
            raise RunEnding(f"run {run.id} ended just now")
        signal(run.id)
        halted = Halted("done", f"stop: {run.id}")
    await decisions.show_dropped(store, github, task, waited, said.by)
    return halted


async def _meant(store: TaskStore, task: Task, trigger: Trigger, slot: str) -> Run | None:
    """Return the newest run where it is the one that the stop was about when it was first handled."""
    kept = await store.effect(task.id, slot)
    newest = await store.open_run(task.id) or await deciding_run(store, task)
    seq = 0 if _is_older(trigger, newest) else newest.seq
    if kept is None:
        await store.keep_effect(task.id, Effect(slot, "stop", str(seq)))
    else:
        seq = int(kept.remote_id)
    return newest if newest.seq == seq else None


def _is_older(trigger: Trigger, run: Run) -> bool:
    """Whether somebody asked for a run behind this stop: deliveries come late. Ids tell more than whole seconds."""
    if isinstance(trigger, Commented) and run.comment_id is not None:
        return trigger.comment_id < run.comment_id
    said = trigger.at if isinstance(trigger, Commented | ThreadCommented | Reviewed | Closed | Unlabelled) else None
    return said is not None and run.asked_at is not None and said < run.asked_at


async def _drop(store: TaskStore, github: GitHub, task: Task, last: Run, said: _Said, slot: str) -> Halted:
    """End the wait of a task for a decision or an answer, and show that: what was asked is asked no more."""
    begun = Effect(slot, "dropped", str(last.seq))
    if last.outcome != "waiting" and await store.effect(task.id, slot) != begun:
        return Halted("ignored", "nothing runs")
    if last.outcome == "waiting":
        await store.keep_effect(task.id, begun)
        reason = f"{said.by} dropped what waited here."
        finished = stand(await store.events(task.id), last.seq).finished
        if finished is not None:
            # What the run used stands in its first end; told again, it would count twice on its day.
            fact = replace(finished, outcome="stopped", reason=reason, turns=0, tokens=0, cost_usd=0.0)
            await store.record(task.id, last.seq, "dropped", fact, said.now)
        await store.audit(said.now, said.by, "run.dropped", last.id, said.why)
        await store.finish(task.id, last.seq, "stopped", reason, said.now)
    shown = stand(await store.events(task.id), last.seq)
    body = comments.progress(progress_view(shown, marker="", word=said.word))
    place = progress_slot(last)
    await ensure_comment(store, github, task.repository, last.number, task_id=task.id, slot=place, body=body)
    await show_status(store, github, task, said.word)
    return Halted("done", f"dropped: {last.id}")
