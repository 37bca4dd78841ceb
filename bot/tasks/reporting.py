"""How a run ends: the transcript is kept, the end recorded, and people told."""

import logging
from collections.abc import Sequence

from bot.domain.events import Notice, RunFinished
from bot.domain.messages import Message
from bot.domain.task import Task
from bot.errors import BotError
from bot.store.base import Effect
from bot.tasks.desk import Desk
from bot.tasks.engines.base import Json
from bot.tasks.opening import INBOX
from bot.tasks.recorder import Recorder
from bot.tasks.scene import Scene

log = logging.getLogger(__name__)


async def report(scene: Scene, fact: RunFinished, transcript: Sequence[Message]) -> None:
    """Keep the transcript, record the end and show it; the run is over only when all three are done."""
    desk, task, run, recorder = scene.desk, scene.task, scene.run, scene.recorder

    async def action() -> Json:
        await desk.store.save_messages(task.id, run.seq, 0, transcript)
        await recorder.note("finished", fact)
        await _late(desk, recorder, task)
        await desk.publisher.report(task, run)
        return None

    async def close() -> Json:
        await desk.store.finish(task.id, run.seq, fact.outcome, fact.reason, desk.clock())
        return None

    try:
        await scene.steps.do("report", action, patient=True)
    except BotError as error:
        # The record is right all the same, and the next thing that is shown of the task shows it.
        log.error("report.failed", extra={"run": run.id, "error": str(error)})  # noqa: TRY400 - no fault of ours
    await scene.steps.do("close", close)
    desk.ring(run.id)


async def _late(desk: Desk, recorder: Recorder, task: Task) -> None:
    """Say of messages that came after the model was done that they were not heard, and do not hear them twice."""
    kept = await desk.store.effect(task.id, INBOX)
    heard = int(kept.remote_id) if kept else 0
    items = await desk.store.inbox(task.id, after=heard)
    if not items:
        return
    events = {event.fact for event in await desk.store.events(task.id) if isinstance(event.fact, Notice)}
    for item in items:
        said = f"{item.author} says: {item.text[:200]}"
        if item.kind == "steer" and Notice(said) not in events:
            await recorder.note(f"late/{item.id}", Notice(f"Came too late for this run, please say it again: {said}"))
    await desk.store.keep_effect(task.id, Effect(INBOX, "cursor", str(items[-1].id)))
