"""A round of review: the open threads that a run is told of, and what it leaves in them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from bot.domain.events import CommitMade, Notice, ToolFinished
from bot.domain.review import OpenThread, ThreadAnswer
from bot.errors import GitHubError, WorkspaceError
from bot.github import rounds
from bot.store.base import Effect
from bot.tasks.desk import Work
from bot.tasks.engines.base import Json
from bot.tasks.opening import Prepared
from bot.tasks.scene import Scene

LEFT = "round"
"""The slot of the effect that holds what rounds that ended early did in their threads."""


@dataclass(frozen=True, slots=True)
class Dealt:
    """What a round that ended early did in one thread."""

    seen: Sequence[str]
    """What others had said there: with another word something else is asked than was done."""
    commit: str = ""
    """What of it is in the pull request and changes the thread's file; empty where nothing does."""
    answer: ThreadAnswer | None = None

    @classmethod
    def of(cls, thread: OpenThread) -> "Dealt":
        """Begin with nothing done."""
        return cls(list(thread.seen))


@dataclass(frozen=True, slots=True)
class _Made:
    """What a round made."""

    commit: str | None
    """In the pull request; None where there is none."""
    beside: str
    """The branch that holds it instead; empty where there is none."""
    changed: frozenset[str]
    """Paths that the commit changes."""


async def leave_round(scene: Scene, prepared: Prepared, work: Work | None) -> None:
    """Keep what a round that ends early did, so that the one that goes on from it can tell it in the threads.

    Args:
        scene: the run.
        prepared: what it was told.
        work: what it published; None where that is nothing.
    """
    if not prepared.threads or scene.run.intent == "plan":
        # A plan's threads are heard, not answered.
        return

    async def action() -> Json:
        made, answers = await _made(scene, prepared, work), await _answers(scene, scene.run.seq)
        before = await _left(scene, prepared)
        kept: dict[str, Dealt] = {}
        for thread in filter(lambda one: one.told, prepared.threads):
            dealt = _since(before, thread)
            if made.commit is not None and thread.path in made.changed:
                dealt = replace(dealt, commit=made.commit)
            # What is beside is not gone on from.
            kept[thread.id] = dealt if made.beside else replace(dealt, answer=answers.get(thread.name, dealt.answer))
        await _keep(scene, kept)
        return None

    await scene.steps.do("answers", action)


async def answer_round(
    scene: Scene, prepared: Prepared, work: Work | None, name: str = "answers", *, of: int = 0
) -> None:
    """Answer the threads that the run was told of, all of them as one review, and resolve what was dealt with.

    Where nobody who may write asked for anything, no answer is due; and only what such a person asked for, in a file
    that the commit changes, is resolved: that the model calls it done is not enough.

    Args:
        scene: the run.
        prepared: what it was told.
        work: what it published; None where nothing was changed.
        name: of the step.
        of: the run that was told of the threads and answered, where that is an earlier one; 0 for this one.
    """
    if not prepared.threads:
        return
    task = scene.task

    async def action() -> Json:
        run = (await scene.desk.store.run(task.id, of) if of else None) or scene.run
        made, answers = await _made(scene, prepared, work), await _answers(scene, run.seq)
        before = await _left(scene, prepared)
        replies, resolved = [], []
        for thread in prepared.threads:
            dealt = _since(before, thread)
            answer = answers.get(thread.name, dealt.answer)
            if not thread.told or (answer is None and (not thread.is_due or thread.said[-1].silent)):
                continue
            commit = made.commit if thread.path in made.changed else dealt.commit
            view = rounds.AnswerView(
                answer, commit or made.commit, thread.path, bool(commit), made.beside, thread.resolved, thread.seen
            )
            replies.append((thread.id, view))
            if answer is not None and answer.done and view.changed and thread.is_asked:
                resolved.append(thread.id)
        left = sum(not thread.told for thread in prepared.threads)
        if replies or left:
            view_of_all = rounds.RoundView(replies, resolved, left)
            told = await scene.desk.publisher.answer_threads(task, run, made.commit, view_of_all)
            await scene.recorder.note(name, told)
        await _keep(scene, {})
        return None

    try:
        await scene.steps.do(name, action, patient=True)
    except GitHubError as error:
        # The work stands all the same, and the threads are still open for the next round.
        await scene.recorder.note(f"{name}/failed", Notice(f"The review threads could not be answered: {error}"))


