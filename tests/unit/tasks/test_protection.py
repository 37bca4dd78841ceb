"""What people decide about before it is pushed: held on the server, pushed once and exactly, or told to the model."""

import json
from collections.abc import Callable, Mapping

import pytest

from bot.domain.events import ActionRequested, CommitMade, Notice, PlanProposed
from bot.domain.messages import Reply, ToolCall
from bot.domain.request import VALID, ActionRequest
from bot.domain.task import Run, Task
from bot.sandbox.base import ExecResult
from bot.tasks.decisions import waiting_for
from bot.tasks.protection import kept
from bot.tasks.workflow import Workflow
from tests.unit.tasks.github import MemoryApp
from tests.unit.tasks.made import SHELTER, Copy, Script, World, finish, read, reply, run, words, write
from tests.unit.tasks.test_gates import no, told, yes
from tests.unit.tasks.test_planning import propose
from tests.unit.tasks.test_waiting import Closed
from tests.unit.tasks.test_workflow import Death, Mortal, ended, whole

PATH = ".github/workflows/x.yml"
DONE = ExecResult(0, "", "", 0.1, timed_out=False)
STORY = (reply(run("make ci", "a")), reply(finish("It is made.", "b")))


def puts(files: Mapping[str, bytes]) -> Callable[[Copy], ExecResult]:
    """Make a command that writes files."""

    def act(copy: Copy) -> ExecResult:
        copy.files.update(files)
        return DONE

    return act


def removes(path: str) -> Callable[[Copy], ExecResult]:
    """Make a command that removes a file."""

    def act(copy: Copy) -> ExecResult:
        del copy.files[path]
        return DONE

    return act


@pytest.fixture
def world(world: World) -> World:
    """A world with a command that writes a workflow, which no rule sees."""
    world.commands |= {"make ci": puts({PATH: b"on: push\n", "rose.txt": b"wet\n"})}
    return world


async def held(world: World, *story: Reply) -> tuple[Task, ActionRequested]:
    """Work until the push waits; return what waits."""
    task, one = await world.begin()
    await whole(world, one, *(story or STORY))
    assert (await ended(world, task)).outcome == "waiting"
    (asked,) = await waiting_for(world.store, task)
    return task, asked


def notices(facts: list[object]) -> str:
    """Join what people have to know."""
    return "\n".join(fact.text for fact in facts if isinstance(fact, Notice))


async def facts(world: World, task: Task) -> list[object]:
    """Return all facts of a task."""
    return [event.fact for event in await world.store.events(task.id)]


async def test_a_protected_change_waits_and_is_not_pushed(world: World) -> None:
    """The run waits, the copy stays, nobody sees a branch; the comment says what, why, the hash and how to decide."""
    task, asked = await held(world)
    fact = await ended(world, task)
    short = asked.hash[:8]
    assert fact.reason.startswith("The work is not pushed yet, since it changes what decides about others")
    assert f"`{PATH}`" in fact.reason
    assert f"`/agent approve {short}`" in fact.reason
    assert list(world.shop.branches) == ["main"]
    assert world.github.pulls == {}
    assert world.shop.forgotten == [f"{task.id} but commits"]
    body = world.github.bodies(7)[-1]
    assert body.startswith("@flora: **the work is done and waits before it is pushed.**")
    assert f"`/agent approve {short}` pushes exactly this; `/agent deny {short} <reason>` does not" in body
    assert f"- `{PATH}`" in body
    assert "rose.txt" not in body
    assert f"+++ {PATH}" in body
    assert f"in full `{asked.hash}`" in body
    [decision] = await world.store.decisions(task.id)
    request = ActionRequest.from_data(json.loads(decision.question)["request"])
    commit = await kept(world.store, task)
    assert commit is not None
    assert (request.tool, request.hash) == ("push", decision.hash)
    assert json.loads(request.arguments) == {"paths": [PATH], "tree": request.tree}
    assert not [one for one in await facts(world, task) if isinstance(one, CommitMade)]


