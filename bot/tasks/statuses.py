"""What a task waits for, where people decide about merging: a check run on the head of its pull request."""

import logging

from bot.domain.task import Task
from bot.errors import GitHubError
from bot.github.base import GitHub
from bot.github.statuses import task_check
from bot.store.base import Effect, TaskStore
from bot.tasks.lines import open_pull
from bot.tasks.plans import deciding_run
from bot.tasks.showing import is_ours
from bot.tasks.standing import progress_view, stand

log = logging.getLogger(__name__)

SHOWN = "status"
"""The slot of the effect that says on which commit it was shown last."""


async def show_status(store: TaskStore, github: GitHub, task: Task, word: str) -> None:
    """Show that the task waits; once that was shown, also that it waits no more.

    What leaves the task as it stands, as an answer, changes nothing; the head may have moved, and is shown it too.

    Args:
        store: what tasks are known by.
        github: as the right installation.
        task: whose last run ended.
        word: the command word.
    """
    run = await deciding_run(store, task)
    standing = stand(await store.events(task.id), run.seq)
    if standing.finished is None:
        return
    if standing.finished.outcome != "waiting" and await store.effect(task.id, SHOWN) is None:
        return
    try:
        pull = await open_pull(store, github, task)
        if pull is None or not await is_ours(store, github, task, pull):
            return
        view = progress_view(standing, marker="", word=word)
        await github.put_check(task.repository, task_check(view, pull.head_sha, task.id))
    except GitHubError as error:
        if error.retryable:
            raise
        # An App may lack the permission; the progress comment says the same.
        log.warning("status.refused", extra={"task": task.id, "error": str(error)})
        return
    await store.keep_effect(task.id, Effect(SHOWN, "check", pull.head_sha))
