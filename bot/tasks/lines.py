"""What stands on lines of a task's pull request: made once, looked up by its mark, and changed where it stands."""

import asyncio
import hashlib
import logging
from collections.abc import Mapping, Sequence

from bot.domain.request import ActionRequest
from bot.domain.task import Run, Task
from bot.errors import Conflict, Forbidden, NotFound
from bot.github import markers
from bot.github.base import GitHub, Pull
from bot.github.reviews import ReviewThread
from bot.github.text import cut
from bot.store.base import Effect, TaskStore
from bot.tasks.desk import Posted
from bot.tasks.effects import ensure_comment
from bot.tools.place import file_of, line_of

log = logging.getLogger(__name__)

ON_LINE = "line"
"""The kind of effects that are comments on lines."""
REQUEST = "request."
"""Begins the slots of requests."""


async def post_request(  # noqa: PLR0913 - a comment has this many sides
    store: TaskStore, github: GitHub, task: Task, run: Run, *, slot: str, body: str, call: ActionRequest
) -> Posted:
    """Post a request on the line that its call would change, as the open pull request has it, else in the thread.

    Args:
        store: where effects are noted.
        github: as the right installation.
        task: whose request it is.
        run: that asks.
        slot: of the request.
        body: Markdown without mark.
        call: what is asked about.
    """
    known = await store.effect(task.id, slot)
    if known is not None and known.kind == ON_LINE:
        return Posted(int(known.remote_id), on_line=True)
    on_line = await _on_line(store, github, task, slot, body, call) if known is None else None
    if on_line is not None:
        await store.keep_effect(task.id, Effect(slot, ON_LINE, str(on_line)))
        return Posted(on_line, on_line=True)
    made = await ensure_comment(store, github, task.repository, run.number, task_id=task.id, slot=slot, body=body)
    return Posted(made)


async def _on_line(
    store: TaskStore, github: GitHub, task: Task, slot: str, body: str, call: ActionRequest
) -> int | None:
    """Return the id of the comment; None where the call changes no line that is in the pull request's diff."""
    path = file_of(call.tool, call.arguments)
    if path is None:
        return None
    pull = await open_pull(store, github, task)
    if pull is None:
        return None
    text = cut(body, tail=markers.make(task.id, slot, await store.state_key()))
    if (found := (await known_on_lines(store, github, task, pull)).get(slot)) is not None:
        return found
    data = await github.read_file(task.repository, path, pull.head_sha)
    line = None if data is None else await asyncio.to_thread(line_of, call.tool, call.arguments, data)
    return None if line is None else await _put(github, task, pull, pull.head_sha, (path, line), text)


async def mark_lines(
    store: TaskStore, github: GitHub, task: Task, run: Run, commit: str, marks: Sequence[tuple[str, int, str]]
) -> None:
    """Point out lines of what was pushed, each once; where GitHub takes one not, the pull request's text is enough.

    Args:
        store: where the mark's secret is.
        github: as the right installation.
        task: whose pull request it is.
        run: that made the change.
        commit: what was pushed.
        marks: path, line and Markdown of each.
    """
    pull = await open_pull(store, github, task) if marks else None
    if pull is None:
        return
    known, key = await known_on_lines(store, github, task, pull), await store.state_key()
    for path, line, body in marks:
        slot = f"mark.{run.seq}.{hashlib.sha256(path.encode(errors='surrogateescape')).hexdigest()[:16]}"
        if slot not in known:
            await _put(github, task, pull, commit, (path, line), cut(body, tail=markers.make(task.id, slot, key)))


async def _put(github: GitHub, task: Task, pull: Pull, commit: str, place: tuple[str, int], text: str) -> int | None:
    """Comment on a line; None where GitHub does not take it there."""
    path, line = place
    try:
        return await github.reviews.review_comment(
            task.repository, pull.number, commit, path=path, line=line, side="RIGHT", body=text
        )
    except (Conflict, Forbidden, NotFound) as refused:
        log.info("line.refused", extra={"task": task.id, "error": str(refused)})
        return None


async def open_pull(store: TaskStore, github: GitHub, task: Task) -> Pull | None:
    """Return the pull request that carries the work as it is now; None where none is open."""
    known = await store.task(task.id)
    if known is None or known.pull_number is None:
        return None
    try:
        pull = await github.pull(task.repository, known.pull_number)
    except NotFound:
        return None
    return pull if pull.state == "open" and pull.head_branch == known.branch else None


async def body_on_line(github: GitHub, task: Task, comment_id: int) -> str | None:
    """Return what stands in a comment on a line; None where it is gone."""
    thread = await thread_of(github, task, comment_id)
    return next((one.body for one in thread.comments if one.id == comment_id), None) if thread else None


async def settle_on_line(github: GitHub, task: Task, comment_id: int, text: str) -> None:
    """Show in a request what was decided about it, and resolve its thread: nothing is left to be said there.

    Raises:
        NotFound: it is gone.
    """
    await github.reviews.edit_review_comment(task.repository, comment_id, text)
    thread = await thread_of(github, task, comment_id)
    if thread is None or thread.is_resolved:
        return
    try:
        await github.reviews.resolve_thread(task.repository, thread.id)
    except (Conflict, Forbidden) as refused:
        log.info("line.unresolved", extra={"task": task.id, "error": str(refused)})


async def thread_of(github: GitHub, task: Task, comment_id: int) -> ReviewThread | None:
    """Find the thread of the task's pull request that holds a comment."""
    if task.pull_number is None:
        return None
    threads = await github.reviews.review_threads(task.repository, task.pull_number)
    return next((one for one in threads if any(comment.id == comment_id for comment in one.comments)), None)


async def known_on_lines(store: TaskStore, github: GitHub, task: Task, pull: Pull) -> Mapping[str, int]:
    """Return the comments on lines of a task, by slot: an earlier life may have made them."""
    key = await store.state_key()
    threads = await github.reviews.review_threads(task.repository, pull.number)
    marked = ((markers.find(one.body, key), one.id) for thread in threads for one in thread.comments if one.is_ours)
    return {mark[1]: comment_id for mark, comment_id in marked if mark is not None and mark[0] == task.id}
