"""Open both stores, with their tables brought up to date."""

import fcntl
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from sqlalchemy.exc import SQLAlchemyError

from bot.errors import OperatorError
from bot.store.base import DeliveryStore
from bot.store.database import Database
from bot.store.deliveries import SqlDeliveryStore, SqliteDeliveryStore
from bot.store.engines import postgres_engine, private_file, sqlite_engine
from bot.store.migrate import migrate
from bot.store.tasks import SqlTaskStore

DELIVERIES_FILE = "deliveries.db"
TASKS_FILE = "tasks.db"


def open_store(
    state_dir: Path, database_url: str | None, *, now: Callable[[], datetime]
) -> tuple[SqlTaskStore, DeliveryStore]:
    """Open both stores; any number of processes may do so at once. The caller closes both.

    Args:
        state_dir: made with mode 0700; holds both SQLite files.
        database_url: a Postgres database that holds both instead.
        now: the clock; gives aware datetimes.

    Raises:
        OperatorError: the folder cannot be used, the database cannot be reached, or a later version wrote it.
    """
    try:
        return _open_sqlite(state_dir, now) if database_url is None else _open_postgres(database_url, now)
    except OSError as error:
        raise OperatorError(f"The state folder {state_dir} cannot be used: {error.strerror}") from error
    except (SQLAlchemyError, sqlite3.Error) as error:
        raise OperatorError(f"The database cannot be used: {_first_line(error)}") from error


def _open_sqlite(state_dir: Path, now: Callable[[], datetime]) -> tuple[SqlTaskStore, DeliveryStore]:
    state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    state_dir.chmod(0o700)
    # Two processes that switch a new file to WAL at once do not wait for each other.
    with _alone(state_dir / "migrate.lock"):
        deliveries = sqlite_engine(state_dir / DELIVERIES_FILE)
        try:
            migrate(deliveries, "deliveries")
        finally:
            deliveries.dispose()
        tasks = sqlite_engine(state_dir / TASKS_FILE)
        try:
            migrate(tasks, "tasks")
            return SqlTaskStore(Database(tasks), now), SqliteDeliveryStore(state_dir / DELIVERIES_FILE)
        except BaseException:
            tasks.dispose()
            raise


def _open_postgres(database_url: str, now: Callable[[], datetime]) -> tuple[SqlTaskStore, DeliveryStore]:
    engine = postgres_engine(database_url)
    try:
        migrate(engine, "deliveries")
        migrate(engine, "tasks")
        # Two pools: a burst of work must not keep a delivery waiting for a connection.
        return SqlTaskStore(Database(engine), now), SqlDeliveryStore(Database(postgres_engine(database_url)))
    except BaseException:
        engine.dispose()
        raise


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    private_file(path)
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _first_line(error: Exception) -> str:
    # The rest is the statement, and SQLAlchemy's own advice.
    return str(error.__cause__ or error).strip().partition("\n")[0]
