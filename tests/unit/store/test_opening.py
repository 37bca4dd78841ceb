"""Opening the stores: modes, pragmas, old files, and what an operator hears when it cannot be done."""

import asyncio
import sqlite3
import stat
import time
from importlib.resources import files
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.dialects.sqlite.base import SQLiteDialect

from bot.domain.events import Notice, ToolFinished
from bot.domain.messages import Message, TextPart, ToolCall, ToolResult
from bot.errors import OperatorError
from bot.store.base import Effect
from bot.store.engines import WRITE, private_file, sqlite_engine
from bot.store.opening import open_store
from bot.store.schema import VERSIONS
from bot.store.types import UtcDateTime
from tests.unit.store.made import REPOSITORY, START, Clock, request

OLD = Path(__file__).parent / "old"


def mode(path: Path) -> int:
    """Return the permission bits."""
    return stat.S_IMODE(path.stat().st_mode)


async def test_only_this_user_may_look(tmp_path: Path) -> None:
    """The folder has mode 0700 even where it was wider, all files in it 0600, the logs of SQLite too."""
    state_dir = tmp_path / "a" / "state"
    state_dir.mkdir(mode=0o755, parents=True)
    tasks, deliveries = open_store(state_dir, None, now=Clock())
    await tasks.audit(START, "a", "b", "c")
    assert mode(state_dir) == 0o700
    found = {path.name: mode(path) for path in state_dir.iterdir()}
    assert {"tasks.db", "tasks.db-wal", "deliveries.db", "deliveries.db-wal"} <= set(found)
    assert set(found.values()) == {0o600}
    await tasks.close()
    await deliveries.close()


def test_a_connection_is_durable_patient_and_strict(tmp_path: Path) -> None:
    """Every connection of the pool has the pragmas."""
    engine = sqlite_engine(tmp_path / "t.db")
    with engine.connect() as one, engine.connect() as two:
        one.execute(text("CREATE TABLE t (id INTEGER)"))
        one.commit()
        for connection in (one, two):
            names = ("journal_mode", "synchronous", "busy_timeout", "foreign_keys", "auto_vacuum")
            values = [connection.execute(text(f"PRAGMA {name}")).scalar_one() for name in names]
            assert values == ["wal", 2, 30_000, 1, 2]
    engine.dispose()


def test_a_writer_takes_the_lock_first(tmp_path: Path) -> None:
    """The write lock is held from the first statement on, a reader holds none, and a rollback takes back DDL."""
    engine = sqlite_engine(tmp_path / "t.db")
    other = sqlite3.connect(tmp_path / "t.db", isolation_level=None, timeout=0)
    with engine.connect() as reader:
        reader.execute(text("SELECT 1"))
        other.execute("BEGIN IMMEDIATE")
        other.execute("ROLLBACK")
    with engine.connect().execution_options(**WRITE) as writer:
        writer.execute(text("SELECT 1"))
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute("BEGIN IMMEDIATE")
        writer.execute(text("CREATE TABLE t (id INTEGER)"))
        writer.rollback()
    assert other.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)
    other.close()
    engine.dispose()


def test_an_existing_file_is_not_opened(tmp_path: Path) -> None:
    """Opening and closing it would drop the locks by which SQLite knows that this process uses the file."""
    path = tmp_path / "t.db"
    ours = sqlite3.connect(path, isolation_level=None, timeout=0)
    ours.execute("CREATE TABLE t (id INTEGER)")
    ours.execute("BEGIN IMMEDIATE")
    private_file(path)
    locks = Path("/proc/locks").read_text(encoding="ascii").splitlines()
    assert [line for line in locks if line.split()[5].endswith(f":{path.stat().st_ino}")]
    ours.close()


async def test_files_of_the_first_version_are_read(tmp_path: Path) -> None:
    """What version 0.1 wrote comes back whole after all revisions."""
    state_dir = tmp_path / "state"
    state_dir.mkdir()
    for name in ("tasks", "deliveries"):
        old = sqlite3.connect(state_dir / f"{name}.db")
        old.executescript((OLD / f"{name}_0001.sql").read_text(encoding="utf-8"))
        old.close()
    tasks, deliveries = open_store(state_dir, None, now=Clock())
    [delivery] = await deliveries.pending()
    assert (delivery.guid, delivery.event_key, delivery.received_at) == ("guid-1", "key-1", START)
    assert delivery.body == b"\x00\xff{}guid-1"
    [task] = await tasks.tasks()
    assert (task.repository, task.number, task.pull_number, task.created_at) == (REPOSITORY, 7, 8, START)
    assert [(run.state, run.outcome) for run in await tasks.runs(task.id)] == [
        ("finished", "waiting"),
        ("running", None),
    ]
    events = [event.fact for event in await tasks.events(task.id)]
    assert events[1] == ToolFinished(
        1, 0, "run", "ls", is_error=False, seconds=0.5, command="ls", exit_code=0, output="a"
    )
    long = await tasks.messages(task.id, run=1)
    assert long[0] == Message("user", (TextPart("Water the roses 🌹"),))
    assert long[1] == Message("assistant", (ToolCall("c", "run", '{"a": 1 }'),))
    assert long[2] == Message("user", (ToolResult("c", "x" * 200),))
    assert await tasks.effect(task.id, "pull") == Effect("pull", "pull", "8")
    assert [(item.kind, item.text) for item in await tasks.inbox(task.id)] == [("steer", "and the tulips")]
    assert await tasks.steps(f"{task.id}-1") == {"turn/1": '{"ok": true}'}
    assert await tasks.state_key() == bytes(range(32))
    assert (await tasks.accept(request("next", request="more"), START)).kind == "joined"
    await tasks.close()
    await deliveries.close()


