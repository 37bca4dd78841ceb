"""One thread that writes to one SQLite file and commits many writes together."""

import asyncio
import contextlib
import sqlite3
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from queue import Empty, SimpleQueue

_BATCH = 512
"""Writes in one transaction; bounds how long the first of them waits for the last."""


@dataclass(slots=True, eq=False)
class _Write:
    statement: str
    values: Sequence[object]
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[int]
    rows: int = 0
    error: Exception | None = None


class GroupWriter:
    """Runs statements in order; each is answered after the commit that holds it was synced to disk."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        """Take over a connection in autocommit mode that threads may share; `close` closes it."""
        self._connection = connection
        self._queue: SimpleQueue[_Write | None] = SimpleQueue()
        self._gate = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="deliveries", daemon=True)
        self._thread.start()

    async def write(self, statement: str, values: Sequence[object]) -> int:
        """Run one statement and return how many rows it changed.

        Cancelling the caller does not take the write back.

        Raises:
            sqlite3.Error: the statement or its commit failed; nothing of it was kept.
        """
        loop = asyncio.get_running_loop()
        write = _Write(statement, values, loop, loop.create_future())
        # Without the gate a write could be queued behind the mark that ends the thread, and never be answered.
        with self._gate:
            if self._closed:
                raise sqlite3.ProgrammingError("The store is closed")
            self._queue.put(write)
        return await write.future

    async def close(self) -> None:
        """Commit what is waiting, answer it, and close the connection; closing again does nothing."""
        with self._gate:
            if not self._closed:
                self._closed = True
                self._queue.put(None)
        await asyncio.to_thread(self._thread.join)

    def _work(self) -> None:
        going = True
        while going:
            batch = self._take()
            writes = [write for write in batch if write is not None]
            going = len(writes) == len(batch)
            if writes:
                self._commit(writes)
                _answer(writes)
        self._connection.close()

    def _take(self) -> list[_Write | None]:
        batch = [self._queue.get()]
        with contextlib.suppress(Empty):
            while len(batch) < _BATCH:
                batch.append(self._queue.get_nowait())
        return batch

    def _commit(self, writes: Sequence[_Write]) -> None:
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            for write in writes:
                self._run(write)
            self._connection.execute("COMMIT")
        except Exception as error:  # noqa: BLE001 - whatever it is, those who wait must hear it
            for write in writes:
                write.error = write.error or error
            if self._connection.in_transaction:
                with contextlib.suppress(sqlite3.Error):
                    self._connection.execute("ROLLBACK")

    def _run(self, write: _Write) -> None:
        try:
            write.rows = self._connection.execute(write.statement, write.values).rowcount
        except Exception as error:
            write.error = error
            # A full or broken disk ends the whole transaction; a value that cannot be bound ends only its own write.
            if not self._connection.in_transaction:
                raise


def _answer(writes: Sequence[_Write]) -> None:
    loops: dict[asyncio.AbstractEventLoop, list[_Write]] = {}
    for write in writes:
        loops.setdefault(write.loop, []).append(write)
    for loop, theirs in loops.items():
        # A loop that was closed has nobody left who waits.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(_resolve, theirs)


def _resolve(writes: Sequence[_Write]) -> None:
    for write in writes:
        if write.future.done():
            continue
        if write.error is None:
            write.future.set_result(write.rows)
        else:
            write.future.set_exception(write.error)
