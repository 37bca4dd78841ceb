"""The side of a task that people see on GitHub."""

from dataclasses import replace

import pytest

from bot.domain.events import CommitMade, ModelReplied, RunFinished, RunStarted
from bot.domain.refs import Actor
from bot.domain.task import Run, Task
from bot.errors import Conflict, Forbidden, NotFound, RepositoryConfigError, TaskRefused
from bot.github import markers
from bot.settings.resolve import resolve
from bot.settings.server import PullSection, ServerSettings
from bot.tasks.desk import Published, Work
from bot.tasks.on_github import NO_DRAFTS
from tests.unit.tasks.github import REPOSITORY, US, pull
from tests.unit.tasks.made import World

FILE = ".github/issuewright.yml"


@pytest.fixture
async def begun(world: World) -> tuple[Task, Run]:
    """A run with a record of its start."""
    task, one = await world.begin()
    shown = resolve(ServerSettings(), None).shown()
    for key, fact in (
        ("started", RunStarted("scripted:one", "act", shown)),
        ("model/1", ModelReplied(1, "", 1, 10, 0, 0, 5, 0.25, "scripted-1")),
        ("commit", CommitMade("c" * 40, "Water", 1, 2, 3)),
    ):
        await world.store.record(task.id, 1, key, fact, world.clock())
    return task, one


def work(task: Task, *, complete: bool = True) -> Work:
    """Make work on the task's branch."""
    return Work("c" * 40, "b" * 40, None, task.branch, "My words.", complete)


async def test_a_pull_request_is_opened_once_and_then_kept_up(world: World, begun: tuple[Task, Run]) -> None:
    """The first work opens a pull request as a draft; the next one changes its text."""
    task, one = begun
    publisher = world.publisher()
    first = await publisher.publish(task, one, work(task))
    [made] = world.github.pulls.values()
    assert first == Published(made.number, made.url)
    assert (made.title, made.base_branch, made.draft) == ("Water the roses", "main", True)
    assert markers.find(made.body, await world.store.state_key()) == (task.id, "pull")
    again = await publisher.publish(task, one, replace(work(task), summary="Other words."))
    assert again == first
    assert "Other words." in world.github.pulls[made.number].body
    assert world.github.calls.count("open_pull") == 1


async def test_unfinished_work_opens_nothing(world: World, begun: tuple[Task, Run]) -> None:
    """Work that ended early stays on its branch."""
    task, one = begun
    assert await world.publisher().publish(task, one, work(task, complete=False)) is None
    assert world.github.pulls == {}


EARLY = "A limit was reached: turns: 2 of 2."


async def test_what_a_limit_cut_short_is_offered_as_a_draft(world: World, begun: tuple[Task, Run]) -> None:
    """It is a draft even where the operator wants none, says what it is, and is brought up to date like any other."""
    task, one = begun
    world.settings = ServerSettings(mode="act", pull=PullSection(draft=False))
    offered = replace(work(task, complete=False), early=EARLY)
    first = await world.publisher().publish(task, one, offered)
    [made] = world.github.pulls.values()
    assert first == Published(made.number, made.url)
    assert made.draft
    assert f"**Unfinished.** {EARLY}" in made.body
    await world.publisher().publish(task, one, work(task))
    assert "Unfinished" not in world.github.pulls[made.number].body
    assert len(world.github.pulls) == 1


async def test_where_drafts_are_not_allowed(world: World, begun: tuple[Task, Run]) -> None:
    """Unfinished work stays on its branch, which is said; what is complete is a pull request that says whose it is."""
    task, one = begun
    world.github.drafts = False
    offered = replace(work(task, complete=False), early=EARLY)
    assert await world.publisher().publish(task, one, offered) == Published(None, "", NO_DRAFTS)
    assert world.github.pulls == {}
    await world.publisher().publish(task, one, work(task))
    [made] = world.github.pulls.values()
    assert (made.title, made.draft) == ("[agent] Water the roses", False)
    await world.publisher().publish(task, one, work(task))
    assert len(world.github.pulls) == 1


async def test_another_refusal_is_no_reason_to_open_it_otherwise(world: World, begun: tuple[Task, Run]) -> None:
    """Whatever else GitHub does not take is told as it is."""
    task, one = begun
    world.github.faults["open_pull"] = [Conflict("answered 422: No commits between main and draft", status=422)]
    with pytest.raises(Conflict, match="No commits"):
        await world.publisher().publish(task, one, work(task))
    assert world.github.pulls == {}


