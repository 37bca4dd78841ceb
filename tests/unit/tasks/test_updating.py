"""`/agent update`: the base branch comes into the branch, whole or not at all."""

import json

import pytest

from bot.agent.conflicts import has_markers
from bot.domain.events import CheckFinished, CommitMade, DefinitionsChanged, Notice, PlanProposed
from bot.domain.messages import Reply, ToolCall
from bot.domain.refs import Actor
from bot.domain.task import Run, Task
from bot.sandbox.base import ExecResult
from bot.settings.server import LimitsSection, ServerSettings
from bot.tasks.engines.base import Action, Json
from bot.tasks.standing import stand
from bot.tasks.workflow import Workflow
from tests.unit.agent.made import broken_rules
from tests.unit.tasks.github import pull
from tests.unit.tasks.made import Script, World, finish, read, reply, run, write
from tests.unit.tasks.test_checking import CONFIG, checked, taken, water, worked
from tests.unit.tasks.test_intake import Door
from tests.unit.tasks.test_planning import ask, text_of
from tests.unit.tasks.test_protection import PATH, puts, removes
from tests.unit.tasks.test_workflow import SCRIPT, Death, Mortal, ended, whole

HERS = {"tests/a_py": b"def test_a():\n    assert True\n"}
"""A test that came with the base branch, which is none of the work's."""
OURS, THEIRS = "a" * 40, "b" * 40
RESOLVES = (reply(read("rose.txt")), reply(write("rose.txt", "wet")), reply(finish("Both.")))


@pytest.fixture
def door(world: World) -> Door:
    """A repository that names a check."""
    world.github.files[".github/issuewright.yml"] = CONFIG
    world.commands["water"] = water
    return Door(world, ServerSettings(mode="act", independent_review=False))


async def update(door: Door, task: Task, script: Script) -> Run:
    """Ask for it and play it."""
    assert task.pull_number is not None
    _, made = await taken(door.world, await door.comment("/agent update", number=task.pull_number, pr=True))
    await Workflow(door.world.desk(script))(made.id, Mortal(door.world, made))
    return made


def line(world: World, branch: str) -> list[str]:
    """The parents of a branch's head."""
    head = world.shop.branches[branch]
    return [world.shop.parents[head], *world.shop.also.get(head, [])]


async def test_what_does_not_conflict_is_merged_without_a_model(door: Door) -> None:
    """One commit of both, checked, pushed and shown; what was there before stays in the pull request's text."""
    world, task = door.world, await worked(door)
    before, base = (
        world.shop.branches[task.branch],
        world.shop.theirs("main", **HERS),
    )
    assert task.pull_number is not None
    _, made = await checked(world, await door.comment("/agent update", number=task.pull_number, pr=True))
    fact = await ended(world, task, made.seq)
    assert (fact.outcome, fact.summary) == ("done", f"`main` is merged in, as of `{base[:8]}`.")
    head = world.shop.branches[task.branch]
    assert line(world, task.branch) == [before, base]
    assert world.shop.commits[head] == {"rose.txt": b"wet", "tests/a.py": HERS["tests/a_py"]}
    events = await world.store.events(task.id)
    told = [event.fact for event in events if event.run == made.seq]
    [commit] = [one for one in told if isinstance(one, CommitMade)]
    assert (commit.sha, commit.merges, commit.files) == (head, base, 1)
    assert commit.same_tree_as is not None
    assert commit.subject.startswith("Merge branch `main` into `agent/7-")
    assert [(one.phase, one.exit_code) for one in told if isinstance(one, CheckFinished)] == [("after", 0)]
    assert [(one.findings, one.tests) for one in told if isinstance(one, DefinitionsChanged)] == [([], [])]
    body = world.github.pulls[task.pull_number].body
    assert head[:8] in body
    assert "Watered them." in body
    assert stand(events, None).base == base


