"""From a delivery to a run, a message or an answer; handling one twice changes nothing."""

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import count

import pytest

from bot.domain.events import PlanProposed, QuestionAsked, RunFinished, RunQueued
from bot.domain.task import Run, Task
from bot.errors import Forbidden, GitHubError, GitHubUnavailable, RateLimited
from bot.github.base import Permission
from bot.settings.server import ServerSettings
from bot.store.base import Delivery
from bot.tasks.before import left_open
from bot.tasks.intake import Intake
from bot.tasks.orders import Handled
from tests.unit.tasks.github import REPOSITORY, MemoryApp, pull
from tests.unit.tasks.made import START, World

FLORA = {"id": 1, "login": "flora", "type": "User"}
MOSS = {"id": 2, "login": "moss", "type": "User"}
BOT = {"id": 3, "login": "other[bot]", "type": "Bot"}


class Door:
    """An intake with what it was told."""

    def __init__(self, world: World, settings: ServerSettings, *, served: bool = True) -> None:
        world.github.permissions = {1: "write", 2: "read"}
        self.world = world
        self.stopped: list[str] = []
        self.app = MemoryApp(world.github)
        ids = (f"{number:032x}" for number in count(1))
        self.intake = Intake(
            world.store,
            self.app,
            settings,
            ids=lambda: next(ids),
            clock=world.clock,
            stop=self.stopped.append,
            served=served,
        )

    async def play(self, event: str, **payload: object) -> Handled:
        """Hand a delivery over."""
        body = {
            "repository": {
                "id": REPOSITORY.id,
                "full_name": REPOSITORY.full_name,
                "default_branch": "main",
                "private": True,
            },
            "installation": {"id": 11},
            **payload,
        }
        return await self.intake.handle(Delivery("g", event, None, json.dumps(body).encode(), START))

    async def comment(
        self, text: str, *, number: int = 7, person: object = FLORA, pr: bool = False, **more: object
    ) -> Handled:
        """Let somebody comment; each comment has an id of its own."""
        comment = {"id": next(IDS), "body": text, "user": person}
        return await self.play_comment(comment, number=number, person=person, pr=pr, **more)

    async def play_comment(
        self, comment: object, *, number: int = 7, person: object = FLORA, pr: bool = False, **more: object
    ) -> Handled:
        """Deliver a comment."""
        return await self.play(
            "issue_comment", action="created", sender=person, issue=issue(number, pr=pr), comment=comment, **more
        )

    async def label(
        self, action: str = "labeled", *, at: str = "1", person: object = FLORA, name: str = "agent"
    ) -> Handled:
        """Let somebody add or take the label."""
        return await self.play(
            "issues", action=action, sender=person, label={"id": 5, "name": name}, issue=issue(7, at=at)
        )


IDS: Iterator[int] = count(1000)


def issue(number: int, *, pr: bool = False, at: str = "1") -> dict[str, object]:
    """Make an issue, or the issue half of a pull request."""
    made: dict[str, object] = {
        "number": number,
        "title": "Water the roses",
        "body": "They are dry.",
        "user": MOSS,
        "updated_at": at,
        "closed_at": at,
    }
    return made | {"pull_request": {"html_url": "x"}} if pr else made


@pytest.fixture
def door(world: World) -> Door:
    """An intake with the operator's defaults."""
    return Door(world, ServerSettings())


async def test_a_label_of_a_writer_is_a_run(door: Door) -> None:
    """The label, added by somebody who may write, begins a task on a branch of its own."""
    handled = await door.label()
    assert handled.accepted is not None
    assert (handled.state, handled.accepted.kind) == ("done", "new")
    task, run = handled.accepted.task, handled.accepted.run
    assert (task.branch, task.base_branch, task.title, task.requester) == (
        "agent/7-00000000",
        "main",
        "Water the roses",
        "flora",
    )
    assert (run.request, run.model, run.comment_id, run.state) == ("", None, None, "queued")
    assert door.world.github.reactions == [(7, None, "eyes")]
    assert door.app.asked == [11]
    facts = [event.fact for event in await door.world.store.events(task.id)]
    assert facts == [RunQueued("flora", "", 0)]


async def test_a_comment_brings_words_and_a_model(door: Door) -> None:
    """`/agent fix` brings what to do, and is reacted to on the comment itself."""
    handled = await door.comment("/agent fix --model anthropic:x Only the red ones.\nPlease.")
    assert handled.accepted is not None
    run = handled.accepted.run
    assert (run.request, run.model) == ("Only the red ones.\nPlease.", "anthropic:x")
    assert door.world.github.reactions == [(7, run.comment_id, "eyes")]


