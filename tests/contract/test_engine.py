"""Both engines keep what their seam promises, over the death of the process that ran them.

DBOS is one for a whole process, so each life is a process of its own: this file run as a program.
"""

import asyncio
import base64
import inspect
import json
import os
import pickle
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bot.domain.task import Run
from bot.tasks.engines.base import Engine, Json, Step

ROOT = Path(__file__).parents[2]
ENGINES = ("inline", "dbos")


def life(kind: str, state: Path, story: str) -> dict[str, object]:
    """Play one life of a process; returns what it said, `{}` where it was killed."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", __file__, kind, str(state), story],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HOME": str(state)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode in {0, -signal.SIGKILL}, done.stderr
    said: dict[str, object] = json.loads(done.stdout) if done.returncode == 0 else {}
    return said


def effects(state: Path) -> list[str]:
    """Return what steps did, in order, over all lives."""
    file = state / "effects"
    return file.read_text().split() if file.exists() else []


@pytest.mark.parametrize("kind", ENGINES)
def test_a_run_that_was_started_twice_runs_once(kind: str, tmp_path: Path) -> None:
    """Starting a run again leaves it alone: its body and its steps run once, and their values come back as JSON."""
    said = life(kind, tmp_path, "twice")
    assert effects(tmp_path) == ["body", "a", "b"]
    assert said["values"] == [{"a": [1, None, "ä"]}, "b"]


@pytest.mark.parametrize("kind", ENGINES)
def test_another_process_goes_on_where_one_was_killed(kind: str, tmp_path: Path) -> None:
    """Recorded steps are not made again, the interrupted one is, and the run ends with the values of both lives."""
    assert life(kind, tmp_path, "die") == {}
    assert effects(tmp_path) == ["body", "a", "b"]
    said = life(kind, tmp_path, "recover")
    assert effects(tmp_path) == ["body", "a", "b", "body", "b", "c"]
    assert said["values"] == [{"a": [1, None, "ä"]}, "b", "c"]
    if kind == "dbos":
        assert said["recorded"] == 3


@pytest.mark.parametrize("kind", ENGINES)
def test_a_drain_lets_no_further_step_begin(kind: str, tmp_path: Path) -> None:
    """From a drain on no step begins, and whoever goes on later makes what is missing."""
    life(kind, tmp_path, "drain")
    assert "c" not in effects(tmp_path)
    said = life(kind, tmp_path, "recover")
    made = effects(tmp_path)
    assert (made.count("a"), made.count("c")) == (1, 1)
    assert said["values"] == [{"a": [1, None, "ä"]}, "b", "c"]


def test_a_drain_of_dbos_waits_for_the_step_in_flight(tmp_path: Path) -> None:
    """What is in flight at a drain gets its time, so that nobody makes it again."""
    life("dbos", tmp_path, "drain")
    life("dbos", tmp_path, "recover")
    assert effects(tmp_path).count("b") == 1


def test_a_cancelled_run_of_dbos_is_not_brought_back(tmp_path: Path) -> None:
    """A run that was given up stays so, whoever recovers the rest of its dead executor."""
    life("dbos", tmp_path, "die")
    life("dbos", tmp_path, "cancel")
    assert effects(tmp_path) == ["body", "a", "b"]


def test_pickle_is_refused_and_what_is_private_is_there(tmp_path: Path) -> None:
    """No pickle is read or written once the engine is up, and the private names that we use are there."""
    said = life("dbos", tmp_path, "pickle")
    assert said == {"read": "pickle is disabled", "written": "pickle is disabled", "private": True}
    assert not (tmp_path / "owned").exists()
    assert (tmp_path / "engine.sqlite").stat().st_mode & 0o077 == 0


class Life:
    """One life of a process."""

    def __init__(self, kind: str, state: Path, story: str) -> None:
        self.kind, self.state, self.story = kind, state, story
        self.values: list[Json] = []
        self.over = asyncio.Event()
        self.in_flight = asyncio.Event()

    def note(self, what: str) -> None:
        """Write down that something was done, durably."""
        with (self.state / "effects").open("a") as file:
            file.write(f"{what}\n")
            file.flush()
            os.fsync(file.fileno())

    async def body(self, run_id: str, step: Step) -> None:
        """Make steps."""
        self.note("body")
        self.values = []

        async def first() -> Json:
            self.note("a")
            return {"a": [1, None, "ä"]}

        async def second() -> Json:
            self.note("b")
            if self.story == "die":
                os.kill(os.getpid(), signal.SIGKILL)
            self.in_flight.set()
            if self.story == "drain":
                await asyncio.sleep(0.2)
            return "b"

        async def third() -> Json:
            self.note("c")
            return "c"

        self.values.append(await step("model/1", first))
        self.values.append(await step("tool/1/0", second))
        if self.story != "twice":
            self.values.append(await step("commit", third))
        self.over.set()

    async def live(self) -> dict[str, object]:
        """Play the story."""
        engine = await self.engine()
        await engine.launch(self.body)
        run = Run("ab" * 16, 1, 7, "issue", "running", None, "", "", "flora", None, None, 1, AT)
        match self.story:
            case "twice":
                await engine.start(run)
                await engine.start(run)
                await asyncio.wait_for(self.over.wait(), 20)
                await engine.start(run)
                await asyncio.sleep(0.2)
            case "die":
                await engine.start(run)
                await asyncio.sleep(20)
            case "recover":
                await engine.recover(run, "executor-die")
                await engine.recover(run, "executor-drain")
                await asyncio.wait_for(self.over.wait(), 20)
            case "drain":
                await engine.start(run)
                await asyncio.wait_for(self.in_flight.wait(), 20)
                await engine.drain(grace_s=5)
                await asyncio.sleep(0.3)
            case "cancel":
                await engine.cancel(run)
                await engine.recover(run, "executor-die")
                await asyncio.sleep(2)
            case _:
                return refused(self.state)
        return {"values": self.values, "recorded": await engine.recorded(run)}

    async def engine(self) -> Engine:
        """Make the engine of this life; its executor is named by the story."""
        if self.kind == "dbos":
            from bot.tasks.engines.dbos import DbosEngine  # noqa: PLC0415 - three seconds that the other spares

            return DbosEngine(self.state, None, f"executor-{self.story}")
        from bot.store.opening import open_store  # noqa: PLC0415
        from bot.tasks.engines.inline import InlineEngine  # noqa: PLC0415

        store, _ = open_store(self.state / "store", None, now=lambda: AT)
        if await store.task("ab" * 16) is None:
            from tests.unit.store.made import request  # noqa: PLC0415

            await store.accept(request("k", task_id="ab" * 16), AT)
        return InlineEngine(store)


AT = datetime(2026, 11, 30, tzinfo=UTC)


class Owning:
    """A pickle that makes a file when it is read."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return os.mkdir, (self.path,)


