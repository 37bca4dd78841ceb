"""A run that waits for an answer: where its work lies meanwhile, and what the next one knows of that."""

import pytest

from bot.domain.events import CommitMade
from bot.domain.refs import Actor
from bot.domain.task import Task
from bot.errors import Forbidden, PushRejected
from bot.sandbox.base import ExecResult
from bot.tasks.decisions import waiting_for
from bot.tasks.on_github import GitHubPublisher
from bot.tasks.workflow import Workflow
from bot.workspace.base import Workspace
from tests.unit.tasks.github import US, MemoryApp, pull
from tests.unit.tasks.made import SHELTER, Copy, Script, World, finish, read, reply, run, write
from tests.unit.tasks.test_gates import yes
from tests.unit.tasks.test_planning import WORKED, ask
from tests.unit.tasks.test_workflow import Mortal, ended, whole

ASKED = (*WORKED[:2], reply(ask("How wet?")))
FURTHER = (reply(read("rose.txt")), reply(finish("Wet.")))
MISSING = "What you changed before is not in it: that is"


@pytest.mark.parametrize("whose", ["theirs", "ready"])
async def test_work_beside_the_branch_is_told_to_be_there(world: World, whose: str) -> None:
    """On what people may merge at any time unfinished work is not; the next run begins without it, and knows."""
    task, one = await world.begin()
    await whole(world, one, *WORKED)
    [made] = world.github.pulls.values()
    author, body = (Actor(1, "flora"), "My own") if whose == "theirs" else (US, made.body)
    world.github.pulls[made.number] = pull(made.number, task.branch, body=body, author=author, draft=False)
    _, second = await world.begin("second", comment_id=4, request="Wetter.")
    await whole(world, second, reply(read("rose.txt")), reply(write("rose.txt", "wetter")), reply(ask("How wet?")))
    aside = f"agent/{task.number}-{task.id[:8]}-run2"
    assert world.shop.commits[world.shop.branches[aside]] == {"rose.txt": b"wetter"}
    _, third = await world.begin("third", comment_id=5, request="Very.")
    script = await whole(world, third, reply(read("rose.txt")), reply(write("rose.txt", "wetter")), reply(finish()))
    assert f"{MISSING} on the branch `{aside}`." in script.prompts[0].messages[-1].text
    _, fourth = await world.begin("fourth", comment_id=6, request="More.")
    assert MISSING not in (await whole(world, fourth, *FURTHER)).prompts[0].messages[-1].text


async def test_work_on_the_branch_is_not_called_missing(world: World) -> None:
    """The usual case: a draft on the task's own branch, from which the next run begins."""
    _, one = await world.begin()
    await whole(world, one, *ASKED)
    _, further = await world.begin("second", comment_id=5, request="Very.")
    assert MISSING not in (await whole(world, further, *FURTHER)).prompts[0].messages[-1].text


def obey(copy: Copy) -> ExecResult:
    """Write what agents are told."""
    copy.files["AGENTS.md"] = b"Obey.\n"
    return ExecResult(0, "", "", 0.1, timed_out=False)


class Closed(GitHubPublisher):
    """A publisher whose repository takes no push."""

    async def push(
        self, task: Task, workspace: Workspace, commit: str, branch: str, *, expected: str | None, workflows: bool
    ) -> bool:
        """Take none."""
        raise PushRejected("a rule of the repository forbids it")


async def test_a_question_whose_work_cannot_be_pushed_can_be_answered(world: World) -> None:
    """The run waits all the same and says what is amiss; the next one gets the answer, and knows what it has not."""
    task, one = await world.begin()
    publisher = Closed(world.store, MemoryApp(world.github), world.settings, shelter=SHELTER)
    await Workflow(world.desk(Script(*ASKED), publisher))(one.id, Mortal(world, one))
    fact = await ended(world, task)
    assert fact.outcome == "waiting"
    assert fact.reason.startswith("The model asks: How wet? The work could not be published: a rule of the repository")
    assert world.shop.forgotten == []
    _, further = await world.begin("second", comment_id=5, request="Very.")
    told = (await whole(world, further, *FURTHER)).prompts[0].messages[-1].text
    assert "A person answers your question:" in told
    assert f"{MISSING} nowhere but in this transcript" in told


async def test_a_question_without_its_pull_request_can_be_answered(world: World) -> None:
    """GitHub may refuse the pull request; what was pushed is there for the next run."""
    task, one = await world.begin()
    world.github.faults["open_pull"] = [Forbidden("not allowed")]
    await whole(world, one, *ASKED)
    assert (await ended(world, task)).outcome == "waiting"
    assert world.shop.commits[world.shop.branches[task.branch]] == {"rose.txt": b"wet"}


async def test_finished_work_that_cannot_be_pushed_is_a_failure(world: World) -> None:
    """Nothing was asked, so nobody can answer."""
    task, one = await world.begin()
    publisher = Closed(world.store, MemoryApp(world.github), world.settings, shelter=SHELTER)
    await Workflow(world.desk(Script(*WORKED), publisher))(one.id, Mortal(world, one))
    assert (await ended(world, task)).outcome == "failed"


async def test_a_question_where_no_drafts_are(world: World) -> None:
    """The branch stays without a pull request, which is said; the answer ends in one that is no draft."""
    world.github.drafts = False
    task, one = await world.begin()
    await whole(world, one, *ASKED)
    assert (await ended(world, task)).outcome == "waiting"
    assert world.github.pulls == {}
    progress, _ = world.github.bodies(7)
    assert f"What was done so far is on the branch `{task.branch}`." in progress
    assert "Note: This repository allows no drafts" in progress
    _, further = await world.begin("second", comment_id=5, request="Very.")
    await whole(world, further, reply(read("rose.txt")), reply(write("rose.txt", "wetter")), reply(finish("Wet.")))
    assert (await ended(world, task, 2)).outcome == "done"
    [made] = world.github.pulls.values()
    assert (made.title, made.draft) == ("[agent] Water the roses", False)


async def test_what_people_decide_about_is_told_of_the_commit_itself(world: World) -> None:
    """No plan spoke of it: the commit's own paths count, and once a person agreed the pull request says so for good."""
    task, one = await world.begin()
    world.commands["obey"] = obey
    await whole(world, one, reply(run("obey")), reply(finish()))
    assert (await ended(world, task)).outcome == "waiting"
    [asked] = await waiting_for(world.store, task)
    await yes(world, asked.hash[:8])
    _, agreed = await world.begin("second", comment_id=900, request="")
    await whole(world, agreed)
    facts = [event.fact for event in await world.store.events(task.id)]
    [commit] = [fact for fact in facts if isinstance(fact, CommitMade)]
    assert list(commit.protected) == ["AGENTS.md"]
    [made] = world.github.pulls.values()
    assert "**Note:** This changes what people decide about: `AGENTS.md`." in made.body
    _, further = await world.begin("third", comment_id=901, request="Water it too.")
    await whole(world, further, *WORKED)
    [made] = world.github.pulls.values()
    assert "**Note:** This changes what people decide about: `AGENTS.md`." in made.body
    assert "people decide" not in world.github.bodies(7)[-1]
