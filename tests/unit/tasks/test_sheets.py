"""A plan as a pull request: put on the branch as a file, reviewed by its lines, approved at its head, taken away."""

from dataclasses import replace
from itertools import count

import pytest

from bot.domain.events import Notice, PlanProposed
from bot.domain.messages import ToolResult
from bot.domain.task import Run, Task
from bot.errors import Forbidden
from bot.settings.server import ServerSettings
from bot.tasks.orders import Handled
from bot.tasks.plans import open_plan
from bot.tasks.workflow import Workflow
from tests.unit.tasks.github import US, pull
from tests.unit.tasks.made import Script, Shop, World, finish, read, reply
from tests.unit.tasks.test_intake import FLORA, MOSS, Door
from tests.unit.tasks.test_orders import taken
from tests.unit.tasks.test_planning import WATER, WORKED, facts_of, propose, text_of
from tests.unit.tasks.test_workflow import Death, Mortal, ended, left, whole

PULLS = ServerSettings(mode="plan", plan_as="pull")
REVIEWS = count(8000)


@pytest.fixture
def door(world: World) -> Door:
    """Where plans wait as pull requests."""
    world.settings = PULLS
    world.github.commits = world.shop.commits
    return Door(world, PULLS)


async def planned(door: Door, plan: str = WATER) -> Task:
    """Let a plan wait."""
    handled = await door.comment("/agent fix")
    await whole(door.world, await taken(door.world, handled), reply(propose(plan)))
    assert handled.accepted is not None
    return await now(door, handled.accepted.task)


async def now(door: Door, task: Task) -> Task:
    """Return a task as it is now; its pull request shows where the branch stands, as on GitHub."""
    known = await door.world.store.task(task.id)
    assert known is not None
    if known.pull_number is not None:
        made = door.world.github.pulls[known.pull_number]
        door.world.github.pulls[made.number] = replace(made, head_sha=door.world.shop.branches[task.branch])
    return known


def files(door: Door, task: Task) -> dict[str, bytes]:
    """Return what the task's branch holds."""
    return door.world.shop.commits[door.world.shop.branches[task.branch]]


async def hashes(door: Door, task: Task) -> list[str]:
    """Return the short hashes of all plans, oldest first."""
    return [fact.hash[:8] for fact in await facts_of(door.world, task, PlanProposed) if isinstance(fact, PlanProposed)]


async def review(
    door: Door, task: Task, state: str, body: str = "", *, commit: str | None = None, person: object = FLORA
) -> Handled:
    """Let somebody review the task's pull request, at its head unless told otherwise."""
    seen = commit or door.world.shop.branches[task.branch]
    return await door.play(
        "pull_request_review",
        action="submitted",
        sender=person,
        review={"id": next(REVIEWS), "state": state, "body": body, "user": person, "commit_id": seen},
        pull_request={"number": task.pull_number, "title": "Plan: Water the roses", "user": MOSS},
    )


async def test_a_plan_waits_as_a_draft_that_holds_one_file(door: Door) -> None:
    """The branch has the base's files and the plan; the issue has a short comment that leads there."""
    task = await planned(door)
    [made] = door.world.github.pulls.values()
    [short] = await hashes(door, task)
    assert (made.title, made.draft, made.head_branch) == ("Plan: Water the roses", True, task.branch)
    assert task.pull_number == made.number
    assert f"`/agent approve {short}`, or a review that approves the present head" in made.body
    assert "`/agent plan <text>`, or a review that requests changes" in made.body
    held = files(door, task)
    assert set(held) == {"PLAN.md", "rose.txt"}
    text = held["PLAN.md"].decode()
    assert text.startswith(f"# Plan `{short}`\n\n**Files** it expects to change: `rose.txt`\n\n")
    assert "\n\nIn the words of the model `scripted-1`, unchecked:\n\n> Water" in text
    _, comment = door.world.github.bodies(7)
    assert comment.startswith(f"@flora: **plan `{short}` waits for you.**")
    assert f"It is `PLAN.md` in #{made.number}, to be reviewed line by line" in comment
    assert "> Water" not in comment