async def test_what_the_branch_has_already_is_not_pushed(door: Door) -> None:
    """It says so, and asks no model."""
    world, task = door.world, await worked(door)
    before, pushes = world.shop.branches[task.branch], len([one for one in world.shop.log if one.startswith("push")])
    assert task.pull_number is not None
    _, made = await checked(world, await door.comment("/agent update", number=task.pull_number, pr=True))
    fact = await ended(world, task, made.seq)
    assert fact.summary == "The branch has all that is on `main` already; nothing was pushed."
    assert world.shop.branches[task.branch] == before
    assert len([one for one in world.shop.log if one.startswith("push")]) == pushes


async def test_the_model_resolves_what_conflicts(door: Door) -> None:
    """It sees both sides and what they came from; its files become the one commit of both."""
    world, task = door.world, await worked(door)
    before, base = world.shop.branches[task.branch], world.shop.theirs("main", rose_txt=b"watered\n", lily_txt=b"new")
    script = Script(*RESOLVES)
    made = await update(door, task, script)
    fact = await ended(world, task, made.seq)
    assert (fact.outcome, fact.summary) == (
        "done",
        f"`main` is merged in, as of `{base[:8]}`. Of what conflicted, `rose.txt` stands as on this branch.",
    )
    assert line(world, task.branch) == [before, base]
    assert world.shop.commits[world.shop.branches[task.branch]] == {"rose.txt": b"wet", "lily.txt": b"new"}
    asked = script.prompts[0].messages[-1].text
    assert "'rose.txt': both sides changed the same lines" in asked
    assert "base branch: main" in asked
    [result] = [part for part in script.prompts[1].messages[-1].parts if hasattr(part, "call_id")]
    for words in (f"<<<<<<< {before}", "||||||| ", "dry", f">>>>>>> {base}", "watered"):
        assert words in getattr(result, "text", "")
    assert not [spec for spec in script.prompts[0].tools if spec.name == "ask_person"]
    assert broken_rules(list(await world.store.messages(task.id, run=made.seq))) == []


@pytest.mark.parametrize(
    ("does", "stands"),
    [
        ((), "stands as on this branch"),
        ((reply(read("rose.txt")), reply(write("rose.txt", "both"))), "was resolved by the model"),
        ((reply(ToolCall("d", "delete", '{"path": "rose.txt"}')),), "stands as on `main`"),
    ],
)
async def test_whose_version_stands_is_told(door: Door, does: tuple[Reply, ...], stands: str) -> None:
    """What the base branch deleted has no markers: a model that did nothing resolved nothing."""
    world, task = door.world, await worked(door)
    world.commands["water"] = lambda _: ExecResult(0, "", "", 0.1, timed_out=False)
    base = world.shop.branches["main"] = world.shop.keep({"lily.txt": b"new"}, "her")
    world.shop.parents[base] = world.shop.history(world.shop.branches[task.branch])[-1]
    made = await update(door, task, Script(*does, reply(finish("Both."))))
    fact = await ended(world, task, made.seq)
    assert fact.summary == f"`main` is merged in, as of `{base[:8]}`. Of what conflicted, `rose.txt` {stands}."


async def test_markers_that_are_left_are_told_and_then_nothing_is_pushed(door: Door) -> None:
    """`finish` is refused by name of the file, and after three times the branch is as it was."""
    world, task = door.world, await worked(door)
    before, _ = world.shop.branches[task.branch], world.shop.theirs("main", rose_txt=b"watered\n")
    script = Script(*[reply(finish("Done.", f"f{number}")) for number in range(3)])
    made = await update(door, task, script)
    fact = await ended(world, task, made.seq)
    assert fact.outcome == "failed"
    assert fact.reason == "Conflicts are left in `rose.txt`, so nothing of the merge was pushed."
    assert "conflict markers are left in these files" in script.prompts[1].messages[-1].text
    assert "'rose.txt'" in script.prompts[1].messages[-1].text
    assert world.shop.branches[task.branch] == before
    assert sorted(world.shop.branches) == sorted(["main", task.branch])