async def waits(door: Door, task: Task, run: Run, asked: PlanProposed | QuestionAsked) -> None:
    """Let a run end in something that people are asked."""
    fact = RunFinished("waiting", "It waits.", "", turns=1, tokens=1, cost_usd=0.1, seconds=1.0)
    for key, one in (("asked", asked), ("finished", fact)):
        await door.world.store.record(task.id, run.seq, key, one, door.world.clock())
    await door.world.store.finish(task.id, run.seq, "waiting", "It waits.", door.world.clock())


@pytest.mark.parametrize("how", ["stop", "label", "close"])
async def test_what_waits_can_be_dropped(door: Door, how: str) -> None:
    """A stop, the label taken away or the thread closed: the plan stands no more, and the comment says who did it."""
    begun = await door.label()
    assert begun.accepted is not None
    task, run = begun.accepted.task, begun.accepted.run
    await waits(door, task, run, PlanProposed(1, "Water it.", ("a.py",), 3, (), "It waits."))
    match how:
        case "stop":
            handled = await door.comment("/agent stop")
        case "label":
            handled = await door.label("unlabeled", at="2")
        case _:
            handled = await door.play("issues", action="closed", sender=FLORA, issue=issue(7, at="3"))
    assert handled.note.startswith("dropped"), handled
    ended = await door.world.store.run(task.id, run.seq)
    assert ended is not None
    assert (ended.outcome, ended.reason) == ("stopped", "flora dropped what waited here.")
    assert "**Stopped**. flora dropped what waited here." in door.world.github.bodies(7)[0]
    ends = [event.fact for event in await door.world.store.events(task.id) if isinstance(event.fact, RunFinished)]
    assert [(end.outcome, end.cost_usd) for end in ends] == [("waiting", 0.1), ("stopped", 0.0)]
    further = await door.comment("/agent fix Paint the fence instead.")
    assert further.accepted is not None
    found = await left_open(door.world.store, task, further.accepted.run)
    assert (found.plan, found.answers, found.works) == ("", False, False)


async def test_an_answer_is_no_yes_to_a_plan(door: Door) -> None:
    """A plan that asks nothing is not answered; one that asks is."""
    begun = await door.label()
    assert begun.accepted is not None
    task, run = begun.accepted.task, begun.accepted.run
    await waits(door, task, run, PlanProposed(1, "Water it.", ("a.py",), 3, (), "It waits."))
    assert (await door.comment("/agent answer No")).accepted is None
    await door.world.store.record(
        task.id,
        run.seq,
        "plan/2",
        PlanProposed(2, "Water it.", ("a.py",), 3, ("Which?",), "It asks."),
        door.world.clock(),
    )
    assert (await door.comment("/agent answer The red one")).accepted is not None


async def test_an_answer_goes_to_what_waits_for_it(door: Door) -> None:
    """A task that waits goes on with the words; where nothing waits, one line says so and nothing begins."""
    refused = await door.comment("/agent answer Very wet.")
    assert refused.accepted is None
    assert "Nothing waits for an answer here." in door.world.github.bodies(7)[-1]
    begun = await door.label()
    assert begun.accepted is not None
    joined = await door.comment("/agent answer Very wet.")
    assert joined.accepted is not None
    assert joined.accepted.kind == "joined"
    task, run = begun.accepted.task, begun.accepted.run
    await waits(door, task, run, QuestionAsked("How wet?"))
    further = await door.comment("/agent answer Very wet,\nplease.")
    assert further.accepted is not None
    assert (further.accepted.kind, further.accepted.run.request) == ("again", "Very wet,\nplease.")
    await door.world.store.finish(task.id, 2, "done", "", door.world.clock())
    assert (await door.comment("/agent answer Too late.")).accepted is None


async def test_the_same_happening_is_known(door: Door) -> None:
    """A delivery that comes again begins nothing again."""
    await door.label()
    again = await door.label()
    assert again.accepted is not None
    assert again.accepted.kind == "known"
    assert len(await door.world.store.tasks()) == 1
    assert len(door.world.github.reactions) == 1


async def test_a_request_on_an_open_run_joins_it(door: Door) -> None:
    """While a run is open, a further request goes to its inbox."""
    await door.label()
    joined = await door.comment("/agent fix Mind the gap.")
    assert joined.accepted is not None
    assert joined.accepted.kind == "joined"
    [item] = await door.world.store.inbox(joined.accepted.task.id)
    assert (item.kind, item.author, item.text) == ("steer", "flora", "Mind the gap.")


