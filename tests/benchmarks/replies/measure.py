"""Eight calls of one reply that only read, and four commands, side by side against one after another.

python -m tests.benchmarks.replies.measure [runs]

Each call is a step with a record that is synced, on SQLite, with each engine. `read` goes through a real helper, which
answers one request at a time; `wait` stands for a service that takes 50 ms to answer. `run` is `sleep 1`, with
`parallel_commands`. Started as root, the helper runs as uid 61098.
"""

import asyncio
import itertools
import json
import multiprocessing
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from bot.agent.dispatch import MAX_CALLS, dispatch
from bot.domain.messages import ToolCall, ToolSpec
from bot.llm.base import Model
from bot.sandbox.base import Access, Place, Sandbox
from bot.sandbox.process import ProcessSandbox
from bot.store.opening import open_store
from bot.tasks.desk import Desk, Publisher
from bot.tasks.engines.base import Engine, Step
from bot.tasks.engines.dbos import DbosEngine
from bot.tasks.engines.inline import InlineEngine
from bot.tasks.opening import prepare
from bot.tasks.recorded import RecordedToolset
from bot.tools.base import ToolContext, ToolOutput, Toolset
from bot.tools.standard import standard_tools
from bot.workspace.base import Opened
from tests.unit.tasks.made import World

RUNS = 20
COMMANDS = 4
SERVICE_S = 0.05
UID = 61098


class Wait:
    """A service that is asked something."""

    spec = ToolSpec("wait", "Wait.", {"type": "object"})
    reads_only = True

    async def call(self, arguments: Mapping[str, object], context: ToolContext) -> ToolOutput:
        """Wait for the answer."""
        await asyncio.sleep(SERVICE_S)
        return ToolOutput(f"answered {arguments}", "waited")


class OneByOne:
    """A toolset that says of each tool that it changes something."""

    def __init__(self, inner: Toolset) -> None:
        self._inner = inner

    @property
    def specs(self) -> Sequence[ToolSpec]:
        """Those of the toolset."""
        return self._inner.specs

    def reads_only(self, name: str) -> bool:
        """Never."""
        return False

    async def call(self, turn: int, index: int, name: str, arguments: str) -> ToolOutput:
        """Call."""
        return await self._inner.call(turn, index, name, arguments)


def calls(name: str) -> list[ToolCall]:
    """Make eight different ones, or four where each takes a second."""
    if name == "run":
        return [ToolCall(str(n), name, json.dumps({"command": f"sleep 1; echo {n}"})) for n in range(COMMANDS)]
    return [ToolCall(str(n), name, json.dumps({"path": f"m{n}.py"})) for n in range(MAX_CALLS)]


@dataclass
class Real(World):
    """A world whose tools go through a real helper."""

    sandbox: Sandbox | None = None

    def desk(self, model: Model, publisher: Publisher | None = None) -> Desk:
        """Put the helper in the place of the one in memory."""

        async def place(_: Opened, __: Access) -> Sandbox:
            assert self.sandbox is not None
            return self.sandbox

        return replace(super().desk(model, publisher), sandbox=place)


async def measure(name: str, base: Path, runs: int, kinds: Sequence[str]) -> None:
    """Play replies in turn and print the milliseconds of each kind."""
    parallel = "run" in kinds
    tree = base / "tree"
    tree.mkdir()
    for number in range(MAX_CALLS):
        (tree / f"m{number}.py").write_text(f'"""Module {number}."""\n' * 200)
    tasks, deliveries = open_store(base / "store", None, now=lambda: datetime.now(UTC))
    world = Real(tasks, deliveries)
    world.sandbox = ProcessSandbox(Place(tree, uid=UID if os.geteuid() == 0 else None, parallel=parallel))
    task, run = await world.begin()
    engine: Engine = InlineEngine(tasks) if name == "inline" else DbosEngine(base, None, "benchmark")
    times: dict[str, list[float]] = {}
    over = asyncio.Event()

    async def body(_: str, step: Step) -> None:
        scene = await world.scene(task, run, step)
        scene.lease.tools = [*standard_tools(), Wait()]
        await prepare(scene)
        recorded, turns = RecordedToolset(scene, scene.lease.tools), itertools.count(1)
        together = recorded.together if parallel else None
        for what in tuple(kinds) * runs:
            for words, toolset, group in (
                ("side by side", recorded, together),
                ("one by one", OneByOne(recorded), None),
            ):
                begun = time.perf_counter()
                told = await dispatch(next(turns), calls(what), toolset, group)
                times.setdefault(f"{what}, {words}", []).append(1000 * (time.perf_counter() - begun))
                assert not any(result.is_error for result in told.results)
        await scene.lease.close()
        over.set()

    await engine.launch(body)
    await engine.start(run)
    await over.wait()
    for what, found in times.items():
        middle, p95 = statistics.median(found), statistics.quantiles(found, n=20)[18]
        count = len(calls(what.partition(",")[0]))
        sys.stdout.write(f"{name}: {count} x {what}: median {middle:.1f} ms, p95 {p95:.1f} ({runs} runs)\n")
    await tasks.close()
    await deliveries.close()
    if isinstance(engine, DbosEngine):
        # Last: it takes the event loop's threads with it.
        await engine.close()


def main() -> None:
    """Measure with both engines; commands take a second each, so there are fewer of them."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else RUNS
    for name in ("inline", "dbos"):
        for kinds, times in ((("read", "wait"), runs), (("run",), max(2, runs // 4))):
            # In a process of its own: an engine is one for a whole process.
            child = multiprocessing.get_context("spawn").Process(target=_measure, args=(name, times, kinds))
            child.start()
            child.join()


def _measure(name: str, runs: int, kinds: Sequence[str]) -> None:
    base = Path(tempfile.mkdtemp(prefix="iw-measure-", dir="/tmp"))
    base.chmod(0o755)
    try:
        asyncio.run(measure(name, base, runs, kinds))
    finally:
        shutil.rmtree(base, ignore_errors=True)


if __name__ == "__main__":
    main()
