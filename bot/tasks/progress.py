"""Keeps what people see of a running task up to date, and hears a stop that another process took."""

import asyncio
import logging
from contextlib import suppress

from bot.errors import BotError
from bot.tasks.desk import Desk

log = logging.getLogger(__name__)

LOOK_S = 1.0
"""Seconds between two looks where nobody rings."""
PAUSE_S = 0.25
"""Seconds between two looks at least, however often it rings: each one asks the database five times."""


async def follow(desk: Desk, run_id: str) -> None:
    """Follow one run until cancelled; what cannot be shown now is shown later, and never ends the run."""
    task_id, _, seq = run_id.rpartition("-")
    bell = desk.bells.setdefault(run_id, asyncio.Event())
    try:
        while True:
            bell.clear()
            task, run = await desk.store.task(task_id), await desk.store.run(task_id, int(seq))
            if task is not None and run is not None:
                if await stopped(desk, task_id):
                    desk.stop_of(run_id).set()
                try:
                    await desk.publisher.progress(task, run)
                except BotError as error:
                    log.warning("progress.failed", extra={"run": run_id, "error": str(error)})
            await asyncio.sleep(PAUSE_S)
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S - PAUSE_S):
                    await bell.wait()
    finally:
        desk.bells.pop(run_id, None)


async def stopped(desk: Desk, task_id: str) -> bool:
    """Say whether a person asked the task's open run to stop."""
    return any(item.kind == "stop" for item in await desk.store.inbox(task_id, after=await _heard(desk, task_id)))


async def _heard(desk: Desk, task_id: str) -> int:
    kept = await desk.store.effect(task_id, "inbox")
    return int(kept.remote_id) if kept else 0
