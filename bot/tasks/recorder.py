"""The pen of one run: appends facts under keys that a replay cannot write twice."""

from dataclasses import dataclass
from typing import cast

from bot.domain.events import Fact, from_data, kind_of, to_data
from bot.domain.task import Run
from bot.redaction import masked
from bot.tasks.desk import Desk


@dataclass(frozen=True, slots=True)
class Recorder:
    """Appends to the stream of one run."""

    desk: Desk
    run: Run

    async def note(self, key: str, fact: Fact) -> bool:
        """Append a fact, without the secrets that are in its texts; False where the key is there already.

        Args:
            key: unique in the run and the same at every replay, as `model/3`.
            fact: what happened.
        """
        told = from_data(kind_of(fact), cast("dict[str, object]", masked(to_data(fact))))
        new = await self.desk.store.record(
            self.run.task_id, self.run.seq, f"run/{self.run.seq}/{key}", told, self.desk.clock()
        )
        self.desk.ring(self.run.id)
        return new
