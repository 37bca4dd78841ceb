"""Messages and the bytes that are kept under their hash."""

from collections.abc import Sequence

from sqlalchemy import Connection, Select, select

from bot.domain.codec import message_from_data, message_to_data
from bot.domain.messages import Message
from bot.store.database import Shelf, insert, put_blob
from bot.store.schema import blobs, messages
from bot.store.spill import spill, unspill


class Transcript(Shelf):
    """The messages of all runs, and blobs."""

    async def save_messages(self, task_id: str, run: int, first: int, messages: Sequence[Message]) -> None:
        """Keep messages at positions `first`, `first + 1`, … of a run; the same positions again change nothing."""
        if messages:
            await self._database.write(lambda connection: _save(connection, task_id, run, first, messages))

    async def messages(self, task_id: str, *, run: int | None = None) -> Sequence[Message]:
        """Return the transcript: of one run, or of all runs in order."""
        query = (
            select(messages.c.content, blobs.c.data)
            .outerjoin(blobs, blobs.c.sha256 == messages.c.blob)
            .where(messages.c.task_id == task_id)
            .order_by(messages.c.run, messages.c.position)
        )
        if run is not None:
            query = query.where(messages.c.run == run)
        rows = await self._database.read(lambda connection: connection.execute(query).all())
        return [message_from_data(unspill(content, data)) for content, data in rows]

    async def put_blob(self, data: bytes) -> str:
        """Keep bytes under their SHA-256 and return it."""
        return await self._database.write(lambda connection: put_blob(connection, data))

    async def blob(self, sha256: str) -> bytes:
        """Return kept bytes; KeyError where there are none."""
        query: Select[bytes] = select(blobs.c.data).where(blobs.c.sha256 == sha256)
        data = await self._database.read(lambda connection: connection.scalar(query))
        if data is None:
            raise KeyError(sha256)
        return data


def _save(connection: Connection, task_id: str, run: int, first: int, new: Sequence[Message]) -> None:
    for position, message in enumerate(new, first):
        content, blob = spill(connection, message_to_data(message))
        values = {
            "task_id": task_id,
            "run": run,
            "position": position,
            "role": message.role,
            "content": content,
            "blob": blob,
        }
        insert(connection, messages, values)
