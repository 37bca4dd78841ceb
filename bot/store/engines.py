"""SQLAlchemy engines for the two databases that we speak."""

import contextlib
import os
import sqlite3
from pathlib import Path

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError
from sqlalchemy.pool import ConnectionPoolEntry

from bot.errors import OperatorError

WRITE = {"issuewright_write": True}
"""Execution options of a connection that is going to write."""

_BUSY_MS = 30_000
"""Milliseconds to wait for another process's transaction; ours take milliseconds each."""
_POOL = 12
"""Connections at most; no more threads use an engine than that."""
_PAGE_ROOM = 64 * 1024 * 1024
"""Bytes that the write-ahead log keeps on disk after a checkpoint."""


def sqlite_engine(path: Path) -> Engine:
    """Open a SQLite file, made with mode 0600 where it is missing; the caller disposes of the engine."""
    private_file(path)
    engine = create_engine(f"sqlite:///{path}", pool_size=_POOL, max_overflow=0)
    event.listen(engine, "connect", _prepare)
    event.listen(engine, "begin", _begin)
    return engine


def postgres_engine(url: str) -> Engine:
    """Open a Postgres database; the caller disposes of the engine.

    Args:
        url: `postgresql://user@host/name`; always spoken to through psycopg.

    Raises:
        OperatorError: no such URL, or psycopg is not installed.
    """
    try:
        made = make_url(url)
    except (ArgumentError, ValueError):
        # The message would repeat the URL, and with it the password.
        raise OperatorError("The database URL cannot be read; it looks like postgresql://user@host/name") from None
    if made.get_backend_name() not in {"postgresql", "postgres"}:
        raise OperatorError(
            f"The database must be Postgres, not {made.get_backend_name()}; leave the URL out for SQLite"
        )
    try:
        return create_engine(
            made.set(drivername="postgresql+psycopg"),
            pool_size=_POOL,
            max_overflow=0,
            pool_pre_ping=True,
        )
    except ModuleNotFoundError as error:
        raise OperatorError('Postgres needs one more package: pip install "issuewright[postgres]"') from error


def private_file(path: Path) -> None:
    """Make the file for this user alone; SQLite gives its log files the same mode."""
    # A file that is there is never opened: closing any descriptor of it would drop this process's SQLite locks on it,
    # and another process would then take itself for the last one and delete the log under our feet.
    # https://www.sqlite.org/howtocorrupt.html#_posix_advisory_locks_canceled_by_a_separate_thread_doing_close_
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    path.chmod(0o600)


def configure(connection: sqlite3.Connection, *, busy_ms: int = _BUSY_MS) -> None:
    """Make a fresh SQLite connection durable, patient and strict."""
    for pragma in (
        f"busy_timeout={busy_ms}",  # the first: switching to WAL waits for others already
        "auto_vacuum=INCREMENTAL",  # works only before anything is written; else deleted rows never give back the disk
        "journal_mode=WAL",
        "synchronous=FULL",
        "foreign_keys=ON",
        f"journal_size_limit={_PAGE_ROOM}",
    ):
        connection.execute(f"PRAGMA {pragma}").close()


def _prepare(connection: DBAPIConnection, _record: ConnectionPoolEntry) -> None:
    # `DBAPIConnection` is what SQLAlchemy calls the driver's own connection.
    raw: sqlite3.Connection = connection  # type: ignore[assignment]
    # The driver's legacy mode begins only before the first INSERT, so that reads before it would see another
    # state; its `autocommit` attribute exists from Python 3.12 on only. None means: begin when we say so.
    # https://docs.sqlalchemy.org/en/21/dialects/sqlite.html#sqlite-transactions
    raw.isolation_level = None
    configure(raw)


def _begin(connection: Connection) -> None:
    # A transaction that reads first and writes later fails at once when another wrote in between, whatever the
    # busy timeout; one that is going to write takes the lock first.
    write = connection.get_execution_options().get("issuewright_write", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")