async def test_a_long_plan_is_whole_and_what_it_asks_can_be_answered(door: Door) -> None:
    """The file holds all of it, and the pull request says how to answer."""
    handled = await door.comment("/agent fix")
    assert handled.accepted is not None
    long = reply(propose("water " * 3_000 + "and stop", questions=["How wet?"]))
    await whole(door.world, await taken(door.world, handled), long)
    task = await now(door, handled.accepted.task)
    text = files(door, task)["PLAN.md"].decode()
    assert "water and stop" in text
    assert "1. How wet?" in text
    [made] = door.world.github.pulls.values()
    assert "- `/agent answer <text>` answers what it asks, and lets the work begin." in made.body
    run = await taken(door.world, await door.comment("/agent answer Very.", number=made.number, pr=True))
    script = await whole(door.world, run, *WORKED)
    assert "Very." in text_of(script.prompts[0].messages)
    assert files(door, task) == {"rose.txt": b"wet"}


@pytest.mark.parametrize(
    ("there", "name"),
    [
        ({"plan.MD": b"ours"}, "PLAN-7.md"),
        ({"PLAN.md": b"ours", "plan-7.md": b"ours, too"}, "PLAN-7-00000000.md"),
    ],
)
async def test_a_file_of_the_project_stays_as_it_is(door: Door, there: dict[str, bytes], name: str) -> None:
    """The plan takes another name where the repository has one, in whatever case, and only that one goes again."""
    door.world.shop = Shop({"rose.txt": b"dry\n"} | there)
    door.world.github.commits = door.world.shop.commits
    task = await planned(door)
    assert set(files(door, task)) == {"rose.txt", name, *there}
    await whole(door.world, await taken(door.world, await door.comment("/agent approve")), *WORKED)
    assert files(door, task) == {"rose.txt": b"wet"} | there


@pytest.mark.parametrize("how", ["review", "review with a word", "on the pull request", "on the issue"])
async def test_an_approved_plan_goes_before_the_work(door: Door, how: str) -> None:
    """By a review at the head or a command; a commit without the file comes first, and the pull request is renamed."""
    task = await planned(door)
    assert task.pull_number is not None
    before = door.world.shop.branches[task.branch]
    if how.startswith("review"):
        handled = await review(door, task, "approved", "/agent approve" if "word" in how else "Yes.")
    else:
        number = task.pull_number if "pull" in how else 7
        handled = await door.comment("/agent approve", number=number, pr="pull" in how)
    run = await taken(door.world, handled)
    script = await whole(door.world, run, *WORKED)
    assert WATER in text_of(script.prompts[0].messages)
    assert (await ended(door.world, task, 2)).outcome == "done"
    assert files(door, task) == {"rose.txt": b"wet"}
    [made] = door.world.github.pulls.values()
    assert made.title == "Water the roses"
    assert made.body.startswith("Closes #7")
    shop = door.world.shop
    parents = [shop.parents[shop.branches[task.branch]]]
    assert shop.commits[parents[0]] == {"rose.txt": b"dry\n"}
    assert shop.parents[parents[0]] == before


async def test_a_review_of_another_head_approves_nothing(door: Door) -> None:
    """It is answered with the present one; so is a review of a head whose file somebody changed."""
    task = await planned(door)
    assert task.pull_number is not None
    handled = await review(door, task, "approved", commit="b" * 40)
    assert handled.accepted is None
    head = door.world.shop.branches[task.branch]
    said = door.world.github.bodies(task.pull_number)[-1]
    assert f"That review approves `{'b' * 12}`, and the present head is `{head[:12]}`." in said
    held = files(door, task)
    door.world.shop.branches[task.branch] = door.world.shop.keep(held | {"PLAN.md": b"Do something else."}, "theirs")
    await now(door, task)
    assert (await review(door, task, "approved", "/agent approve")).accepted is None
    assert "`PLAN.md` is not plan" in door.world.github.bodies(task.pull_number)[-1]
    [short] = await hashes(door, task)
    assert (await door.comment(f"/agent approve {short}")).accepted is None
    assert "`PLAN.md` is not plan" in door.world.github.bodies(7)[-1]
    assert await open_plan(door.world.store, task) is not None
    door.world.shop.branches[task.branch] = door.world.shop.keep(held | {"more.txt": b"theirs"}, "theirs")
    await now(door, task)
    assert (await review(door, task, "approved")).accepted is not None


