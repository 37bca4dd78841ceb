"""One run from beginning to end in this process, with the inline engine: for the terminal, a replay and Actions."""

import asyncio
import contextlib
from collections.abc import Callable

from bot.domain.task import Run
from bot.errors import BotError
from bot.tasks.desk import Desk
from bot.tasks.engines.base import Body
from bot.tasks.engines.inline import InlineEngine
from bot.tasks.liveness import Liveness
from bot.tasks.progress import follow
from bot.tasks.workflow import Workflow


class OneShot:
    """Works on single runs."""

    def __init__(
        self, desk: Desk, liveness: Liveness, executor: str, *, around: Callable[[Body], Body] | None = None
    ) -> None:
        """Work for one process.

        Args:
            desk: what a run needs.
            liveness: who else works with this state.
            executor: this process among them.
            around: wraps the workflow, for tests that end the process at a chosen step.
        """
        self._desk = desk
        self._liveness = liveness
        self._executor = executor
        self._engine = InlineEngine(desk.store)
        workflow: Body = Workflow(desk)
        self._body = around(workflow) if around else workflow

    async def work(self, run: Run) -> Run:
        """Work until this run is over and return it; other runs of the same state are left alone.

        Raises:
            BotError: another living process works on it.
        """
        self._liveness.hold(self._executor)
        await self._engine.launch(self._body)
        try:
            if (await self._state(run)).state != "finished":
                await self._take(run)
                await self._one(run)
            return await self._state(run)
        finally:
            await self._engine.drain(grace_s=0)
            self._liveness.release()

    async def end(self, run: Run) -> Run:
        """End a run that was cut off, from its record: what it did is kept, and nothing is begun any more.

        Raises:
            BotError: another living process works on it.
        """
        if self._liveness.is_dead(await self._executor_of(run)):
            await self.stop(run)
        return await self.work(run)

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

    async def _take(self, run: Run) -> None:
        """Take the run, from the queue or from where a dead process left it."""
        if await self._desk.store.claim(run, self._executor):
            return
        executor = await self._executor_of(run)
        if not self._liveness.is_dead(executor):
            raise BotError(f"another process ({executor}) works on this already")
        await self._desk.store.take_over(run, self._executor)

    async def _executor_of(self, run: Run) -> str:
        return next((name for other, name in await self._desk.store.running() if other.id == run.id), "unknown")

    async def _one(self, run: Run) -> None:
        follower = asyncio.create_task(follow(self._desk, run.id))
        try:
            await self._engine.start(run)
            await self._engine.wait(run)
        finally:
            follower.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await follower