async def test_approved_it_is_pushed_as_it_is_without_a_model(world: World) -> None:
    """The very commit that waited, once, with credentials for workflows; the pull request names who agreed."""
    task, asked = await held(world)
    waiting = await kept(world.store, task)
    assert waiting is not None
    assert (await yes(world, asked.hash[:8])).kind == "approved"
    _, one = await world.begin("second", comment_id=900, request="")
    script = await whole(world, one)
    assert script.prompts == []
    fact = await ended(world, task, 2)
    assert (fact.outcome, fact.reason, fact.summary) == ("done", "", "It is made.")
    assert world.shop.branches[task.branch] == waiting.commit
    assert world.shop.commits[waiting.commit][PATH] == b"on: push\n"
    assert [line for line in world.shop.log if line.startswith("push")] == [
        f"push {task.branch} with other credentials"
    ]
    [pull] = world.github.pulls.values()
    assert "`maria` approved that this is pushed: `.github/workflows/x.yml`." in pull.body
    assert "This changes what people decide about" in pull.body
    assert await kept(world.store, task) is None
    assert world.shop.forgotten == [f"{task.id} but commits", task.id]
    [decision] = await world.store.decisions(task.id)
    assert decision.used_at is not None
    _, third = await world.begin("third", comment_id=901, request="")
    assert len((await whole(world, third, reply(finish("Nothing more.", "z")))).prompts) == 1
    assert world.shop.branches[task.branch] == waiting.commit


async def test_what_else_is_asked_stands_on_the_released_commit(world: World) -> None:
    """Words that come with the approval are work of their own, on top of what was approved."""
    task, asked = await held(world)
    waiting = await kept(world.store, task)
    assert waiting is not None
    await yes(world, asked.hash[:8])
    _, one = await world.begin("second", comment_id=900, request="Also a poppy.")
    await whole(world, one, reply(write("poppy.txt", "red")), reply(finish("Planted.", "y")))
    assert (await ended(world, task, 2)).outcome == "done"
    tip = world.shop.commits[world.shop.branches[task.branch]]
    assert tip == {**world.shop.commits[waiting.commit], "poppy.txt": b"red"}
    assert len(world.github.pulls) == 1


async def test_denied_the_model_hears_why_and_goes_on_from_there(world: World) -> None:
    """The next run has the work in its tree; what it then leaves is judged anew."""
    task, _ = await held(world)
    await no(world, "We do not need CI for this.")
    world.commands["rm ci"] = removes(PATH)
    _, one = await world.begin("second", comment_id=900, request="")
    script = await whole(world, one, reply(run("rm ci", "c")), reply(finish("Without CI.", "d")))
    assert "We do not need CI for this." in told(script)
    assert (await ended(world, task, one.seq)).outcome == "done"
    assert world.shop.commits[world.shop.branches[task.branch]] == {"rose.txt": b"wet\n"}
    assert await kept(world.store, task) is None


async def test_a_command_without_a_decision_keeps_the_work_and_asks_anew(world: World) -> None:
    """What waited is in the tree of the next run; its other tree needs another decision, and the old one counts not."""
    task, asked = await held(world)
    _, one = await world.begin("second", comment_id=900, request="Water it more.")
    await whole(world, one, reply(write("rose.txt", "soaked", "c")), reply(finish("Soaked.", "d")))
    assert (await ended(world, task, 2)).outcome == "waiting"
    asked_now = await waiting_for(world.store, task)
    assert asked_now[-1].hash != asked.hash
    assert (await yes(world, asked.hash[:8])).kind == "approved"
    _, third = await world.begin("third", comment_id=901, request="")
    await whole(world, third, reply(finish("Nothing.", "e")))
    assert list(world.shop.branches) == ["main"]
    assert "does not count any more: the work went on since" in notices(await facts(world, task))


async def test_what_is_deleted_over_several_runs_waits(world: World) -> None:
    """The share is of what there was when the task began."""
    files = {f"f{number}": b"text" for number in range(10)} | {"rose.txt": b"dry"}
    world.shop.branches["main"] = world.shop.keep(files, "many")
    world.commands |= {f"rm {number}": removes(f"f{number}") for number in range(3)}
    task, one = await world.begin()
    await whole(world, one, reply(run("rm 0", "a")), reply(finish("One.", "b")))
    assert (await ended(world, task)).outcome == "done"
    _, second = await world.begin("second", comment_id=900, request="More.")
    await whole(world, second, reply(run("rm 1", "a")), reply(run("rm 2", "c")), reply(finish("Two.", "d")))
    assert (await ended(world, task, 2)).outcome == "waiting"
    (asked,) = await waiting_for(world.store, task)
    assert "deletes or empties 3 of 11 files" in asked.why