@pytest.mark.parametrize("path", ["rosa.txt", "rose.txt~{head}", "rose.txt~{base}_0"])
async def test_markers_that_were_moved_are_left(door: Door, path: str) -> None:
    """Neither another name of the file nor one that git makes up for a side resolves anything."""
    world, task = door.world, await worked(door)
    before, base = world.shop.branches[task.branch], world.shop.theirs("main", rose_txt=b"watered\n")
    path = path.format(head=before, base=base)
    clean = () if path == "rosa.txt" else (reply(read("rose.txt")), reply(write("rose.txt", "both")))
    move = ToolCall("m", "move", json.dumps({"path": "rose.txt", "target": path}))
    script = Script(*clean, reply(move), *[reply(finish("Done.", f"f{number}")) for number in range(3)])
    made = await update(door, task, script)
    fact = await ended(world, task, made.seq)
    assert (fact.outcome, world.shop.branches[task.branch]) == ("failed", before)
    assert fact.reason == f"Conflicts are left in `{path}`, so nothing of the merge was pushed."


async def test_what_is_said_meanwhile_is_done_behind_it(door: Door) -> None:
    """Who resolves conflicts is to change nothing else, so words for the work begin a run of their own."""
    world, task = door.world, await worked(door)
    world.shop.theirs("main", rose_txt=b"watered\n")

    class Says(Mortal):
        async def __call__(self, name: str, action: Action) -> Json:
            if name == "model/2":
                await door.comment("/agent fix Also add a lily.", number=task.pull_number or 0, pr=True)
            return await super().__call__(name, action)

    assert task.pull_number is not None
    _, made = await taken(world, await door.comment("/agent update", number=task.pull_number, pr=True))
    script = Script(*RESOLVES)
    await Workflow(world.desk(script))(made.id, Says(world, made))
    assert (await ended(world, task, made.seq)).outcome == "done"
    assert not any("lily" in text_of(prompt.messages) for prompt in script.prompts)
    *_, last = await world.store.runs(task.id)
    assert (last.intent, last.request, last.state) == ("fix", "Also add a lily.", "queued")


async def test_protected_files_are_not_resolved_by_the_model(door: Door) -> None:
    """What people decide about is theirs to resolve; nothing is pushed."""
    world, task = door.world, await worked(door)
    before, _ = world.shop.branches[task.branch], world.shop.theirs("main", rose_txt=b"watered\n")
    world.commands["make ci"] = puts({PATH: b"on: push\n"})
    made = await update(door, task, Script(*RESOLVES[:2], reply(run("make ci")), RESOLVES[2]))
    fact = await ended(world, task, made.seq)
    assert fact.outcome == "failed"
    assert f"`{PATH}`, which people decide about, so nothing of the merge was pushed" in fact.reason
    assert world.shop.branches[task.branch] == before


async def test_what_others_deleted_is_not_the_works(door: Door) -> None:
    """Of the base branch's files, as it is merged in, the model took a few away."""
    world, shop = door.world, door.world.shop
    files = {f"f{number}": b"text" for number in range(20)} | {"rose.txt": b"dry"}
    shop.branches["main"] = shop.keep(files, "many")
    task = await worked(door)
    before = shop.theirs("main", rose_txt=b"watered\n")
    gone = {f"f{number}" for number in range(15, 20)}
    left = {path: text for path, text in shop.commits[before].items() if path not in gone}
    shop.branches["main"] = shop.keep(left, "fewer")
    shop.parents[shop.branches["main"]] = before
    world.commands |= {f"rm {number}": removes(f"f{number}") for number in range(2)}
    made = await update(door, task, Script(reply(run("rm 0", "a")), reply(run("rm 1", "b")), *RESOLVES))
    assert (await ended(world, task, made.seq)).outcome == "done"


