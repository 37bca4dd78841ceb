"""One run from beginning to end in this process, with the inline engine: for the terminal, a replay and Actions."""

import asyncio
import contextlib

from bot.domain.task import Run
from bot.errors import BotError
from bot.tasks.desk import Desk
from bot.tasks.engines.inline import InlineEngine
from bot.tasks.liveness import Liveness
from bot.tasks.progress import follow
from bot.tasks.workflow import Workflow


class OneShot:
    """Works on single runs."""

    def __init__(self, desk: Desk, liveness: Liveness, executor: str) -> None:
        self._desk = desk
        self._liveness = liveness
        self._executor = executor
        self._engine = InlineEngine(desk.store)

    async def work(self, run: Run) -> Run:
        """Work until this run is over and return it; runs that were queued before it are worked on first.

        Raises:
            BotError: another living process works on it.
        """
        self._liveness.hold(self._executor)
        await self._engine.launch(Workflow(self._desk))
        try:
            while (now := await self._state(run)).state != "finished":
                for taken in await self._take(now):
                    await self._one(taken)
            return now
        finally:
            await self._engine.drain(grace_s=0)
            self._liveness.release()

    async def stop(self, run: Run) -> None:
        """Ask the run to stop, as a person at the terminal does."""
        key = f"terminal:{run.id}"
        await self._desk.store.post(run.task_id, "stop", author=run.requester, text="interrupted", event_key=key)
        self._desk.stop_of(run.id).set()

    async def _state(self, run: Run) -> Run:
        found = await self._desk.store.run(run.task_id, run.seq)
        if found is None:
            raise BotError(f"run {run.id} is unknown to the store")
        return found

    async def _take(self, run: Run) -> list[Run]:
        """Take the run itself where a dead process left it, else what is next in the queue."""
        for other, executor in await self._desk.store.running():
            if other.id == run.id and executor != self._executor:
                if not self._liveness.is_dead(executor):
                    raise BotError(f"another process ({executor}) works on this already")
                await self._desk.store.take_over(other, self._executor)
                return [other]
        return list(await self._desk.store.admit(self._executor, slots=1, per_installation=1))

    async def _one(self, run: Run) -> None:
        follower = asyncio.create_task(follow(self._desk, run.id))
        try:
            await self._engine.start(run)
            await self._engine.wait(run)
        finally:
            follower.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await follower