async def test_a_request_on_a_finished_task_is_a_further_run(door: Door) -> None:
    """Behind a finished run a request is a further run on the same branch."""
    first = await door.label()
    assert first.accepted is not None
    await door.world.store.finish(first.accepted.task.id, 1, "done", "", START)
    again = await door.comment("/agent fix More.")
    assert again.accepted is not None
    assert (again.accepted.kind, again.accepted.run.seq) == ("again", 2)
    assert again.accepted.task.branch == first.accepted.task.branch


@pytest.mark.parametrize(
    ("event", "payload"),
    [
        ("push", {}),
        ("issues", {"action": "opened", "sender": FLORA, "issue": issue(7)}),
        ("issues", {"action": "labeled", "sender": FLORA, "issue": issue(7), "label": {"id": 1, "name": "bug"}}),
        ("issues", {"action": "labeled", "sender": BOT, "issue": issue(7), "label": {"id": 1, "name": "agent"}}),
        ("issues", {"action": "labeled", "sender": None, "issue": issue(7), "label": {"id": 1, "name": "agent"}}),
        ("issues", {"action": "closed", "sender": FLORA, "issue": issue(7)}),
        ("issues", {"action": "labeled", "sender": FLORA, "issue": 7}),
    ],
)
async def test_what_asks_for_nothing_is_ignored(door: Door, event: str, payload: dict[str, object]) -> None:
    """What asks for nothing is ignored without a call to GitHub."""
    assert (await door.play(event, **payload)).state == "ignored"
    assert door.world.github.calls == []


@pytest.mark.parametrize("text", ["Nice!", "> /agent fix", "`/agent fix`", "/agents fix"])
async def test_talk_is_ignored(door: Door, text: str) -> None:
    """Talk about commands is none."""
    assert (await door.comment(text)).state == "ignored"
    assert (await door.comment("/agent fix", person=BOT)).state == "ignored"
    assert door.world.github.calls == []


async def test_bytes_that_are_no_payload_are_ignored(door: Door) -> None:
    """Broken bytes are settled, and not tried again."""
    handled = await door.intake.handle(Delivery("g", "issues", None, b"\xff{", START))
    assert (handled.state, handled.note[:8]) == ("ignored", "payload:")


@pytest.mark.parametrize("level", ["read", "triage", "none"])
async def test_who_may_not_write_is_refused_once(door: Door, level: Permission) -> None:
    """Somebody without write access gets one answer, and nothing begins."""
    door.world.github.permissions[2] = level
    handled = await door.label(person=MOSS)
    assert handled.note.startswith("NotAllowed")
    await door.label(person=MOSS)
    [body] = door.world.github.bodies(7)
    assert "write access" in body
    assert await door.world.store.tasks() == []
    assert door.world.github.reactions == []


async def test_a_command_that_is_unknown_is_answered(door: Door) -> None:
    """A misspelled command gets a suggestion."""
    assert (await door.comment("/agent fux it")).state == "done"
    assert "Did you mean `/agent fix`?" in door.world.github.bodies(7)[0]


async def test_status_and_help_are_answered_to_readers(door: Door) -> None:
    """Whoever may read may ask how it stands and what may be asked."""
    await door.comment("/agent status", person=MOSS)
    await door.comment("/agent help", person=MOSS)
    await door.label()
    await door.comment("/agent status", person=MOSS)
    none, listed, queued = door.world.github.bodies(7)
    assert "no task on this thread" in none
    assert "/agent fix" in listed
    assert "**Queued**" in queued


@pytest.mark.parametrize("fault", [GitHubUnavailable("502"), RateLimited("slow", retry_after_s=9.0), Forbidden("no")])
async def test_where_github_does_not_say_who_may_nothing_begins(door: Door, fault: GitHubError) -> None:
    """Where GitHub cannot be asked for the role, nothing begins, and trying again is safe."""
    door.world.github.faults["permission"] = [fault]
    with pytest.raises(type(fault)):
        await door.label()
    assert await door.world.store.tasks() == []
    assert (await door.label()).state == "done"


