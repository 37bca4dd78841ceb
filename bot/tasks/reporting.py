"""How a run ends: the transcript is kept, the end recorded, and people told."""

import logging
from collections.abc import Sequence
from dataclasses import replace

from bot.domain.events import RunFinished
from bot.domain.messages import Message
from bot.domain.task import LATE
from bot.errors import BotError
from bot.store.base import Decision, Effect, InboxItem, NewRequest
from bot.tasks.engines.base import Json
from bot.tasks.further import further
from bot.tasks.opening import INBOX, heard_before
from bot.tasks.protection import kept as held_back
from bot.tasks.pushes import check_later, pushed_meanwhile
from bot.tasks.scene import Scene

log = logging.getLogger(__name__)


async def report(
    scene: Scene, fact: RunFinished, transcript: Sequence[Message], *, heard: int, seen: int, kept: bool
) -> None:
    """Keep the transcript, record the end and show it; the run is over only when all three are done.

    Args:
        scene: the run.
        fact: how it ended.
        transcript: of the whole task up to here.
        heard: the last inbox item that reached the model.
        seen: the last one that was there when people were asked what the run waits for.
        kept: whether the working copy holds what could not be published, so that it has to stay.
    """
    desk, task, run = scene.desk, scene.task, scene.run

    async def action() -> Json:
        await desk.store.save_messages(task.id, run.seq, 0, transcript)
        await scene.recorder.note("finished", fact)
        await desk.publisher.report(task, run)
        return None

    async def close() -> Json:
        if not kept:
            # What was made is on the remote; a further run makes the copy anew. Before this run is over, since the next
            # one may begin at once, and the uid is free for another task.
            await _forget(scene)
        await _hand_over(scene, fact, heard, seen)
        await _look(scene)
        await check_later(desk.store, task.id, desk.clock())
        return None

    try:
        await scene.steps.do("report", action, patient=True)
    except BotError as error:
        # The record is right all the same, and the next thing that is shown of the task shows it.
        log.error("report.failed", extra={"run": run.id, "error": str(error)})  # noqa: TRY400 - no fault of ours
    await scene.steps.do("close", close)
    desk.ring(run.id)


async def _forget(scene: Scene) -> None:
    """Remove the working copy; what cannot be removed is no reason to keep a run from its end."""
    try:
        waits = await held_back(scene.desk.store, scene.task) is not None
        await scene.desk.workspaces.forget(scene.task.id, but_commits=waits)
    except (BotError, OSError):
        log.exception("workspace.kept", extra={"run": scene.run.id})


async def _look(scene: Scene) -> None:
    """Act on what others' checks said while the run was open; where that cannot be, the run has ended all the same."""
    try:
        await scene.desk.publisher.ended(scene.task)
    except BotError as error:
        log.warning("ci.unseen", extra={"run": scene.run.id, "error": str(error)})
    except Exception:
        log.exception("ci.unseen", extra={"run": scene.run.id})


async def _hand_over(scene: Scene, fact: RunFinished, heard: int, seen: int) -> None:
    """End the run, and with it queue what follows: a process that dies in between would lose it.

    From here on a new request is a run of its own and joins this one no more.
    """
    store, task, run = scene.desk.store, scene.task, scene.run
    before = await heard_before(scene)
    while True:
        items = await store.inbox(task.id, after=before)
        behind = await _behind(scene, items, max(before, heard), seen)
        # What this run heard is not said to the next one again.
        cursor = Effect(INBOX, "cursor", str(items[-1].id if items else before))
        if await store.hand_over(
            task.id, run.seq, fact.outcome, fact.reason, scene.desk.clock(), cursor=cursor, behind=behind
        ):
            return


async def _behind(scene: Scene, items: Sequence[InboxItem], heard: int, seen: int) -> NewRequest | None:
    """Say what follows from what people said while the run was open; nothing that is said is lost."""
    store, task, run = scene.desk.store, scene.task, scene.run
    # Words before a stop ended with the run that it was meant for.
    stopped = max((item.id for item in items if item.kind == "stop"), default=0)
    # What stands on lines no run hears that is open already.
    unheard = {"steer": max(heard, stopped), "round": stopped}
    said = [item for item in items if item.kind in unheard and item.id > unheard[item.kind]]
    if said:
        last = said[-1]
        return replace(
            further(task, run.number, run.kind, f"{LATE}{task.id}:{last.id}", last.author),
            number=run.number if last.number is None else last.number,
            kind=last.thread or run.kind,
            requester_id=last.author_id,
            request="\n\n".join(item.text for item in said if item.text),
            model=next((item.model for item in reversed(said) if item.model), None),
            # What was said before the plan or the question was there decides nothing about it.
            comment_id=last.comment_id if last.id > seen else None,
            commanded=any(item.commanded and item.id > seen for item in said),
            asked_at=last.asked_at,
        )
    decided = [one for one in await store.decisions(task.id) if _is_due(one)]
    if decided and not stopped:
        # Somebody decided about a call while this run was at work on something else.
        key, by = f"decided:{task.id}:{decided[-1].id}", decided[-1].actor.rpartition(", ")[2]
        return replace(further(task, run.number, run.kind, key, by), commanded=True)
    pushed = await pushed_meanwhile(store, task.id)
    return pushed[0] if pushed else None


def _is_due(decision: Decision) -> bool:
    """Whether what follows from a decision is still to be done."""
    return decision.verdict in {"approved", "denied"} and decision.used_at is None
