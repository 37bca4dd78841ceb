"""The checks where people look for them: on each head that is published, on demand, and on what others push."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from bot.domain.events import CheckFinished, Notice
from bot.domain.refs import Actor
from bot.domain.task import Run, Task
from bot.errors import Forbidden, NotFound, TaskRefused
from bot.github.base import CheckRun
from bot.github.evidence import CHECK_NAME
from bot.llm.base import Model
from bot.sandbox.base import ExecResult
from bot.settings.server import ServerSettings
from bot.tasks.engines.base import Action, Json
from bot.tasks.on_github import GitHubPublisher
from bot.tasks.orders import Handled
from bot.tasks.standing import stand
from bot.tasks.workflow import Workflow
from tests.unit.tasks.github import US, MemoryApp, pull
from tests.unit.tasks.made import SHELTER, Copy, Script, World, finish, read, reply, write
from tests.unit.tasks.test_intake import MOSS, Door, issue
from tests.unit.tasks.test_workflow import SCRIPT, Death, Mortal, ended, whole

CONFIG = b"version: 1\nchecks:\n- name: roses\n  run: water\n"
OURS = {"id": US.id, "login": US.login, "type": "Bot"}
OTHER = {"id": 3, "login": "other[bot]", "type": "Bot"}
STALE = "**Stale:** recorded on "
WORK = (*SCRIPT, SCRIPT[-1])
"""`finish` is refused once where the checks have not run since the last edit."""


def water(copy: Copy) -> ExecResult:
    """Pass where the roses are wet, and leave a report."""
    wet = copy.files["rose.txt"] == b"wet"
    copy.files["report.xml"] = b"<x/>"
    told = "1 passed in 0.01s" if wet else "1 failed, 0 passed in 0.01s"
    return ExecResult(0 if wet else 1, told, "", 1.0, timed_out=False)


@pytest.fixture
def door(world: World) -> Door:
    """A repository that names a check."""
    world.github.files[".github/issuewright.yml"] = CONFIG
    world.commands["water"] = water
    return Door(world, ServerSettings(mode="act", independent_review=False))


async def worked(door: Door) -> Task:
    """Let an issue become a pull request."""
    task, one = await door.world.begin()
    await whole(door.world, one, *WORK)
    assert (await ended(door.world, task)).outcome == "done"
    again = await door.world.store.task(task.id)
    assert again is not None
    assert again.pull_number is not None
    return again


def pushes(world: World, branch: str, text: bytes) -> str:
    """Let somebody push another rose."""
    before = world.shop.commits[world.shop.branches[branch]]
    sha = world.shop.branches[branch] = world.shop.keep({**before, "rose.txt": text}, "a person", text)
    return sha


async def synchronize(door: Door, number: int, head: str, sender: object = MOSS) -> Handled:
    """Deliver that a pull request's branch moved."""
    moved = {**issue(number), "head": {"ref": "b", "sha": head, "repo": None}}
    return await door.play("pull_request", action="synchronize", sender=sender, pull_request=moved, before="b" * 40)


async def taken(world: World, handled: Handled) -> tuple[Task, Run]:
    """Take the run that was queued."""
    assert handled.accepted is not None, handled.note
    await world.store.admit("us", slots=9, per_installation=9)
    run = await world.store.run(handled.accepted.task.id, handled.accepted.run.seq)
    assert run is not None
    return handled.accepted.task, run


async def checked(world: World, handled: Handled) -> tuple[Task, Run]:
    """Play a run for which nobody can make a model."""

    def none(name: str, *_: object) -> Model:
        raise AssertionError(f"a model is made: {name}")

    task, run = await taken(world, handled)
    desk = world.desk(Script())
    object.__setattr__(desk, "model", none)
    await Workflow(desk)(run.id, Mortal(world, run))
    assert not await world.store.messages(task.id, run=run.seq)
    return task, run


def on(world: World, head: str) -> CheckRun:
    """Return the one check run of a commit that shows evidence."""
    [check] = [check for check in shown(world) if check.head_sha == head]
    return check


def shown(world: World) -> Sequence[CheckRun]:
    """Return all of them."""
    return [check for check in world.github.own_checks.values() if check.name == CHECK_NAME]


async def notices(world: World, task: Task) -> Sequence[str]:
    """Return what people are told beside the rest."""
    return [event.fact.text for event in await world.store.events(task.id) if isinstance(event.fact, Notice)]


