"""What we make on GitHub, looked up before it is made, so that a crash in between repeats nothing."""

import hashlib
from contextlib import suppress

from bot.domain.refs import RepositoryRef
from bot.domain.task import Run
from bot.domain.trigger import TriggerContext
from bot.errors import NotFound
from bot.github import markers
from bot.github.base import Comment, GitHub
from bot.github.text import cut
from bot.redaction import mask
from bot.store.base import Effect, TaskStore

NO_TASK = "0" * 32
"""Stands for the task in the marker of an answer that belongs to none; such an answer is found by its marker alone."""


async def ensure_comment(  # noqa: PLR0913 - a comment has this many sides
    store: TaskStore, github: GitHub, repository: RepositoryRef, number: int, *, task_id: str, slot: str, body: str
) -> int:
    """Make the comment of a slot, or bring it up to date; returns its id.

    Args:
        store: where effects are noted.
        github: as the right installation.
        repository: where.
        number: of the issue or pull request.
        task_id: whose comment it is.
        slot: which of the task's comments; there is one for each slot.
        body: Markdown without marker.
    """
    text = cut(body, tail=markers.make(task_id, slot, await store.state_key()))
    known = await store.effect(task_id, slot) if task_id != NO_TASK else None
    if known is not None:
        # Somebody may have deleted it; what it says is to be read all the same.
        with suppress(NotFound):
            return (await github.edit_comment(repository, int(known.remote_id), text)).id
    found = await _find(store, github, repository, number, task_id, slot)
    if found is None:
        comment = await github.comment(repository, number, text)
    elif found.body != text:
        comment = await github.edit_comment(repository, found.id, text)
    else:
        comment = found
    if task_id != NO_TASK:
        await store.keep_effect(task_id, Effect(slot, "comment", str(comment.id)))
    return comment.id


async def _find(
    store: TaskStore, github: GitHub, repository: RepositoryRef, number: int, task_id: str, slot: str
) -> Comment | None:
    key, us = await store.state_key(), await github.identity()
    for comment in await github.comments(repository, number):
        if comment.author_id == us.id and markers.find(comment.body, key) == (task_id, slot):
            return comment
    return None


async def reply(store: TaskStore, github: GitHub, context: TriggerContext, body: str) -> None:
    """Answer a happening with one comment, however often it is handled."""
    slot = f"reply.{hashlib.sha256(context.event_key.encode()).hexdigest()[:16]}"
    await ensure_comment(
        store, github, context.thread.repository, context.thread.number, task_id=NO_TASK, slot=slot, body=body
    )


def progress_slot(run: Run) -> str:
    """Name the slot of a run's progress comment."""
    return f"progress.{run.seq}"


def as_kept(body: str) -> str:
    """Return a comment's text as it compares with what was posted: GitHub gets it masked, and may change line ends."""
    return mask(body.replace("\r\n", "\n").strip())


def posted_slot(slot: str) -> str:
    """Name where the text of a comment is kept as it was posted."""
    return f"posted.{slot}"


def plan_slot(run: int, number: int) -> str:
    """Name the slot of a plan's comment: the run's and the plan's number in it."""
    return f"plan.{run}.{number}"
