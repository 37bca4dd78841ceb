"""The pen of one run: appends facts under keys that a replay cannot write twice."""

from dataclasses import dataclass

from bot.domain.events import Fact
from bot.domain.task import Run
from bot.tasks.desk import Desk


@dataclass(frozen=True, slots=True)
class Recorder:
    """Appends to the stream of one run."""

    desk: Desk
    run: Run

    async def note(self, key: str, fact: Fact) -> None:
        """Append a fact.

        Args:
            key: unique in the run and the same at every replay, as `model/3`.
            fact: what happened.
        """
        await self.desk.store.record(
            self.run.task_id, self.run.seq, f"run/{self.run.seq}/{key}", fact, self.desk.clock()
        )
        self.desk.ring(self.run.id)