async def test_published_work_carries_its_checks(door: Door) -> None:
    """The pushed head has the check run, and it says what the pull request's text says."""
    world, task = door.world, await worked(door)
    head = world.shop.branches[task.branch]
    check = on(world, head)
    assert (check.name, check.external_id, check.status, check.conclusion) == (
        CHECK_NAME,
        task.id,
        "completed",
        "success",
    )
    assert check.title == "1 of 1 checks pass"
    row = next(line for line in check.summary.split("\n") if line.startswith("| roses"))
    assert "| 1 | 0 |" in row
    [made] = world.github.pulls.values()
    assert row in made.body
    _, further = await world.begin("second", request="Dry again.")
    await whole(world, further, *WORK)
    assert {check.head_sha for check in shown(world)} == {head, world.shop.branches[task.branch]}


@pytest.mark.parametrize("error", [Forbidden("the App needs `checks: write`"), NotFound("no such commit")])
async def test_a_check_run_that_is_not_taken_is_a_notice(door: Door, error: Exception) -> None:
    """The work stands all the same, and people hear why its check is missing."""
    door.world.github.faults["put_check"] = [error]
    task = await worked(door)
    assert not shown(door.world)
    [told] = await notices(door.world, task)
    assert told == f"The check `{CHECK_NAME}` could not be shown: {error}."
    assert str(error).split("`", maxsplit=1)[0] in door.world.github.bodies(7)[-1]


async def test_work_that_nothing_carries_has_no_check(door: Door) -> None:
    """Work that ended early lies on its branch alone."""
    task, one = await door.world.begin()
    await whole(door.world, one, SCRIPT[0], SCRIPT[1], NotFound("gone"))
    assert task.branch in door.world.shop.branches
    assert not shown(door.world)


async def test_the_checks_on_demand(door: Door) -> None:
    """One comment with the table and one check run, both of the head; no model is made and nothing moves."""
    world, task = door.world, await worked(door)
    number = task.pull_number or 0
    head = pushes(world, task.branch, b"dry")
    branches, transcript = dict(world.shop.branches), list(await world.store.messages(task.id))
    _, run = await checked(world, await door.comment("/agent check", number=number, pr=True))
    fact = await ended(world, task, run.seq)
    assert (fact.outcome, fact.reason, fact.turns, fact.tokens) == ("done", "", 0, 0)
    [told] = world.github.bodies(number)
    assert told.startswith(f"**0 of 1 checks pass** on `{head[:8]}`.")
    assert f"on the files of `{head}`" in told
    assert "| roses | `water` | 1 | 0 passed, 1 failed | 1.0 |" in told
    assert "Log of roses" in told
    assert (on(world, head).conclusion, on(world, head).external_id) == ("failure", task.id)
    assert told.split("\n\n", 1)[1].startswith(on(world, head).summary)
    assert world.shop.branches == branches
    assert list(await world.store.messages(task.id)) == transcript
    [ran] = [event.fact for event in await world.store.events(task.id) if event.run == run.seq][-2:-1]
    assert isinstance(ran, CheckFinished)
    assert (ran.phase, ran.commit) == ("head", head)
    assert ran.tree == await Copy(world.shop, {}).tree_of(head)
    assert world.github.reactions[-2:] == [(number, run.comment_id, "eyes"), (number, run.comment_id, "rocket")]


async def test_the_checks_of_a_persons_pull_request(door: Door) -> None:
    """Nobody worked there before, and nobody's text is touched."""
    world = door.world
    world.shop.branches["topic"] = world.shop.keep({"rose.txt": b"wet"}, "a person")
    world.github.pulls[9] = pull(9, "topic", body="### Evidence\n\nMy own eyes.", author=Actor(2, "moss"))
    task, run = await checked(world, await door.comment("/agent check", number=9, pr=True))
    assert (await ended(world, task, run.seq)).outcome == "done"
    [told] = world.github.bodies(9)
    assert told.startswith("**1 of 1 checks pass**")
    assert on(world, world.shop.branches["topic"]).conclusion == "success"
    assert world.github.pulls[9].body == "### Evidence\n\nMy own eyes."


