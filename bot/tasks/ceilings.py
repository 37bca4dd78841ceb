"""What a daily ceiling keeps waiting: people are told once, and a stop is heard all the same."""

import asyncio
import logging
from collections.abc import Sequence

from bot.domain.ceilings import Ceilings, Reached
from bot.domain.events import RunHeld
from bot.domain.task import Run
from bot.errors import BotError, GitHubUnavailable
from bot.tasks.desk import Desk
from bot.tasks.progress import stopped
from bot.tasks.recorder import Recorder

log = logging.getLogger(__name__)


class Waiting:
    """Queued runs that a ceiling keeps from starting."""

    def __init__(self, desk: Desk, ceilings: Ceilings) -> None:
        self._desk = desk
        self._ceilings = ceilings
        self._told: dict[str, Reached] = {}
        self._due: set[str] = set()
        """Runs whose comment has yet to say what their stream does."""
        self._telling: asyncio.Task[None] | None = None

    async def look(self) -> list[Run]:
        """Begin to tell people of what waits; return the runs that were stopped meanwhile, so that they can end."""
        held = await self._desk.store.held(self._ceilings)
        # Telling goes at GitHub's pace, and nothing else has to wait for it.
        if self._telling is None or self._telling.done():
            waiting = {run.id for run, _ in held}
            self._told = {run_id: reached for run_id, reached in self._told.items() if run_id in waiting}
            self._due &= waiting
            if news := [(run, reached) for run, reached in held if self._told.get(run.id) != reached]:
                self._telling = asyncio.create_task(self._tell(news))
        return [run for run, _ in held if await stopped(self._desk, run.task_id)]

    async def close(self) -> None:
        """Tell no more."""
        if self._telling is not None:
            self._telling.cancel()
            await asyncio.gather(self._telling, return_exceptions=True)

    async def _tell(self, news: Sequence[tuple[Run, Reached]]) -> None:
        try:
            for run, reached in news:
                await self._tell_one(run, reached)
        except GitHubUnavailable as error:
            # The next look begins where this one ended.
            log.warning("held.later", extra={"error": str(error)})
        except Exception:
            log.exception("held.broken")

    async def _tell_one(self, run: Run, reached: Reached) -> None:
        store, fact = self._desk.store, RunHeld(reached.whose, reached.usd, reached.until.isoformat())
        task, now = await store.task(run.task_id), await store.run(run.task_id, run.seq)
        if task is None or now is None or now.state != "queued":
            return
        # Of several workers the one that writes it down shows it.
        if await Recorder(self._desk, run).note(f"held/{reached.whose}/{reached.usd}/{fact.until}", fact):
            self._due.add(run.id)
        if run.id in self._due:
            try:
                await self._desk.publisher.held(task, run)
            except GitHubUnavailable:
                raise
            except BotError as error:
                # As on a locked thread: the run waits all the same, and trying again would not help.
                log.warning("held.untold", extra={"run": run.id, "error": str(error)})
            self._due.discard(run.id)
        self._told[run.id] = reached
