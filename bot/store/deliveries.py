"""Deliveries: a fast path for SQLite with group commit, and one over SQLAlchemy for Postgres."""

import asyncio
import contextlib
import sqlite3
import threading
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

from sqlalchemy import literal_column, select, update

from bot.store.base import Delivery, DeliveryState
from bot.store.database import Database, insert
from bot.store.engines import configure, private_file
from bot.store.group import GroupWriter
from bot.store.rows import AnyRow
from bot.store.schema import deliveries
from bot.store.types import storable

_BUSY_MS = 5_000
"""Milliseconds to wait for another process's write: GitHub waits 10 s for our answer."""

_COLUMNS = "guid, event, event_key, body, received_at, state, note"
_ADD = f"INSERT INTO deliveries ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"  # noqa: S608 - constants
_SETTLE = "UPDATE deliveries SET state = ?, note = ? WHERE guid = ?"
_GET = f"SELECT {_COLUMNS} FROM deliveries WHERE guid = ?"  # noqa: S608 - constants
_PENDING = f"SELECT {_COLUMNS} FROM deliveries WHERE state = 'received' ORDER BY received_at, guid LIMIT ?"  # noqa: S608 - constants

_Stored = tuple[str, str, str | None, bytes, str, DeliveryState, str]


class SqliteDeliveryStore:
    """Deliveries in a SQLite file of their own; the tables are there already."""

    def __init__(self, path: Path) -> None:
        """Open the file; it stays open until `close`."""
        self._reader = _connect(path)
        self._reading = threading.Lock()
        self._writer = GroupWriter(_connect(path))

    async def add(self, delivery: Delivery) -> bool:
        """Keep a delivery; returns after it is synced to disk. False where the guid or event key is known already.

        Raises:
            sqlite3.Error: it was not kept; GitHub has to be told so.
        """
        # The same text as SQLAlchemy writes for a `DateTime`, so that either path reads the other's rows.
        at = delivery.received_at.astimezone(UTC).replace(tzinfo=None).isoformat(" ", "microseconds")
        key = None if delivery.event_key is None else storable(delivery.event_key)
        values = (
            storable(delivery.guid),
            storable(delivery.event),
            key,
            delivery.body,
            at,
            delivery.state,
            storable(delivery.note),
        )
        return await self._writer.write(_ADD, values) == 1

    async def pending(self, *, limit: int = 100) -> Sequence[Delivery]:
        """Return deliveries in state `received`, oldest first."""
        return [_read(row) for row in await asyncio.to_thread(self._fetch, _PENDING, limit)]

    async def settle(self, guid: str, state: DeliveryState, note: str = "") -> None:
        """Say what became of a delivery."""
        await self._writer.write(_SETTLE, (state, storable(note), guid))

    async def get(self, guid: str) -> Delivery | None:
        """Return one delivery."""
        rows = await asyncio.to_thread(self._fetch, _GET, guid)
        return _read(rows[0]) if rows else None

    async def close(self) -> None:
        """Write what is waiting and give back the file."""
        await self._writer.close()
        with self._reading:
            self._reader.close()

    def _fetch(self, statement: str, value: object) -> list[_Stored]:
        with self._reading, contextlib.closing(self._reader.execute(statement, (value,))) as cursor:
            # The columns are ours.
            return cast("list[_Stored]", cursor.fetchall())


class SqlDeliveryStore:
    """Deliveries over SQLAlchemy, a transaction each: Postgres commits concurrent ones together by itself."""

    def __init__(self, database: Database) -> None:
        """Take over a database whose tables are there already."""
        self._database = database

    async def add(self, delivery: Delivery) -> bool:
        """Keep a delivery; returns after it is synced to disk. False where the guid or event key is known already.

        Raises:
            sqlalchemy.exc.SQLAlchemyError: it was not kept; GitHub has to be told so.
        """
        values = {
            "guid": delivery.guid,
            "event": delivery.event,
            "event_key": delivery.event_key,
            "body": delivery.body,
            "received_at": delivery.received_at,
            "state": delivery.state,
            "note": delivery.note,
        }
        return await self._database.write(lambda connection: insert(connection, deliveries, values))

    async def pending(self, *, limit: int = 100) -> Sequence[Delivery]:
        """Return deliveries in state `received`, oldest first."""
        query = (
            select(deliveries)
            .where(deliveries.c.state == literal_column("'received'"))  # as the partial index has it
            .order_by(deliveries.c.received_at, deliveries.c.guid)
            .limit(limit)
        )
        rows = await self._database.read(lambda connection: connection.execute(query).all())
        return [_delivery(row) for row in rows]

    async def settle(self, guid: str, state: DeliveryState, note: str = "") -> None:
        """Say what became of a delivery."""
        change = update(deliveries).where(deliveries.c.guid == guid).values(state=state, note=note)
        await self._database.write(lambda connection: connection.execute(change))

    async def get(self, guid: str) -> Delivery | None:
        """Return one delivery."""
        query = select(deliveries).where(deliveries.c.guid == guid)
        row = await self._database.read(lambda connection: connection.execute(query).one_or_none())
        return None if row is None else _delivery(row)

    async def close(self) -> None:
        """Give back the database."""
        await self._database.close()


def _connect(path: Path) -> sqlite3.Connection:
    private_file(path)
    connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
    configure(connection, busy_ms=_BUSY_MS)
    return connection


def _read(row: _Stored) -> Delivery:
    guid, event, event_key, body, at, state, note = row
    return Delivery(guid, event, event_key, body, datetime.fromisoformat(at).replace(tzinfo=UTC), state, note)


def _delivery(row: AnyRow) -> Delivery:
    return Delivery(
        guid=row.guid,
        event=row.event,
        event_key=row.event_key,
        body=row.body,
        received_at=row.received_at,
        state=row.state,
        note=row.note,
    )
