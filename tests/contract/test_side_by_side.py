"""Calls that go side by side replay as they went, on both engines, over the death of the process that ran them.

DBOS is one for a whole process, so each life is a process of its own: this file run as a program.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from bot.agent.dispatch import dispatch
from bot.domain.messages import ToolCall, ToolSpec
from bot.domain.task import Run, Task
from bot.store.base import TaskStore
from bot.store.opening import open_store
from bot.tasks.engines.base import Engine, Step
from bot.tasks.engines.inline import InlineEngine
from bot.tasks.opening import prepare
from bot.tasks.recorded import RecordedToolset
from bot.tools.base import ToolContext, ToolOutput
from bot.tools.standard import standard_tools
from tests.unit.tasks.made import Clock, World, read, write

ROOT = Path(__file__).parents[2]
ENGINES = ("inline", "dbos")
HANGING = {"0", "2", "4"}
"""Looks of the first turn that do not end in a life that is killed."""
NAMES = [str(name) for name in range(6)]


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


def looks(state: Path) -> list[str]:
    """Return the looks that began, and forget them; which of some neighbours begins first is left to chance."""
    file = state / "looks"
    text = file.read_text() if file.exists() else ""
    file.write_text("")
    return sorted(text.split())


@pytest.mark.parametrize("kind", ENGINES)
def test_a_run_that_was_killed_between_its_looks_ends_as_any_other(kind: str, tmp_path: Path) -> None:
    """What has a result is not done again, what has none is; transcript, commit and ledger are those of any life."""
    for name in ("whole", "killed"):
        (tmp_path / name).mkdir()
    whole = life(kind, tmp_path / "whole", "first")
    killed = tmp_path / "killed"
    assert life(kind, killed, "die") == {}
    assert looks(killed) == NAMES
    assert life(kind, killed, "second") == whole
    assert looks(killed) == [*sorted(HANGING), "last"]
    said = whole["transcript"]
    assert isinstance(said, list)
    assert [text for _, text in said[:6]] == [f"saw {name}" for name in NAMES]
    assert [call for call, _ in said] == [f"look-{name}" for name in NAMES] + ["o", "w", "look-last", "again"]
    assert whole["opened"] == 1
    if kind == "dbos":
        assert whole["steps"] == ["prepare", *(f"tool/1/{index}" for index in range(7)), "tool/2/0", "tool/2/1"]


@pytest.mark.parametrize("kind", ENGINES)
def test_a_whole_replay_makes_nothing(kind: str, tmp_path: Path) -> None:
    """A life behind the last step takes all from the record, and opens no working copy."""
    whole = life(kind, tmp_path, "first")
    assert looks(tmp_path) == [*NAMES, "last"]
    again = life(kind, tmp_path, "second")
    assert looks(tmp_path) == []
    assert again == {**whole, "opened": 0}


class Look:
    """Reads nothing; notes that it began, and takes the longer the earlier it stands, or the other way round."""

    spec = ToolSpec("look", "Look.", {"type": "object"})
    reads_only = True

    def __init__(self, state: Path, story: str) -> None:
        self._state = state
        self._story = story

    async def call(self, arguments: Mapping[str, object], context: ToolContext) -> ToolOutput:
        """Look."""
        name = str(arguments["name"])
        with (self._state / "looks").open("a") as file:
            file.write(f"{name}\n")
        if self._story == "die" and name in HANGING:
            await asyncio.Event().wait()
        order = len(name) if name == "last" else int(name)
        await asyncio.sleep(0.02 * (order if self._story == "first" else 6 - order))
        return ToolOutput(f"saw {name}", name)


def look(name: str, call_id: str = "") -> ToolCall:
    """Call `look`."""
    return ToolCall(call_id or f"look-{name}", "look", json.dumps({"name": name}))


TURNS = (
    [*(look(name) for name in NAMES), read("rose.txt")],
    [write("new.txt", "a"), look("last"), look("last", "again")],
)


class Life:
    """One life of a process."""

    def __init__(self, kind: str, state: Path, story: str) -> None:
        self.kind, self.state, self.story = kind, state, story
        self.over = asyncio.Event()
        self.said: dict[str, object] = {}

    async def live(self) -> dict[str, object]:
        """Play the story."""
        clock = Clock()
        tasks, deliveries = open_store(self.state / "store", None, now=clock)
        self.world = World(tasks, deliveries, clock)
        self.task, self.run = await self._begun(tasks)
        engine = self._engine(tasks)
        await engine.launch(self._body)
        if self.story == "second":
            await engine.recover(self.run, "executor-die")
            await engine.recover(self.run, "executor-first")
        else:
            await engine.start(self.run)
        if self.story == "die":
            # The preparation, three looks, and the file that is read.
            while await self._kept(engine, tasks) < 1 + len(NAMES) - len(HANGING) + 1:  # noqa: ASYNC110 - no event tells
                await asyncio.sleep(0.02)
            os.kill(os.getpid(), signal.SIGKILL)
        await asyncio.wait_for(self.over.wait(), 30)
        return {**self.said, "steps": await self._steps()}

    async def _begun(self, store: TaskStore) -> tuple[Task, Run]:
        task_id = self.world.request("first").task_id
        task, run = await store.task(task_id), await store.run(task_id, 1)
        return (task, run) if task is not None and run is not None else await self.world.begin()

    async def _kept(self, engine: Engine, store: TaskStore) -> int:
        if self.kind == "dbos":
            return await engine.recorded(self.run)
        names = ["prepare", *(f"tool/1/{index}" for index in range(len(TURNS[0])))]
        return len((await store.steps(self.run.id)).keys() & names)

    async def _steps(self) -> list[str]:
        """Name the steps in the order in which they were numbered, where the engine numbers them."""
        if self.kind == "inline":
            return []
        from dbos import DBOS  # noqa: PLC0415 - as below

        return [str(step["function_name"]) for step in await DBOS.list_workflow_steps_async(self.run.id)]

    def _engine(self, store: TaskStore) -> Engine:
        if self.kind == "inline":
            return InlineEngine(store)
        from bot.tasks.engines.dbos import DbosEngine  # noqa: PLC0415 - three seconds that the other spares

        return DbosEngine(self.state, None, f"executor-{self.story}")

    async def _body(self, run_id: str, step: Step) -> None:
        scene = await self.world.scene(self.task, self.run, step)
        scene.lease.tools = [*standard_tools(), Look(self.state, self.story)]
        await prepare(scene)
        tools = RecordedToolset(scene, scene.lease.tools)
        told = [await dispatch(turn, calls, tools) for turn, calls in enumerate(TURNS, 1)]
        self.said = {
            "transcript": [[one.call_id, one.text] for outcome in told for one in outcome.results],
            "ran": [outcome.ran for outcome in told],
            "commit": scene.lease.commit,
            "seen": scene.lease.ledger.seen,
            "opened": len(self.world.shop.opened),
        }
        self.over.set()
        # The engine must not take the run for one that is over.
        await asyncio.Event().wait()


async def main() -> None:
    """Play one life and say what came of it."""
    kind, state, story = sys.argv[1:]
    said = await Life(kind, Path(state), story).live()
    sys.stdout.write(json.dumps(said, sort_keys=True))
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    asyncio.run(main())