async def test_what_the_model_says_is_no_plan_that_people_approved(door: Door) -> None:
    """Its account may be any text, that of a plan which named the file too."""
    world, task = door.world, await worked(door)
    before, _ = world.shop.branches[task.branch], world.shop.theirs("main", rose_txt=b"watered\n")
    plan = PlanProposed(1, "Both.", [PATH], None, (), "It waits.")
    await world.store.record(task.id, 1, "plan", plan, world.clock())
    world.commands["make ci"] = puts({PATH: b"on: push\n"})
    made = await update(door, task, Script(*RESOLVES[:2], reply(run("make ci")), RESOLVES[2]))
    fact = await ended(world, task, made.seq)
    assert fact.outcome == "failed"
    assert f"`{PATH}`, which people decide about" in fact.reason
    assert world.shop.branches[task.branch] == before


async def test_a_limit_drops_the_merge(door: Door) -> None:
    """What is resolved by half is pushed nowhere."""
    world, task = door.world, await worked(door)
    before, _ = dict(world.shop.branches), world.shop.theirs("main", rose_txt=b"watered\n")
    world.settings = world.settings.model_copy(update={"limits": LimitsSection(turns=1)})
    made = await update(door, task, Script(RESOLVES[1]))
    assert (await ended(world, task, made.seq)).outcome == "budget"
    assert {**world.shop.branches, "main": ""} == {**before, "main": ""}


async def test_the_branch_does_not_move_below_work_that_waits(door: Door) -> None:
    """A commit that people decide about stands on it."""
    world, task = door.world, await worked(door)
    world.commands["make ci"] = puts({PATH: b"on: push\n"})
    assert task.pull_number is not None
    _, more = await taken(world, await door.comment("/agent fix CI.", number=task.pull_number, pr=True))
    await whole(world, more, reply(run("make ci")), reply(finish("CI.")), reply(finish("CI.")))
    assert (await ended(world, task, more.seq)).outcome == "waiting"
    before, _ = world.shop.branches[task.branch], world.shop.theirs("main", lily_txt=b"new")
    made = await update(door, task, Script())
    fact = await ended(world, task, made.seq)
    assert (fact.outcome, fact.reason.partition(" before")[0]) == ("failed", "Work waits for somebody's decision")
    assert world.shop.branches[task.branch] == before


async def test_a_push_meanwhile_drops_the_merge(door: Door) -> None:
    """The branch is theirs, and it is said to ask again."""
    world, task = door.world, await worked(door)
    world.shop.theirs("main", lily_txt=b"new")
    assert task.pull_number is not None
    _, made = await taken(world, await door.comment("/agent update", number=task.pull_number, pr=True))
    steps = Mortal(world, made)

    async def rival(name: str, action: object) -> object:
        if name == "push":
            world.shop.theirs(task.branch, poppy_txt=b"theirs")
        return await steps(name, action)  # type: ignore[arg-type]

    await Workflow(world.desk(Script()))(made.id, rival)
    fact = await ended(world, task, made.seq)
    assert fact.outcome == "failed"
    assert "got commits of others meanwhile, so the merge was not pushed: ask for it again" in fact.reason
    assert "lily.txt" not in world.shop.commits[world.shop.branches[task.branch]]


async def test_a_persons_pull_request_is_brought_up_to_date_too(door: Door) -> None:
    """Nobody worked there: the branch has the merge, and the person's text stays."""
    world = door.world
    world.shop.branches["topic"] = world.shop.branches["main"]
    before = world.shop.theirs("topic", rose_txt=b"wet")
    base = world.shop.theirs("main", lily_txt=b"new")
    world.github.pulls[12] = pull(12, "topic", body="Mine.", author=Actor(2, "moss"))
    handled = await door.comment("/agent update", number=12, pr=True)
    task, made = await checked(world, handled)
    assert (await ended(world, task, made.seq)).outcome == "done"
    assert line(world, "topic") == [before, base]
    assert world.github.pulls[12].body == "Mine."


