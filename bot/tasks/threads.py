"""Review threads on GitHub: fetched as a run may know them, and answered."""

from collections.abc import Sequence

from bot.commands.permissions import WRITERS
from bot.domain.refs import Actor
from bot.domain.review import OpenThread, Said
from bot.domain.task import Run, Task
from bot.github import markers, rounds
from bot.github.base import GitHub
from bot.github.reviews import ReviewComment, ReviewThread
from bot.tasks.desk import Threads
from bot.tasks.lines import REQUEST

EDITED = "[edited after the request, so it is left out]"


async def open_threads(github: GitHub, task: Task, run: Run, key: bytes) -> Threads:
    """Fetch the threads that are not resolved, as they stood when the run was asked for.

    What was said later belongs to the next round; what was edited later says something that nobody asked for. Where we
    ask for a decision, and where nobody but us said anything, there is nothing to answer.

    Args:
        github: as the right installation.
        task: whose pull request it is.
        run: that asks.
        key: the secret of this server.
    """
    if task.pull_number is None:
        return Threads()
    threads = await github.reviews.review_threads(task.repository, task.pull_number)
    found = [one for one in threads if not one.is_resolved and not _is_our_own(one, key)]
    # Ours counts other moments: a delivery is handled late, and clocks differ.
    asked_at = run.asked_at or run.created_at
    authors = {comment.author for thread in found for comment in thread.comments if comment.author is not None}
    writers = {author.id for author in authors if await _writes(github, task, author)}
    kept: list[OpenThread] = []
    edited = 0
    for thread in found:
        comments = [comment for comment in thread.comments if comment.created_at <= asked_at]
        if not comments:
            continue
        # GitHub counts whole seconds: what was edited within that of the request may have been edited after it.
        changed = [one for one in comments if one.edited_at is not None and one.edited_at >= asked_at]
        edited += len(changed)
        said = [_said(comment, writers, left_out=comment in changed) for comment in comments]
        kept.append(_thread(f"T{len(kept) + 1}", thread, said))
    return Threads(task.pull_number, kept, rounds.left_out(edited) if edited else "")


def _is_our_own(thread: ReviewThread, key: bytes) -> bool:
    mark = markers.find(thread.comments[0].body, key) if thread.comments[0].is_ours else None
    return all(one.is_ours for one in thread.comments) or (mark is not None and mark[1].startswith(REQUEST))


async def _writes(github: GitHub, task: Task, author: Actor) -> bool:
    return not author.is_bot and await github.permission(task.repository, author) in WRITERS


def _said(comment: ReviewComment, writers: set[int], *, left_out: bool) -> Said:
    author = "" if comment.is_ours or comment.author is None else comment.author.login
    # What is left out asks for nothing.
    writes = not left_out and comment.author is not None and comment.author.id in writers
    return Said(author, writes, EDITED if left_out else comment.body, comment.is_ours)


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
    )