async def test_what_was_deleted_before_the_branch_began_is_not_the_tasks(world: World) -> None:
    """Who begins anew stands on what others made of the base branch meanwhile."""
    files = {f"f{number}": b"text" for number in range(20)} | {"rose.txt": b"dry"}
    world.shop.branches["main"] = world.shop.keep(files, "many")
    task, one = await world.begin()
    await whole(world, one, reply(write("poppy.txt", "red")), reply(finish("One.", "b")))
    left = {path: text for path, text in files.items() if path not in {"f17", "f18", "f19"}}
    world.shop.branches["main"] = world.shop.keep(left, "fewer")
    world.commands |= {f"rm {number}": removes(f"f{number}") for number in range(3)}
    _, second = await world.begin("second", comment_id=900, request="Anew.", fresh=True)
    await whole(world, second, reply(run("rm 1", "a")), reply(run("rm 2", "c")), reply(finish("Two.", "d")))
    assert (await ended(world, task, 2)).outcome == "done"


async def test_a_name_that_is_no_text_waits_and_is_pushed(world: World) -> None:
    """Bytes that are no UTF-8 are lone surrogates here, which no API and no database takes."""
    name = ".github/x\udcff.yml"
    world.commands["make odd"] = puts({name: b"on: push\n"})
    task, asked = await held(world, reply(run("make odd", "a")), reply(finish("It is made.", "b")))
    for body in world.github.bodies(7):
        body.encode()
    await yes(world, asked.hash[:8])
    _, one = await world.begin("second", comment_id=900, request="")
    await whole(world, one)
    assert (await ended(world, task, 2)).outcome == "done"
    assert world.shop.commits[world.shop.branches[task.branch]][name] == b"on: push\n"
    [pull] = world.github.pulls.values()
    pull.body.encode()


async def test_an_old_approval_pushes_nothing(world: World) -> None:
    """After seven days it is asked anew."""
    task, asked = await held(world)
    await yes(world, asked.hash[:8])
    world.clock.move(VALID.total_seconds())
    _, one = await world.begin("second", comment_id=900, request="")
    await whole(world, one, reply(finish("Still so.", "c")))
    assert (await ended(world, task, 2)).outcome == "waiting"
    assert list(world.shop.branches) == ["main"]
    assert "more than 7 days ago" in notices(await facts(world, task))


async def test_work_on_a_branch_that_moved_is_done_anew(world: World) -> None:
    """Somebody pushed to the task's branch: what waited is not put over it, and people are told."""
    task, asked = await held(world)
    await yes(world, asked.hash[:8])
    world.shop.branches[task.branch] = theirs = world.shop.keep({"rose.txt": b"theirs\n"}, "theirs")
    _, one = await world.begin("second", comment_id=900, request="")
    script = await whole(world, one, reply(finish("Fine.", "c")))
    assert len(script.prompts) == 1
    assert world.shop.branches[task.branch] == theirs
    assert "its branch stands elsewhere by now" in notices(await facts(world, task))
    assert await kept(world.store, task) is None
    assert "What you changed before is not in it: that is nowhere but in this transcript" in str(script.prompts[0])
    [decision] = await world.store.decisions(task.id)
    assert decision.used_at is not None
    assert (await world.store.open_run(task.id)) is None


async def test_work_that_waits_goes_on_top_of_what_others_pushed(world: World) -> None:
    """Nothing of it is lost; as it is another tree now, whoever approved it is asked anew."""
    await whole(world, (await world.begin())[1], reply(read("rose.txt")), reply(write("rose.txt", "dry")), STORY[1])
    task, one = await world.begin("second", comment_id=899, request="More.")
    await whole(world, one, *STORY)
    (asked,) = await waiting_for(world.store, task)
    await yes(world, asked.hash[:8])
    theirs = world.shop.theirs(task.branch, lily_txt=b"theirs")
    _, again = await world.begin("third", comment_id=900, request="")
    script = await whole(world, again, reply(finish("Still made.", "c")))
    assert len(script.prompts) == 1
    assert "What you changed before is not in it" not in str(script.prompts[0])
    assert (await ended(world, task, 3)).outcome == "waiting"
    assert world.shop.branches[task.branch] == theirs
    assert "stands on top of what others pushed meanwhile" in notices(await facts(world, task))
    (anew,) = await waiting_for(world.store, task)
    assert anew.hash != asked.hash
    await yes(world, anew.hash[:8], key="yes again")
    _, last = await world.begin("fourth", comment_id=901, request="")
    assert (await whole(world, last)).prompts == []
    assert (await ended(world, task, 4)).outcome == "done"
    head = world.shop.branches[task.branch]
    assert world.shop.parents[head] == theirs
    assert world.shop.commits[head] == {"rose.txt": b"wet\n", "lily.txt": b"theirs", PATH: b"on: push\n"}


