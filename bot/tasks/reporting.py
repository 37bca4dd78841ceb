"""How a run ends: the transcript is kept, the end recorded, and people told."""

import logging
from collections.abc import Sequence

from bot.domain.events import RunFinished
from bot.domain.messages import Message
from bot.errors import BotError
from bot.store.base import Effect, NewRequest
from bot.tasks.engines.base import ABI, Json
from bot.tasks.opening import INBOX
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
        await desk.store.finish(task.id, run.seq, fact.outcome, fact.reason, desk.clock())
        await _go_on(scene, heard, seen)
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
        await scene.desk.workspaces.forget(scene.task.id)
    except (BotError, OSError):
        log.exception("workspace.kept", extra={"run": scene.run.id})


async def _go_on(scene: Scene, heard: int, seen: int) -> None:
    """Queue a further run for what people said when the model was done already: nothing that is said is lost.

    From here on the run is closed, so that a new request is a run of its own and joins this one no more.
    """
    store, task, run = scene.desk.store, scene.task, scene.run
    items = await store.inbox(task.id, after=heard)
    if not items and not heard:
        return
    # Words before a stop ended with the run that it was meant for.
    stopped = max((item.id for item in items if item.kind == "stop"), default=0)
    said = [item for item in items if item.kind == "steer" and item.id > stopped]
    if said:
        last = said[-1]
        request = NewRequest(
            task_id=task.id,
            event_key=f"late:{task.id}:{items[-1].id}",
            repository=task.repository,
            number=run.number if last.number is None else last.number,
            kind=last.thread or run.kind,
            title=task.title,
            body=task.body,
            requester=last.author,
            requester_id=0,
            request="\n\n".join(item.text for item in said if item.text),
            model=None,
            # What was said before the plan or the question was there decides nothing about it.
            comment_id=last.comment_id if last.id > seen else None,
            installation_id=task.installation_id,
            branch=task.branch,
            base_branch=task.base_branch,
            pull_number=task.pull_number,
            abi=ABI,
        )
        await store.accept(request, scene.desk.clock())
    # What this run heard is not said to the next one again.
    await store.keep_effect(task.id, Effect(INBOX, "cursor", str(items[-1].id if items else heard)))