@pytest.mark.parametrize("inside", [False, True], ids=["before", "inside"])
@pytest.mark.parametrize("step", ["update", "environment", "check/after/1/0", "commit", "push", "pull", "report"])
async def test_a_death_at_a_step_merges_once(door: Door, step: str, *, inside: bool) -> None:
    """The next life ends the run as if nothing had been."""
    world, task = door.world, await worked(door)
    before, base = world.shop.branches[task.branch], world.shop.theirs("main", lily_txt=b"new")
    assert task.pull_number is not None
    _, made = await taken(world, await door.comment("/agent update", number=task.pull_number, pr=True))
    names = ["announce", "prepare", "update/waits", "update", "environment", "check/after/1/0"]
    names += ["check/definitions", "check/proof", "commit", "push", "pull", "check/shown", "report"]
    steps = Mortal(world, made, at=names.index(step) + 1, inside=inside)
    with pytest.raises(Death):
        await Workflow(world.desk(Script()))(made.id, steps)
    assert steps.names[-1] == step
    await Workflow(world.desk(Script()))(made.id, Mortal(world, made))
    assert (await ended(world, task, made.seq)).outcome == "done"
    assert line(world, task.branch) == [before, base]
    notices = [event.fact for event in await world.store.events(task.id) if isinstance(event.fact, Notice)]
    assert not [one for one in notices if "beside it" in one.text]


async def test_the_next_work_goes_on_with_what_was_there(door: Door) -> None:
    """The task's conversation is not lost, and the merged base is what the work is compared with."""
    world, task = door.world, await worked(door)
    world.shop.theirs("main", lily_txt=b"new")
    assert task.pull_number is not None
    await checked(world, await door.comment("/agent update", number=task.pull_number, pr=True))
    _, made = await taken(world, await door.comment("/agent fix More.", number=task.pull_number, pr=True))
    script = await whole(world, made, SCRIPT[0], SCRIPT[2])
    assert "Watered them." in str(script.prompts[0].messages)


async def test_a_question_goes_on_waiting(door: Door) -> None:
    """What is said after the update answers it."""
    world, task = door.world, await worked(door)
    assert task.pull_number is not None
    _, asks = await taken(world, await door.comment("/agent fix More.", number=task.pull_number, pr=True))
    await whole(world, asks, reply(ask("How wet?")))
    assert (await ended(world, task, asks.seq)).outcome == "waiting"
    world.shop.theirs("main", lily_txt=b"new")
    made = await update(door, task, Script())
    assert (await ended(world, task, made.seq)).outcome == "done"
    _, more = await taken(world, await door.comment("/agent fix Very.", number=task.pull_number, pr=True))
    script = await whole(world, more, SCRIPT[0], SCRIPT[2])
    assert "A person answers your question" in script.prompts[0].messages[-1].text


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (f"a\n<<<<<<< {OURS}\nb\n", True),
        (f"a\n>>>>>>> {THEIRS}\n", True),
        ("a\n||||||| 1234567\nb\n", True),
        ("a\n=======\nb\n", True),
        ("Title\n=======\n=======\n", True),
        ("a\n<<<<<<< HEAD\n>>>>>>> other\n", False),
        ("a\n======\n", False),
        ("", False),
    ],
)
def test_markers_are_ours_alone(text: str, left: bool) -> None:  # noqa: FBT001 - a table
    """What looks like one and stands on a side already is text."""
    sides = [b"Title\n=======\n" if "Title" in text else b"", b""]
    assert has_markers(text.encode(), sides, [OURS, THEIRS]) is left


def test_a_heading_of_a_side_is_no_marker() -> None:
    """As reStructuredText has them."""
    assert not has_markers(b"Title\n=======\n", [b"Title\n=======\n", b""], [OURS, THEIRS])
