"""A person decides about a call that waits: what they mean, whether it still stands, and what they are answered.

Who may decide is asked before; here is only what a decision is about.
"""

import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from bot.agent import gate
from bot.agent.gate import Asked
from bot.agent.policy import Surroundings
from bot.commands.permissions import WRITERS
from bot.domain.events import ActionDecided, ActionRequested
from bot.domain.refs import Actor
from bot.domain.task import Task
from bot.domain.trigger import TriggerContext
from bot.errors import Conflict, Forbidden, NotFound
from bot.github import markers, requests
from bot.github.base import GitHub
from bot.github.text import cut
from bot.redaction import mask
from bot.store.base import Decision, TaskStore, Vote
from bot.tasks.effects import as_kept
from bot.tasks.gates import slot_of
from bot.tasks.lines import body_on_line, settle_on_line

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Decided:
    """What became of a decision."""

    kind: Literal["approved", "denied", "more_needed", "refused"]
    """After `approved` and `denied` the task goes on in a further run."""
    text: str
    """For the thread, as Markdown."""
    request: ActionRequested | None = None


@dataclass(frozen=True, slots=True)
class _Said:
    """What a person said about a call, and where."""

    context: TriggerContext
    word: str
    short_hash: str | None
    in_thread_of: int | None
    comment_id: int | None
    now: datetime


class _Refused(Exception):  # noqa: N818 - no error: it is what the person is told
    """Nothing can be decided; the text says why."""


async def approve(  # noqa: PLR0913 - an approval has these sides
    store: TaskStore,
    github: GitHub,
    context: TriggerContext,
    *,
    short_hash: str | None,
    always: str | None,
    in_thread_of: int | None,
    required: int,
    clock: Callable[[], datetime],
    comment_id: int | None = None,
    word: str = "/agent",
) -> Decided:
    """Count a person's approval of a call.

    Args:
        store: where decisions are kept.
        github: as the right installation.
        context: of the comment; its actor may decide.
        short_hash: the beginning of the hash; None means the call that waited when the comment was made.
        always: a pattern of calls that are allowed in this task from here on; None or empty for none.
        in_thread_of: the comment that it replies to, where it stands in a thread of its own.
        required: people who have to approve; where the run that asked says more, that counts.
        clock: the present time.
        comment_id: of the comment, where it is one of the conversation: ids there only grow.
        word: with which comments speak to us.
    """
    said = _Said(context, word, short_hash, in_thread_of, comment_id, clock())
    pattern = mask(always or "")
    try:
        task, decision = await _meant(store, github, said)
    except _Refused as refusal:
        return Decided("refused", str(refusal))
    fact, actor = _asked(decision).fact(), _actor(context)
    if pattern and (why := _why_no_pattern(decision, pattern)):
        return Decided("refused", requests.bad_pattern(pattern, why), fact)
    needed = max(required, int(json.loads(decision.question)["approvals"]))
    if decision.verdict is None:
        await _look_again(store, github, task, decision, actor[0])
    counted = await store.approve(
        decision.id,
        actor_id=actor[0],
        actor=actor[1],
        event_key=context.event_key,
        at=clock(),
        required=needed,
        pattern=pattern,
    )
    if counted == "known":
        return Decided("refused", await _before(store, decision), fact)
    if counted == "more_needed":
        return Decided("more_needed", requests.more_needed(fact, actor[1], needed, word), fact)
    text = await _approved(store, task, decision, clock())
    await _settle(store, github, task, decision, text)
    return Decided("approved", text, fact)


async def _approved(store: TaskStore, task: Task, decision: Decision, at: datetime) -> str:
    """Note that enough people approved a call, and return what they are told."""
    fact, votes = _asked(decision).fact(), await store.votes(decision.id)
    by = next(one.actor for one in await store.decisions(task.id) if one.id == decision.id)
    await _note(store, task, decision, ActionDecided(fact.hash, "approved", by), at)
    shared = shared_pattern(votes)
    return requests.approved(fact, by, always=shared, differ=not shared and any(one.pattern for one in votes))


