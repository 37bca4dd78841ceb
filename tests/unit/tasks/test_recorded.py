"""Model, tools and ears of a run: a second life makes no call again and stands where the first one stood."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import pytest

from bot.agent.limits import LimitGuard, Limits
from bot.domain.events import ModelReplied, Notice, ToolFinished
from bot.domain.messages import Image, Message, Prompt, Reply, TextPart, ToolSpec
from bot.domain.task import Run, Task
from bot.errors import Cancelled, ModelUnavailable
from bot.sandbox.base import ExecResult
from bot.tasks.engines.base import Step
from bot.tasks.opening import prepare
from bot.tasks.recorded import Ears, RecordedModel, RecordedToolset
from bot.tools.base import ToolContext, ToolOutput
from tests.unit.tasks.made import START, Copy, Script, World, finish, read, reply, run, words, write

PROMPT = Prompt("system", (), (Message("user", (TextPart("Do it."),)),))
WIDE = Limits(100, 10**9, 1000.0, 1000.0)


@dataclass
class Life:
    """What one life of a run saw."""

    replies: list[Reply] = field(default_factory=list)
    outputs: list[ToolOutput] = field(default_factory=list)
    commits: list[str | None] = field(default_factory=list)
    seen: dict[str, str] = field(default_factory=dict)
    spent: str = ""


async def play(world: World, task: Task, one: Run, script: Script) -> Life:
    """Ask twice and run what is called, once each life."""
    life = Life()

    async def body(_: str, step: Step) -> None:
        scene = await world.scene(task, one, step, script)
        await prepare(scene)
        guard = LimitGuard(WIDE)
        model = RecordedModel(scene, "scripted:one", guard, started=START, window=200_000)
        tools = RecordedToolset(scene, scene.lease.tools)
        for turn in (1, 2):
            life.replies.append(await model.ask(PROMPT))
            for index, call in enumerate(life.replies[-1].message.calls):
                life.outputs.append(await tools.call(turn, index, call.name, call.arguments))
                life.commits.append(scene.lease.commit)
        life.seen, life.spent = dict(scene.lease.ledger.seen), repr(guard.spent)
        await model.close()
        await scene.lease.close()

    await world.live(one, body)
    return life


def fed(copy: Copy) -> ExecResult:
    """Water the roses by a command."""
    copy.files["rose.txt"] = b"wet\n"
    return ExecResult(0, "watered", "", 0.5, timed_out=False)


SCRIPT = (reply(read("rose.txt"), write("new.txt", "a"), run("water")), reply(read("gone.txt"), finish()))


async def test_a_second_life_calls_nothing_again(world: World) -> None:
    """A second life gives the same replies, results, commits and ledger, and neither model nor tool is called."""
    world.commands["water"] = fed
    task, one = await world.begin()
    first = await play(world, task, one, Script(*SCRIPT))
    did, facts, opened = list(world.shop.log), await world.store.events(task.id), len(world.shop.opened)
    world.clock.move(1000)
    idle = Script()
    second = await play(world, task, one, idle)
    assert second == first
    assert idle.prompts == []
    assert world.shop.log == did
    assert len(world.shop.opened) == opened
    assert await world.store.events(task.id) == facts


async def test_each_change_is_a_checkpoint(world: World) -> None:
    """What changes files moves the commit, what only reads does not."""
    world.commands["water"] = fed
    task, one = await world.begin()
    life = await play(world, task, one, Script(*SCRIPT))
    base, wrote, watered, failed, _ = life.commits
    assert base == world.shop.branches["main"]
    assert len({base, wrote, watered}) == 3
    assert failed == watered
    assert world.shop.commits[str(watered)] == {"rose.txt": b"wet\n", "new.txt": b"a"}
    assert [output.is_error for output in life.outputs] == [False, False, False, True, False]


async def test_a_half_done_step_leaves_no_trace(world: World) -> None:
    """A life that died in a tool is followed by one that begins that tool at the last commit."""
    task, one = await world.begin()
    died = 0

    def water(copy: Copy) -> ExecResult:
        nonlocal died
        copy.files["rose.txt"] += b"x"
        if not died:
            died += 1
            raise ZeroDivisionError
        return ExecResult(0, "", "", 0.5, timed_out=False)

    world.commands["water"] = water
    with pytest.raises(ZeroDivisionError):
        await play(world, task, one, Script(*SCRIPT))
    life = await play(world, task, one, Script(*SCRIPT[1:]))
    assert world.shop.commits[str(life.commits[-1])]["rose.txt"] == b"dry\nx"
    assert world.shop.opened[-1] == ("main", life.commits[1])
    assert "new.txt" in life.seen


async def test_the_stream_tells_people_what_it_was(world: World) -> None:
    """Replies and calls are facts with their tokens, price, command and time."""
    world.commands["water"] = fed
    task, one = await world.begin()
    await play(world, task, one, Script(*SCRIPT))
    facts = [event.fact for event in await world.store.events(task.id)]
    said = [fact for fact in facts if isinstance(fact, ModelReplied)]
    assert [(fact.turn, fact.calls, fact.cost_usd, fact.model) for fact in said] == [
        (1, 3, 0.25, "scripted-1"),
        (2, 2, 0.25, "scripted-1"),
    ]
    assert (said[0].input_tokens, said[0].cache_read_tokens, said[0].cache_write_tokens) == (10, 20, 30)
    did = [fact for fact in facts if isinstance(fact, ToolFinished)]
    assert [(fact.turn, fact.index, fact.name, fact.is_error) for fact in did] == [
        (1, 0, "read", False),
        (1, 1, "write", False),
        (1, 2, "run", False),
        (2, 0, "read", True),
        (2, 1, "finish", False),
    ]
    assert (did[2].command, did[2].exit_code) == ("water", 0)
    assert "watered" in (did[2].output or "")
    assert did[0].output is None


async def test_an_unknown_price_stays_unknown(world: World) -> None:
    """A price that is not known is none, and not nought."""
    world.price = None
    task, one = await world.begin()
    life = await play(world, task, one, Script(reply(words("a")), reply(words("b"))))
    assert "usd=None" in life.spent


async def test_a_model_that_fails_fails_again(world: World) -> None:
    """A failure of the model is recorded, with the seconds that it asked for."""
    task, one = await world.begin()
    for script in (Script(ModelUnavailable("overloaded", retry_after_s=9.0)), Script()):
        with pytest.raises(ModelUnavailable, match="overloaded") as caught:
            await play(world, task, one, script)
        assert caught.value.retry_after_s == 9.0


async def test_time_is_recorded_with_the_reply(world: World) -> None:
    """The seconds of a reply are those of its own life, at every replay."""

    class Slow(Script):
        async def ask(self, prompt: Prompt, *, on_text: object = None) -> Reply:
            world.clock.move(30)
            return await super().ask(prompt)

    task, one = await world.begin()
    first = await play(world, task, one, Slow(reply(words("a")), reply(words("b"))))
    assert "seconds=60.0" in first.spent
    world.clock.move(5000)
    assert (await play(world, task, one, Script())).spent == first.spent


class Camera:
    """A tool that shows what it sees."""

    spec = ToolSpec("shoot", "Take a picture.", {"type": "object"})
    reads_only = True
    shots = 0

    async def call(self, arguments: Mapping[str, object], context: ToolContext) -> ToolOutput:
        """Shoot."""
        self.shots += 1
        return ToolOutput("taken", "shoot", images=[Image("image/png", "QUJD"), Image("image/gif", "REVG")])


async def test_a_picture_is_in_the_record(world: World) -> None:
    """A second life gets it from there, and takes none."""
    task, one = await world.begin()
    camera = Camera()
    outputs: list[ToolOutput] = []

    async def body(_: str, step: Step) -> None:
        scene = await world.scene(task, one, step, Script())
        scene.lease.tools = [camera]
        await prepare(scene)
        outputs.append(await RecordedToolset(scene, scene.lease.tools).call(1, 0, "shoot", "{}"))
        await scene.lease.close()

    await world.live(one, body)
    await world.live(one, body)
    assert camera.shots == 1
    assert outputs[0] == outputs[1]
    assert outputs[0].images == (Image("image/png", "QUJD"), Image("image/gif", "REVG"))


async def post(world: World, task: Task, kind: Literal["steer", "stop"], text: str) -> None:
    """Say something to the open run."""
    await world.store.post(task.id, kind, author="flora", text=text, event_key=f"{kind} {text}")


async def hear(world: World, task: Task, one: Run, times: int) -> list[Sequence[str]]:
    """Listen some times in one life."""
    heard: list[Sequence[str]] = []

    async def body(_: str, step: Step) -> None:
        ears = Ears(await world.scene(task, one, step), after=0)
        heard.extend([await ears.listen(turn) for turn in range(1, times + 1)])

    await world.live(one, body)
    return heard


async def test_each_word_is_heard_once(world: World) -> None:
    """What was said is heard once, in order; a second life hears it at the same place."""
    task, one = await world.begin()
    await post(world, task, "steer", "Mind the gap.")
    await post(world, task, "steer", "And the roses.")
    assert await hear(world, task, one, 2) == [["Mind the gap.", "And the roses."], []]
    await post(world, task, "steer", "Later.")
    assert await hear(world, task, one, 3) == [["Mind the gap.", "And the roses."], [], ["Later."]]
    notices = [event.fact for event in await world.store.events(task.id) if isinstance(event.fact, Notice)]
    assert notices == [Notice(f"flora says: {text}") for text in ("Mind the gap.", "And the roses.", "Later.")]


async def test_a_stop_is_heard_and_heard_again(world: World) -> None:
    """A stop ends the run, at a replay too."""
    task, one = await world.begin()
    await post(world, task, "stop", "asked")
    for _ in range(2):
        with pytest.raises(Cancelled):
            await hear(world, task, one, 1)