def said_since(threads: Sequence[OpenThread], answered: Sequence[OpenThread]) -> list[OpenThread]:
    """Leave out threads that were answered and in which nobody said anything since, nor asks for anything now."""
    before = {thread.id: thread.seen for thread in answered if thread.told}
    return [thread for thread in threads if thread.asks or before.get(thread.id) != thread.seen]


async def _made(scene: Scene, prepared: Prepared, work: Work | None) -> _Made:
    """Look what this run's commit is, where people see it, and what it changes."""
    events = await scene.desk.store.events(scene.task.id)
    commits = [one.fact for one in events if one.run == scene.run.seq and isinstance(one.fact, CommitMade)]
    made = next((one for one in reversed(commits) if work is not None and one.sha == work.commit), None)
    if work is None or made is None or work.commit == prepared.base:
        return _Made(None, "", frozenset())
    if work.branch != scene.task.branch:
        return _Made(None, work.branch, frozenset())
    workspace = (await scene.lease.opened()).workspace
    paths = await workspace.changed_paths(prepared.base, made.put_from or made.sha)
    return _Made(made.sha, "", frozenset(paths))


async def _answers(scene: Scene, run: int) -> Mapping[str, ThreadAnswer]:
    """Return the last answer in each thread that a run gave, by the thread's name."""
    kept: dict[str, ThreadAnswer] = {}
    for event in await scene.desk.store.events(scene.task.id):
        call = event.fact
        if event.run != run or not isinstance(call, ToolFinished) or call.is_error:
            continue
        if call.answer is not None:
            answer = ThreadAnswer(str(call.answer["thread"]), str(call.answer["text"]), call.answer["done"] is True)
            kept[answer.thread] = answer
    return kept


async def _keep(scene: Scene, dealt: Mapping[str, Dealt]) -> None:
    data = {thread: asdict(one) for thread, one in dealt.items()}
    await scene.desk.store.keep_effect(scene.task.id, Effect(LEFT, "threads", json.dumps(data)))


async def _left(scene: Scene, prepared: Prepared) -> Mapping[str, Dealt]:
    """Return what rounds that ended early did, by the thread's id; who begins anew goes on from nothing.

    Where people took the commit out of the branch, what was said of it is void too.
    """
    effect = None if scene.run.fresh else await scene.desk.store.effect(scene.task.id, LEFT)
    kept: dict[str, Dealt] = {}
    stands = {"": True}
    for thread, one in json.loads(effect.remote_id).items() if effect else ():
        answer = None if one["answer"] is None else ThreadAnswer(**one["answer"])
        dealt = Dealt(list(map(str, one["seen"])), str(one["commit"]), answer)
        if dealt.commit not in stands:
            stands[dealt.commit] = await _is_in(scene, dealt.commit, prepared.base)
        if stands[dealt.commit]:
            kept[str(thread)] = dealt
    return kept


async def _is_in(scene: Scene, commit: str, head: str) -> bool:
    """Whether a commit is in the history of another one."""
    try:
        return (await (await scene.lease.opened()).workspace.merge(head, commit)).there
    except WorkspaceError:
        return False


def _since(before: Mapping[str, Dealt], thread: OpenThread) -> Dealt:
    """Return what was done in a thread before, as far as nobody said anything since."""
    dealt, none = before.get(thread.id), Dealt.of(thread)
    return dealt if dealt is not None and dealt.seen == none.seen else none