async def test_unfinished_work_beside_a_pull_request_opens_no_second_one(world: World, begun: tuple[Task, Run]) -> None:
    """A task that has a pull request gets no other for what lies beside it; one without gets its first."""
    task, one = begun
    beside = replace(work(task, complete=False), early=EARLY, branch=f"{task.branch}-run1")
    assert await world.publisher().publish(replace(task, pull_number=9), one, beside) is None
    assert world.github.pulls == {}
    await world.publisher().publish(task, one, beside)
    assert [made.head_branch for made in world.github.pulls.values()] == [beside.branch]


@pytest.mark.parametrize(
    ("kind", "may"), [("none", True), ("ours", True), ("ready", False), ("theirs", False), ("closed", True)]
)
async def test_unfinished_work_goes_to_the_branch_only_while_it_is_a_draft(
    world: World, begun: tuple[Task, Run], kind: str, *, may: bool
) -> None:
    """What people may merge at any time, and what is not ours, holds no unfinished work."""
    task, _ = begun
    if kind != "none":
        marker = markers.make(task.id, "pull", await world.store.state_key())
        world.github.pulls[9] = pull(
            9,
            task.branch,
            body=marker,
            author=Actor(1, "flora") if kind == "theirs" else US,
            draft=kind != "ready",
            state="closed" if kind == "closed" else "open",
        )
    assert await world.publisher().takes_unfinished(task, offered=True) is may
    assert await world.publisher().takes_unfinished(task, offered=False) is False


async def test_a_persons_pull_request_keeps_its_text(world: World, begun: tuple[Task, Run]) -> None:
    """On a person's pull request the commit is all that changes."""
    task, one = begun
    world.github.pulls[9] = pull(9, task.branch, body="My own words", author=Actor(1, "flora"))
    assert await world.publisher().publish(task, one, work(task)) == Published(9, "https://hub/pull/9")
    assert world.github.pulls[9].body == "My own words"


@pytest.mark.parametrize("author", [Actor(1, "flora"), None, US])
async def test_a_marker_alone_or_an_account_alone_is_not_ours(
    world: World, begun: tuple[Task, Run], author: Actor | None
) -> None:
    """Ours is what our account opened for this very task; a copied marker or another task's is not."""
    task, one = begun
    of = "f" * 32 if author == US else task.id
    body = markers.make(of, "pull", await world.store.state_key())
    world.github.pulls[9] = pull(9, task.branch, body=body, author=author)
    await world.publisher().publish(task, one, work(task))
    assert world.github.pulls[9].body == body


async def test_a_closed_pull_request_is_followed_by_a_new_one(world: World, begun: tuple[Task, Run]) -> None:
    """A pull request that people closed stays closed; new work opens a new one."""
    task, one = begun
    world.github.pulls[9] = pull(9, task.branch, state="closed")
    published = await world.publisher().publish(task, one, work(task))
    assert published is not None
    assert published.number not in {None, 9}
    assert world.github.pulls[9].state == "closed"


async def test_one_that_was_opened_in_between_is_taken(world: World, begun: tuple[Task, Run]) -> None:
    """Where GitHub says that there is one already, that one is taken."""
    task, one = begun
    world.github.rival = pull(12, task.branch)
    assert await world.publisher().publish(task, one, work(task)) == Published(12, "https://hub/pull/12")


async def test_a_conflict_of_another_kind_is_an_error(world: World, begun: tuple[Task, Run]) -> None:
    """Where GitHub refuses and there is no pull request, the reason comes out."""
    task, one = begun
    world.github.faults["open_pull"] = [Conflict("No commits between main and it", status=422)]
    with pytest.raises(Conflict, match="No commits"):
        await world.publisher().publish(task, one, work(task))


async def opened(world: World) -> list[bool]:
    """Whether each pull request is a draft, after a run that recorded what applied to it."""
    task, one = await world.begin()
    publisher = world.publisher()
    fact = RunStarted("scripted:one", "act", (await publisher.settings(task, one)).shown())
    await world.store.record(task.id, 1, "run/1/started", fact, world.clock())
    await publisher.publish(task, one, work(task))
    return [made.draft for made in world.github.pulls.values()]


