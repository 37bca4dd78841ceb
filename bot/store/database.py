"""One database behind an engine: each act is one transaction on a thread of its own."""

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import cache
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, Table, bindparam, select, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.sql.dml import ReturningInsert

from bot.store.engines import WRITE
from bot.store.schema import blobs, tasks

T = TypeVar("T")

_LOCKED = select(tasks.c.id).where(tasks.c.id == bindparam("task_id")).with_for_update()

_THREADS = 6
"""Transactions under way at once, of each kind; the engines' pools hold as many connections."""

QUEUE = 0x1557_0001
"""The Postgres advisory lock under which runs come, go and find their task."""


class Database:
    """Runs functions of a connection; owns the engine."""

    def __init__(self, engine: Engine) -> None:
        """Take over an engine."""
        self._engine = engine
        self._writer = engine.execution_options(**WRITE)
        # SQLite has one writer at a time: waiting here is fair and prompt, waiting in its busy handler is neither.
        writers = 1 if engine.dialect.name == "sqlite" else _THREADS
        self._writes = ThreadPoolExecutor(writers, "store-write")
        self._reads = ThreadPoolExecutor(_THREADS, "store-read")

    async def write(self, act: Callable[[Connection], T]) -> T:
        """Run an act in one transaction that is synced before this returns; an exception takes it back.

        Where the caller is cancelled, the act is done as a whole or not at all.
        """
        return await asyncio.get_running_loop().run_in_executor(self._writes, self._write, act)

    async def read(self, act: Callable[[Connection], T]) -> T:
        """Run an act that only reads."""
        return await asyncio.get_running_loop().run_in_executor(self._reads, self._read, act)

    async def close(self) -> None:
        """Finish what is under way and give back all connections; a later act raises RuntimeError."""
        # A connection that a thread still holds while the engine is disposed of would never be closed.
        for threads in (self._writes, self._reads):
            await asyncio.to_thread(threads.shutdown)
        await asyncio.to_thread(self._engine.dispose)

    def _write(self, act: Callable[[Connection], T]) -> T:
        with self._writer.begin() as connection:
            return act(connection)

    def _read(self, act: Callable[[Connection], T]) -> T:
        with self._engine.connect() as connection:
            return act(connection)


def insert(connection: Connection, table: Table, values: Mapping[str, object]) -> bool:
    """Insert a row; False where a unique key is taken already."""
    return connection.execute(_new(table, connection.dialect.name), values).first() is not None


@cache
def _new(table: Table, dialect: str) -> ReturningInsert[Any]:  # Any: a table does not know the types of its key
    # To build a statement takes longer than to run it.
    return _insert(table, dialect).on_conflict_do_nothing().returning(*table.primary_key)


def replace(connection: Connection, table: Table, values: Mapping[str, object]) -> None:
    """Insert a row, or replace what the row of the same primary key holds."""
    names = [column.name for column in table.primary_key]
    others = {name: value for name, value in values.items() if name not in names}
    statement = _insert(table, connection.dialect.name).values(values)
    connection.execute(statement.on_conflict_do_update(index_elements=names, set_=others))


def _insert(table: Table, dialect: str) -> postgresql.Insert | sqlite.Insert:
    """Begin a statement of the dialect's own: only those know ON CONFLICT."""
    return postgresql.insert(table) if dialect == "postgresql" else sqlite.insert(table)


def lock_queue(connection: Connection) -> None:
    """Be the only one who changes the queue until the transaction ends; comes before `lock_task`."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": QUEUE})


def lock_task(connection: Connection, task_id: str) -> None:
    """Be the only one who appends to a task until the transaction ends; KeyError where there is no such task.

    What is appended gets its number under this lock, so numbers become visible in order and without holes.
    """
    if connection.execute(_LOCKED, {"task_id": task_id}).one_or_none() is None:
        raise KeyError(task_id)


def put_blob(connection: Connection, data: bytes) -> str:
    """Keep bytes under their SHA-256 and return it."""
    sha256 = hashlib.sha256(data).hexdigest()
    insert(connection, blobs, {"sha256": sha256, "data": data})
    return sha256


class Shelf:
    """A part of the task store; the parts share one database."""

    def __init__(self, database: Database, now: Callable[[], datetime]) -> None:
        """Take a database whose tables are there already, and a clock that gives aware datetimes."""
        self._database = database
        self._now = now
