"""Answers in threads whose round ends otherwise: held for people, beside the branch, or with threads that are gone."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from bot.domain.events import Notice, PullOpened, RoundAnswered
from bot.domain.messages import Reply
from bot.domain.task import Run, Task
from bot.errors import Forbidden
from bot.sandbox.base import ExecResult
from bot.settings.server import LimitsSection, ServerSettings
from bot.tasks.decisions import waiting_for
from bot.tasks.engines.base import Action, Json
from bot.tasks.protection import Held
from bot.tasks.workflow import Workflow
from tests.unit.tasks.made import Copy, Script, World, finish, read, reply, run, write
from tests.unit.tasks.test_gates import no, yes
from tests.unit.tasks.test_moved import Rival
from tests.unit.tasks.test_rounds import WRITER, answer, asked, left, plays, pull, say
from tests.unit.tasks.test_workflow import Death, Mortal, ended, whole

__all__ = ["pull"]

PATH = ".github/workflows/x.yml"
HELD = (reply(run("make ci"), answer("T1"), answer("T2", done=False)), reply(finish("It is made.")))


class Meddler(Mortal):
    """Steps before one of which somebody deletes a thread."""

    def __init__(self, world: World, one: Run, number: int, thread: str) -> None:
        super().__init__(world, one)
        self._threads = world.github.reviews.threads[number]
        self._gone = thread

    async def __call__(self, name: str, action: Action) -> Json:
        """Let them, and then make the step."""
        if name == "answers":
            self._threads[:] = [one for one in self._threads if one.id != self._gone]
        return await super().__call__(name, action)


async def facts(world: World, task: Task, seq: int) -> list[object]:
    """What a run left in the stream."""
    return [event.fact for event in await world.store.events(task.id) if event.run == seq]


async def held(world: World, pull: int, story: Sequence[Reply] = HELD) -> Task:
    """Let a round change a workflow and wait; two threads are answered, and nothing is said yet."""

    def act(copy: Copy) -> ExecResult:
        copy.files |= {PATH: b"on: push\n", "rose.txt": b"wetter"}
        return ExecResult(0, "", "", 0.1, timed_out=False)

    world.commands |= {"make ci": act}
    for body in ("Wetter, please.", "And greener."):
        say(world, pull, WRITER, body)
    task, one = await asked(world)
    await whole(world, one, *story)
    assert (await ended(world, task, one.seq)).outcome == "waiting"
    assert not [one for one in world.github.reviews.given[pull] if one.is_ours]
    return task


async def approve(world: World, task: Task) -> Run:
    """Let the held push go; return the run that makes it."""
    (waiting,) = await waiting_for(world.store, task)
    assert (await yes(world, waiting.hash[:8])).kind == "approved"
    _, one = await world.begin("approved", comment_id=901, request="")
    return one


async def test_a_round_that_was_held_answers_once_it_is_pushed(world: World, pull: int) -> None:
    """What the model said before people decided; the commit is named, and what it deals with is resolved."""
    task = await held(world, pull)
    one = await approve(world, task)
    script = await whole(world, one)
    assert script.prompts == []
    review, ((is_done, done), (is_left, kept)) = left(world, pull)
    assert review.startswith("Answers to 2 threads.")
    head = world.shop.branches[task.branch]
    assert done.startswith(f"Dealt with in {head}, which changes `rose.txt`.")
    assert "> Done." in done
    assert kept.startswith("Left open.")
    assert (is_done, is_left) == (True, False)
    assert RoundAnswered(2, 1) in await facts(world, task, one.seq)
    assert world.github.reviews.given[pull][-1].commit == head


async def test_what_was_answered_with_what_was_held_is_not_due_again(world: World, pull: int) -> None:
    """Where something else was asked before the approval came, so that one run does both."""
    task = await held(world, pull)
    (waiting,) = await waiting_for(world.store, task)
    await yes(world, waiting.hash[:8])
    say(world, pull, WRITER, "And taller.")
    _, one = await world.begin("more", comment_id=901, request="More.")
    story = (reply(read("rose.txt")), reply(write("rose.txt", "tall"), answer("T3")), reply(finish()))
    script = await whole(world, one, *story)
    assert "And taller." in str(script.prompts[0].messages[-1])
    assert "And greener." not in str(script.prompts[0].messages[-1])
    assert (await ended(world, task, one.seq)).outcome == "done"
    assert [len(thread.comments) for thread in world.github.reviews.threads[pull]] == [2, 2, 2]


@pytest.mark.parametrize("inside", [False, True])
async def test_a_death_answers_a_held_round_once(world: World, pull: int, *, inside: bool) -> None:
    """Wherever it comes in the run that pushes."""
    task = await held(world, pull)
    one = await approve(world, task)
    names = ["announce", "prepare", "protected/released", "protected/push", "protected/used", "protected/pull"]
    names += ["protected/shown", "protected/marks", "protected/answers"]
    for at in range(names.index("protected/push") + 1, len(names) + 1):
        with pytest.raises(Death):
            await Workflow(world.desk(Script()))(one.id, Mortal(world, one, at=at, inside=inside))
    steps = Mortal(world, one)
    await Workflow(world.desk(Script()))(one.id, steps)
    assert steps.names[: len(names)] == names
    assert [len(thread.comments) for thread in world.github.reviews.threads[pull]] == [2, 2]
    assert len([one for one in world.github.reviews.given[pull] if one.is_ours]) == 1


async def test_a_round_that_people_refuse_is_told_of_the_threads_again(world: World, pull: int) -> None:
    """What it answered was about a change that nobody sees."""
    task = await held(world, pull)
    (waiting,) = await waiting_for(world.store, task)
    assert (await no(world, "Leave CI alone.", waiting.hash[:8])).kind == "denied"
    _, one = await world.begin("denied", comment_id=902, request="")

    def act(copy: Copy) -> ExecResult:
        del copy.files[PATH]
        return ExecResult(0, "", "", 0.1, timed_out=False)

    world.commands |= {"git rm": act}
    script = await plays(world, one, run("git rm"), answer("T2"), answer("T1", done=False))
    assert "review thread T1" in str(script.prompts[0].messages)
    assert [is_resolved for is_resolved, _ in left(world, pull)[1]] == [False, True]
    assert len([one for one in world.github.reviews.given[pull] if one.is_ours]) == 1
    assert (await ended(world, task, one.seq)).outcome == "done"


async def test_work_beside_the_branch_is_said_to_be_there(world: World, pull: int) -> None:
    """Where others' push conflicts; nothing is resolved, and the review is on a commit that they left in place."""
    thread = say(world, pull, WRITER, "Wetter, please.")
    task, one = await asked(world)
    steps = Rival(world, one, task)
    steps.files = {"rose_txt": b"theirs"}
    world.github.pulls[pull] = replace(world.github.pulls[pull], head_sha="d" * 40)
    story = (reply(read("rose.txt")), reply(write("rose.txt", "wetter"), answer("T1")), reply(finish()))
    await Workflow(world.desk(Script(*story)))(one.id, steps)
    aside = f"agent/7-{task.id[:8]}-run2"
    assert aside in world.shop.branches
    _, [(is_resolved, said)] = left(world, pull)
    assert said.startswith(f"What this round changed is not in this pull request: it is on `{aside}`.")
    assert not is_resolved
    assert world.github.reviews.given[pull][-1].commit == "d" * 40
    assert thread.id == world.github.reviews.threads[pull][0].id