async def test_who_may_not_write_approves_nothing(door: Door) -> None:
    """Neither a reader nor a bot, and a review that only comments says nothing of the plan."""
    task = await planned(door)
    assert task.pull_number is not None
    for state, person in [
        ("approved", {"id": 2, "login": "moss", "type": "User"}),
        ("approved", {"id": 3, "login": "robot[bot]", "type": "Bot"}),
        ("commented", FLORA),
    ]:
        assert (await review(door, task, state, person=person)).accepted is None
    assert door.world.github.bodies(task.pull_number) == []
    assert await open_plan(door.world.store, task) is not None


async def test_an_approval_where_no_plan_waits_is_passed_over(door: Door) -> None:
    """The work is done: it is for people to merge, and nobody is answered, whoever they are."""
    task = await planned(door)
    await whole(door.world, await taken(door.world, await door.comment("/agent approve")), *WORKED)
    task = await now(door, task)
    assert task.pull_number is not None
    for person in (FLORA, {"id": 2, "login": "moss", "type": "User"}):
        handled = await review(door, task, "approved", person=person)
        assert (handled.state, handled.note) == ("ignored", "an approval where no plan waits")
    assert door.world.github.bodies(task.pull_number) == []


async def test_a_review_that_requests_changes_revises_the_file(door: Door) -> None:
    """Who plans hears the review and what was said on lines; the old plan is superseded, its commit stays."""
    task = await planned(door)
    assert task.pull_number is not None
    github, shop = door.world.github, door.world.shop
    first = shop.branches[task.branch]
    said = github.reviews.review(task.pull_number, replace(US, id=1, login="flora", is_bot=False), "CHANGES_REQUESTED")
    github.reviews.begin(task.pull_number, said, "PLAN.md", 5, "Ask the gardener.")
    github.reviews.begin(task.pull_number, said, "PLAN.md", 9, "Not the tulips.")
    run = await taken(door.world, await review(door, task, "changes_requested", "Not like that."))
    assert run.intent == "plan"
    script = await whole(door.world, run, reply(propose("Ask, then water.")))
    told = text_of(script.prompts[0].messages)
    assert [
        part for part in (WATER, "Not like that.", "Ask the gardener.", "Not the tulips.") if part not in told
    ] == []
    assert "by flora (writer)\n" in told
    assert "answer_thread" not in told
    task = await now(door, task)
    assert task.pull_number is not None
    assert b"> Ask, then water." in files(door, task)["PLAN.md"]
    assert shop.parents[shop.branches[task.branch]] == first
    one, two = await hashes(door, task)
    assert github.bodies(7)[1].startswith(f"**Superseded.** Plan `{one}`")
    assert f"**plan `{two}` waits for you.**" in github.bodies(task.pull_number)[-1]
    assert f"**Plan `{two}`**" in github.pulls[task.pull_number].body
    assert (await review(door, task, "approved", commit=first)).accepted is None
    run = await taken(door.world, await review(door, task, "approved"))
    script = await whole(door.world, run, *WORKED)
    assert "answer_thread" not in text_of(script.prompts[0].messages)
    assert (await ended(door.world, task, 3)).outcome == "done"
    assert files(door, task) == {"rose.txt": b"wet"}


