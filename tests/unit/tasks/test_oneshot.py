"""One run from beginning to end in this process."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from bot.domain.messages import Prompt, Reply
from bot.errors import BotError
from bot.llm.base import OnText
from bot.tasks.liveness import Liveness
from bot.tasks.oneshot import OneShot
from tests.unit.tasks.made import Script, World, finish, reply, write

SCRIPT = (reply(write("new.txt", "a")), reply(finish()))


def shot(world: World, folder: Path, script: Script, name: str = "us") -> OneShot:
    """Make one."""
    return OneShot(world.desk(script), Liveness(folder / "executors"), name)


async def test_a_run_is_worked_on_to_its_end(world: World, tmp_path: Path) -> None:
    """The run is taken, worked on and returned as it ended; the lock is given back."""
    accepted = await world.store.accept(world.request("first"), world.clock())
    done = await shot(world, tmp_path, Script(*SCRIPT)).work(accepted.run)
    assert (done.id, done.state, done.outcome) == (accepted.run.id, "finished", "done")
    assert list((tmp_path / "executors").iterdir()) == []


async def test_what_else_is_queued_is_left_alone(world: World, tmp_path: Path) -> None:
    """A run that waits in front may belong to another repository: it is neither worked on nor waited for."""
    first = await world.store.accept(world.request("first"), world.clock())
    world.clock.move(1)
    second = await world.store.accept(world.request("second", number=8), world.clock())
    done = await shot(world, tmp_path, Script(*SCRIPT)).work(second.run)
    assert done.outcome == "done"
    before = await world.store.run(first.task.id, 1)
    assert before is not None
    assert before.state == "queued"


async def test_a_finished_run_is_only_looked_at(world: World, tmp_path: Path) -> None:
    """A run that is over is returned without a step."""
    accepted = await world.store.accept(world.request("first"), world.clock())
    await world.store.finish(accepted.task.id, 1, "failed", "Before.", world.clock())
    script = Script()
    assert (await shot(world, tmp_path, script).work(accepted.run)).reason == "Before."
    assert script.prompts == []


async def test_another_living_process_keeps_its_run(world: World, tmp_path: Path) -> None:
    """A run that another living process works on is not touched."""
    _, one = await world.begin()
    other = Liveness(tmp_path / "executors")
    await world.store.take_over(one, "them")
    other.hold("them")
    with pytest.raises(BotError, match="another process \\(them\\)"):
        await shot(world, tmp_path, Script()).work(one)
    other.release()


async def test_a_dead_processs_run_goes_on(world: World, tmp_path: Path) -> None:
    """What a dead process left behind goes on from its record."""
    accepted = await world.store.accept(world.request("first"), world.clock())

    class Dying(Script):
        async def ask(self, prompt: Prompt, *, on_text: OnText | None = None) -> Reply:
            if self.prompts:
                raise asyncio.CancelledError
            return await super().ask(prompt, on_text=on_text)

    with pytest.raises(asyncio.CancelledError):
        await shot(world, tmp_path, Dying(*SCRIPT), "dead").work(accepted.run)
    [(_, executor)] = await world.store.running()
    assert executor == "dead"
    last = Script(SCRIPT[1])
    assert (await shot(world, tmp_path, last).work(accepted.run)).outcome == "done"
    assert len(last.prompts) == 1


async def test_a_stop_ends_it_and_keeps_what_was_done(world: World, tmp_path: Path) -> None:
    """The person's interrupt ends a long request to the model, and the work so far is kept."""
    accepted = await world.store.accept(world.request("first"), world.clock())
    asked = asyncio.Event()

    class Slow(Script):
        async def ask(self, prompt: Prompt, *, on_text: OnText | None = None) -> Reply:
            if self.prompts:
                asked.set()
                await asyncio.sleep(60)
            return await super().ask(prompt, on_text=on_text)

    made = shot(world, tmp_path, Slow(*SCRIPT))
    working = asyncio.ensure_future(made.work(accepted.run))
    await asyncio.wait_for(asked.wait(), 10)
    await made.stop(accepted.run)
    await made.stop(accepted.run)
    done = await asyncio.wait_for(working, 10)
    assert (done.outcome, done.reason) == ("stopped", "Stopped on request.")
    assert world.shop.commits[world.shop.branches[accepted.task.branch]]["new.txt"] == b"a"


async def test_an_unknown_run_is_an_error(world: World, tmp_path: Path) -> None:
    """A run that the store does not know is no run."""
    _, one = await world.begin()
    with pytest.raises(BotError, match="unknown"):
        await shot(world, tmp_path, Script()).work(replace(one, task_id="e" * 32))


async def test_what_one_run_heard_is_not_said_to_the_next(world: World, tmp_path: Path) -> None:
    """A stop ends the run that hears it, and not the one that is asked for afterwards."""
    accepted = await world.store.accept(world.request("first"), world.clock())
    await world.store.post(accepted.task.id, "stop", author="maria", text="stop", event_key="stop")
    first = await shot(world, tmp_path, Script()).work(accepted.run)
    assert first.outcome == "stopped"
    again = await world.store.accept(world.request("second"), world.clock())
    assert again.kind == "again"
    assert (await shot(world, tmp_path, Script(*SCRIPT)).work(again.run)).outcome == "done"


async def test_a_run_that_was_cut_off_is_ended_from_its_record(world: World, tmp_path: Path) -> None:
    """Nothing is begun any more: no request, no call; what was done is kept."""
    accepted = await world.store.accept(world.request("first"), world.clock())

    class Dying(Script):
        async def ask(self, prompt: Prompt, *, on_text: OnText | None = None) -> Reply:
            if self.prompts:
                raise asyncio.CancelledError
            return await super().ask(prompt, on_text=on_text)

    with pytest.raises(asyncio.CancelledError):
        await shot(world, tmp_path, Dying(*SCRIPT), "dead").work(accepted.run)
    last = Script()
    done = await shot(world, tmp_path, last).end(accepted.run)
    assert (done.outcome, last.prompts) == ("stopped", [])
    assert world.shop.commits[world.shop.branches[accepted.task.branch]]["new.txt"] == b"a"


async def test_a_run_of_a_living_process_is_not_ended(world: World, tmp_path: Path) -> None:
    """Nor is it told to stop."""
    _, one = await world.begin()
    other = Liveness(tmp_path / "executors")
    await world.store.take_over(one, "them")
    other.hold("them")
    with pytest.raises(BotError, match="another process \\(them\\)"):
        await shot(world, tmp_path, Script()).end(one)
    assert list(await world.store.inbox(one.task_id)) == []
    other.release()
