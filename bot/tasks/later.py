"""What is to be done for a task after a while, in this process; what is lost with it is asked for again at a start."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from bot.errors import BotError

log = logging.getLogger(__name__)


class Later:
    """Does one thing for each task, later."""

    def __init__(self, sleep: Callable[[float], Awaitable[object]] = asyncio.sleep) -> None:
        """Take how to wait.

        Args:
            sleep: lets so many seconds go by.
        """
        self._sleep = sleep
        self._due: dict[str, tuple[float, asyncio.Task[None]]] = {}
        """By task: when by the loop's clock, and who waits."""
        self._all: set[asyncio.Task[None]] = set()

    def ask(self, task_id: str, wait_s: float, action: Callable[[], Awaitable[None]]) -> None:
        """Do something after so many seconds; of two things for one task the sooner one is done alone.

        Args:
            task_id: for which task.
            wait_s: how long.
            action: it may ask for more.
        """
        at = asyncio.get_running_loop().time() + wait_s
        due = self._due.get(task_id)
        if due is not None and due[0] <= at:
            return
        if due is not None:
            due[1].cancel()
        waiting = asyncio.create_task(self._wait(task_id, wait_s, action))
        self._due[task_id] = (at, waiting)
        self._all.add(waiting)
        waiting.add_done_callback(self._all.discard)

    async def close(self) -> None:
        """Do nothing any more."""
        waiting = list(self._all)
        for one in waiting:
            one.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)

    async def _wait(self, task_id: str, wait_s: float, action: Callable[[], Awaitable[None]]) -> None:
        await self._sleep(wait_s)
        del self._due[task_id]
        try:
            await action()
        except BotError as error:
            log.warning("later.failed", extra={"task": task_id, "error": str(error)})
        except Exception:
            log.exception("later.failed", extra={"task": task_id})
