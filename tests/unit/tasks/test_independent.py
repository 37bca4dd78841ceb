"""The check run of an independent review: green for exactly the head that a writer approved who had no part in it."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from bot.domain.events import Notice
from bot.domain.refs import Actor
from bot.domain.task import Task
from bot.domain.trigger import ReviewState
from bot.errors import Forbidden, RateLimited
from bot.github.base import CheckRun
from bot.settings.server import ServerSettings
from bot.tasks import independent
from tests.unit.tasks.made import World, finish, reply, write
from tests.unit.tasks.test_intake import FLORA, MOSS, Door
from tests.unit.tasks.test_orders import taken
from tests.unit.tasks.test_planning import WORKED, facts_of
from tests.unit.tasks.test_rounds import answer
from tests.unit.tasks.test_workflow import ended, whole

SETTINGS = ServerSettings(mode="act")
OTTO = Actor(4, "otto", is_bot=False)
NAME = "issuewright/independent-review"


@pytest.fixture
def door(world: World) -> Door:
    """Where flora and otto may write."""
    world.settings = SETTINGS
    made = Door(world, SETTINGS)
    world.github.permissions |= {OTTO.id: "write", 5: "write"}
    return made


async def worked(door: Door) -> Task:
    """Let flora have work done."""
    handled = await door.comment("/agent fix")
    await whole(door.world, await taken(door.world, handled), *WORKED)
    assert handled.accepted is not None
    return await now(door, handled.accepted.task)


async def now(door: Door, task: Task) -> Task:
    """Return a task as it is now; its pull request shows where the branch stands, as on GitHub."""
    known = await door.world.store.task(task.id)
    assert known is not None
    assert known.pull_number is not None
    made = door.world.github.pulls[known.pull_number]
    door.world.github.pulls[made.number] = replace(made, head_sha=door.world.shop.branches[task.branch])
    return known


def head(door: Door, task: Task) -> str:
    """Return where the branch stands."""
    return door.world.shop.branches[task.branch]


def shown(door: Door, task: Task, sha: str = "") -> CheckRun:
    """Return the check run of a head."""
    return door.world.github.own_checks[sha or head(door, task), NAME, task.id]


async def review(door: Door, task: Task, by: Actor, state: ReviewState = "APPROVED", *, commit: str = "") -> int:
    """Let somebody review, and GitHub tell of it."""
    assert task.pull_number is not None
    made = door.world.github.reviews.review(task.pull_number, by, state, commit=commit or head(door, task))
    await tell(door, task, by, made.id, state, made.commit or "")
    return made.id


async def tell(door: Door, task: Task, by: Actor, review_id: int, state: str, commit: str) -> None:
    """Deliver what became of a review."""
    person = {"id": by.id, "login": by.login, "type": "Bot" if by.is_bot else "User"}
    await door.play(
        "pull_request_review",
        action="dismissed" if state == "DISMISSED" else "submitted",
        sender=person,
        review={"id": review_id, "state": state.lower(), "body": "", "user": person, "commit_id": commit},
        pull_request={"number": task.pull_number, "title": "Water the roses", "user": MOSS},
    )


async def test_work_waits_for_somebody_else(door: Door) -> None:
    """From the moment at which it is published, also where its requester approves it."""
    task = await worked(door)
    check = shown(door, task)
    assert (check.status, check.conclusion) == ("completed", "action_required")
    assert check.title == "Waits for a writer other than those who asked"
    assert "Those were: `flora`." in check.summary
    for login in ("flora", "renamed-since"):
        await review(door, task, Actor(1, login, is_bot=False))
        assert shown(door, task).conclusion == "action_required"


async def test_an_approval_of_this_head_by_another_writer_turns_it_green(door: Door) -> None:
    """One of an earlier head does not, nor one that is taken back."""
    task = await worked(door)
    await review(door, task, OTTO, commit="b" * 40)
    assert shown(door, task).conclusion == "action_required"
    await review(door, task, OTTO)
    assert (shown(door, task).conclusion, shown(door, task).title) == ("success", "Approved by otto")
    await review(door, task, OTTO, "COMMENTED")
    assert shown(door, task).conclusion == "success"
    await review(door, task, OTTO, "CHANGES_REQUESTED")
    assert shown(door, task).conclusion == "action_required"


async def test_a_dismissed_approval_counts_no_more(door: Door) -> None:
    """GitHub tells of that by itself."""
    task = await worked(door)
    number = await review(door, task, OTTO)
    assert shown(door, task).conclusion == "success"
    given = door.world.github.reviews.given[task.pull_number or 0]
    given[:] = [replace(one, state="DISMISSED") for one in given]
    await tell(door, task, Actor(1, "flora", is_bot=False), number, "DISMISSED", head(door, task))
    assert shown(door, task).conclusion == "action_required"


@pytest.mark.parametrize(
    "by", [Actor(2, "reader", is_bot=False), Actor(6, "robot[bot]", is_bot=True), Actor(7, "gone", is_bot=False)]
)
async def test_who_may_not_write_approves_nothing(door: Door, by: Actor) -> None:
    """As GitHub says it at that moment; nobody is answered."""
    door.world.github.permissions[6] = "admin"
    task = await worked(door)
    await review(door, task, by)
    assert shown(door, task).conclusion == "action_required"
    assert door.world.github.bodies(task.pull_number or 0) == []


async def test_who_instructs_later_has_a_part_in_it(door: Door) -> None:
    """By a command that begins a run, or one that a run hears; a new head waits anew."""
    task = await worked(door)
    await review(door, task, OTTO)
    first = head(door, task)
    further = await door.comment("/agent fix More.", person={"id": 4, "login": "otto", "type": "User"})
    run = await taken(door.world, further)
    await door.comment("/agent fix And more.", person={"id": 5, "login": "iris", "type": "User"})
    script = (WORKED[0], *(replace(one) for one in WORKED[1:]))
    door.world.shop.branches[task.branch] = door.world.shop.keep({"rose.txt": b"dry again"}, "moved")
    await whole(door.world, run, *script)
    assert (await ended(door.world, task, 2)).outcome == "done"
    task = await now(door, task)
    assert head(door, task) != first
    assert shown(door, task).conclusion == "action_required"
    renamed = Actor(5, "renamed-since", is_bot=False)
    for by in (OTTO, Actor(5, "iris", is_bot=False), Actor(55, "Iris", is_bot=False), renamed):
        door.world.github.permissions[by.id] = "write"
        await review(door, task, by)
        assert shown(door, task).conclusion == "action_required"
    assert shown(door, task, first).conclusion == "success"


async def test_who_pushes_has_a_part_in_it(door: Door) -> None:
    """What a person pushed to the branch is theirs, and needs somebody else."""
    task = await worked(door)
    door.world.shop.branches[task.branch] = sha = door.world.shop.keep({"rose.txt": b"wetter"}, "theirs")
    task = await now(door, task)
    await door.play(
        "pull_request",
        action="synchronize",
        sender={"id": 4, "login": "otto", "type": "User"},
        before="c" * 40,
        after=sha,
        pull_request={"number": task.pull_number, "title": "Water", "user": MOSS, "head": {"sha": sha}},
    )
    assert shown(door, task).conclusion == "action_required"
    await review(door, task, OTTO)
    assert shown(door, task).conclusion == "action_required"
    await review(door, task, Actor(5, "iris", is_bot=False))
    assert shown(door, task).conclusion == "success"


async def test_who_pushes_at_the_same_moment_is_known_too(door: Door) -> None:
    """Deliveries are handled side by side, and none of them forgets another."""
    task = await worked(door)

    async def push(person: int) -> None:
        await door.play(
            "pull_request",
            action="synchronize",
            sender={"id": person, "login": f"p{person}", "type": "User"},
            before="c" * 40,
            after=f"{person:040}",
            pull_request={"number": task.pull_number, "title": "Water", "user": MOSS, "head": {"sha": f"{person:040}"}},
        )

    people = range(20, 30)
    await asyncio.gather(*map(push, people))
    for person in people:
        door.world.github.permissions[person] = "write"
        await review(door, task, Actor(person, f"renamed{person}", is_bot=False))
        assert shown(door, task).conclusion == "action_required"


async def test_whose_words_on_a_line_are_carried_out_took_part(door: Door) -> None:
    """Also where somebody else gave the command; who said something only behind it did not."""
    task = await worked(door)
    reviews, number = door.world.github.reviews, task.pull_number or 0
    iris = Actor(5, "iris", is_bot=False)
    reviews.begin(number, reviews.review(number, OTTO, "COMMENTED"), "rose.txt", 1, "Wetter.")
    handled = await door.comment("/agent fix", number=number, pr=True)
    reviews.now += timedelta(hours=9)
    reviews.begin(number, reviews.review(number, iris, "COMMENTED"), "rose.txt", 1, "Good.")
    run = await taken(door.world, handled)
    await whole(door.world, run, reply(write("rose.txt", "wetter")), reply(answer("T1")), reply(finish()))
    task = await now(door, task)
    await review(door, task, OTTO)
    assert shown(door, task).conclusion == "action_required"
    assert "`otto`" in shown(door, task).summary
    await review(door, task, iris)
    assert shown(door, task).title == "Approved by iris"


async def test_without_permission_people_are_told_once(door: Door) -> None:
    """The work is published all the same."""
    door.world.github.faults["put_check"] = [Forbidden("needs `checks: write`", status=403)] * 9
    task = await worked(door)
    assert (await ended(door.world, task)).outcome == "done"
    told = [fact.text for fact in await facts_of(door.world, task, Notice) if isinstance(fact, Notice)]
    assert [text for text in told if NAME in text] == [
        f"Whether somebody else approved the work cannot be shown as `{NAME}`: needs `checks: write`."
    ]
    await review(door, task, OTTO)
    assert await independent.show(door.world.store, door.world.github, task, task.pull_number or 0, "a" * 40) == ""


async def test_a_moment_without_github_is_waited_for(door: Door) -> None:
    """The delivery is handled again then, and nothing is done twice."""
    task = await worked(door)
    door.world.github.faults["put_check"] = [RateLimited("slow down", retry_after_s=1)]
    with pytest.raises(RateLimited):
        await review(door, task, OTTO)
    [given] = door.world.github.reviews.given[task.pull_number or 0]
    await tell(door, task, OTTO, given.id, "APPROVED", head(door, task))
    assert shown(door, task).conclusion == "success"


async def test_an_operator_may_do_without(world: World) -> None:
    """Then there is no such check run."""
    world.settings = ServerSettings(mode="act", independent_review=False)
    door = Door(world, world.settings)
    world.github.permissions[OTTO.id] = "write"
    task = await worked(door)
    await review(door, task, OTTO)
    assert [name for _, name, _ in world.github.own_checks if name == NAME] == []
    assert (await door.comment("/agent fix", person=FLORA)).accepted is not None
