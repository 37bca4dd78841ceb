"""What a worker has at hand; `bootstrap` fills it with concrete things."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from bot.agent.context.window import Window
from bot.domain.events import PlanProposed
from bot.domain.task import Run, Task
from bot.llm.base import Model
from bot.llm.meter import Meter, PriceOf
from bot.sandbox.base import Access, Sandbox
from bot.settings.resolve import RunSettings
from bot.store.base import TaskStore
from bot.tools.base import FileLedger, Tool, Toolset
from bot.workspace.base import Identity, Opened, Origin, Workspace, Workspaces
from bot.workspace.prepared import PreparedFolders

Tell = Callable[[str], Coroutine[object, object, None]]
"""Tells people in a sentence what is amiss with a model while the run goes on."""


@dataclass(frozen=True, slots=True)
class Work:
    """What a run made, as the publisher needs it."""

    commit: str
    base: str
    """The commit it stands on."""
    expected: str | None
    """Where the remote branch stood when the run began; None where there was none."""
    branch: str
    summary: str
    """The model's own account."""
    complete: bool
    """False where the run ended early and this is what there was."""
    early: str = ""
    """Why it ended early, as a sentence, where it is offered as a draft all the same."""


@dataclass(frozen=True, slots=True)
class Published:
    """Where people find the work."""

    number: int | None
    """None where only a branch carries it."""
    url: str
    remark: str = ""
    """What people have to know of how it was published, as a sentence."""


class Publisher(Protocol):
    """The side of a task that people see: GitHub, or the terminal."""

    async def settings(self, task: Task, run: Run) -> RunSettings:
        """Resolve what applies; reads the repository's file from its default branch."""
        ...

    async def held(self, task: Task, run: Run) -> None:
        """Show that a queued run waits for more than its turn, as its stream says."""
        ...

    async def announce(self, task: Task, run: Run, settings: RunSettings) -> None:
        """Say that the work begins."""
        ...

    async def origin(self, task: Task) -> Origin:
        """Say where the repository is."""
        ...

    async def author(self, task: Task) -> Identity:
        """Say under which name the commit stands."""
        ...

    async def push(self, task: Task, workspace: Workspace, commit: str, branch: str, *, expected: str | None) -> bool:
        """Bring a commit to a branch that people see; False where there is no branch, as in their own checkout.

        Raises:
            BranchMoved: the branch stands elsewhere than `expected`.
            PushRejected: it was not taken; the text says why.
        """
        ...

    async def takes_unfinished(self, task: Task, *, offered: bool) -> bool:
        """Say whether unfinished work may go to the task's own branch although that is there already.

        Args:
            task: whose branch.
            offered: whether the work is shown as a draft, so that a further run goes on from it.
        """
        ...

    async def publish(self, task: Task, run: Run, work: Work) -> Published | None:
        """Open or update what carries the pushed work; None where nothing carries it beside the branch."""
        ...

    async def propose(self, task: Task, run: Run, plan: PlanProposed) -> str | None:
        """Show a plan; return what a person who is there says where it waits, and None where nobody is."""
        ...

    async def ask(self, task: Task, run: Run, question: str, number: int) -> str | None:
        """Put a question; return what a person who is there answers, and None where nobody is.

        Args:
            task: it belongs to.
            run: it belongs to.
            question: in the model's words.
            number: 1 for the first of the run.
        """
        ...

    async def progress(self, task: Task, run: Run) -> None:
        """Bring what people see up to date; called often, and cheap where nothing changed."""
        ...

    async def report(self, task: Task, run: Run) -> None:
        """Show the final state."""
        ...


@dataclass(frozen=True, slots=True)
class Shelter:
    """What stands between commands and this machine."""

    level: str
    shell: bool
    """Whether commands are run at all."""

    def refuses(self, task: Task) -> str:
        """Say why this task is not worked on here; empty where it is."""
        if self.level == "none" and self.shell and not task.repository.private:
            return "This server runs commands without a sandbox, so it does not work on public repositories."
        return ""


@dataclass(frozen=True, slots=True)
class Desk:
    """Everything a run may need."""

    store: TaskStore
    workspaces: Workspaces
    publisher: Publisher
    shelter: Shelter
    sandbox: Callable[[Opened, Access], Awaitable[Sandbox]]
    """Makes the place where the tools of one work tree act."""
    tools: Callable[[RunSettings], Sequence[Tool]]
    """Chooses the tools that are offered."""
    toolset: Callable[[Sequence[Tool], Sandbox, FileLedger], Toolset]
    """Binds tools to one place."""
    model: Callable[[str, Tell, Meter], Model]
    """Makes a model by its configured name; all its requests are counted by the meter."""
    window: Callable[[str], Window]
    """Tells how much a model reads at once."""
    price_usd: PriceOf
    environments: PreparedFolders | None
    """What was set up for tasks, by repository; None where nothing is."""
    clock: Callable[[], datetime]
    """The present time, aware; never used where a replay would decide differently."""
    stops: dict[str, asyncio.Event] = field(default_factory=dict)
    """For each run of this process: set when a person says stop."""
    bells: dict[str, asyncio.Event] = field(default_factory=dict)
    """For each run of this process: rung when its stream grew."""

    def stop_of(self, run_id: str) -> asyncio.Event:
        """Return the stop signal of a run."""
        return self.stops.setdefault(run_id, asyncio.Event())

    def ring(self, run_id: str) -> None:
        """Say that a run's stream grew."""
        if bell := self.bells.get(run_id):
            bell.set()
