"""Review threads on GitHub: fetched as a run may know them, and answered."""

import json
import logging
from collections.abc import Collection, Sequence
from dataclasses import replace

from bot.commands.permissions import WRITERS
from bot.domain.events import RoundAnswered
from bot.domain.refs import Actor
from bot.domain.review import OpenThread, Said
from bot.domain.task import LATE, ON_LINE, Run, Task
from bot.errors import Conflict, Forbidden, NotFound
from bot.github import markers, rounds
from bot.github.base import GitHub
from bot.github.reviews import ReviewComment, ReviewThread
from bot.github.rounds import RoundView
from bot.store.base import Effect, TaskStore
from bot.tasks.desk import Threads
from bot.tasks.independent import note_speakers
from bot.tasks.lines import REQUEST, open_pull

log = logging.getLogger(__name__)

RESOLVED = "resolved"
"""The slot of the effect that holds which threads we resolved."""
EDITED = "[edited after the request, so it is left out]"


async def open_threads(store: TaskStore, github: GitHub, task: Task, run: Run) -> Threads:
    """Fetch the threads that are not resolved, as they stood when the run was asked for, and that where it was asked.

    What was said later belongs to the next round; what was edited later says something that nobody asked for. Where we
    ask for a decision, and where nobody but us said anything, there is nothing to answer; nor is there where the pull
    request is closed. Who answers a question is told where that stands alone.

    Args:
        store: where it is noted who took part so.
        github: as the right installation.
        task: whose pull request it is.
        run: that asks.
    """
    pull = await open_pull(store, github, task)
    if pull is None:
        return Threads()
    key, asking, ours = await store.state_key(), await _asking(store, task, run), await _resolved(store, task)

    def is_wanted(thread: ReviewThread) -> bool:
        if run.intent == "ask":
            return _asks(thread, asking)
        return not _is_our_own(thread, key) and (not thread.is_resolved or _asks(thread, asking))

    threads = await github.reviews.review_threads(task.repository, pull.number)
    found = [thread for thread in threads if is_wanted(thread)]
    # Ours counts other moments: a delivery is handled late, and clocks differ.
    asked_at = run.asked_at or run.created_at
    authors = {comment.author for thread in found for comment in thread.comments if comment.author is not None}
    writers = {author.id for author in authors if await _writes(github, task, author)}
    kept: list[OpenThread] = []
    speakers: set[Actor] = set()
    edited = 0
    for thread in found:
        comments = [comment for comment in thread.comments if comment.created_at <= asked_at]
        if not comments:
            continue
        # GitHub counts whole seconds: what was edited within that of the request may have been edited after it.
        changed = [one for one in comments if one.edited_at is not None and one.edited_at >= asked_at]
        edited += len(changed)
        told = [one.author for one in comments if one not in changed]
        speakers |= {author for author in told if author is not None and author.id in writers}
        said = [_said(comment, writers, left_out=comment in changed) for comment in comments]
        told_of = replace(
            _thread(f"T{len(kept) + 1}", thread, said),
            asks=_asks(thread, asking),
            seen=[_mark(one) for one in comments if not one.is_ours and one not in changed],
            reopened=thread.id in ours and not thread.is_resolved,
        )
        kept.append(told_of)
    await note_speakers(store, task, speakers)
    return Threads(pull.number, kept, rounds.left_out(edited) if edited else "")


async def _asking(store: TaskStore, task: Task, run: Run) -> frozenset[int]:
    """Return the comments on lines that asked for a run: one, or all that came while another was open."""
    keys = [run.event_key]
    if run.event_key.startswith(LATE):
        late = [one.event_key for one in await store.runs(task.id) if one.seq <= run.seq]
        *before, last = (_number(key) for key in late if key.startswith(LATE))
        items = [one for one in await store.inbox(task.id, after=max(before, default=0)) if one.id <= last]
        stopped = max((one.id for one in items if one.kind == "stop"), default=0)
        keys = [one.event_key for one in items if one.id > stopped]
    return frozenset(_number(key) for key in keys if key.startswith(ON_LINE))


def _number(event_key: str) -> int:
    return int(event_key.rpartition(":")[2])


def _asks(thread: ReviewThread, asking: frozenset[int]) -> bool:
    return any(one.id in asking for one in thread.comments)


def _is_our_own(thread: ReviewThread, key: bytes) -> bool:
    mark = markers.find(thread.comments[0].body, key) if thread.comments[0].is_ours else None
    return all(one.is_ours for one in thread.comments) or (mark is not None and mark[1].startswith(REQUEST))


async def _writes(github: GitHub, task: Task, author: Actor) -> bool:
    return not author.is_bot and await github.permission(task.repository, author) in WRITERS


