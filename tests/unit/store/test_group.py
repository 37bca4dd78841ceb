"""The group writer answers each write once, with the truth."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.store.engines import configure
from bot.store.group import GroupWriter

INSERT = "INSERT INTO t VALUES (?, ?)"


def connect(path: Path) -> sqlite3.Connection:
    """Open the file as the store does, but less patient."""
    connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
    configure(connection, busy_ms=20)
    connection.execute("CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY, body BLOB)")
    return connection


@pytest.fixture
async def reader(tmp_path: Path) -> AsyncIterator[sqlite3.Connection]:
    """A second connection to the same file."""
    connection = connect(tmp_path / "t.db")
    yield connection
    connection.close()


@pytest.fixture
async def writer(tmp_path: Path) -> AsyncIterator[GroupWriter]:
    """A writer over a fresh file."""
    writer = GroupWriter(connect(tmp_path / "t.db"))
    yield writer
    await writer.close()


def count(reader: sqlite3.Connection) -> int:
    """Count the rows that were committed."""
    found: tuple[int] = reader.execute("SELECT count(*) FROM t").fetchone()
    return found[0]


async def test_what_is_answered_is_committed(writer: GroupWriter, reader: sqlite3.Connection) -> None:
    """A row can be seen by others as soon as its write returns."""
    assert await writer.write(INSERT, (1, b"")) == 1
    assert count(reader) == 1
    assert await writer.write("DELETE FROM t WHERE id > ?", (1,)) == 0


async def test_a_bad_write_fails_alone(writer: GroupWriter, reader: sqlite3.Connection) -> None:
    """A taken key or a value that cannot be bound leaves the rest of the batch in place."""
    writes = [(1, b""), (1, b""), (2, object()), (3, "\ud800"), (4, b"")]
    results = await asyncio.gather(*(writer.write(INSERT, values) for values in writes), return_exceptions=True)
    assert [type(result) for result in results] == [
        int,
        sqlite3.IntegrityError,
        sqlite3.ProgrammingError,
        UnicodeEncodeError,
        int,
    ]
    assert count(reader) == 2


async def test_a_locked_file_is_an_error_and_passes(writer: GroupWriter, reader: sqlite3.Connection) -> None:
    """While another process keeps the lock every write fails; afterwards they work again."""
    reader.execute("BEGIN IMMEDIATE")
    results = await asyncio.gather(*(writer.write(INSERT, (n, b"")) for n in range(5)), return_exceptions=True)
    assert all(isinstance(result, sqlite3.OperationalError) for result in results)
    reader.execute("ROLLBACK")
    assert await writer.write(INSERT, (1, b"")) == 1
    assert count(reader) == 1


async def test_a_full_disk_fails_the_whole_batch(tmp_path: Path, reader: sqlite3.Connection) -> None:
    """SQLite takes the transaction back by itself, so nobody in it may hear of success."""
    connection = connect(tmp_path / "t.db")
    connection.execute("PRAGMA max_page_count=20")
    writer = GroupWriter(connection)
    sizes = [10, 10_000, 500_000, 10]
    results = await asyncio.gather(
        *(writer.write(INSERT, (n, bytes(size))) for n, size in enumerate(sizes)), return_exceptions=True
    )
    kept = [result for result in results if result == 1]
    assert isinstance(results[2], sqlite3.OperationalError)
    assert count(reader) == len(kept)
    assert await writer.write(INSERT, (9, b"")) == 1
    await writer.close()


async def test_a_failed_commit_fails_the_whole_batch(writer: GroupWriter, reader: sqlite3.Connection) -> None:
    """Everybody in it hears so, nothing of it stays, and the next batch is clean."""
    reader.execute("CREATE TABLE c (t INTEGER REFERENCES t (id) DEFERRABLE INITIALLY DEFERRED)")
    results = await asyncio.gather(
        writer.write(INSERT, (1, b"")), writer.write("INSERT INTO c VALUES (?)", (7,)), return_exceptions=True
    )
    assert isinstance(results[1], sqlite3.IntegrityError)
    assert count(reader) == sum(result == 1 for result in results)
    assert await writer.write(INSERT, (2, b"")) == 1


async def test_closing_answers_everybody_and_then_refuses(writer: GroupWriter, reader: sqlite3.Connection) -> None:
    """No future is left open: what was queued is written, what comes later is refused."""
    writes = [asyncio.ensure_future(writer.write(INSERT, (n, b""))) for n in range(2000)]
    await asyncio.sleep(0)
    await asyncio.gather(writer.close(), writer.close())
    assert await asyncio.gather(*writes) == [1] * 2000
    assert count(reader) == 2000
    with pytest.raises(sqlite3.ProgrammingError):
        await writer.write(INSERT, (1, b""))


async def test_a_cancelled_write_is_written_all_the_same(writer: GroupWriter, reader: sqlite3.Connection) -> None:
    """Its caller has gone, its neighbours are answered."""
    writes = [asyncio.ensure_future(writer.write(INSERT, (n, b""))) for n in range(10)]
    await asyncio.sleep(0)
    for write in writes[:9]:
        write.cancel()
    assert await writes[9] == 1
    await writer.close()
    assert count(reader) == 10


async def test_loops_of_several_threads_may_write(writer: GroupWriter, reader: sqlite3.Connection) -> None:
    """Each loop is answered on its own; one that was closed meanwhile disturbs nobody."""

    async def some(first: int) -> list[int]:
        return await asyncio.gather(*(writer.write(INSERT, (first + n, b"")) for n in range(50)))

    async def leave(key: int) -> None:
        task = asyncio.ensure_future(writer.write(INSERT, (key, b"")))
        await asyncio.sleep(0)
        task.cancel()

    loops = [asyncio.to_thread(asyncio.run, some(1000 * n)) for n in range(3)]
    await asyncio.gather(*loops, *(asyncio.to_thread(asyncio.run, leave(9000 + n)) for n in range(3)))
    await writer.write(INSERT, (8000, b""))
    assert count(reader) == 154