async def test_what_a_planner_is_not_told_people_are(door: Door) -> None:
    """A planner answers in no threads, so that a notice says it."""
    task = await planned(door)
    assert task.pull_number is not None
    github = door.world.github
    said = github.reviews.review(task.pull_number, replace(US, id=1, login="flora", is_bot=False), "CHANGES_REQUESTED")
    for line in range(1, 30):
        github.reviews.begin(task.pull_number, said, "PLAN.md", line, "x" * 65_000)
    run = await taken(door.world, await review(door, task, "changes_requested", "Not like that."))
    script = await whole(door.world, run, reply(propose("Ask, then water.")))
    told = text_of(script.prompts[0].messages)
    assert len(told) < 90_000
    untold = 29 - told.count("review thread T")
    notices = [event.fact.text for event in await door.world.store.events(task.id) if isinstance(event.fact, Notice)]
    assert f"There was not room for all: {untold} threads are left for the next round." in notices


async def test_a_question_about_the_plan_is_answered_there(door: Door) -> None:
    """On the pull request, and the plan goes on waiting on its branch."""
    task = await planned(door)
    assert task.pull_number is not None
    head = door.world.shop.branches[task.branch]
    run = await taken(door.world, await door.comment("/agent ask Why?", number=task.pull_number, pr=True))
    script = await whole(door.world, run, reply(read("PLAN.md")), reply(finish("It is dry.")))
    [told] = script.prompts[1].messages[-1].parts
    assert isinstance(told, ToolResult)
    assert "# Plan `" in told.text
    assert "> It is dry." in door.world.github.bodies(task.pull_number)[-1]
    assert door.world.shop.branches[task.branch] == head
    assert (await review(door, task, "approved")).accepted is not None


@pytest.mark.parametrize("why", ["drafts", "forbidden", "another's"])
async def test_where_no_pull_request_can_be_opened_it_is_a_comment(door: Door, why: str) -> None:
    """It says why, and its command lets the work begin, which carries no plan."""
    github = door.world.github
    handled = await door.comment("/agent fix")
    assert handled.accepted is not None
    task = handled.accepted.task
    if why == "drafts":
        github.drafts = False
    elif why == "forbidden":
        github.faults["open_pull"] = [Forbidden("may not open pull requests", status=403)]
    else:
        github.pulls[70] = pull(70, task.branch, author=replace(US, id=1))
    await whole(door.world, await taken(door.world, handled), reply(propose()))
    comment = door.world.github.bodies(7)[-1]
    expected = {"drafts": "allows no drafts", "forbidden": "may not open", "another's": "#70, which is not ours"}
    assert "**Note:** the plan could not be put as a pull request, so it stands here." in comment
    assert expected[why] in comment
    assert "> Water" in comment
    await whole(door.world, await taken(door.world, await door.comment("/agent approve")), *WORKED)
    assert files(door, task) == {"rose.txt": b"wet"}


async def test_a_push_that_is_refused_leaves_a_comment(door: Door) -> None:
    """Somebody pushed to the branch in the meantime: nothing of theirs is lost, and the plan stands on the issue."""
    handled = await door.comment("/agent fix")
    assert handled.accepted is not None
    task = handled.accepted.task
    script = Script(reply(propose()))
    run = await taken(door.world, handled)
    shop, look = door.world.shop, door.world.shop.remote_head

    async def late(task_id: str, origin: object, branch: str) -> str | None:
        stands = await look(task_id, origin, branch)  # type: ignore[arg-type]
        if script.prompts and branch == task.branch:
            shop.branches[branch] = shop.keep({"theirs.txt": b"x"}, "theirs")
        return stands

    shop.remote_head = late  # type: ignore[method-assign]
    await Workflow(door.world.desk(script))(run.id, Mortal(door.world, run))
    assert set(files(door, task)) == {"theirs.txt"}
    assert "so it stands here" in door.world.github.bodies(7)[-1]
    assert (await ended(door.world, task)).outcome == "waiting"