async def test_a_thread_that_is_deleted_meanwhile_holds_up_no_other(world: World, pull: int) -> None:
    """It is not counted, and the others are answered and resolved."""
    first, second = say(world, pull, WRITER, "First."), say(world, pull, WRITER, "Second.")
    task, one = await asked(world)
    story = (reply(read("rose.txt")), reply(write("rose.txt", "w"), answer("T1"), answer("T2")), reply(finish()))
    await Workflow(world.desk(Script(*story)))(one.id, Meddler(world, one, pull, first.id))
    [kept] = world.github.reviews.threads[pull]
    assert (kept.id, kept.is_resolved) == (second.id, True)
    assert left(world, pull)[0].startswith("Answers to 1 thread.")
    told = await facts(world, task, one.seq)
    assert RoundAnswered(1, 1) in told
    assert not [fact for fact in told if isinstance(fact, Notice) and "threads" in fact.text]


async def test_what_may_not_be_resolved_is_answered_all_the_same(world: World, pull: int) -> None:
    """The numbers say what was done."""
    for body in ("First.", "Second."):
        say(world, pull, WRITER, body)
    world.github.faults["resolve_thread"] = [Forbidden("needs `contents: write`", status=403)]
    task, one = await asked(world)
    await plays(world, one, write("rose.txt", "wetter"), answer("T1"), answer("T2"))
    assert [is_resolved for is_resolved, _ in left(world, pull)[1]] == [False, True]
    assert RoundAnswered(2, 1) in await facts(world, task, one.seq)


