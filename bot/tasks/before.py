"""What the runs before this one left open: a plan that people read, a question, work that was cut short."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

from bot.domain.task import BESIDE, Run, Task
from bot.store.base import WORDS, TaskStore
from bot.tasks.standing import Standing, stand


@dataclass(frozen=True, slots=True)
class LeftOpen:
    """How the task stands as a run begins."""

    plan: str = ""
    """What was put to the people, who have to decide; empty where nothing was."""
    answers: bool = False
    """Whether the work ended in a question."""
    works: bool = False
    """Whether work had begun and was cut short."""
    asked: Sequence[str] = ()
    """What people asked before the plan, oldest first; the conversation of the work does not know it yet."""
    model: str | None = None
    """`provider:name` that a person chose for what is open."""
    talk: Sequence[str] = ()
    """What people asked about the plan, each with the answer, oldest first."""

    def to_data(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {**asdict(self), "asked": list(self.asked), "talk": list(self.talk)}

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> Self:
        """Turn stored values back."""
        return cls(**data)


async def left_open(store: TaskStore, task: Task, run: Run) -> LeftOpen:
    """Look back from a run; a run that ended before its model said anything changed nothing, and is passed over.

    What stood before a plan that was begun and not put to people is not to be decided about any more.
    """
    if run.fresh:
        return LeftOpen()
    events = await store.events(task.id)
    asked: list[str] = []
    talk: list[str] = []
    model, plan, cut, stopped = None, "", False, False
    for seq in range(run.seq - 1, 0, -1):
        one, earlier = stand(events, seq), await store.run(task.id, seq)
        if earlier is not None and earlier.intent in BESIDE:
            talk = [*_answered(earlier, one), *talk]
            continue
        if earlier is None or _is_settled(one):
            break
        waits = earlier.outcome == "waiting"
        worked = bool(one.replies) and (not waits or one.calls) and await store.messages(task.id, run=seq)
        if worked or (waits and one.question):
            # Its conversation goes on, and knows what was asked.
            works, answers = bool(worked) and not (plan or cut), not (worked or plan or cut)
            return LeftOpen(plan, answers, works, asked, model or earlier.model, talk)
        planned = bool(one.replies) or earlier.intent == "plan"
        if earlier.outcome == "stopped" and planned:
            # Nobody wants what it was asked for.
            break
        cut, stopped = cut or (not waits and planned), stopped or earlier.outcome == "stopped"
        # A stop takes back what several people approved, and no one of them can say it again for all.
        if waits and one.proposed is not None and not cut and not (stopped and one.approvals > 1):
            plan = plan or one.proposed.text
        # A further try says the same once more.
        asked = [*(text for text in one.requests if text and text != run.request), *asked]
        model = model or earlier.model
        if earlier.fresh:
            break
    if plan and not await store.messages(task.id):
        # What people said to who planned.
        said = [item.text for item in await store.inbox(task.id) if item.kind in WORDS and item.text]
        asked += [text for text in said if text not in run.request and not any(text in one for one in asked)]
    return LeftOpen(plan=plan, asked=asked, model=model, talk=talk)


def _answered(run: Run, one: Standing) -> list[str]:
    """Tell the work what a person asked about the plan and what the answer was; nothing where there was none."""
    if run.intent != "ask" or one.finished is None or one.finished.outcome != "done":
        return []
    return [f"{run.request}\n\nThe answer was, in a model's words:\n{one.finished.summary}"]


def _is_settled(one: Standing) -> bool:
    """Whether a run came to its own end."""
    return one.finished is None or one.finished.outcome == "done"
