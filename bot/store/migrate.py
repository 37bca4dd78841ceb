"""Bring a database to the newest revision."""

import sqlite3
from pathlib import Path
from typing import Literal

from alembic import command
from alembic.config import Config
from alembic.script.revision import ResolutionError
from alembic.util import CommandError
from sqlalchemy import Connection, Engine, text

from bot.errors import OperatorError
from bot.store.engines import WRITE

Which = Literal["deliveries", "tasks"]

LOCK = 0x1557_EE17
"""The Postgres advisory lock under which migrations run."""


def version_table(which: Which) -> str:
    """Name the table in which a branch keeps its revision; both branches may live in one database."""
    return f"issuewright_{which}_version"


def migrate(engine: Engine, which: Which) -> None:
    """Run what is missing in one transaction; any number of processes may call it at once.

    Raises:
        OperatorError: a later version of the program wrote the database.
    """
    with engine.connect().execution_options(**WRITE) as connection:
        _enforce_keys(connection, on=False)
        try:
            with connection.begin():
                if engine.dialect.name == "postgresql":
                    connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": LOCK})
                command.upgrade(_config(connection, which), "head")
        except CommandError as error:
            if not isinstance(error.__cause__, ResolutionError):
                raise
            raise OperatorError(
                f"A later version of issuewright wrote the {which} database; install that one"
            ) from error
        finally:
            _enforce_keys(connection, on=True)


def _config(connection: Connection, which: Which) -> Config:
    home = Path(__file__).parent / "migrations"
    config = Config(attributes={"connection": connection, "which": which})
    # A percent sign in a path would be taken for an interpolation.
    config.set_main_option("script_location", str(home).replace("%", "%%"))
    config.set_main_option("version_locations", str(home / "versions" / which).replace("%", "%%"))
    config.set_main_option("path_separator", "newline")
    return config


def _enforce_keys(connection: Connection, *, on: bool) -> None:
    # SQLite changes a table by making it anew, and dropping the old one would delete the rows that point at it.
    # The pragma does nothing inside a transaction, so it goes past SQLAlchemy, which would begin one.
    raw = connection.connection.driver_connection
    if isinstance(raw, sqlite3.Connection):
        raw.execute(f"PRAGMA foreign_keys={'ON' if on else 'OFF'}").close()