async def test_a_persons_text_is_theirs_after_we_worked_there_too(door: Door) -> None:
    """What we pushed to their branch is not what their own words are about."""
    world, theirs = door.world, "### Evidence\n\nMy own eyes."
    world.shop.branches["topic"] = world.shop.keep({"rose.txt": b"dry"}, "a person")
    world.github.pulls[9] = pull(9, "topic", body=theirs, author=Actor(2, "moss"))
    _, run = await taken(world, await door.comment("/agent fix Water them.", number=9, pr=True))
    await whole(world, run, *WORK)
    assert on(world, world.shop.branches["topic"]).conclusion == "success"
    head = pushes(world, "topic", b"dry")
    assert (await synchronize(door, 9, head)).accepted is None
    await checked(world, await door.comment("/agent check", number=9, pr=True))
    assert on(world, head).conclusion == "failure"
    assert world.github.pulls[9].body == theirs


@pytest.mark.parametrize("commands", [True, False])
async def test_where_nothing_is_run_it_says_so(door: Door, *, commands: bool) -> None:
    """Where no check is known, and where no command may run."""
    world = door.world
    if commands:
        world.github.files.clear()
    else:
        world.shelter = world.shelter.__class__("none", shell=False)
    world.shop.branches["topic"] = world.shop.keep({"rose.txt": b"wet"}, "a person")
    world.github.pulls[9] = pull(9, "topic", author=Actor(2, "moss"))
    task, run = await checked(world, await door.comment("/agent check", number=9, pr=True))
    assert (await ended(world, task, run.seq)).outcome == "done"
    [told] = world.github.bodies(9)
    said = "names no checks and none was recognised" if commands else "No check was run, so nothing shows"
    assert said in told
    assert ("| not run: commands are not run here |" in told) is not commands
    assert on(world, world.shop.branches["topic"]).conclusion == "neutral"


async def test_a_branch_that_is_gone_is_told(door: Door) -> None:
    """There is no head to check; the run says so where it was asked for."""
    world, task = door.world, await worked(door)
    del world.shop.branches[task.branch]
    number = task.pull_number or 0
    _, run = await checked(world, await door.comment("/agent check", number=number, pr=True))
    assert (await ended(world, task, run.seq)).outcome == "failed"
    [told] = world.github.bodies(number)
    assert "is not there any more, so there is nothing to check." in told
    assert len(shown(world)) == 1


async def test_a_check_leaves_the_work_as_it_stands(door: Door) -> None:
    """What is compared later begins where the work began, not at what was only looked at."""
    world, task = door.world, await worked(door)
    first = stand(await world.store.events(task.id), None)
    pushes(world, task.branch, b"dry")
    await checked(world, await door.comment("/agent check", number=task.pull_number or 0, pr=True))
    again = stand(await world.store.events(task.id), None)
    assert again.evidence() == first.evidence()
    assert (again.requests, again.base) == (first.requests, first.base)


async def test_what_a_person_pushes_is_checked_and_old_evidence_is_marked(door: Door) -> None:
    """The new head is red, the text says that its table is of another commit, and the next work takes that back."""
    world, task = door.world, await worked(door)
    number, ours = task.pull_number or 0, world.shop.branches[task.branch]
    text = world.github.pulls[number].body
    for content, conclusion in ((b"dry", "failure"), (b"damp", "failure"), (b"wet", "success")):
        head = pushes(world, task.branch, content)
        reactions, others = list(world.github.reactions), len(world.github.bodies(number))
        await checked(world, await synchronize(door, number, head))
        assert on(world, head).conclusion == conclusion
        mark = f"{STALE}`{ours[:8]}`; the head is `{head[:8]}` by now, and its check `{CHECK_NAME}` says how it stands."
        assert world.github.pulls[number].body == text.replace("### Evidence\n\n", f"### Evidence\n\n{mark}\n\n")
        assert (world.github.reactions, len(world.github.bodies(number))) == (reactions, others)
    assert on(world, ours).conclusion == "success"
    pushes(world, task.branch, b"dry")
    _, further = await world.begin("second", request="Water them.")
    await whole(world, further, *WORK)
    assert STALE not in world.github.pulls[number].body


async def test_pushed_back_the_evidence_is_no_longer_old(door: Door) -> None:
    """A person who takes their commit away finds the text as it was, and keeps what they wrote into it."""
    world, task = door.world, await worked(door)
    number, ours = task.pull_number or 0, world.shop.branches[task.branch]
    pushes(world, task.branch, b"dry")
    await checked(world, await door.comment("/agent check", number=number, pr=True))
    marked = world.github.pulls[number].body
    assert STALE in marked
    theirs = marked.replace("### What was asked", "Looked at by Flora.\n\n### What was asked")
    await world.github.update_pull(task.repository, number, body=theirs)
    world.shop.branches[task.branch] = ours
    await checked(world, await synchronize(door, number, ours, sender=OTHER))
    body = world.github.pulls[number].body
    assert STALE not in body
    assert "Looked at by Flora." in body