async def test_a_reaction_that_failed_begins_nothing_twice(door: Door) -> None:
    """Where only the reaction failed, the next try finds the run that it began."""
    door.world.github.faults["react"] = [GitHubUnavailable("502")]
    with pytest.raises(GitHubUnavailable):
        await door.label()
    again = await door.label()
    assert again.accepted is not None
    assert again.accepted.kind == "known"
    assert len(await door.world.store.runs(again.accepted.task.id)) == 1


async def test_a_repository_that_is_not_covered_is_ignored(world: World) -> None:
    """What the operator does not serve is ignored without a call to GitHub."""
    door = Door(world, ServerSettings(repositories=("octo/other",)))
    handled = await door.label()
    assert (handled.state, "octo/garden" in handled.note) == ("ignored", True)
    assert world.github.calls == []


async def test_a_delivery_without_an_installation(world: World) -> None:
    """A server takes no delivery that names no installation; a job in Actions does."""
    payload = {"action": "labeled", "sender": FLORA, "issue": issue(7), "label": {"id": 5, "name": "agent"}}
    server = await Door(world, ServerSettings()).play("issues", installation=None, **payload)
    assert (server.state, "no installation" in server.note) == ("ignored", True)
    job = await Door(world, ServerSettings(), served=False).play("issues", installation=None, **payload)
    assert job.state == "done"


async def test_an_empty_repository_is_refused(door: Door) -> None:
    """Without a default branch there is nothing to work on."""
    empty = replace(REPOSITORY, default_branch=None)
    door.world.github.repositories = {REPOSITORY.id: empty}
    payload = {"action": "labeled", "sender": FLORA, "issue": issue(7), "label": {"id": 5, "name": "agent"}}
    bare = {"id": REPOSITORY.id, "full_name": REPOSITORY.full_name}
    handled = await door.play("issues", repository=bare, **payload)
    assert handled.note.startswith("TaskRefused")
    assert "no default branch" in door.world.github.bodies(7)[0]
    assert await door.world.store.tasks() == []


async def test_a_pull_request_is_worked_on_where_it_stands(door: Door) -> None:
    """On a pull request of the repository itself the work goes to its head branch."""
    door.world.github.pulls[9] = pull(9, "flora-1", base="develop")
    handled = await door.comment("/agent fix it", number=9, pr=True)
    assert handled.accepted is not None
    task = handled.accepted.task
    assert (task.branch, task.base_branch, task.pull_number, task.kind) == ("flora-1", "develop", 9, "pull")


@pytest.mark.parametrize("home", [77, None])
async def test_a_fork_is_refused(door: Door, home: int | None) -> None:
    """A pull request from a fork, there or deleted, is refused."""
    door.world.github.pulls[9] = pull(9, "main", home=home)
    assert (await door.comment("/agent fix it", number=9, pr=True)).note.startswith("TaskRefused")
    assert "fork" in door.world.github.bodies(9)[0]
    assert await door.world.store.tasks() == []


async def test_a_closed_pull_request_is_refused(door: Door) -> None:
    """A closed pull request is not worked on."""
    door.world.github.pulls[9] = pull(9, "flora-1", state="closed")
    await door.comment("/agent fix it", number=9, pr=True)
    assert "closed" in door.world.github.bodies(9)[0]
    assert await door.world.store.tasks() == []


@pytest.mark.parametrize("how", ["asked", "closed", "label removed"])
async def test_a_stop_reaches_the_open_run(door: Door, how: str) -> None:
    """A command, closing the thread and taking the label away stop the open run."""
    begun = await door.label()
    assert begun.accepted is not None
    match how:
        case "asked":
            handled = await door.comment("/agent stop")
        case "closed":
            handled = await door.play("issues", action="closed", sender=BOT, issue=issue(7))
        case _:
            handled = await door.label("unlabeled", at="2")
    run_id = begun.accepted.run.id
    assert handled.note == f"stop: {run_id}"
    assert door.stopped == [run_id]
    [item] = await door.world.store.inbox(begun.accepted.task.id)
    assert (item.kind, item.text) == ("stop", how)


async def test_a_stop_of_nothing_is_answered_where_somebody_asked(door: Door) -> None:
    """Who asks to stop nothing hears so; closing a thread says nothing."""
    await door.comment("/agent stop")
    await door.play("issues", action="closed", sender=FLORA, issue=issue(7))
    [body] = door.world.github.bodies(7)
    assert "Nothing is running" in body
    assert door.stopped == []


async def test_a_reader_cannot_stop(door: Door) -> None:
    """Stopping needs write access."""
    await door.label()
    await door.comment("/agent stop", person=MOSS)
    assert door.stopped == []