async def test_what_an_earlier_life_pushed_is_gone_on_from_as_others_left_it(world: World) -> None:
    """It died before it could note that; what others put on top of it stays."""
    await whole(world, (await world.begin())[1], reply(read("rose.txt")), reply(write("rose.txt", "dry")), STORY[1])
    task, one = await world.begin("second", comment_id=899, request="More.")
    await whole(world, one, *STORY)
    waits = await kept(world.store, task)
    assert waits is not None
    world.shop.branches[task.branch] = waits.commit
    world.shop.theirs(task.branch, lily_txt=b"theirs")
    _, again = await world.begin("third", comment_id=900, request="And poppies.")
    await whole(world, again, reply(write("poppy.txt", "red", "c")), reply(finish("Planted.", "d")))
    assert (await ended(world, task, 3)).outcome == "done"
    assert world.shop.commits[world.shop.branches[task.branch]] == {
        "rose.txt": b"wet\n",
        "lily.txt": b"theirs",
        "poppy.txt": b"red",
        PATH: b"on: push\n",
    }


async def test_unfinished_work_stays_and_nobody_is_asked(world: World) -> None:
    """A question in the middle of it waits alone; the work is in the tree of the run that hears the answer."""
    ask = reply(words("?"), *reply(run("make ci", "a")).message.calls)
    task, one = await world.begin()
    world.settings = world.settings.model_copy(update={"limits": world.settings.limits.model_copy(update={"turns": 1})})
    await whole(world, one, ask)
    fact = await ended(world, task)
    assert fact.outcome == "budget"
    assert list(world.shop.branches) == ["main"]
    assert await waiting_for(world.store, task) == []
    assert "What there is of the work stays on the server" in notices(await facts(world, task))
    assert world.shop.forgotten == [f"{task.id} but commits"]
    _, second = await world.begin("second", comment_id=900, request="")
    await whole(world, second, reply(finish("Done.", "c")))
    assert (await ended(world, task, 2)).outcome == "waiting"


@pytest.mark.parametrize("at", range(1, 12))
@pytest.mark.parametrize("inside", [False, True], ids=["before", "inside"])
async def test_a_death_asks_once_and_pushes_once(world: World, at: int, *, inside: bool) -> None:
    """Wherever a process dies while it asks, or while it pushes what was approved, one of each is there."""
    task, one = await world.begin()
    await _died(world, one, at, STORY, inside=inside)
    (asked,) = await waiting_for(world.store, task)
    assert len(world.github.bodies(7)) == 2
    await yes(world, asked.hash[:8])
    waiting = await kept(world.store, task)
    assert waiting is not None
    _, second = await world.begin("second", comment_id=900, request="")
    await _died(world, second, at, (), inside=inside)
    assert (await ended(world, task, 2)).outcome == "done"
    assert world.shop.branches[task.branch] == waiting.commit
    assert len(world.github.pulls) == 1


async def _died(world: World, one: Run, at: int, story: tuple[Reply, ...], *, inside: bool) -> None:
    """Let a life end at a step, and another one take the run up."""
    mortal = Mortal(world, one, at=at, inside=inside)
    try:
        await Workflow(world.desk(Script(*story)))(one.id, mortal)
    except Death:
        turns = sum(name.startswith("model/") for name in mortal.names[:-1])
        await Workflow(world.desk(Script(*story[turns:])))(one.id, Mortal(world, one))


async def test_a_plan_that_a_person_let_through_is_not_asked_about_twice(world: World) -> None:
    """It waited because it names the file; exactly that file is agreed to, and another one is not."""
    world.settings = world.settings.model_copy(update={"mode": "plan"})
    task, one = await world.begin()
    await whole(world, one, reply(propose(files=[PATH, "rose.txt"])))
    assert any(isinstance(fact, PlanProposed) and fact.waits for fact in await facts(world, task))
    _, second = await world.begin("second", comment_id=900, request="")
    await whole(world, second, *STORY)
    assert (await ended(world, task, 2)).outcome == "done"
    assert world.shop.commits[world.shop.branches[task.branch]][PATH] == b"on: push\n"
    assert f"push {task.branch} with other credentials" in world.shop.log
    world.commands["make more"] = puts({"AGENTS.md": b"Obey.\n"})
    _, third = await world.begin("third", comment_id=901, request="More.")
    world.settings = world.settings.model_copy(update={"mode": "act"})
    await whole(world, third, reply(run("make more", "m")), reply(finish("More.", "n")))
    assert (await ended(world, task, 3)).outcome == "waiting"


