"""What a worker has at hand; `bootstrap` fills it with concrete things."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from bot.agent.context.window import Window
from bot.domain.events import PlanProposed, RoundAnswered
from bot.domain.proposal import Sheet
from bot.domain.request import ActionRequest
from bot.domain.review import OpenThread
from bot.domain.task import Run, Task
from bot.github.rounds import RoundView
from bot.llm.base import Model
from bot.llm.meter import Meter, PriceOf
from bot.sandbox.base import Access, Level, Sandbox
from bot.settings.policy import Policy
from bot.settings.resolve import RunSettings
from bot.store.base import TaskStore
from bot.tools.base import Ci, FileLedger, Tool, Toolset
from bot.workspace.base import Identity, Opened, Origin, Workspace, Workspaces
from bot.workspace.prepared import PreparedFolders

Tell = Callable[[str], Coroutine[object, object, None]]
"""Tells people in a sentence what is amiss with a model while the run goes on."""


Permits = Callable[[str, str, str], Awaitable[str]]
"""Asks a person who is there about a call, by the tool, its arguments and why; returns why not, empty for a yes."""


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


@dataclass(frozen=True, slots=True)
class Posted:
    """A comment that stands."""

    id: int
    on_line: bool = False
    """Whether it stands on a line of a pull request; the ids of such comments are counted apart."""


@dataclass(frozen=True, slots=True)
class Threads:
    """What people said on lines of the task's pull request."""

    number: int = 0
    """Of the pull request; 0 where there is none."""
    open: Sequence[OpenThread] = ()
    remark: str = ""
    """What people have to know of what was left out, as a sentence."""


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

    def ci(self, task: Task, head: Callable[[], str | None]) -> Ci | None:
        """Make the way to CI of the task's repository; None where it is not on GitHub.

        Args:
            task: whose.
            head: tells the commit that the work began from.
        """
        ...

    async def author(self, task: Task) -> Identity:
        """Say under which name the commit stands."""
        ...

    async def push(
        self, task: Task, workspace: Workspace, commit: str, branch: str, *, expected: str | None, workflows: bool
    ) -> bool:
        """Bring a commit to a branch that people see; False where there is no branch, as in their own checkout.

        Args:
            task: whose.
            workspace: that holds the commit.
            commit: what to push.
            branch: where.
            expected: where the branch has to stand; None where it must not exist.
            workflows: whether it changes workflows, as people agreed, so that more than usual has to be allowed.

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

    async def propose(self, task: Task, run: Run, plan: PlanProposed, sheet: Sheet | None) -> str | None:
        """Show a plan; return what a person who is there says where it waits, and None where nobody is.

        Args:
            task: it belongs to.
            run: it belongs to.
            plan: it.
            sheet: the file that holds it on the task's branch; None where there is none.
        """
        ...

    async def threads(self, task: Task, run: Run) -> Threads:
        """Fetch the open threads of the task's pull request, as of when the run was asked for."""
        ...

    async def answer_threads(self, task: Task, run: Run, commit: str | None, view: RoundView) -> RoundAnswered:
        """Answer in threads, as one review, and resolve some of them; say how many of each there were.

        Args:
            task: it belongs to.
            run: that gave the answers.
            commit: in the pull request; what the answers are about. None for its head.
            view: the answers.
        """
        ...

    async def evidence(self, task: Task, run: Run, head: str) -> str:
        """Show what is recorded as a check run of a commit that people see, and what they asked for in a comment too.

        Returns:
            Why there is no check run, as a sentence, where that is not permitted; else nothing.
        """
        ...

    async def outdated(self, task: Task, head: str) -> None:
        """Mark the evidence in the task's pull request where it is of another commit than the head of its branch."""
        ...

    async def answer(self, task: Task, run: Run, answer: str, thread: str) -> None:
        """Show what the model answers to a person's question.

        Args:
            task: it belongs to.
            run: it belongs to.
            answer: in the model's words.
            thread: the id of the review thread in which it was asked; empty where that is the conversation.
        """
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

    async def request(self, task: Task, run: Run, slot: str, body: str, call: ActionRequest) -> Posted:
        """Show a call that waits for approval, where the lines are that it would change if people see those.

        Args:
            task: it belongs to.
            run: it belongs to.
            slot: which of the task's comments it is.
            body: Markdown.
            call: what is asked about.
        """
        ...

    async def point_out(self, task: Task, run: Run, commit: str, marks: Sequence[tuple[str, int, str]]) -> None:
        """Point out lines of what was published: path, line and Markdown of each."""
        ...

    async def progress(self, task: Task, run: Run) -> None:
        """Bring what people see up to date; called often, and cheap where nothing changed."""
        ...

    async def report(self, task: Task, run: Run) -> None:
        """Show the final state."""
        ...

    async def ended(self, task: Task) -> None:
        """Act, now that no run is open, on what others' checks said meanwhile of the published work."""
        ...


@dataclass(frozen=True, slots=True)
class Shelter:
    """What stands between commands and this machine."""

    level: Level
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
    toolset: Callable[[Sequence[Tool], Sandbox, FileLedger, Ci | None], Toolset]
    """Binds tools to one place, and to CI where there is a way to it."""
    model: Callable[[str, Tell, Meter], Model]
    """Makes a model by its configured name; all its requests are counted by the meter."""
    window: Callable[[str], Window]
    """Tells how much a model reads at once."""
    price_usd: PriceOf
    policies: Mapping[str, Policy]
    """By their names: for which calls people are asked."""
    environments: PreparedFolders | None
    """What was set up for tasks, by repository; None where nothing is."""
    clock: Callable[[], datetime]
    """The present time, aware; never used where a replay would decide differently."""
    minimum: Level = "landlock"
    """What the operator asks of the sandbox at least."""
    permits: Permits | None = None
    """None where people decide later, by a command."""
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
