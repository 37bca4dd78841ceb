"""A model with another behind it: what is told, counted and asked is the same wherever a process died in between."""

from dataclasses import replace

import pytest

from bot.agent.limits import LimitGuard, Limits
from bot.domain.events import ModelReplied, Notice, RunFinished
from bot.domain.messages import Message, Prompt, Reply, TextPart, Usage
from bot.domain.task import Run, Task
from bot.errors import LimitReached, ModelUnavailable, OperatorError
from bot.llm.base import Model
from bot.llm.discarded import DroppedReply
from bot.llm.fallback import Fallback
from bot.llm.meter import Meter, Metered
from bot.settings.server import LimitsSection
from bot.tasks.desk import Tell
from bot.tasks.engines.base import Step
from bot.tasks.engines.inline import _Steps
from bot.tasks.recorded import RecordedModel
from bot.tasks.workflow import Workflow
from tests.unit.tasks.made import START, Script, World, finish, read, reply, words

PROMPT = Prompt("system", (), (Message("user", (TextPart("Do it."),)),))
AWAY = ModelUnavailable("overloaded")


class Named(Script):
    """A model with a name."""

    def __init__(self, name: str, *replies: Reply | Exception) -> None:
        super().__init__(*replies)
        self.name = name


class Life:
    """One life of a process: which models it was asked for, and what a run saw."""

    def __init__(self, world: World, *models: Model) -> None:
        self._world = world
        self._models = models
        self.wanted: list[str] = []
        self.guard = LimitGuard(Limits(100, 10**9, 1000.0, 1000.0))
        self.remark = ""
        self.replies: list[Reply] = []

    def make(self, name: str, tell: Tell, meter: Meter) -> Model:
        """Make a model with the others behind it."""
        self.wanted.append(name)
        behind = sorted(self._models, key=lambda one: one.name != name)
        return Fallback([Metered(one, meter) for one in behind], lambda *_: None)

    async def play(self, task: Task, one: Run, *, turns: int, told: str = "") -> None:
        """Ask so many times; at the first request of this life something may be amiss."""

        async def body(_: str, step: Step) -> None:
            scene = await self._world.scene(task, one, step)
            scene = replace(scene, desk=replace(scene.desk, model=self.make))
            model = RecordedModel(scene, "test:first", self.guard, started=START, window=200_000)
            if told:
                await model._tell(told)
            try:
                for _turn in range(turns):
                    self.replies.append(await model.ask(PROMPT))
            finally:
                self.remark = model.remark
                await model.close()

        await self._world.live(one, body)


async def test_after_a_crash_the_model_that_went_on_is_asked(world: World) -> None:
    """The first one is away still, and asking it takes minutes."""
    task, one = await world.begin()
    first, second = Named("test:first", AWAY), Named("test:second", reply(words("a")), ZeroDivisionError())
    life = Life(world, first, second)
    with pytest.raises(ZeroDivisionError):
        await life.play(task, one, turns=2)
    assert life.wanted == ["test:first"]
    first, second = Named("test:first"), Named("test:second", reply(words("b")))
    life = Life(world, first, second)
    await life.play(task, one, turns=2)
    assert (life.wanted, len(first.prompts), len(second.prompts)) == (["test:second"], 0, 1)


async def test_each_life_tells_its_own_troubles(world: World) -> None:
    """A turn that is tried again in a second life may meet something else."""
    task, one = await world.begin()
    for text in ("It was overloaded.", "It was unreachable."):
        await Life(world).play(task, one, turns=0, told=text)
    told = [event.fact for event in await world.store.events(task.id) if isinstance(event.fact, Notice)]
    assert told == [Notice("It was overloaded."), Notice("It was unreachable.")]


async def test_a_model_that_lacks_something_loses_no_count(world: World) -> None:
    """What the one before it used is paid for, in each life."""
    task, one = await world.begin()
    for models in (
        (Named("test:first", DroppedReply("gone", usage=Usage(7))), Named("test:second", OperatorError("no SDK"))),
        (),
    ):
        life = Life(world, *models)
        with pytest.raises(OperatorError, match="no SDK"):
            await life.play(task, one, turns=1)
        assert (life.guard.spent.usage, life.guard.spent.usd) == (Usage(7), 0.25)


async def test_a_reply_tells_its_own_tokens_and_the_account_those_of_all_requests(world: World) -> None:
    """What fills the window is the request that was answered; what was lost before it is paid for, in each life."""
    task, one = await world.begin()
    lost, kept = Usage(5_000, output_tokens=7), Usage(10, 20, 30, 40)
    for models in (
        (Named("test:first", DroppedReply("gone", usage=lost)), Named("test:second", reply(words("a")))),
        (),
    ):
        life = Life(world, *models)
        await life.play(task, one, turns=1)
        assert life.guard.spent.usage == lost + kept
        assert life.guard.spent.usd == 0.5
        assert life.replies[0].usage == kept
    [fact] = [event.fact for event in await world.store.events(task.id) if isinstance(event.fact, ModelReplied)]
    assert Usage(fact.input_tokens, fact.cache_read_tokens, fact.cache_write_tokens, fact.output_tokens) == kept
    assert fact.cost_usd == 0.5


async def test_who_has_no_price_is_known_after_a_crash(world: World) -> None:
    """The record has it."""
    world.price = None
    task, one = await world.begin()
    for script in (Named("test:first", reply(words("a"))), Named("test:first")):
        life = Life(world, script)
        await life.play(task, one, turns=1)
        assert life.remark.startswith("the price of test:first is not known")


async def test_the_end_of_a_run_names_who_has_no_price(world: World) -> None:
    """Tokens were the only limit, and people read why, whichever request reached it."""
    world.price = None
    world.settings = world.settings.model_copy(update={"limits": LimitsSection(tokens=1000)})
    task, one = await world.begin()
    large = replace(reply(read("rose.txt")), usage=Usage(2000))
    await Workflow(world.desk(Script(large, reply(finish()))))(one.id, _Steps(world.store, one.id))
    [fact] = [event.fact for event in await world.store.events(task.id) if isinstance(event.fact, RunFinished)]
    assert fact.outcome == "budget"
    assert fact.reason == (
        "A limit was reached: tokens: 2,000 of 1,000 (the price of scripted:one is not known, so that only tokens "
        "count)."
    )


async def test_a_limit_inside_a_turn_is_met_again(world: World) -> None:
    """It is in the record with its remark, and counts the attempt that reached it."""
    world.price = None
    task, one = await world.begin()
    for models in ((Named("test:first", DroppedReply("gone", usage=Usage(50))), Named("test:second")), ()):
        life = Life(world, *models)
        life.guard = LimitGuard(Limits(100, 50, 1000.0, 1000.0))
        with pytest.raises(LimitReached, match=r"tokens: 50 of 50 \(the price of test:first is not known"):
            await life.play(task, one, turns=1)
        assert life.guard.spent.usage == Usage(50)
