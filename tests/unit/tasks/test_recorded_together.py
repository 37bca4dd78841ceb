"""Commands of one reply side by side: one step and one checkpoint, recorded together or made again together."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import cast

import pytest

from bot.agent.dispatch import Dispatched, dispatch
from bot.domain.events import ToolFinished
from bot.domain.messages import ToolCall
from bot.domain.task import Run, Task
from bot.errors import SandboxError
from bot.sandbox.base import ExecResult
from bot.settings.server import SandboxSection, ServerSettings
from bot.tasks.engines.base import Action, Json, Step
from bot.tasks.opening import begin, prepare
from bot.tasks.recorded import RecordedToolset
from bot.tasks.workflow import Workflow
from tests.unit.tasks.made import Copy, Script, World, finish, reply, run, write
from tests.unit.tasks.test_workflow import Death, Mortal, ended

NAMES = ("one", "two", "three")


class Company:
    """Commands of which each waits until all have begun, and adds its line; the first ends last."""

    def __init__(self, world: World, names: Sequence[str] = NAMES) -> None:
        self.begun: list[str] = []
        self.ended: list[str] = []
        self._all = asyncio.Event()
        self._names = names
        for name in names:
            world.commands[name] = self._make(name)

    def _make(self, name: str) -> Callable[[Copy], Awaitable[ExecResult]]:
        async def command(copy: Copy) -> ExecResult:
            self.begun.append(name)
            if len(self.begun) % len(self._names) == 0:
                self._all.set()
            await self._all.wait()
            await asyncio.sleep(0.01 * (len(self._names) - self._names.index(name)))
            self.ended.append(name)
            copy.files["log"] = copy.files.get("log", b"") + f"{name}\n".encode()
            if name == "broken":
                raise SandboxError("broken")
            return ExecResult(int(name == "two"), f"{name} ran", "", 0.1, timed_out=False)

        return command


class Lives:
    """The lives of one run that sends its calls in one reply."""

    def __init__(self, world: World, task: Task, one: Run, calls: Sequence[ToolCall]) -> None:
        self.world, self.task, self.one, self.calls = world, task, one, calls
        self.commit: str | None = None

    async def live(self, step: Step) -> Dispatched:
        """Play one life up to the end of the reply."""
        scene = await self.world.scene(self.task, self.one, step)
        await prepare(scene)
        tools = RecordedToolset(scene, scene.lease.tools)
        try:
            return await dispatch(1, self.calls, tools, tools.together)
        finally:
            self.commit = scene.lease.commit
            await scene.lease.close()


@pytest.fixture
async def lives(world: World) -> Lives:
    """Lives with three commands."""
    return Lives(world, *await world.begin(), [run(name, name) for name in NAMES])


async def test_one_step_and_one_checkpoint(world: World, lives: Lives) -> None:
    """All run at once; results and facts stand in the order of the calls; a replay makes nothing again."""
    company, before = Company(world), len(world.shop.commits)
    step = Mortal(world, lives.one)
    told = await lives.live(step)
    assert company.begun == list(NAMES)
    assert [(one.call_id, one.text.splitlines()[0]) for one in told.results] == [
        ("one", "exit code: 0"), ("two", "exit code: 1"), ("three", "exit code: 0"),
    ]  # fmt: skip
    assert told.ran == (True, True, True)
    assert [name for name in step.names if name.startswith("tool/")] == ["tool/1/0"]
    assert len(world.shop.commits) == before + 1
    facts = [event.fact for event in await world.store.events(lives.task.id) if isinstance(event.fact, ToolFinished)]
    assert [(fact.index, fact.command, fact.exit_code) for fact in facts] == [
        (0, "one", 0), (1, "two", 1), (2, "three", 0),
    ]  # fmt: skip
    kept = lives.commit
    assert kept is not None
    assert world.shop.commits[kept]["log"] == b"three\ntwo\none\n"
    assert await lives.live(Mortal(world, lives.one)) == told
    assert lives.commit == kept
    assert company.begun == list(NAMES)


async def test_a_death_inside_makes_all_of_them_again_where_the_first_began(world: World, lives: Lives) -> None:
    """What the killed life did to its copy is not there: each adds its line once."""
    company = Company(world)
    dying = Mortal(world, lives.one, at=2, inside=True)
    with pytest.raises(Death):
        await lives.live(dying)
    assert dying.names == ["prepare", "tool/1/0"]
    whole = await lives.live(Mortal(world, lives.one))
    assert company.begun == [*NAMES, *NAMES]
    assert not any(one.is_error for one in whole.results)
    assert lives.commit is not None
    assert world.shop.commits[lives.commit]["log"] == b"three\ntwo\none\n"


async def test_what_one_raises_waits_for_the_others_and_is_raised_again(world: World) -> None:
    """A broken place ends the run, once nothing goes on in it; a replay says the same and runs nothing."""
    task, one = await world.begin()
    company = Company(world, ("one", "broken"))
    lives = Lives(world, task, one, [run("broken"), run("one")])
    for _ in range(2):
        with pytest.raises(SandboxError, match="broken"):
            await lives.live(Mortal(world, one))
    assert company.begun == ["broken", "one"]
    assert company.ended == ["broken", "one"]


async def test_a_call_that_is_refused_keeps_its_neighbours_running_and_later_changes_from_being_made(
    world: World,
) -> None:
    """The later one is told why; what stands beside is not skipped."""
    task, one = await world.begin()
    Company(world, ("one", "three"))
    asking = ToolCall("two", "run", json.dumps({"command": "two", "requires_approval": True}))
    lives = Lives(world, task, one, [run("one"), asking, run("three"), write("new.txt", "x")])
    told = await lives.live(Mortal(world, one))
    assert [one.is_error for one in told.results] == [False, True, False, True]
    assert "call 2 of this reply, `run`, failed" in told.results[3].text
    assert told.ran == (True, True, True, False)


async def test_a_record_of_an_earlier_version(world: World, lives: Lives) -> None:
    """A call that was recorded alone, in the words of a version that knew no groups, is read."""
    lives.calls = lives.calls[:1]
    Company(world, NAMES[:1])
    first = await lives.live(Mortal(world, lives.one))
    inner = Mortal(world, lives.one)

    async def older(name: str, action: Action) -> Json:
        envelope = cast("dict[str, dict[str, Json]]", await inner(name, action))
        if name.startswith("tool/"):
            (envelope["value"]["output"],) = cast("list[Json]", envelope["value"].pop("outputs"))
        return cast("Json", envelope)

    assert await lives.live(older) == first


@pytest.mark.parametrize("on", [True, False])
async def test_the_setting_decides(world: World, on: bool) -> None:  # noqa: FBT001 - a parameter of the test
    """Where it is on the place for commands is told too, and it stays as it was when the run began."""
    world.settings = ServerSettings(mode="act", sandbox=SandboxSection(parallel_commands=on))
    task, one = await world.begin()
    Company(world, NAMES if on else ("one",))
    calls = [run(name, name) for name in (NAMES if on else ("one",))]
    script = Script(reply(*calls, write("new.txt", "x")), reply(finish()))
    step = Mortal(world, one)
    await Workflow(world.desk(script))(one.id, step)
    assert (await ended(world, task)).outcome == "done"
    steps = [name for name in step.names if name.startswith("tool/1/")]
    assert steps == ["tool/1/0", f"tool/1/{len(calls)}"]
    assert {access.parallel for access in world.accesses} == {on}
    world.settings = ServerSettings(mode="act", sandbox=SandboxSection(parallel_commands=not on))
    scene = await world.scene(task, one, Mortal(world, one))
    await begin(scene)
    assert scene.lease.parallel is on
