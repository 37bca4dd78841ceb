"""The engine of the terminal and of GitHub Actions: one synced row a step, no background threads."""

import asyncio
import json
from collections.abc import Mapping

from bot.domain.task import Run
from bot.store.base import TaskStore
from bot.tasks.engines.base import Action, Body, Json


class InlineEngine:
    """Runs each workflow as a task of the running event loop and keeps its steps in the store."""

    def __init__(self, store: TaskStore) -> None:
        self._store = store
        self._body: Body | None = None
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def launch(self, body: Body) -> None:
        """Remember the body."""
        self._body = body

    async def start(self, run: Run) -> None:
        """Begin the run, or replay it from its recorded steps."""
        if self._body is None:
            raise RuntimeError("launch the engine first")
        if run.id not in self._tasks:
            self._tasks[run.id] = asyncio.create_task(self._body(run.id, _Steps(self._store, run.id)))

    async def wait(self, run: Run) -> None:
        """Return when the run is over; raises what its body raised."""
        await self._tasks[run.id]

    async def recover(self, run: Run, dead_executor: str) -> None:
        """Replay the run from its recorded steps."""
        await self.start(run)

    async def cancel(self, run: Run) -> None:
        """Do nothing: only what is started goes on."""

    async def recorded(self, run: Run) -> int:
        """Count steps only where a supervisor asks, which the inline engine has not."""
        return 0

    async def drain(self, *, grace_s: float) -> None:
        """Cancel what runs: the recorded steps are enough to go on."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)


class _Steps:
    """The steps of one run."""

    def __init__(self, store: TaskStore, run_id: str) -> None:
        self._store = store
        self._run_id = run_id
        self._kept: Mapping[str, str] | None = None

    async def __call__(self, name: str, action: Action) -> Json:
        """Return the recorded value or make it."""
        if self._kept is None:
            # Once is enough: nobody else records steps of a run that this process has taken.
            self._kept = await self._store.steps(self._run_id)
        if name in self._kept:
            value: Json = json.loads(self._kept[name])
            return value
        value = await action()
        await self._store.keep_step(self._run_id, name, json.dumps(value))
        return value
