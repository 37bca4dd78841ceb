"""The task store over SQL, put together from its parts."""

from bot.store.decisions import Decisions
from bot.store.intake import Intake
from bot.store.notes import Notes
from bot.store.queue import Queue
from bot.store.stream import Stream
from bot.store.transcript import Transcript


class SqlTaskStore(Intake, Queue, Stream, Transcript, Notes, Decisions):
    """Tasks, runs and everything that belongs to them; each method is one synced transaction on a thread."""

    async def close(self) -> None:
        """Give back the database."""
        await self._database.close()