async def test_a_text_that_cannot_be_marked_keeps_no_check_from_running(door: Door) -> None:
    """The new head has its check, and the run says what is amiss."""
    world, task = door.world, await worked(door)
    number, head = task.pull_number or 0, pushes(world, task.branch, b"dry")
    world.github.faults["update_pull"] = [Forbidden("no")]
    await checked(world, await synchronize(door, number, head))
    assert on(world, head).conclusion == "failure"
    assert "stands in the pull request's text, unmarked: no." in (await notices(world, task))[-1]


async def test_without_permission_a_push_is_answered_in_a_comment(door: Door) -> None:
    """What cannot be a check run is said where it can be."""
    world, task = door.world, await worked(door)
    number, head = task.pull_number or 0, pushes(world, task.branch, b"dry")
    world.github.faults["put_check"] = [Forbidden("no")]
    await checked(world, await synchronize(door, number, head))
    [told] = world.github.bodies(number)
    assert told.startswith(f"**0 of 1 checks pass** on `{head[:8]}`.")


async def test_pushes_that_begin_nothing(door: Door) -> None:
    """Our own, those to a pull request that we did not open, to one that is closed, and those in the midst of a run."""
    world, task = door.world, await worked(door)
    number = task.pull_number or 0
    world.github.pulls[9] = pull(9, "topic", author=Actor(2, "moss"))
    assert (await synchronize(door, number, "c" * 40, sender=OURS)).note == "our own push"
    assert "none of ours" in (await synchronize(door, 9, "c" * 40)).note
    first = await synchronize(door, number, "c" * 40)
    assert first.accepted is not None
    again = await synchronize(door, number, "c" * 40)
    assert again.accepted is not None
    assert (again.accepted.kind, again.accepted.run.seq) == ("known", first.accepted.run.seq)
    await taken(world, first)
    await world.store.finish(task.id, 2, "done", "", world.clock())
    opened = world.github.pulls[number]
    world.github.pulls[number] = pull(number, opened.head_branch, state="closed")
    assert (await synchronize(door, number, "e" * 40)).state == "ignored"
    assert len(await world.store.runs(task.id)) == 2
    assert world.github.bodies(number) == []


@pytest.mark.parametrize("first", [True, False], ids=["the run that opened it", "a check"])
async def test_a_push_in_the_midst_of_a_run_is_checked_after_it(door: Door, *, first: bool) -> None:
    """The run that was open did not see it; delivered twice, it is checked once."""
    world = door.world
    if first:
        task, run = await world.begin()
    else:
        task = await worked(door)
        _, run = await taken(world, await door.comment("/agent check", number=task.pull_number or 0, pr=True))
    mortal, moved = Mortal(world, run), ""

    async def moving(name: str, action: Action) -> Json:
        nonlocal moved
        if name == "report" and not moved:
            [number] = world.github.pulls
            moved = pushes(world, task.branch, b"damp")
            for _ in range(2):
                assert (await synchronize(door, number, moved)).state == "done"
        return await mortal(name, action)

    await Workflow(world.desk(Script(*WORK)))(run.id, moving)
    assert moved not in {check.head_sha for check in shown(world)}
    [*_, later] = await world.store.runs(task.id)
    assert (later.intent, later.state, later.seq, later.commanded) == ("check", "queued", run.seq + 1, False)
    await world.store.admit("us", slots=9, per_installation=9)
    await Workflow(world.desk(Script()))(later.id, Mortal(world, later))
    assert on(world, moved).conclusion == "failure"
    assert {one.state for one in await world.store.runs(task.id)} == {"finished"}
    assert len(await world.store.runs(task.id)) == later.seq


