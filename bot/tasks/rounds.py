"""A round of review: the open threads that a run is told of, and what it leaves in them."""

from collections.abc import Mapping, Sequence

from bot.domain.events import CommitMade, Notice, RoundAnswered, ToolFinished
from bot.domain.review import ThreadAnswer
from bot.errors import GitHubError
from bot.github import rounds
from bot.tasks.desk import Work
from bot.tasks.engines.base import Json
from bot.tasks.opening import Prepared
from bot.tasks.scene import Scene


async def answer_round(scene: Scene, prepared: Prepared, work: Work | None) -> None:
    """Answer the threads that the run was told of, all of them as one review, and resolve what was dealt with.

    Where nobody who may write asked for anything, no answer is due; and only what such a person asked for, in a file
    that the commit changes, is resolved: that the model calls it done is not enough.

    Args:
        scene: the run.
        prepared: what it was told.
        work: what it published; None where nothing was changed.
    """
    if not prepared.threads:
        return
    task, run = scene.task, scene.run

    async def action() -> Json:
        events = [event.fact for event in await scene.desk.store.events(task.id) if event.run == run.seq]
        answers = _answers([fact for fact in events if isinstance(fact, ToolFinished)])
        made = next((fact for fact in reversed(events) if isinstance(fact, CommitMade)), None)
        published = made.sha if made is not None and work is not None and work.branch == task.branch else None
        changed: set[str] = set()
        if made is not None and published is not None:
            opened = await scene.lease.opened()
            changed.update(await opened.workspace.changed_paths(prepared.base, made.put_from or made.sha))
        replies, resolved = [], []
        for thread in prepared.threads:
            answer = answers.get(thread.name)
            if not thread.told or (answer is None and not thread.is_asked):
                continue
            view = rounds.AnswerView(answer, published, thread.path, changed=thread.path in changed)
            replies.append((thread.id, view))
            if answer is not None and answer.done and view.changed and thread.is_asked:
                resolved.append(thread.id)
        left = sum(not thread.told for thread in prepared.threads)
        if replies or left:
            view_of_all = rounds.RoundView(replies, resolved, left)
            await scene.desk.publisher.answer_threads(task, run, published or prepared.base, view_of_all)
            await scene.recorder.note("answers", RoundAnswered(len(replies), len(resolved)))
        return None

    try:
        await scene.steps.do("answers", action, patient=True)
    except GitHubError as error:
        # The work stands all the same, and the threads are still open for the next round.
        await scene.recorder.note("answers/failed", Notice(f"The review threads could not be answered: {error}"))


def _answers(calls: Sequence[ToolFinished]) -> Mapping[str, ThreadAnswer]:
    """Return the last answer in each thread."""
    kept: dict[str, ThreadAnswer] = {}
    for call in calls:
        if call.answer is not None and not call.is_error:
            answer = ThreadAnswer(str(call.answer["thread"]), str(call.answer["text"]), call.answer["done"] is True)
            kept[answer.thread] = answer
    return kept
