"""The plan that people decide about, and which of a thread's plans a decision means."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from bot.commands.permissions import WRITERS
from bot.domain.events import PlanProposed, RunEvent
from bot.domain.proposal import short
from bot.domain.refs import Actor
from bot.domain.task import BESIDE, Run, Task
from bot.errors import TaskRefused
from bot.github import commanding
from bot.github.base import GitHub
from bot.store.base import Effect, TaskStore
from bot.tasks.effects import plan_slot
from bot.tasks.standing import stand


@dataclass(frozen=True, slots=True)
class OpenPlan:
    """The plan that waits."""

    fact: PlanProposed
    comment_id: int | None
    """The comment in which people read it; None where none is known."""
    at: datetime
    """When it was put to them."""
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
    effect = await store.effect(task.id, plan_slot(run.seq, plan.number))
    at = max(event.at for event in events if event.fact == plan)
    needed = standing.started.settings.get("require_approvals") if standing.started else None
    return OpenPlan(plan, int(effect.remote_id) if effect else None, at, needed if isinstance(needed, int) else 1)


async def vote(store: TaskStore, github: GitHub, task: Task, plan: OpenPlan, actor: Actor) -> int:
    """Count a writer's yes to a plan; return how many others are still needed.

    Who said yes before and may not write any more counts no longer.
    """
    if plan.approvals <= 1:
        return 0
    slot = f"votes.{short(plan.fact.hash)}"
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
    said_at: datetime | None,
    *,
    word: str,
) -> bool:
    """Say whether an approval means the plan that waits.

    Args:
        plan: the one that waits; None where none does.
        events: the task's stream.
        wanted: the beginning of a hash; None means what stood there when the comment was made.
        comment_id: of the approving comment, where it is one of the thread's conversation; ids there only grow, and
            GitHub's clock has whole seconds alone.
        said_at: when it was said, where it stands elsewhere and that is known.
        word: the command word.

    Returns:
        False where it means no plan.

    Raises:
        TaskRefused: it means a plan that is no longer to be decided about.
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
    if wanted is None and comment_id is not None and plan.comment_id is not None and comment_id < plan.comment_id:
        raise TaskRefused(commanding.superseded("", short(plan.fact.hash), word))
    if wanted is None and said_at is not None and said_at < plan.at.replace(microsecond=0):
        raise TaskRefused(commanding.superseded("", short(plan.fact.hash), word))
    return True