def _said(comment: ReviewComment, writers: set[int], *, left_out: bool) -> Said:
    author = "" if comment.is_ours or comment.author is None else comment.author.login
    # What is left out asks for nothing.
    writes = not left_out and comment.author is not None and comment.author.id in writers
    silent = comment.is_ours and comment.body.startswith((rounds.SILENT, rounds.MORE))
    return Said(author, writes, EDITED if left_out else comment.body, comment.is_ours, silent)


def _thread(name: str, thread: ReviewThread, said: Sequence[Said]) -> OpenThread:
    return OpenThread(
        name,
        thread.id,
        thread.path,
        thread.line if thread.line is not None else thread.original_line,
        thread.start_line,
        thread.side == "LEFT",
        thread.is_outdated,
        thread.comments[0].diff_hunk,
        said,
        resolved=thread.is_resolved,
    )


async def post_answers(  # noqa: PLR0913 - an answer has this many sides
    store: TaskStore,
    github: GitHub,
    task: Task,
    commit: str | None,
    view: RoundView,
    *,
    model: str,
    word: str,
    marker: str,
) -> RoundAnswered:
    """Answer in threads and resolve what was dealt with; what cannot be resolved is answered all the same.

    A thread in which others said more than the round was told stays open: nobody reads on in a resolved one.

    Args:
        store: where it is kept what we resolved.
        github: as the right installation.
        task: whose pull request it is.
        commit: what the answers are about; None for the head.
        view: the answers; threads that were deleted meanwhile are passed over, and so are those that people resolved
            and the model did not answer.
        model: its name.
        word: the command word.
        marker: by which the review is found again.
    """
    number = task.pull_number or 0
    there = {thread.id: thread for thread in await github.reviews.review_threads(task.repository, number)}
    replies = [
        (thread, replace(one, more=_has_more(there[thread], one.seen) and not there[thread].is_resolved))
        for thread, one in view.replies
        if thread in there and (one.answer is not None or one.resolved or not there[thread].is_resolved)
    ]
    view = replace(view, replies=replies)
    if view.replies or view.left:
        # Others may have pushed over the commit that the round began on.
        commit = commit or (await github.pull(task.repository, number)).head_sha
        said = [(thread, rounds.answer(one, model=model, word=word)) for thread, one in view.replies]
        body = f"{rounds.review(view)}\n\n{marker}"
        await github.reviews.reply_in_review(task.repository, number, commit, body, said)
    resolved = await _resolve(store, github, task, view)
    return RoundAnswered(len(view.replies), resolved)


async def _resolve(store: TaskStore, github: GitHub, task: Task, view: RoundView) -> int:
    """Resolve what may be, keep which threads these are, and count them."""
    # Answers take their time to be posted, so that people may have said something since.
    threads = await github.reviews.review_threads(task.repository, task.pull_number or 0) if view.resolved else ()
    there, told = {thread.id: thread for thread in threads}, dict(view.replies)
    resolved = set[str]()
    for thread in view.resolved:
        if thread not in told or thread not in there or _has_more(there[thread], told[thread].seen):
            continue
        try:
            await github.reviews.resolve_thread(task.repository, thread)
        except (Conflict, Forbidden, NotFound) as refused:
            log.info("thread.unresolved", extra={"task": task.id, "error": str(refused)})
        else:
            resolved.add(thread)
    answered = {thread for thread, one in view.replies if one.answer is not None}
    before = await _resolved(store, task)
    kept = resolved | {thread for thread in before - answered if not threads or thread in there}
    if kept != before:
        await store.keep_effect(task.id, Effect(RESOLVED, "threads", json.dumps(sorted(kept))))
    return len(resolved)


async def _resolved(store: TaskStore, task: Task) -> frozenset[str]:
    """Return the threads that we resolved and did not answer anew since."""
    effect = await store.effect(task.id, RESOLVED)
    return frozenset(json.loads(effect.remote_id) if effect else ())


def _has_more(thread: ReviewThread, seen: Collection[str]) -> bool:
    """Whether others said something in a thread that the round was not told."""
    return any(_mark(one) not in seen for one in thread.comments if not one.is_ours)


def _mark(comment: ReviewComment) -> str:
    return f"{comment.id} {comment.edited_at or ''}".strip()


async def answer_there(github: GitHub, task: Task, thread: str, text: str, marker: str) -> bool:
    """Answer a question in the thread in which it was asked; False where that is gone, or GitHub takes nothing there.

    Args:
        github: as the right installation.
        task: whose pull request it is.
        thread: its id.
        text: Markdown.
        marker: by which the review that holds it is found again.
    """
    number = task.pull_number or 0
    if thread not in {one.id for one in await github.reviews.review_threads(task.repository, number)}:
        return False
    head = (await github.pull(task.repository, number)).head_sha
    try:
        await github.reviews.reply_in_review(
            task.repository, number, head, f"{rounds.in_thread()}\n\n{marker}", [(thread, text)]
        )
    except (Conflict, Forbidden, NotFound) as refused:
        log.info("thread.unanswered", extra={"task": task.id, "error": str(refused)})
        return False
    return True
