"""Tasks of the terminal that can go on: which there are, and which one a person means."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bot.domain.task import Outcome, Run, Task
from bot.errors import OperatorError
from bot.store.base import TaskStore
from bot.tasks.liveness import Liveness

NEWEST = "newest"
"""Stands for the newest task that can go on."""
SHORT = 8
"""Digits of a task's id that people see; a branch ends in the same."""
LOOKED_AT = 1_000
"""Newest tasks that are looked at, of all repositories."""
LISTED = 5

Standing = Literal["new", "alive", "cut off"] | Outcome
"""How far a task is: not begun, worked on by a living process, cut off by the end of its process, or how it ended."""
_WORDS: Mapping[Standing, str] = {
    "new": "not begun",
    "alive": "worked on by another process",
    "cut off": "cut off",
    "stopped": "stopped",
    "failed": "failed",
    "budget": "ended at a limit",
    "waiting": "waits for a decision or an answer",
    "done": "done",
}


@dataclass(frozen=True, slots=True)
class Left:
    """A task and how far it is."""

    task: Task
    run: Run
    """Its newest."""
    standing: Standing

    @property
    def short(self) -> str:
        """What people call it by."""
        return self.task.id[:SHORT]

    @property
    def goes_on(self) -> bool:
        """Whether there is something to go on with."""
        return self.standing not in {"alive", "done"}

    def __str__(self) -> str:
        return f"{self.short} ({self.task.title}: {_WORDS[self.standing]})"


async def left_in(store: TaskStore, liveness: Liveness, repository_id: int) -> AsyncIterator[Left]:
    """Go through the tasks of one repository, newest first."""
    executors = {run.id: executor for run, executor in await store.running()}
    for task in await store.tasks(limit=LOOKED_AT):
        if task.repository.id != repository_id:
            continue
        runs = await store.runs(task.id)
        if runs:
            yield Left(task, runs[-1], _standing(runs[-1], executors, liveness))


def _standing(run: Run, executors: Mapping[str, str], liveness: Liveness) -> Standing:
    if run.state == "finished":
        return run.outcome or "failed"
    if run.state == "queued":
        return "new"
    return "cut off" if liveness.is_dead(executors.get(run.id, "unknown")) else "alive"


async def meant(store: TaskStore, liveness: Liveness, repository_id: int, name: str, repo: Path) -> Left:
    """Find the task that a person wants to go on with.

    Args:
        store: of the terminal's tasks.
        liveness: of its processes.
        repository_id: where the task belongs.
        name: the beginning of its id, or `NEWEST`.
        repo: the repository's place, for the error.

    Raises:
        OperatorError: there is no such task, more than one, or it is worked on right now; says which there are.
    """
    found = [left async for left in left_in(store, liveness, repository_id)]
    if name == NEWEST:
        fitting = [left for left in found if left.goes_on][:1]
    else:
        fitting = [left for left in found if left.task.id.startswith(name.lower())]
    if len(fitting) == 1 and fitting[0].standing == "alive":
        raise OperatorError(f"another process works on task {fitting[0].short} right now; end that one first")
    if len(fitting) == 1:
        return fitting[0]
    others = [left for left in found if left.standing != "done"][:LISTED]
    there = "there is " + ", ".join(map(str, others)) if others else "no task of it is unfinished"
    if name == NEWEST:
        raise OperatorError(f"nothing to go on with in {repo}: {there}")
    if fitting:
        raise OperatorError(f"`{name}` begins the ids of {len(fitting)} tasks of {repo}; give more of it")
    elsewhere = await _elsewhere(store, name)
    raise OperatorError(f"{repo} has no task `{name}`{elsewhere}: {there}")


async def _elsewhere(store: TaskStore, name: str) -> str:
    for task in await store.tasks(limit=LOOKED_AT):
        if task.id.startswith(name.lower()):
            return f", but `{task.repository.name}` has; name that repository with `--repo`"
    return ""
