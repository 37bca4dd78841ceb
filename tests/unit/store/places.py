"""Where tests keep a store: a folder with SQLite files, or a database of a Postgres server."""

import subprocess
import sys
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import Engine, text

from bot.store import schema
from bot.store.base import DeliveryStore
from bot.store.engines import postgres_engine, sqlite_engine
from bot.store.migrate import migrate
from bot.store.opening import open_store
from bot.store.tasks import SqlTaskStore
from tests.unit.store.made import Clock
from tests.unit.store.postgres import Server, postgres_server

ROOT = Path(__file__).parents[3]


@dataclass(slots=True)
class Place:
    """Where a test keeps its databases."""

    state_dir: Path
    url: str | None
    clock: Clock = field(default_factory=Clock)

    def open(self) -> tuple[SqlTaskStore, DeliveryStore]:
        """Open both stores there."""
        return open_store(self.state_dir, self.url, now=self.clock)

    def engine(self, file: str) -> Engine:
        """Open a database there without the store."""
        return sqlite_engine(self.state_dir / file) if self.url is None else postgres_engine(self.url)

    def child(self, verb: str) -> "subprocess.Popen[bytes]":
        """Start another process over the same databases."""
        where = [str(self.state_dir), *([] if self.url is None else [self.url])]
        command = [sys.executable, "-m", "tests.unit.store.child", verb, *where]
        return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE)


class Lazy:
    """A server that starts when the first test asks for it."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._server: Server | None = None
        self._filled: Engine | None = None
        self._count = 0

    def database(self) -> str:
        """Return the database that has the tables, all of them empty."""
        if self._filled is None:
            self._filled = postgres_engine(self.empty())
            self._stack.callback(self._filled.dispose)
            migrate(self._filled, "deliveries")
            migrate(self._filled, "tasks")
        names = ", ".join([*schema.DELIVERIES.tables, *schema.TASKS.tables])
        with self._filled.begin() as connection:
            connection.execute(text(f"TRUNCATE {names} RESTART IDENTITY"))
        return self._filled.url.set(drivername="postgresql").render_as_string(hide_password=False)

    def empty(self) -> str:
        """Make a database without tables."""
        if self._server is None:
            self._server = self._stack.enter_context(postgres_server())
        self._count += 1
        return self._server.create(f"test{self._count}")

    def close(self) -> None:
        """Stop the server."""
        self._stack.close()
