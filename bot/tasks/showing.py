"""The evidence where people look for it on GitHub: a check run of the commit, a comment, and a mark where it is old."""

from dataclasses import replace

from bot.domain.task import Run, Task
from bot.errors import Forbidden
from bot.github import checking as words
from bot.github import markers
from bot.github.base import GitHub, Pull
from bot.github.evidence import evidence_check
from bot.store.base import TaskStore
from bot.tasks.effects import ensure_comment
from bot.tasks.standing import pushed_by_us, stand


async def show_evidence(store: TaskStore, github: GitHub, task: Task, run: Run, head: str) -> str:
    """Put what is recorded into our check run of a commit; what people asked to be checked they read in a comment too.

    Returns:
        Why there is no check run, where that is not permitted; else nothing.
    """
    events, is_check = await store.events(task.id), run.intent == "check"
    standing = stand(events, run.seq)
    view = standing.evidence() if is_check else stand(events, None).evidence(standing.setup_rows())
    if view.head != head:
        view = replace(view, head=head, tree="")
    refused = ""
    try:
        await github.put_check(task.repository, evidence_check(view, task.id))
    except Forbidden as error:
        refused = words.not_shown(str(error))
    if is_check and (run.commanded or refused):
        body, slot = words.comment(view), f"check.{run.seq}"
        await ensure_comment(store, github, task.repository, run.number, task_id=task.id, slot=slot, body=body)
    return refused


async def mark_outdated(store: TaskStore, github: GitHub, task: Task, head: str) -> None:
    """Mark the evidence in the text of the task's own pull request where it is of another commit than the head."""
    recorded = pushed_by_us(await store.events(task.id), task)
    if task.pull_number is None or not recorded:
        return
    pull = await github.pull(task.repository, task.pull_number)
    if pull.state != "open" or pull.head_branch != task.branch or not await is_ours(store, github, task, pull):
        return
    body = words.marked(pull.body, recorded, head)
    if body != pull.body:
        await github.update_pull(task.repository, pull.number, body=body)


async def is_ours(store: TaskStore, github: GitHub, task: Task, pull: Pull) -> bool:
    """Say whether a task opened a pull request, so that its text is ours to write."""
    us = await github.identity()
    found = markers.find(pull.body, await store.state_key())
    return pull.author is not None and pull.author.id == us.id and found == (task.id, "pull")
