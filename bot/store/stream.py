"""What happened in each task, append-only, read by a cursor."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Connection, bindparam, func, select

from bot.domain.events import KINDS, Fact, Notice, RunEvent, from_data, kind_of, to_data
from bot.store.database import Shelf, insert, lock_task
from bot.store.rows import AnyRow
from bot.store.schema import blobs, events
from bot.store.spill import spill, unspill

_NEWEST = select(func.max(events.c.seq)).where(events.c.task_id == bindparam("task_id"))


class Stream(Shelf):
    """The events of all tasks."""

    async def record(self, task_id: str, run: int, key: str, fact: Fact, at: datetime) -> bool:
        """Append a fact to the task's stream; a key that is there already changes nothing and gives False.

        Raises:
            KeyError: no such task.
        """
        return await self._database.write(lambda connection: append(connection, task_id, run, key, fact, at))

    async def events(self, task_id: str, *, after: int = 0, limit: int = 10_000) -> Sequence[RunEvent]:
        """Return the task's stream behind a position."""
        query = (
            select(events, blobs.c.data.label("spilled"))
            .outerjoin(blobs, blobs.c.sha256 == events.c.blob)
            .where(events.c.task_id == task_id, events.c.seq > after)
            .order_by(events.c.seq)
            .limit(limit)
        )
        rows = await self._database.read(lambda connection: connection.execute(query).all())
        return [_event(row) for row in rows]


def append(connection: Connection, task_id: str, run: int, key: str, fact: Fact, at: datetime) -> bool:
    """Append a fact inside a transaction; False where the key is there already."""
    lock_task(connection, task_id)
    newest = connection.scalar(_NEWEST, {"task_id": task_id})
    text, blob = spill(connection, to_data(fact))
    values = {
        "task_id": task_id,
        "seq": (newest or 0) + 1,
        "run": run,
        "key": key,
        "kind": kind_of(fact),
        "data": text,
        "blob": blob,
        "at": at,
    }
    return insert(connection, events, values)


def _event(row: AnyRow) -> RunEvent:
    data = unspill(row.data, row.spilled)
    # A later version may have written what this one has no word for; leaving it out would make a hole.
    fact = from_data(row.kind, data) if row.kind in KINDS else Notice(f"An event of a later version: {row.kind}")
    return RunEvent(row.task_id, row.seq, row.run, row.at, fact)