async def test_work_on_the_branch_is_no_place_for_a_plan(door: Door) -> None:
    """A plan that is asked for behind the first work is a comment."""
    task = await planned(door)
    await whole(door.world, await taken(door.world, await door.comment("/agent approve")), *WORKED)
    run = await taken(door.world, await door.comment("/agent plan Now the tulips."))
    await whole(door.world, run, reply(propose("Tulips.")))
    assert "> Tulips." in door.world.github.bodies(7)[-1]
    assert set(files(door, task)) == {"rose.txt"}


async def test_a_file_that_the_project_adds_later_is_its_own(door: Door) -> None:
    """Once the work stands there, the name is nothing to us any more."""
    task = await planned(door)
    await whole(door.world, await taken(door.world, await door.comment("/agent approve")), *WORKED)
    shop = door.world.shop
    shop.branches[task.branch] = shop.keep({"rose.txt": b"dry again", "PLAN.md": b"theirs"}, "theirs")
    await whole(door.world, await taken(door.world, await door.comment("/agent fix Again.")), reply(propose()))
    await whole(door.world, await taken(door.world, await door.comment("/agent approve")), *WORKED)
    assert files(door, task) == {"rose.txt": b"wet", "PLAN.md": b"theirs"}


async def test_work_without_a_change_leaves_the_plan(door: Door) -> None:
    """Nothing is published, so the file is still what people see."""
    task = await planned(door)
    head = door.world.shop.branches[task.branch]
    run = await taken(door.world, await door.comment("/agent approve"))
    await whole(door.world, run, reply(finish("Nothing to do.")))
    assert (await ended(door.world, task, 2)).outcome == "failed"
    assert door.world.shop.branches[task.branch] == head
    assert door.world.github.pulls[task.pull_number or 0].title.startswith("Plan: ")


async def played(world: World, one: Run, *story: object, at: int, inside: bool) -> None:
    """Work on a run that dies at a step, and then again by another life."""
    script = Script(*story)  # type: ignore[arg-type]
    steps = Mortal(world, one, at=at, inside=inside)
    try:
        await Workflow(world.desk(script))(one.id, steps)
    except Death:
        lost = inside and steps.names[-1].startswith("model/")
        rest = story[len(script.prompts) - lost :]
        await Workflow(world.desk(Script(*rest)))(one.id, Mortal(world, one))  # type: ignore[arg-type]


@pytest.mark.parametrize("inside", [False, True], ids=["before", "inside"])
@pytest.mark.parametrize("at", range(1, 9))
async def test_a_death_while_the_plan_is_put_changes_nothing(door: Door, at: int, *, inside: bool) -> None:
    """One commit, one pull request, one comment, whatever step the death comes at."""
    world = door.world
    handled = await door.comment("/agent fix")
    one = await taken(world, handled)
    await played(world, one, reply(propose()), at=at, inside=inside)
    assert handled.accepted is not None
    task = await now(door, handled.accepted.task)
    assert (await ended(world, task)).outcome == "waiting"
    assert len(world.github.pulls) == 1
    assert world.shop.parents[world.shop.branches[task.branch]] == world.shop.branches["main"]
    assert len(world.github.bodies(7)) == 2
    before = await left(world, task)
    await Workflow(world.desk(Script()))(one.id, Mortal(world, one))
    assert await left(world, task) == before


@pytest.mark.parametrize("inside", [False, True], ids=["before", "inside"])
@pytest.mark.parametrize("at", range(1, 20))
async def test_a_death_while_it_is_carried_out_changes_nothing(door: Door, at: int, *, inside: bool) -> None:
    """The file goes once, the work comes once, on the same pull request."""
    world, task = door.world, await planned(door)
    before = world.shop.branches[task.branch]
    one = await taken(world, await review(door, task, "approved"))
    await played(world, one, *WORKED, at=at, inside=inside)
    assert (await ended(world, task, 2)).outcome == "done"
    assert files(door, task) == {"rose.txt": b"wet"}
    assert world.shop.parents[world.shop.parents[world.shop.branches[task.branch]]] == before
    [made] = world.github.pulls.values()
    assert made.title == "Water the roses"
