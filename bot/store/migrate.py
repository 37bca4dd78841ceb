"""Bring a database to the newest revision."""

import sqlite3

from sqlalchemy import Connection, Engine, inspect, select, text

from bot.store.engines import WRITE
from bot.store.schema import BRANCHES, NEWEST, VERSIONS, Which

LOCK = 0x1557_EE17
"""The Postgres advisory lock under which migrations run."""


def migrate(engine: Engine, which: Which) -> None:
    """Make the tables, or run what is missing, in one transaction; any number of processes may call it at once.

    Raises:
        OperatorError: a later version of the program wrote the database.
    """
    with engine.connect().execution_options(**WRITE) as connection:
        _enforce_keys(connection, on=False)
        try:
            with connection.begin():
                if engine.dialect.name == "postgresql":
                    connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": LOCK})
                _bring(connection, which)
        finally:
            _enforce_keys(connection, on=True)


def _bring(connection: Connection, which: Which) -> None:
    version = VERSIONS[which]
    if not inspect(connection).has_table(version.name):
        # The declared tables are what all revisions come to, and a first start need not wait for each of them.
        BRANCHES[which].create_all(connection, checkfirst=False)
        version.create(connection)
        connection.execute(version.insert().values(version_num=NEWEST[which]))
    elif connection.scalar(select(version.c.version_num)) != NEWEST[which]:
        from bot.store.revisions import upgrade  # noqa: PLC0415 - Alembic costs 0.1 s of CPU, and is hardly ever needed

        upgrade(connection, which)


def _enforce_keys(connection: Connection, *, on: bool) -> None:
    # SQLite changes a table by making it anew, and dropping the old one would delete the rows that point at it.
    # The pragma does nothing inside a transaction, so it goes past SQLAlchemy, which would begin one.
    raw = connection.connection.driver_connection
    if isinstance(raw, sqlite3.Connection):
        raw.execute(f"PRAGMA foreign_keys={'ON' if on else 'OFF'}").close()
