"""What may start now: takes queued runs, and takes over those of workers that are gone."""

import asyncio
import json
import logging
from contextlib import suppress

from bot.domain.ceilings import Ceilings
from bot.domain.events import RunFinished
from bot.domain.task import Run
from bot.errors import BotError, GitHubUnavailable
from bot.log import bind
from bot.store.base import Effect
from bot.tasks.ceilings import Waiting
from bot.tasks.desk import Desk
from bot.tasks.engines.base import Engine, Step
from bot.tasks.liveness import Liveness
from bot.tasks.progress import follow
from bot.tasks.recorder import Recorder
from bot.tasks.workflow import Workflow

log = logging.getLogger(__name__)

SWEEP_S = 1.0
"""Seconds between two looks at the queue and at the other workers where nobody rings."""
FRUITLESS = 5
"""Takeovers in a row that recorded no new step, after which a run is given up."""


class Admission:
    """Starts runs on this worker."""

    def __init__(  # noqa: PLR0913 - what a worker starts depends on all of these
        self,
        desk: Desk,
        engine: Engine,
        liveness: Liveness,
        executor: str,
        *,
        slots: int,
        per_installation: int,
        ceilings: Ceilings | None = None,
    ) -> None:
        self._desk = desk
        self._engine = engine
        self._liveness = liveness
        self._executor = executor
        self._slots = slots
        self._per_installation = per_installation
        self._ceilings = ceilings or Ceilings()
        self._waiting = Waiting(desk, self._ceilings)
        self._workflow = Workflow(desk)
        self._active: set[str] = set()
        self._wake = asyncio.Event()
        self._loop: asyncio.Task[None] | None = None

    def wake(self) -> None:
        """Say that something is queued, or that a slot is free."""
        self._wake.set()

    async def start(self) -> None:
        """Begin to take runs."""
        self._liveness.hold(self._executor)
        await self._engine.launch(self._body)
        self._loop = asyncio.create_task(self._run())

    async def stop(self, *, grace_s: float) -> None:
        """Take no more runs, let the steps in flight end, and leave the rest for whoever comes next."""
        if self._loop is not None:
            self._loop.cancel()
            await asyncio.gather(self._loop, return_exceptions=True)
        await self._waiting.close()
        await self._engine.drain(grace_s=grace_s)
        self._liveness.release()

    async def _run(self) -> None:
        while True:
            self._wake.clear()
            try:
                await self._take_over()
                await self._take_new()
                await self._end_held()
            except Exception:
                # The database may be away for a moment; the queue is looked at again.
                log.exception("admission.failed")
            with suppress(TimeoutError):
                async with asyncio.timeout(SWEEP_S):
                    await self._wake.wait()

    async def _take_new(self) -> None:
        free = self._slots - len(self._active)
        if free <= 0:
            return
        taken = await self._desk.store.admit(
            self._executor, slots=free, per_installation=self._per_installation, ceilings=self._ceilings
        )
        for run in taken:
            await self._begin(run, self._executor)

    async def _end_held(self) -> None:
        """Let a run that a daily ceiling keeps waiting, and that a person stopped, start and end: it asks no model."""
        for run in await self._waiting.look():
            if len(self._active) < self._slots and await self._desk.store.claim(run, self._executor):
                await self._begin(run, self._executor)

    async def _take_over(self) -> None:
        """Go on with runs that nobody works on: those of dead workers, and our own whose start failed."""
        for run, executor in await self._desk.store.running():
            ours = executor == self._executor
            if run.id in self._active:
                if not ours:
                    # It came with another run of the same dead worker; the store has yet to hear of it.
                    await self._desk.store.take_over(run, self._executor)
                continue
            if len(self._active) >= self._slots or not (ours or self._liveness.is_dead(executor)):
                continue
            if not ours and await self._poisonous(run):
                await self._give_up(run)
                continue
            log.info("run.taken_over", extra={"run": run.id})
            await self._begin(run, executor)
            if not ours:
                await self._desk.store.take_over(run, self._executor)

    async def _begin(self, run: Run, executor: str) -> None:
        """Start a run here, or go on with that of another executor; where that fails, it is tried at the next look."""
        self._active.add(run.id)
        try:
            await (self._engine.start(run) if executor == self._executor else self._engine.recover(run, executor))
        except Exception:
            self._active.discard(run.id)
            raise

    async def _poisonous(self, run: Run) -> bool:
        """Count takeovers in a row that met no new step; a worker that dies at its work is no fault of the run."""
        slot = f"attempts.{run.seq}"
        kept = await self._desk.store.effect(run.task_id, slot)
        steps, fruitless = json.loads(kept.remote_id) if kept else (-1, 0)
        now = await self._engine.recorded(run)
        fruitless = fruitless + 1 if now == steps else 0
        await self._desk.store.keep_effect(run.task_id, Effect(slot, "attempts", json.dumps([now, fruitless])))
        return fruitless >= FRUITLESS

    async def _give_up(self, run: Run) -> None:
        reason = f"The worker died {FRUITLESS} times at the same step; the server's log has it under run `{run.id}`."
        fact = RunFinished("failed", reason, "", turns=0, tokens=0, cost_usd=None, seconds=0.0)
        await self._engine.cancel(run)
        await Recorder(self._desk, run).note("finished", fact)
        task = await self._desk.store.task(run.task_id)
        try:
            if task is not None:
                await self._desk.publisher.report(task, run)
        except GitHubUnavailable:
            # The run stays that of a dead worker, so the next look comes here again.
            log.warning("report.again", extra={"run": run.id})
            return
        except BotError as error:
            log.error("report.failed", extra={"run": run.id, "error": str(error)})  # noqa: TRY400 - no fault of ours
        await self._desk.store.finish(run.task_id, run.seq, "failed", reason, self._desk.clock())
        # The work that it holds stays for whoever looks into it; a further run makes the copy anew.

    async def _body(self, run_id: str, step: Step) -> None:
        self._active.add(run_id)
        bind(run=run_id)
        follower = asyncio.create_task(follow(self._desk, run_id))
        try:
            await self._workflow(run_id, step)
        finally:
            follower.cancel()
            await asyncio.gather(follower, return_exceptions=True)
            self._desk.stops.pop(run_id, None)
            self._active.discard(run_id)
            self._wake.set()
