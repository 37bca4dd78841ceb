"""What a task keeps beside its transcript: effects, inbox, steps, and the program's key and audit log."""

import secrets
from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlalchemy import Connection, Select, select

from bot.store.base import Effect, InboxItem, InboxKind
from bot.store.database import Shelf, insert, lock_task, replace
from bot.store.intake import known_key
from bot.store.schema import audit, effects, inbox, keys, runs, steps

_STATE = "state"


class Notes(Shelf):
    """Small things, each found by its name."""

    async def effect(self, task_id: str, slot: str) -> Effect | None:
        """Return what was made in a slot."""
        query = select(effects).where(effects.c.task_id == task_id, effects.c.slot == slot)
        row = await self._database.read(lambda connection: connection.execute(query).one_or_none())
        return None if row is None else Effect(row.slot, row.kind, row.remote_id)

    async def effects(self, task_id: str, begins: str) -> Sequence[Effect]:
        """Return what was made in all slots whose names begin so, by name."""
        fits = effects.c.slot.startswith(begins, autoescape=True)
        query = select(effects).where(effects.c.task_id == task_id, fits).order_by(effects.c.slot)
        rows = await self._database.read(lambda connection: connection.execute(query).all())
        return [Effect(row.slot, row.kind, row.remote_id) for row in rows]

    async def keep_effect(self, task_id: str, effect: Effect) -> None:
        """Note what was made; the same slot again replaces it."""
        values = {"task_id": task_id, "slot": effect.slot, "kind": effect.kind, "remote_id": effect.remote_id}
        await self._database.write(lambda connection: replace(connection, effects, values))

    async def post(self, task_id: str, kind: InboxKind, *, author: str, text: str, event_key: str) -> bool:
        """Put something into the task's inbox.

        False, and nothing is kept, for a known event key, and for a stop where no run is open: the next one is not
        what it was meant for.

        Raises:
            KeyError: no such task.
        """
        values = {"kind": kind, "author": author, "text": text, "event_key": event_key, "at": self._now()}

        def act(connection: Connection) -> bool:
            lock_task(connection, task_id)
            if known_key(connection, event_key) is not None or (kind == "stop" and not _is_open(connection, task_id)):
                return False
            return insert(connection, inbox, values | {"task_id": task_id})

        return await self._database.write(act)

    async def inbox(self, task_id: str, *, after: int = 0) -> Sequence[InboxItem]:
        """Return inbox items behind an id, oldest first; a label that was added again has no words."""
        query = select(inbox).where(inbox.c.task_id == task_id, inbox.c.id > after).order_by(inbox.c.id)
        rows = await self._database.read(lambda connection: connection.execute(query).all())
        return [
            InboxItem(
                row.id,
                row.kind,
                row.author,
                row.text,
                row.number,
                row.thread,
                row.comment_id,
                row.author_id,
                commanded=row.commanded,
                model=row.model,
                asked_at=row.asked_at,
                event_key=row.event_key,
            )
            for row in rows
        ]

    async def steps(self, run_id: str) -> Mapping[str, str]:
        """Return the recorded outputs of a run's steps by name; the inline engine's."""
        query = select(steps.c.name, steps.c.output).where(steps.c.run_id == run_id)
        rows = await self._database.read(lambda connection: connection.execute(query).all())
        return {row.name: row.output for row in rows}

    async def keep_step(self, run_id: str, name: str, output: str) -> None:
        """Record the output of a step of the inline engine; the first record stands."""
        values = {"run_id": run_id, "name": name, "output": output}
        await self._database.write(lambda connection: insert(connection, steps, values))

    async def state_key(self) -> bytes:
        """Return the key of our markers; 32 bytes, made at first use."""
        query: Select[bytes] = select(keys.c.value).where(keys.c.name == _STATE)
        found = await self._database.read(lambda connection: connection.scalar(query))
        if found is not None:
            return found
        await self.set_state_key(secrets.token_bytes(32))
        # Another process may have been first.
        return await self._database.read(lambda connection: connection.execute(query).scalar_one())

    async def set_state_key(self, key: bytes) -> None:
        """Set the key of our markers before its first use; a key that is there already stays."""
        values = {"name": _STATE, "value": key}
        await self._database.write(lambda connection: insert(connection, keys, values))

    async def audit(self, at: datetime, actor: str, action: str, subject: str, detail: str = "") -> None:
        """Append one line to the audit log."""
        values = {"at": at, "actor": actor, "action": action, "subject": subject, "detail": detail}
        await self._database.write(lambda connection: connection.execute(audit.insert().values(values)))


def _is_open(connection: Connection, task_id: str) -> bool:
    """Whether a task has a run that is not over."""
    unfinished = select(runs.c.seq).where(runs.c.task_id == task_id, runs.c.state != "finished").limit(1)
    return connection.scalar(unfinished) is not None