def refused(state: Path) -> dict[str, object]:
    """Try to read and to write a pickle, and look for the private names."""
    from dbos import DBOS, _serialization  # noqa: PLC0415

    serializer = _serialization.DefaultSerializer()
    row = base64.b64encode(pickle.dumps(Owning(str(state / "owned")))).decode()
    said: dict[str, object] = {}
    for name, act in (
        ("read", lambda: serializer.deserialize(row)),
        ("written", lambda: serializer.serialize({"a": 1})),
    ):
        try:
            act()
        except TypeError as error:
            said[name] = str(error)
    parameters = inspect.signature(DBOS._recover_pending_workflows).parameters
    said["private"] = list(parameters)[:1] == ["executor_ids"]
    return said


def main() -> None:
    """Play one life and say what came of it."""
    kind, state, story = sys.argv[1:]
    said = asyncio.run(Life(kind, Path(state), story).live()) if kind == "inline" else _of_dbos(Path(state), story)
    sys.stdout.write(json.dumps(said))
    sys.stdout.flush()
    os._exit(0)


def _of_dbos(state: Path, story: str) -> dict[str, object]:
    async def play() -> dict[str, object]:
        said = await Life("dbos", state, story).live()
        sys.stdout.write(json.dumps(said))
        sys.stdout.flush()
        # What is parked behind a drain never ends by itself.
        os._exit(0)

    return asyncio.run(play())


if __name__ == "__main__":
    main()
