"""Every toolset keeps what its seam promises: the plain one, the recorded one and the one that asks a person."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.cli.approval import Approval, Asking
from bot.cli.screen import Screen
from bot.domain.plan import PlanItem
from bot.store.opening import open_store
from bot.tasks.engines.inline import _Steps
from bot.tasks.opening import prepare
from bot.tasks.recorded import RecordedToolset
from bot.tools.base import FileLedger, ToolContext, Toolset
from bot.tools.standard import standard_tools
from bot.tools.toolset import StandardToolset
from tests.unit.tasks.made import Bench, Clock, Copy, Shop, World


@pytest.fixture(params=["standard", "asking", "recorded"])
async def toolset(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Toolset]:
    """One of them, on a working copy with one file."""
    shop = Shop()
    plain = StandardToolset(standard_tools(), ToolContext(Bench(Copy(shop, {"rose.txt": b"dry\n"}), {}), FileLedger()))
    match request.param:
        case "standard":
            yield plain
        case "asking":
            yield Asking(plain, Approval("all", Screen(as_json=False)))
        case _:
            clock = Clock()
            tasks, deliveries = open_store(tmp_path / "state", None, now=clock)
            world = World(tasks, deliveries, clock)
            task, one = await world.begin()
            scene = await world.scene(task, one, _Steps(tasks, one.id))
            await prepare(scene)
            yield RecordedToolset(scene, scene.lease.tools)
            await tasks.close()
            await deliveries.close()


def test_its_tools_are_described_in_a_fixed_order(toolset: Toolset) -> None:
    """The descriptions are sorted by name, the same at each look, and plain JSON."""
    names = [spec.name for spec in toolset.specs]
    assert names == sorted(names)
    assert "finish" in names
    first, second = (
        json.dumps([[spec.name, spec.description, spec.parameters] for spec in toolset.specs]) for _ in "ab"
    )
    assert first == second


def test_it_says_what_changes_nothing(toolset: Toolset) -> None:
    """Reading changes nothing, nor does what is not there."""
    assert toolset.reads_only("read")
    assert toolset.reads_only("nonsense")
    assert not toolset.reads_only("write")
    assert not toolset.reads_only("run")
    assert not toolset.reads_only("checks")


async def test_a_call_gives_text_and_a_line_for_people(toolset: Toolset) -> None:
    """A call that works gives its text and a summary."""
    output = await toolset.call(1, 0, "read", '{"path": "rose.txt"}')
    assert "dry" in output.text
    assert (output.summary, output.is_error, output.malformed, output.finished) == ("rose.txt", False, False, False)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("nonsense", "{}"),
        ("read", "{"),
        ("read", "[1]"),
        ("read", '{"path": 1}'),
        ("read", '{"nonsense": "x"}'),
        ("write", ""),
        ("finish", "{}"),
    ],
)
async def test_what_cannot_be_read_is_a_malformed_result(toolset: Toolset, name: str, arguments: str) -> None:
    """A call that cannot be read raises nothing: it is an error result that says so, and did nothing."""
    output = await toolset.call(1, 0, name, arguments)
    assert (output.is_error, output.malformed, output.finished) == (True, True, False)
    assert output.text


async def test_what_the_model_can_mend_is_an_error_result(toolset: Toolset) -> None:
    """A file that is not there is an error, and no malformed call."""
    output = await toolset.call(1, 0, "read", '{"path": "gone.txt"}')
    assert (output.is_error, output.malformed) == (True, False)


async def test_finish_hands_the_summary_over(toolset: Toolset) -> None:
    """`finish` says that the model is done, with its own account as the text."""
    output = await toolset.call(1, 0, "finish", '{"summary": "Watered."}')
    assert (output.text, output.finished, output.is_error) == ("Watered.", True, False)


async def test_a_change_names_its_paths(toolset: Toolset) -> None:
    """What was changed is named; a command may have changed anything."""
    wrote = await toolset.call(1, 0, "write", '{"path": "new.txt", "content": "a"}')
    assert wrote.changed is not None
    assert list(wrote.changed) == ["new.txt"]
    ran = await toolset.call(1, 1, "run", '{"command": "nonsense"}')
    assert (ran.changed, ran.command, ran.exit_code) == (None, "nonsense", 127)


async def test_checks_name_what_ran(toolset: Toolset) -> None:
    """Without any nothing ran; otherwise all commands are named, with the exit code of the first that failed."""
    none = await toolset.call(1, 0, "checks", "")
    assert none.changed is not None
    assert (len(none.changed), none.command, none.exit_code, none.is_error) == (0, None, None, False)
    await toolset.call(1, 1, "write", '{"path": "Makefile", "content": "lint:\\ntest:\\n"}')
    ran = await toolset.call(1, 2, "checks", '{"names": []}')
    assert (ran.changed, ran.command, ran.exit_code) == (None, "make lint; make test", 127)
    assert (await toolset.call(1, 3, "checks", '{"names": ["lint"]}')).command == "make lint"
    wrong = await toolset.call(1, 4, "checks", '{"names": ["speed"]}')
    assert (wrong.is_error, wrong.malformed, wrong.command) == (True, False, None)


async def test_every_kind_of_change_names_its_paths(toolset: Toolset) -> None:
    """A patch names all its files, a move both ends."""
    patch = "*** Begin Patch\n*** Add File: a.txt\n+a\n*** Update File: rose.txt\n-dry\n+wet\n*** End Patch"
    patched = await toolset.call(1, 0, "apply_patch", json.dumps({"patch": patch}))
    assert (patched.is_error, list(patched.changed or ())) == (False, ["a.txt", "rose.txt"])
    moved = await toolset.call(1, 1, "move", '{"path": "rose.txt", "target": "b.txt"}')
    assert list(moved.changed or ()) == ["rose.txt", "b.txt"]


async def test_a_plan_is_handed_over(toolset: Toolset) -> None:
    """`update_plan` gives the plan as values, and changes nothing."""
    output = await toolset.call(1, 0, "update_plan", '{"items": [{"text": "water", "done": true}, {"text": "wait"}]}')
    assert list(output.plan or ()) == [PlanItem("water", done=True), PlanItem("wait", done=False)]
    assert list(output.changed or ()) == []
    assert (await toolset.call(1, 1, "read", '{"path": "rose.txt"}')).plan is None


async def test_calls_at_once_do_each_other_no_harm(toolset: Toolset) -> None:
    """Calls of different places give each their own result."""
    outputs = await asyncio.gather(
        *(toolset.call(1, index, "finish", json.dumps({"summary": str(index)})) for index in range(5))
    )
    assert [output.text for output in outputs] == list("01234")
