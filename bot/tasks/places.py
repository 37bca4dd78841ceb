"""On which branches a thread's work is done, as GitHub has them now."""

from dataclasses import dataclass

from bot.domain.refs import ThreadRef
from bot.domain.task import Task, branch_name
from bot.errors import TaskRefused
from bot.github import comments
from bot.github.base import GitHub


@dataclass(frozen=True, slots=True)
class Place:
    """Where the work goes."""

    branch: str
    base: str
    """The branch that it goes into."""
    pull_number: int | None = None
    """Of the pull request on which it was asked for; None for an issue."""
    merged: bool = False
    """Whether the task's pull request was merged, so that its branch is done with."""


async def place_of(github: GitHub, thread: ThreadRef, known: Task | None, task_id: str, word: str) -> Place:
    """Find the place of what is asked for on a thread.

    Args:
        github: as the right installation.
        thread: where it is asked for.
        known: the thread's task; None where there is none yet.
        task_id: the id of the task that begins then.
        word: the command word.

    Raises:
        TaskRefused: there is nothing to work on.
    """
    place = Place(branch_name(thread.number, task_id), thread.repository.default_branch or "")
    if thread.kind == "pull":
        place = await _of_pull(github, thread, word)
    if known is not None and (place.pull_number is None or place.pull_number != known.pull_number):
        base, merged = await _of_task(github, known)
        place = Place(known.branch, base, place.pull_number, merged)
    elif known is not None:
        place = Place(known.branch, place.base, place.pull_number)
    if place.base:
        return place
    base = (await github.repository(thread.repository.id)).default_branch or ""
    if not base:
        raise TaskRefused(comments.no_default_branch())
    return Place(place.branch, base, place.pull_number, place.merged)


async def _of_pull(github: GitHub, thread: ThreadRef, word: str) -> Place:
    pull = await github.pull(thread.repository, thread.number)
    if pull.head_repository_id != thread.repository.id:
        raise TaskRefused(comments.fork_refused(word))
    if pull.state != "open":
        raise TaskRefused(comments.thread_closed())
    return Place(pull.head_branch, pull.base_branch, thread.number)


async def _of_task(github: GitHub, task: Task) -> tuple[str, bool]:
    """Say which branch a task's work goes into, as its pull request has it now, and whether that was merged."""
    if task.pull_number is None:
        return task.base_branch, False
    pull = await github.pull(task.repository, task.pull_number)
    return (pull.base_branch if pull.state == "open" else task.base_branch), pull.merged