async def deny(  # noqa: PLR0913 - a denial has these sides
    store: TaskStore,
    github: GitHub,
    context: TriggerContext,
    *,
    short_hash: str | None,
    reason: str,
    in_thread_of: int | None,
    clock: Callable[[], datetime],
    comment_id: int | None = None,
    word: str = "/agent",
) -> Decided:
    """Keep a call from being made; the arguments are those of `approve`, and `reason` is for the model."""
    said = _Said(context, word, short_hash, in_thread_of, comment_id, clock())
    try:
        task, decision = await _meant(store, github, said)
    except _Refused as refusal:
        return Decided("refused", str(refusal))
    fact, (actor_id, actor), why = _asked(decision).fact(), _actor(context), mask(reason.strip())
    if not await store.decide(
        decision.id, "denied", actor_id=actor_id, actor=actor, reason=why, at=clock(), event_key=context.event_key
    ):
        return Decided("refused", await _before(store, decision), fact)
    await _note(store, task, decision, ActionDecided(fact.hash, "denied", actor, why), clock())
    text = requests.denied(fact, actor, why)
    await _settle(store, github, task, decision, text)
    return Decided("denied", text, fact)


async def waiting_for(store: TaskStore, task: Task) -> Sequence[ActionRequested]:
    """Return the calls of a task that nobody has decided about, oldest first."""
    return [_asked(one).fact() for one in await _open(store, task)]


STOPPED = "the work was stopped"


async def drop(store: TaskStore, task: Task, by: str, at: datetime, why: str = STOPPED) -> Sequence[Decision]:
    """Let nothing wait any more, neither for a decision nor to be carried out: as where a person stops the task.

    Args:
        store: where decisions are kept.
        task: whose.
        by: login of who wants that.
        at: the present time.
        why: as the end of a sentence.

    Returns:
        What waited.
    """
    waited = [
        one for one in await store.decisions(task.id) if one.used_at is None and one.verdict in {None, "approved"}
    ]
    for one in waited:
        await store.decide(one.id, "void", actor_id=0, actor=by, reason=why, at=at)
        # Somebody may have approved it just before.
        await store.use(one.id, at, void=why)
    return waited


async def show_dropped(store: TaskStore, github: GitHub, task: Task, dropped: Sequence[Decision], by: str) -> None:
    """Say in the comments of requests that they wait no more, since a person stopped the work."""
    for one in dropped:
        await _settle(store, github, task, one, requests.dropped(by))


def shared_pattern(votes: Sequence[Vote]) -> str:
    """Return the pattern that all who approved have written; empty where they did not all write the same."""
    patterns = {one.pattern for one in votes}
    return patterns.pop() if len(patterns) == 1 else ""


async def _look_again(store: TaskStore, github: GitHub, task: Task, decision: Decision, actor_id: int) -> None:
    """Take the votes back of others who may not vote any more."""
    for one in await store.votes(decision.id):
        if one.actor_id == actor_id:
            continue
        if await github.permission(task.repository, Actor(one.actor_id, one.actor)) not in WRITERS:
            await store.take_back(decision.id, one.actor_id)


async def _open(store: TaskStore, task: Task) -> Sequence[Decision]:
    return [one for one in await store.decisions(task.id) if one.verdict is None]


async def _meant(store: TaskStore, github: GitHub, said: _Said) -> tuple[Task, Decision]:
    """Find what a person decides about, and see that it still stands."""
    thread = said.context.thread
    task = await store.task_of(thread.repository.id, thread.number)
    if task is None:
        raise _Refused(requests.nothing_waits(said.word))
    handled = await store.decided_by(said.context.event_key)
    if known := [one for one in await store.decisions(task.id) if one.id == handled]:
        return task, known[0]
    decision = await _named(store, task, said) if said.short_hash else await _current(store, task, said)
    fact = _asked(decision).fact()
    if (decision.verdict, decision.reason) == ("void", EDITED):
        raise _Refused(requests.edited(fact, said.word))
    if decision.verdict is not None:
        return task, decision
    if _asked(decision).request.is_old(said.now):
        raise _Refused(requests.expired(fact, said.word))
    if not await _stands(store, github, task, decision):
        await store.decide(decision.id, "void", actor_id=0, actor="", reason=EDITED, at=said.now)
        raise _Refused(requests.edited(fact, said.word))
    return task, decision


async def edited(
    store: TaskStore, task: Task, comment_id: int, at: datetime, *, on_line: bool
) -> ActionRequested | None:
    """Let a request wait no more whose comment somebody changed: it may be put back before anybody answers.

    Args:
        store: where decisions are kept.
        task: of the thread.
        comment_id: what was changed, by others than us.
        at: the present time.
        on_line: whether it stands on a line.

    Returns:
        The request that it held and that waited; None where it held none.
    """
    held = [one for one in await _open(store, task) if (one.comment_id, one.on_line) == (comment_id, on_line)]
    for one in held:
        await store.decide(one.id, "void", actor_id=0, actor="", reason=EDITED, at=at)
    return _asked(held[0]).fact() if held else None