async def test_an_event_of_a_later_version_leaves_no_hole(tmp_path: Path) -> None:
    """A kind that this version has no word for is read as a notice in its place."""
    tasks, deliveries = open_store(tmp_path, None, now=Clock())
    accepted = await tasks.accept(request("k"), START)
    await tasks.record(accepted.task.id, 1, "a", Notice("one"), START)
    engine = sqlite_engine(tmp_path / "tasks.db")
    with engine.connect().execution_options(**WRITE) as connection:
        connection.execute(text("UPDATE events SET kind = 'moon.risen' WHERE seq = 2"))
        connection.commit()
    engine.dispose()
    events = await tasks.events(accepted.task.id)
    assert [event.seq for event in events] == [1, 2]
    assert events[1].fact == Notice("An event of a later version: moon.risen")
    await tasks.close()
    await deliveries.close()


async def test_a_database_of_a_later_version_is_refused(tmp_path: Path) -> None:
    """An older program would write what the later one does not expect."""
    for store in open_store(tmp_path, None, now=Clock()):
        await store.close()
    database = sqlite3.connect(tmp_path / "tasks.db")
    database.execute(f"UPDATE {VERSIONS['tasks'].name} SET version_num = 'tasks_9999'")
    database.commit()
    database.close()
    with pytest.raises(OperatorError, match="later version of issuewright wrote the tasks database"):
        open_store(tmp_path, None, now=Clock())


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("postgresql://u:hunter2@host:port/x", "cannot be read"),
        ("nonsense hunter2", "cannot be read"),
        ("mysql://u:hunter2@h/x", "must be Postgres, not mysql"),
        ("postgresql://u:hunter2@/x?host=/nowhere&connect_timeout=1", "cannot be used"),
    ],
)
def test_a_bad_url_is_the_operators_and_keeps_its_password(tmp_path: Path, url: str, says: str) -> None:
    """The message says what to mend without the password."""
    with pytest.raises(OperatorError, match=says) as caught:
        open_store(tmp_path, url, now=Clock())
    assert "hunter2" not in str(caught.value)


def test_a_folder_that_cannot_be_is_the_operators(tmp_path: Path) -> None:
    """A file where the folder should be is named with its path."""
    path = tmp_path / "file"
    path.touch()
    with pytest.raises(OperatorError, match="file cannot be used"):
        open_store(path, None, now=Clock())


def test_a_file_that_is_no_database_is_the_operators(tmp_path: Path) -> None:
    """Somebody else's file is left alone."""
    path = tmp_path / "tasks.db"
    path.write_bytes(b"not a database, but long enough to look like one" * 100)
    with pytest.raises(OperatorError, match="not a database"):
        open_store(tmp_path, None, now=Clock())


async def test_a_naive_datetime_is_refused(tmp_path: Path) -> None:
    """It would mean another moment on another machine."""
    tasks, deliveries = open_store(tmp_path, None, now=Clock())
    with pytest.raises(Exception, match="naive"):
        await tasks.accept(request("k"), START.replace(tzinfo=None))
    await tasks.close()
    await deliveries.close()


def test_a_stored_time_is_utc_on_any_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite keeps no zone; the machine's own is not put in its place."""
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        assert UtcDateTime().process_result_value(START.replace(tzinfo=None), SQLiteDialect()) == START
    finally:
        monkeypatch.undo()
        time.tzset()


async def test_closing_waits_for_what_a_cancelled_caller_left(tmp_path: Path) -> None:
    """The act of a cancelled caller ends before its connection is given back; a later one is refused."""
    tasks, deliveries = open_store(tmp_path, None, now=Clock())
    writing = [asyncio.ensure_future(tasks.put_blob(bytes([n]))) for n in range(5)]
    await asyncio.sleep(0)
    for one in writing:
        one.cancel()
    await tasks.close()
    with pytest.raises(RuntimeError):
        await tasks.put_blob(b"")
    await deliveries.close()


def test_the_revisions_are_part_of_the_package() -> None:
    """They lie beside the code, where a wheel takes them along."""
    home = files("bot.store.migrations")
    assert home.joinpath("env.py").is_file()
    for which in ("deliveries", "tasks"):
        assert home.joinpath("versions", which, "r0001_first.py").is_file()