async def test_the_operator_decides_about_drafts(world: World) -> None:
    """Without drafts in the operator's settings a pull request opens ready for review."""
    world.settings = ServerSettings(mode="act", pull=PullSection(draft=False))
    assert await opened(world) == [False]


async def test_a_repository_may_ask_for_drafts(world: World) -> None:
    """`draft: true` in the repository's file opens a draft though the operator does not ask for one."""
    world.settings = ServerSettings(mode="act", pull=PullSection(draft=False))
    world.github.files[FILE] = b"version: 1\ndraft: true\n"
    assert await opened(world) == [True]


async def test_settings_come_from_the_default_branch(world: World, begun: tuple[Task, Run]) -> None:
    """The repository's file is read from the default branch, as it is called now."""
    task, one = begun
    world.github.files[FILE] = b"version: 1\nlimits: {turns: 3}\n"
    assert (await world.publisher().settings(task, one)).limits.turns == 3
    world.github.repositories[REPOSITORY.id] = replace(REPOSITORY, default_branch=None)
    assert (await world.publisher().settings(task, one)).limits.turns == ServerSettings().limits.turns


async def test_a_broken_file_and_a_closed_door_are_said(world: World, begun: tuple[Task, Run]) -> None:
    """A broken file is explained, and `enabled: false` refuses."""
    task, one = begun
    world.github.files[FILE] = b"version: 2\n"
    with pytest.raises(RepositoryConfigError, match=r"issuewright.yml.*default branch"):
        await world.publisher().settings(task, one)
    world.github.files[FILE] = b"version: 1\nenabled: false\n"
    with pytest.raises(TaskRefused, match="enabled: false"):
        await world.publisher().settings(task, one)


async def test_progress_is_edited_only_now_and_then(world: World, begun: tuple[Task, Run]) -> None:
    """The comment is edited where something happened and the last edit is long enough ago."""
    task, one = begun
    publisher = world.publisher()
    await publisher.progress(task, one)
    assert world.github.calls == [], "without a comment there is nothing to edit"
    await publisher.announce(task, one, await publisher.settings(task, one))
    edits = world.github.calls.count
    world.clock.move(60)
    await publisher.progress(task, one)
    assert edits("edit_comment") == 0, "nothing happened"
    await world.store.record(task.id, 1, "x", ModelReplied(2, "", 1, 1, 0, 0, 1, None, "m"), world.clock())
    await publisher.progress(task, one)
    await world.store.record(task.id, 1, "y", ModelReplied(3, "", 1, 1, 0, 0, 1, None, "m"), world.clock())
    await publisher.progress(task, one)
    assert edits("edit_comment") == 1, "one in the interval"
    world.clock.move(60)
    await publisher.progress(task, one)
    assert edits("edit_comment") == 2


async def test_the_end_is_shown_and_reacted_to(world: World, begun: tuple[Task, Run]) -> None:
    """The last state is shown; a comment that is gone keeps nobody from that."""
    task, one = begun
    world.github.faults["react"] = [NotFound("gone", status=404)]
    fact = RunFinished("done", "", "My words.", 1, 15, 0.25, 61.0)
    await world.store.record(task.id, 1, "finished", fact, world.clock())
    await world.publisher().report(task, one)
    assert "**Done**" in world.github.bodies(7)[0]
    await world.publisher().report(task, one)
    assert world.github.reactions == [(7, None, "rocket")]
    assert len(world.github.bodies(7)) == 1


async def test_what_is_forbidden_comes_out(world: World, begun: tuple[Task, Run]) -> None:
    """A missing permission is no detail to pass over."""
    task, one = begun
    world.github.faults["comment"] = [Forbidden("Resource not accessible", status=403)]
    with pytest.raises(Forbidden):
        await world.publisher().report(task, one)


async def test_where_and_as_whom_we_work(world: World, begun: tuple[Task, Run]) -> None:
    """The origin is keyed by the numeric id, and commits stand under our account."""
    task, _ = begun
    origin = await world.publisher().origin(task)
    assert (origin.key, origin.url) == ("github-5000000000", "https://hub/octo/garden.git")
    assert await origin.credentials() == "ghs_made_up"
    author = await world.publisher().author(task)
    assert author.email == "900+wright[bot]@users.noreply.github.com"