EDITED = "the comment that asked for approval is not as it was posted"


async def _named(store: TaskStore, task: Task, said: _Said) -> Decision:
    """Return the request with a hash; of several that asked the same, the last one."""
    given = (said.short_hash or "").casefold()
    found = {one.hash: one for one in await store.decisions(task.id) if one.hash.startswith(given)}
    if len(found) > 1:
        raise _Refused(requests.ambiguous(given, said.word))
    if not found:
        raise _Refused(requests.unknown(given))
    return next(iter(found.values()))


async def _current(store: TaskStore, task: Task, said: _Said) -> Decision:
    """Return the one request that a person had before them."""
    if (own := await in_thread(store, task, said.in_thread_of)) is not None:
        return own
    waiting = [one for one in await _open(store, task) if _stood(one, said) is not False]
    if not waiting:
        raise _Refused(requests.nothing_waits(said.word))
    if len(waiting) > 1 or not _stood(waiting[0], said):
        raise _Refused(requests.which([_asked(one).fact() for one in waiting], said.word))
    return waiting[0]


async def in_thread(store: TaskStore, task: Task, root_id: int | None) -> Decision | None:
    """Return the request that a thread on a line begins with, whatever became of it."""
    found = (one for one in await store.decisions(task.id) if one.on_line and one.comment_id == root_id)
    return next(found, None)


def _stood(decision: Decision, said: _Said) -> bool | None:
    """Whether a request was there when a person wrote; None where nobody knows.

    Ids of the conversation only grow; those of comments on lines are counted apart, and our clock is not GitHub's.
    """
    if said.comment_id is None or decision.on_line:
        return None
    return decision.comment_id is not None and decision.comment_id < said.comment_id


async def _stands(store: TaskStore, github: GitHub, task: Task, decision: Decision) -> bool:
    """Whether the request's comment says what was posted: whoever changed it may have shown people another call."""
    run = await store.run(task.id, decision.run)
    if run is None or decision.comment_id is None:
        return False
    posted = cut(json.loads(decision.question)["body"], tail=await _mark(store, task, decision))
    if decision.on_line:
        found = await body_on_line(github, task, decision.comment_id) or ""
    else:
        bodies = {comment.id: comment.body for comment in await github.comments(task.repository, run.number)}
        found = bodies.get(decision.comment_id, "")
    return as_kept(found) == as_kept(posted)


async def _settle(store: TaskStore, github: GitHub, task: Task, decision: Decision, line: str) -> None:
    """Show with the request what was decided; where GitHub does not let us, the decision counts all the same."""
    body = requests.settled(line, json.loads(decision.question)["body"])
    if decision.comment_id is None:
        return
    text = cut(body, tail=await _mark(store, task, decision))
    try:
        if decision.on_line:
            await settle_on_line(github, task, decision.comment_id, text)
        else:
            await github.edit_comment(task.repository, decision.comment_id, text)
    except (Conflict, Forbidden, NotFound) as refused:
        log.info("decision.not_shown", extra={"task": task.id, "error": str(refused)})


async def _mark(store: TaskStore, task: Task, decision: Decision) -> str:
    return markers.make(task.id, slot_of(decision.run, decision.hash), await store.state_key())


def _why_no_pattern(decision: Decision, pattern: str) -> str:
    """Say why a pattern cannot be allowed, as the end of a sentence; empty where it can."""
    request = _asked(decision).request
    try:
        rule = gate.always(request.tool, pattern)
    except ValueError as error:
        return str(error)
    fits = gate.lifts([rule], request.tool, json.loads(request.arguments), Surroundings())
    return "" if fits else "it does not cover all of the call that waits"


async def _before(store: TaskStore, decision: Decision) -> str:
    kept = next(one for one in await store.decisions(decision.task_id) if one.id == decision.id)
    return requests.decided_before(_asked(kept).fact(), kept.verdict or "", kept.actor)


async def _note(store: TaskStore, task: Task, decision: Decision, fact: ActionDecided, at: datetime) -> None:
    await store.record(task.id, decision.run, f"decided/{decision.id}", fact, at)


def _asked(decision: Decision) -> Asked:
    return Asked.from_data(json.loads(decision.question))


def _actor(context: TriggerContext) -> tuple[int, str]:
    return (context.actor.id, context.actor.login) if context.actor else (0, "ghost")
