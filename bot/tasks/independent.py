"""Whether somebody approved the work who did not ask for it: looked up anew each time, and shown as a check run."""

import logging
from collections.abc import Iterable, Sequence

from bot.commands.permissions import WRITERS
from bot.domain.refs import Actor
from bot.domain.task import Task
from bot.domain.trigger import Pushed, ReviewDismissed, Reviewed
from bot.errors import Forbidden, GitHubError, NotFound
from bot.github import independent as words
from bot.github.base import GitHub
from bot.github.reviews import Review
from bot.store.base import Effect, TaskStore
from bot.tasks.showing import is_ours

log = logging.getLogger(__name__)

PUSHER = "pusher."
"""Begins the slots of effects that name who pushed to the task's branch beside us: one for each id, with the login."""
SPOKE = "spoke."
"""Begins the slots of effects that name writers whose words on lines were told to a run, likewise."""
TOLD = "independent.refused"
"""The slot of the effect that says that people were told why there is no check run."""


async def show(store: TaskStore, github: GitHub, task: Task, number: int, head: str) -> str:
    """Show how a head of the task's pull request stands; made once for each head, and brought up to date.

    Args:
        store: what tasks are known by.
        github: as the right installation.
        task: whose.
        number: of the pull request.
        head: where it stands.

    Returns:
        Why it cannot be shown, the first time that it cannot; else nothing.
    """
    try:
        by, asked = await _approver(store, github, task, number, head)
        await github.put_check(task.repository, words.check(head, task.id, by=by, asked=asked))
    except GitHubError as error:
        if error.retryable:
            raise
        # The work stands all the same.
        log.warning("independent.refused", extra={"task": task.id, "error": str(error)})
        if await store.effect(task.id, TOLD) is None:
            await store.keep_effect(task.id, Effect(TOLD, "notice", "1"))
            return words.not_shown(str(error))
    return ""


async def _approver(store: TaskStore, github: GitHub, task: Task, number: int, head: str) -> tuple[str, Sequence[str]]:
    """Return who approved a head so that it counts, empty for nobody, and those whose approval does not."""
    ids, logins = await _involved(store, task)
    known = {login.casefold() for login in logins}
    for review in _standing(await github.reviews.reviews(task.repository, number), head):
        author = review.author
        if author is None or author.is_bot or review.is_ours or author.id in ids or author.login.casefold() in known:
            continue
        if await github.permission(task.repository, author) in WRITERS:
            return author.login, logins
    return "", logins


async def heard(store: TaskStore, github: GitHub, trigger: Reviewed | ReviewDismissed | Pushed) -> None:
    """Look again where something may have changed: a review came or was dismissed, or the branch moved."""
    if isinstance(trigger, Reviewed) and trigger.state == "COMMENTED":
        return
    thread = trigger.context.thread
    task = await store.task_of(thread.repository.id, thread.number)
    if task is None or task.kind != "issue" or task.pull_number != thread.number:
        return
    if isinstance(trigger, Pushed) and trigger.context.actor is not None:
        await _note_pusher(store, github, task, trigger.context.actor)
    try:
        pull = await github.pull(task.repository, thread.number)
        if pull.state == "open" and await is_ours(store, github, task, pull):
            await show(store, github, task, pull.number, pull.head_sha)
    except (NotFound, Forbidden) as error:
        log.warning("independent.gone", extra={"task": task.id, "error": str(error)})


def _standing(reviews: Sequence[Review], head: str) -> list[Review]:
    """Return the approvals of a head that their authors neither took back nor had dismissed; comments leave them."""
    last: dict[int, Review] = {}
    for review in reviews:
        if review.author is not None and review.state in {"APPROVED", "CHANGES_REQUESTED", "DISMISSED"}:
            last[review.author.id] = review
    return [review for review in last.values() if review.state == "APPROVED" and review.commit == head]


async def _involved(store: TaskStore, task: Task) -> tuple[set[int], list[str]]:
    """List whose approval does not count: who asked for any run, who spoke to one, also on lines, and who pushed."""
    runs, items = await store.runs(task.id), await store.inbox(task.id)
    others = [*await _people(store, task, SPOKE), *await _people(store, task, PUSHER)]
    asked = {*(run.requester_id for run in runs), *(item.author_id for item in items)}
    # 0 is who is known by name alone.
    ids = (asked | {number for number, _ in others}) - {0}
    named = [task.requester, *(run.requester for run in runs), *(item.author for item in items)]
    return ids, list(dict.fromkeys([*named, *(login for _, login in others)]))


async def note_speakers(store: TaskStore, task: Task, people: Iterable[Actor]) -> None:
    """Note the writers whose words on lines a run is told to do: they take part in the work."""
    for person in people:
        await store.keep_effect(task.id, Effect(f"{SPOKE}{person.id}", "person", person.login))


async def _people(store: TaskStore, task: Task, begins: str) -> list[tuple[int, str]]:
    return [(int(one.slot.removeprefix(begins)), one.remote_id) for one in await store.effects(task.id, begins)]


async def _note_pusher(store: TaskStore, github: GitHub, task: Task, actor: Actor) -> None:
    if actor.id != (await github.identity()).id:
        await store.keep_effect(task.id, Effect(f"{PUSHER}{actor.id}", "person", actor.login))