async def test_a_round_that_ends_early_is_told_by_the_one_that_goes_on(world: World, pull: int) -> None:
    """Its answer and its commit count, as long as nobody asked for more in that thread since."""
    first, second = say(world, pull, WRITER, "Wetter, please."), say(world, pull, WRITER, "And greener.")
    task, one = await asked(world)
    world.settings = ServerSettings(limits=LimitsSection(turns=2))
    await whole(world, one, reply(read("rose.txt")), reply(write("rose.txt", "w"), answer("T1"), answer("T2")))
    assert (await ended(world, task, one.seq)).outcome == "budget"
    head = world.shop.branches[task.branch]
    assert not [one for one in world.github.reviews.given[pull] if one.is_ours]
    [thread] = [one for one in world.github.reviews.threads[pull] if one.id == second.id]
    more = replace(thread.comments[0], id=990, body="Much greener.", created_at=world.clock())
    world.github.reviews.change(pull, second.id, comments=(*thread.comments, more))
    world.settings = ServerSettings()
    _, again = await world.begin("again", comment_id=901, request="")
    await whole(world, again, *[reply(finish())] * 3)
    _, ((is_done, done), (is_left, silent)) = left(world, pull)
    assert (is_done, is_left) == (True, False)
    assert done.startswith(f"Dealt with in {head}, which changes `rose.txt`.")
    assert "> Done." in done
    assert silent.startswith("Not dealt with in this round.")
    assert first.id != second.id


async def test_what_we_said_last_is_not_said_again(world: World, pull: int) -> None:
    """Neither an answer nor that there is none; what has none yet is asked for again, and a writer's next word is."""
    for body in ("Why?", "How?"):
        say(world, pull, WRITER, body)
    _, one = await asked(world)
    await plays(world, one, write("rose.txt", "w"), answer("T1", done=False))
    before = left(world, pull)
    assert [words.split(".")[0] for _, words in before[1]] == ["Left open", "Not dealt with in this round"]
    _, two = await world.begin("again", comment_id=901, request="Also this.")
    script = await plays(world, two, write("rose.txt", "ww"))
    assert left(world, pull) == before
    assert "yet: T2 of the review" in str(script.prompts[-1].messages)
    _, three = await world.begin("and again", comment_id=902, request="")
    await plays(world, three, write("rose.txt", "www"), answer("T2"))
    assert [is_resolved for is_resolved, _ in left(world, pull)[1]] == [False, True]


async def test_work_beside_the_branch_is_another_pull_request(world: World, pull: int) -> None:
    """The task keeps its own: whoever asks for something on the other one begins another task there."""
    task, one = await asked(world)
    steps = Rival(world, one, task)
    steps.files = {"rose_txt": b"theirs"}
    story = (reply(read("rose.txt")), reply(write("rose.txt", "wetter")), reply(finish()))
    await Workflow(world.desk(Script(*story)))(one.id, steps)
    [other] = [number for number in world.github.pulls if number != pull]
    known = await world.store.task(task.id)
    assert known is not None
    assert known.pull_number == pull
    assert await world.store.task_of(task.repository.id, other) is None
    assert f"/pull/{other}" in str([fact for fact in await facts(world, task, one.seq) if isinstance(fact, PullOpened)])
    beside = world.shop.branches[world.github.pulls[other].head_branch]
    assert beside not in {head for head, name, _ in world.github.own_checks if "independent" in name}


async def test_a_branch_that_is_gone_has_no_commits_of_others(world: World, pull: int) -> None:
    """The work is kept on another one, and people are told why."""

    class Gone(Mortal):
        async def __call__(self, name: str, action: Action) -> Json:
            if name == "push":
                world.shop.branches.pop(task.branch, None)
            return await super().__call__(name, action)

    task, one = await asked(world)
    story = (reply(read("rose.txt")), reply(write("rose.txt", "wetter")), reply(finish()))
    await Workflow(world.desk(Script(*story)))(one.id, Gone(world, one))
    aside = f"agent/7-{task.id[:8]}-run2"
    assert world.shop.commits[world.shop.branches[aside]] == {"rose.txt": b"wetter"}
    told = [fact.text for fact in await facts(world, task, one.seq) if isinstance(fact, Notice)]
    assert f"`{task.branch}` is not there any more, so the work is on `{aside}`." in told
    assert pull in world.github.pulls


def test_what_is_held_is_kept_without_words() -> None:
    """A thread is named, with who asked there; and what an earlier version kept is read too."""
    data = {"commit": "a", "base": "b", "expected": None, "branch": "c", "summary": "", "hash": ""}
    old = Held.from_data({**data, "paths": ["d"], "fact": {}})
    assert (old.run, old.threads) == (0, [])
    assert Held.from_data(old.to_data()) == old
