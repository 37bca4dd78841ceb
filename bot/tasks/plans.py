"""The plan that people decide about, and which of a thread's plans a decision means."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from bot.commands.permissions import WRITERS
from bot.domain.events import PlanProposed, RunEvent
from bot.domain.proposal import short
from bot.domain.refs import Actor
from bot.domain.task import BESIDE, Run, Task
from bot.domain.trigger import Reviewed, Trigger
from bot.errors import RunEnding, TaskRefused
from bot.github import commanding, markers
from bot.github.base import GitHub
from bot.github.text import cut
from bot.store.base import Effect, TaskStore
from bot.tasks.effects import as_kept, ensure_comment, plan_slot, posted_slot
from bot.tasks.sheets import holds, require_seen
from bot.tasks.standing import stand

_BACK = "put-back"


@dataclass(frozen=True, slots=True)
class OpenPlan:
    """The plan that waits."""

    fact: PlanProposed
    comment_id: int | None
    """The comment in which people read it; None while it is about to be put to them."""
    slot: str
    """Names this one, of all that the task ever put to people."""
    number: int
    """The thread in which that stands."""
    put_back: int = 0
    """The last comment from before the plan's was put back as it was posted; 0 where nobody changed it."""
    approvals: int = 1
    """People who have to approve it."""


async def deciding_run(store: TaskStore, task: Task) -> Run:
    """Return the last run that changes how the task stands: an answer, a check or an update does not."""
    runs = await store.runs(task.id)
    return next((run for run in reversed(runs) if run.intent not in BESIDE), runs[-1])


async def open_plan(store: TaskStore, task: Task) -> OpenPlan | None:
    """Find the plan that waits for people; one that the running run has just put to them counts."""
    run = await deciding_run(store, task)
    events = await store.events(task.id)
    standing = stand(events, run.seq)
    plan = standing.proposed
    if plan is None or not plan.waits or not standing.has_plan_open:
        return None
    if run.state == "finished" and run.outcome != "waiting":
        return None
    slot = plan_slot(run.seq, plan.number)
    effect, back = await store.effect(task.id, slot), await store.effect(task.id, f"{_BACK}.{slot}")
    comment_id, put_back = int(effect.remote_id) if effect else None, int(back.remote_id) if back else 0
    return OpenPlan(plan, comment_id, slot, run.number, put_back, standing.approvals)


async def put_back(store: TaskStore, github: GitHub, task: Task, plan: OpenPlan) -> bool:
    """Put a plan's comment back as it was posted, and say whether somebody had changed it.

    A yes from before that was to other words.
    """
    kept = await store.effect(task.id, posted_slot(plan.slot))
    if kept is None or plan.comment_id is None:
        return False
    found = await github.comments(task.repository, plan.number)
    posted = cut(kept.remote_id, tail=markers.make(task.id, plan.slot, await store.state_key()))
    body = next((one.body for one in found if one.id == plan.comment_id), "")
    if as_kept(body) == as_kept(posted):
        return False
    last = max((one.id for one in found), default=0)
    await store.keep_effect(task.id, Effect(f"{_BACK}.{plan.slot}", "comment", str(last)))
    slot, body = plan.slot, kept.remote_id
    await ensure_comment(store, github, task.repository, plan.number, task_id=task.id, slot=slot, body=body)
    return True


async def require_read(  # noqa: PLR0913 - a yes has these sides
    store: TaskStore, github: GitHub, task: Task, plan: OpenPlan, trigger: Trigger, *, placed: bool, word: str
) -> None:
    """Refuse a yes whose author may have read something else than the plan.

    Args:
        store: where effects are noted.
        github: as the right installation.
        task: whose plan it is.
        plan: the one that waits.
        trigger: the yes.
        placed: whether it names the plan by its hash, or stands behind it in the conversation. One that does not has to
            be a review of the plan itself: ids elsewhere are counted apart, and our clock is not GitHub's.
        word: the command word.
    """
    if await put_back(store, github, task, plan):
        raise TaskRefused(commanding.plan_changed(short(plan.fact.hash), word))
    if not placed and not (isinstance(trigger, Reviewed) and await holds(store, task, plan.fact)):
        raise TaskRefused(commanding.hash_needed(word, short(plan.fact.hash)))
    commit = trigger.commit if isinstance(trigger, Reviewed) and not placed else ""
    await require_seen(github, store, task, plan.fact, word, commit=commit)


async def vote(store: TaskStore, github: GitHub, task: Task, plan: OpenPlan, actor: Actor) -> int:
    """Count a writer's yes to a plan; return how many others are still needed.

    Who said yes before and may not write any more counts no longer.
    """
    if plan.approvals <= 1:
        return 0
    # Not of another one with the same words: a stop takes back what was approved.
    slot = f"votes.{plan.slot}"
    kept = await store.effect(task.id, slot)
    votes: dict[str, str] = json.loads(kept.remote_id) if kept else {}
    votes[str(actor.id)] = actor.login
    for voter, login in list(votes.items()):
        if voter != str(actor.id) and await github.permission(task.repository, Actor(int(voter), login)) not in WRITERS:
            del votes[voter]
    await store.keep_effect(task.id, Effect(slot, "votes", json.dumps(votes)))
    return max(0, plan.approvals - len(votes))


def judge(
    plan: OpenPlan | None,
    events: Sequence[RunEvent],
    wanted: str | None,
    comment_id: int | None,
    *,
    word: str,
) -> bool:
    """Say whether an approval means the plan that waits.

    Args:
        plan: the one that waits; None where none does.
        events: the task's stream.
        wanted: the beginning of a hash; None means what stood there when the comment was made.
        comment_id: of the approving comment, where it is one of the thread's conversation; ids there only grow, and
            GitHub's clock has whole seconds alone. What stands elsewhere says by its place what it means, or by a hash.
        word: the command word.

    Returns:
        False where it means no plan.

    Raises:
        TaskRefused: it means a plan that is no longer to be decided about.
        RunEnding: nobody knows yet whether the plan stood there.
    """
    earlier = [event.fact.hash for event in events if isinstance(event.fact, PlanProposed) and event.fact.hash]
    if wanted is not None and not any(one.startswith(wanted) for one in earlier):
        return False
    if plan is None:
        if wanted is None:
            return False
        raise TaskRefused(commanding.nothing_waits(word))
    if wanted is not None and not plan.fact.hash.startswith(wanted):
        raise TaskRefused(commanding.superseded(short(wanted), short(plan.fact.hash), word))
    if wanted is None and comment_id is not None:
        if plan.comment_id is None:
            raise RunEnding("the plan is about to be put to the people")
        if comment_id < plan.comment_id:
            raise TaskRefused(commanding.superseded("", short(plan.fact.hash), word))
    if plan.put_back and comment_id is not None and comment_id <= plan.put_back:
        raise TaskRefused(commanding.plan_changed(short(plan.fact.hash), word))
    return True