async def test_a_push_that_the_work_took_in_needs_no_check_of_its_own(door: Door) -> None:
    """Work that was published behind it carries its evidence, and keeps it."""
    world, task = door.world, await worked(door)
    number = task.pull_number or 0
    theirs = pushes(world, task.branch, b"dry")
    _, further = await world.begin("second", request="Water them.")
    assert (await synchronize(door, number, theirs)).accepted is None
    await whole(world, further, *WORK)
    [*_, later] = await world.store.runs(task.id)
    await world.store.admit("us", slots=9, per_installation=9)
    check = on(world, world.shop.branches[task.branch])
    await Workflow(world.desk(Script()))(later.id, steps := Mortal(world, later))
    assert (later.intent, steps.names) == ("check", ["announce", "prepare", "check/stale", "report", "close"])
    assert on(world, world.shop.branches[task.branch]) == check
    assert "| roses | `water` | 1 | 0 |" in check.summary
    assert STALE not in world.github.pulls[number].body


async def test_work_that_was_put_on_a_push_is_checked_where_it_is(door: Door) -> None:
    """The checks ran before others pushed: until they run on the new head, nothing is green there."""
    world, task = door.world, await worked(door)
    number = task.pull_number or 0
    _, further = await world.begin("second", request="Water them.")
    mortal, theirs = Mortal(world, further), ""

    async def pushing(name: str, action: Action) -> Json:
        nonlocal theirs
        if name == "push" and not theirs:
            before = world.shop.branches[task.branch]
            files = {**world.shop.commits[before], "soil.txt": b"moist"}
            theirs = world.shop.branches[task.branch] = world.shop.keep(files, "a person")
            world.shop.parents[theirs] = before
            assert (await synchronize(door, number, theirs)).accepted is None
        return await mortal(name, action)

    wetter = [reply(read("rose.txt")), reply(write("new.txt", "more")), *[reply(finish())] * 2]
    await Workflow(world.desk(Script(*wetter)))(further.id, pushing)
    head = world.shop.branches[task.branch]
    assert {"soil.txt", "new.txt"} <= {*world.shop.commits[head]}
    assert (on(world, head).conclusion, "other files" in on(world, head).title) == ("neutral", True)
    [*_, later] = await world.store.runs(task.id)
    await world.store.admit("us", slots=9, per_installation=9)
    await Workflow(world.desk(Script()))(later.id, Mortal(world, later))
    assert (on(world, head).conclusion, on(world, head).title) == ("success", "1 of 1 checks pass")
    assert STALE not in world.github.pulls[number].body


async def test_a_command_in_the_midst_of_a_run_is_refused(door: Door) -> None:
    """A check joins no run, and its asker is told."""
    task = await worked(door)
    number = task.pull_number or 0
    assert (await door.comment("/agent check", number=number, pr=True)).accepted is not None
    assert (await door.comment("/agent check", number=number, pr=True)).accepted is None
    assert "The task is at work" in door.world.github.bodies(number)[-1]
    assert (await door.comment("/agent check", number=8, pr=False)).accepted is None


STEPS = ["announce", "prepare", "check/stale", "environment", "check/head/1/0", "check/shown", "report", "close"]


@pytest.mark.parametrize("inside", [False, True], ids=["before", "inside"])
@pytest.mark.parametrize("at", range(1, len(STEPS) + 1))
async def test_a_death_at_any_step_changes_nothing(door: Door, at: int, *, inside: bool) -> None:
    """Wherever a process dies, there is one comment, one check run and one mark in the end."""
    world, task = door.world, await worked(door)
    number, head = task.pull_number or 0, pushes(world, task.branch, b"dry")
    _, run = await taken(world, await door.comment("/agent check", number=number, pr=True))
    with pytest.raises(Death):
        await Workflow(world.desk(Script()))(run.id, Mortal(world, run, at=at, inside=inside))
    steps = Mortal(world, run)
    await Workflow(world.desk(Script()))(run.id, steps)
    assert steps.names == STEPS
    assert (await ended(world, task, run.seq)).outcome == "done"
    assert len(world.github.bodies(number)) == 1
    assert len(shown(world)) == 2
    assert on(world, head).conclusion == "failure"
    assert world.github.pulls[number].body.count(STALE) == 1


async def test_a_job_without_a_memory_checks_though_plans_are_wanted(door: Door) -> None:
    """`mode: plan` is about work; a check waits for nobody."""
    world = door.world
    world.github.files[".github/issuewright.yml"] = CONFIG + b"mode: plan\n"
    task, run = await world.begin(intent="check")
    publisher = GitHubPublisher(world.store, MemoryApp(world.github), world.settings, shelter=SHELTER, answerable=False)
    assert (await publisher.settings(task, run)).mode == "act"
    with pytest.raises(TaskRefused, match="plans need the server"):
        await publisher.settings(task, replace(run, intent="fix"))