async def test_a_call_that_a_person_approved_is_not_asked_about_twice(world: World) -> None:
    """The file as that very call left it is pushed; one more byte, and the push waits."""
    story = (reply(write(PATH, "on: push", "w")), reply(finish("Made.", "b")))
    task, one = await world.begin()
    await whole(world, one, *story)
    (asked,) = await waiting_for(world.store, task)
    assert asked.tool == "write"
    await yes(world, asked.hash[:8])
    _, second = await world.begin("second", comment_id=900, request="")
    await whole(world, second, reply(finish("Made.", "c")))
    assert (await ended(world, task, 2)).outcome == "done"
    assert world.shop.commits[world.shop.branches[task.branch]][PATH] == b"on: push"
    _, third = await world.begin("third", comment_id=901, request="Go on.")
    await whole(world, third, reply(run("make ci", "d")), reply(finish("More.", "e")))
    assert (await ended(world, task, 3)).outcome == "waiting"


async def test_what_an_approved_call_moved_is_asked_about_before_the_push(world: World) -> None:
    """Who agreed to the move did not see what is in the file."""
    move = ToolCall("m", "move", json.dumps({"path": "rose.txt", "target": "AGENTS.md"}))
    task, one = await world.begin()
    await whole(world, one, reply(read("rose.txt")), reply(move))
    (asked,) = await waiting_for(world.store, task)
    assert asked.shown == "move rose.txt to AGENTS.md"
    await yes(world, asked.hash[:8])
    _, second = await world.begin("second", comment_id=900, request="")
    await whole(world, second, reply(finish("Moved.", "c")))
    assert (await ended(world, task, 2)).outcome == "waiting"
    assert [one.tool for one in await waiting_for(world.store, task)] == ["push"]


@pytest.mark.parametrize("agrees", [True, False])
async def test_a_person_at_the_terminal_is_asked_there(world: World, *, agrees: bool) -> None:
    """A yes pushes at once; else nothing is pushed, nothing waits, and the reason is said."""
    asked: list[tuple[str, str, str]] = []

    async def permits(tool: str, arguments: str, why: str) -> str:
        asked.append((tool, arguments, why))
        return "" if agrees else "no"

    world.permits = permits
    task, one = await world.begin()
    await whole(world, one, *STORY)
    fact = await ended(world, task)
    [(tool, arguments, why)] = asked
    assert tool == "push"
    assert json.loads(arguments)["paths"] == [PATH]
    assert PATH in why
    assert await waiting_for(world.store, task) == []
    if agrees:
        assert fact.outcome == "done"
        assert task.branch in world.shop.branches
    else:
        assert fact.outcome == "failed"
        assert "nobody did here; nothing was pushed" in fact.reason
        assert list(world.shop.branches) == ["main"]


async def test_what_is_only_marked_is_pushed(world: World) -> None:
    """A lock file waits for nobody; the pull request says to look at it with care."""
    world.commands["lock"] = puts({"uv.lock": b"2\n", "Dockerfile": b"FROM x\n"})
    task, one = await world.begin()
    await whole(world, one, reply(run("lock", "a")), reply(finish("Locked.", "b")))
    assert (await ended(world, task)).outcome == "done"
    [pull] = world.github.pulls.values()
    assert "the change changes lock files: `uv.lock`; it changes how images are built: `Dockerfile`" in pull.body
    assert [line for line in world.shop.log if line.startswith("push")] == [f"push {task.branch}"]


async def test_what_the_commit_does_not_hold_is_told(world: World) -> None:
    """A file that is too large is left out of the commit, and the pull request says so; a submodule needs no words."""
    world.shop.left_out = {"big.bin": "larger than 50 MiB", "lib": "a submodule"}
    task, one = await world.begin()
    await whole(world, one, reply(write("rose.txt", "wet")), reply(finish("Watered.", "b")))
    assert (await ended(world, task)).outcome == "done"
    [pull] = world.github.pulls.values()
    assert "Not in the commit: `big.bin` (larger than 50 MiB)." in pull.body


async def test_a_refused_push_of_what_was_approved_can_be_tried_again(world: World) -> None:
    """The approval stays unused while nothing was pushed, as where the App may not change workflows."""
    task, asked = await held(world)
    await yes(world, asked.hash[:8])
    _, second = await world.begin("second", comment_id=900, request="")
    publisher = Closed(world.store, MemoryApp(world.github), world.settings, shelter=SHELTER)
    await Workflow(world.desk(Script(), publisher))(second.id, Mortal(world, second))
    fact = await ended(world, task, 2)
    assert fact.outcome == "failed"
    assert "a rule of the repository forbids it" in fact.reason
    _, third = await world.begin("third", comment_id=901, request="")
    assert (await whole(world, third)).prompts == []
    assert (await ended(world, task, 3)).outcome == "done"
    assert task.branch in world.shop.branches
