"""What others push to a pull request of ours: its checks run by themselves, after the run that is open meanwhile."""

from dataclasses import replace
from datetime import datetime

from bot.domain.task import Task
from bot.store.base import Accepted, Effect, NewRequest, TaskStore
from bot.tasks.further import further

SEEN = "pushes"
"""The effect slot that holds the last push which a check was queued for; pushes lie in the task's inbox."""


async def take(store: TaskStore, request: NewRequest, task: Task, now: datetime) -> Accepted | None:
    """Queue the checks of a push; while a run is open it is kept until that is over, and None comes back.

    Args:
        store: where requests are kept.
        request: for the checks alone, which joins no run.
        task: that opened the pull request.
        now: the present time.
    """
    accepted = await store.accept(request, now)
    if accepted.kind != "busy":
        return accepted
    await store.post(task.id, "push", author=request.requester, text="", event_key=request.event_key)
    # The run may have ended just before the push was kept.
    return await check_later(store, task.id, now) if await store.open_run(task.id) is None else None


async def pushed_meanwhile(store: TaskStore, task_id: str) -> tuple[NewRequest, Effect] | None:
    """Return the request for the checks of what was pushed while a run was open, and what says that it was made."""
    seen = await store.effect(task_id, SEEN)
    items = await store.inbox(task_id, after=int(seen.remote_id) if seen else 0)
    pushes = [item for item in items if item.kind == "push"]
    # As it is now: the run may have opened the pull request itself.
    task = await store.task(task_id) if pushes else None
    if task is None or task.pull_number is None:
        return None
    last = pushes[-1]
    request = further(task, task.pull_number, "pull", f"pushed:{task.id}:{last.id}", last.author)
    return replace(request, intent="check", joins=False), Effect(SEEN, "cursor", str(last.id))


async def check_later(store: TaskStore, task_id: str, now: datetime) -> Accepted | None:
    """Queue the checks of what was pushed while a run was open; None where nothing was, or another run is open."""
    pushed = await pushed_meanwhile(store, task_id)
    if pushed is None:
        return None
    request, seen = pushed
    accepted = await store.accept(request, now)
    if accepted.kind == "busy":
        return None
    await store.keep_effect(task_id, seen)
    return accepted
