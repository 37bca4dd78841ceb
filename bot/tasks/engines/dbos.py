"""The durable engine of the server: DBOS on SQLite or Postgres, behind our own admission."""

import asyncio
import sys
import time
from pathlib import Path

import sqlalchemy as sa
from dbos import DBOS, DBOSConfig, DBOSPortableJSONSerializer, SetWorkflowID
from dbos import _serialization as serialization

from bot.domain.task import Run
from bot.errors import OperatorError
from bot.tasks.engines.base import ABI, Action, Body, Json

APPLICATION = "issuewright"
VERSION = f"abi-{ABI}"
"""Pinned by hand: the default is a hash of sources, with which every edit would orphan what runs."""
THREADS = 16
"""DBOS replaces the loop's thread pool by an unbounded one where none is named."""


class DbosEngine:
    """Runs each workflow as a task of the running event loop and keeps its steps in DBOS's tables."""

    def __init__(self, state: Path, database_url: str | None, executor: str) -> None:
        self._url = database_url or f"sqlite:///{state / 'engine.sqlite'}"
        self._executor = executor
        self._open = asyncio.Event()
        self._open.set()
        self._in_flight = 0

    async def launch(self, body: Body) -> None:
        """Register the workflow and begin to take recoveries; runs on the present event loop."""
        _forbid_pickle()
        _check_interface()
        config = DBOSConfig(
            name=APPLICATION,
            system_database_url=self._url,
            executor_id=self._executor,
            application_version=VERSION,
            serializer=DBOSPortableJSONSerializer(),
            max_executor_threads=THREADS,
            notification_listener_polling_interval_sec=1.0,
            log_level="WARNING",
            console_log_level="WARNING",
        )
        if self._url.startswith("sqlite"):
            config["system_database_engine"] = _sqlite_engine(self._url)
        DBOS(config=config)

        @DBOS.workflow(name="run", max_recovery_attempts=None)
        async def workflow(run_id: str, abi: int) -> None:  # noqa: ARG001 - kept with the input, for later bodies to branch on
            await body(run_id, self._step)

        self._workflow = workflow
        DBOS.launch()

    async def start(self, run: Run) -> None:
        """Begin a run under its own id; where it began already, nothing happens."""
        with SetWorkflowID(run.id):
            await DBOS.start_workflow_async(self._workflow, run.id, run.abi)

    async def recover(self, run: Run, dead_executor: str) -> None:
        """Put what a dead executor left behind back into DBOS's own queue, from which this process takes it."""
        await asyncio.to_thread(DBOS._recover_pending_workflows, [dead_executor])  # noqa: SLF001 - no public way: see _check_interface
        await self.start(run)

    async def cancel(self, run: Run) -> None:
        """End the workflow: whoever recovers another one of the same dead executor would bring it back."""
        await DBOS.cancel_workflow_async(run.id)

    async def recorded(self, run: Run) -> int:
        """Count the recorded steps."""
        return len(await DBOS.list_workflow_steps_async(run.id, load_output=False))

    async def drain(self, *, grace_s: float) -> None:
        """Let no further step begin, and wait for those in flight; whoever takes over repeats none of them."""
        self._open.clear()
        end = time.monotonic() + grace_s
        while self._in_flight and time.monotonic() < end:  # noqa: ASYNC110 - once in a process's life
            await asyncio.sleep(0.02)

    async def close(self) -> None:
        """Give back threads and the database; parked workflows are left for the next process."""
        await asyncio.to_thread(DBOS.destroy)

    async def _step(self, name: str, action: Action) -> Json:
        await self._open.wait()
        self._in_flight += 1

        async def run() -> Json:
            # DBOS tells coroutine functions from others by their kind, which a lambda or a bound call does not show.
            return await action()

        try:
            value: Json = await DBOS.run_step_async({"name": name}, run)
            return value
        finally:
            self._in_flight -= 1


def _sqlite_engine(url: str) -> sa.Engine:
    # DBOS would make it readable for everybody, and the model's commands run as other users of this machine.
    Path(url.removeprefix("sqlite:///")).touch(mode=0o600)
    engine = sa.create_engine(url, pool_size=THREADS + 4, max_overflow=0, pool_timeout=30)

    @sa.event.listens_for(engine, "connect")
    def _prepare(connection: "object", _record: object) -> None:
        # The driver's own connection class; DBOS itself sets none of these.
        raw = connection
        raw.isolation_level = "IMMEDIATE"  # type: ignore[attr-defined]
        for pragma in ("busy_timeout=30000", "foreign_keys=ON", "journal_mode=WAL", "synchronous=FULL"):
            raw.execute(f"PRAGMA {pragma}")  # type: ignore[attr-defined]
        # SQLite before 3.42 knows no sub-second clock: DBOS's order within a second would be left to chance.
        raw.create_function("unixepoch", -1, _unixepoch)  # type: ignore[attr-defined]
        if sys.version_info < (3, 12):
            raw.create_function("strftime", -1, _strftime)  # type: ignore[attr-defined]

    return engine


def _unixepoch(*arguments: object) -> float:
    return time.time() if arguments == ("subsec",) else int(time.time())


def _strftime(*arguments: object) -> float | None:
    return time.time() if arguments == ("%s", "now") else None


def _forbid_pickle() -> None:
    """Make DBOS unable to read or write pickles: a row in its tables could otherwise run code in every worker."""

    def refuse(*_: object) -> str:
        raise TypeError("pickle is disabled")

    serialization.DefaultSerializer.serialize = refuse  # type: ignore[method-assign,assignment]
    serialization.DefaultSerializer.deserialize = refuse  # type: ignore[method-assign,assignment]


def _check_interface() -> None:
    if not hasattr(DBOS, "_recover_pending_workflows"):
        raise OperatorError("This version of dbos has no `_recover_pending_workflows`; install `dbos>=3.4,<4`")
