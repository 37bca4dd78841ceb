"""The side of a task that people see in the terminal: a branch in their own repository, or the checkout itself."""

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from bot.domain.command import Fix
from bot.domain.events import PlanProposed, RoundAnswered
from bot.domain.proposal import Sheet
from bot.domain.request import ActionRequest
from bot.domain.task import Run, Task
from bot.github.rounds import RoundView
from bot.settings.repository import PATH, RepositorySettings, parse_repository
from bot.settings.resolve import RunSettings, resolve
from bot.settings.server import ServerSettings
from bot.tasks.desk import Posted, Published, Threads, Work
from bot.workspace.base import Identity, Origin, Workspace

Deliver = Callable[[Workspace, str, str, str | None], Awaitable[bool]]
"""Brings a commit to a branch of the person's repository; False where the work lies in their checkout itself.

The last argument says where the branch has to stand, None where it must not exist.
"""

Prompt = Callable[[str], Awaitable[str | None]]
"""Asks the person at the terminal for a line; None where nobody is there."""


class TerminalPublisher:
    """Shows a task to the person who started it here; the events themselves are its progress."""

    def __init__(
        self,
        checkout: Path,
        settings: ServerSettings,
        *,
        author: Identity,
        origin: Origin,
        deliver: Deliver,
        prompt: Prompt,
    ) -> None:
        self._checkout = checkout
        self._settings = settings
        self._author = author
        self._origin = origin
        self._deliver = deliver
        self._prompt = prompt

    async def settings(self, task: Task, run: Run) -> RunSettings:
        """Resolve what applies, with the repository's file as it lies in the checkout."""
        file = self._checkout / PATH
        kept = parse_repository(file.read_bytes()) if file.is_file() else RepositorySettings(version=1)
        return resolve(self._settings, kept, Fix(run.request, run.model))

    async def held(self, task: Task, run: Run) -> None:
        """Do nothing: here no run waits."""

    async def announce(self, task: Task, run: Run, settings: RunSettings) -> None:
        """Say nothing: the terminal shows the events."""

    async def origin(self, task: Task) -> Origin:
        """Name the checkout."""
        return self._origin

    def ci(self, task: Task, head: Callable[[], str | None]) -> None:
        """Know of none."""

    async def author(self, task: Task) -> Identity:
        """Commit as the person whom git knows here."""
        return self._author

    async def push(
        self, task: Task, workspace: Workspace, commit: str, branch: str, *, expected: str | None, workflows: bool
    ) -> bool:
        """Bring the commit into the person's repository."""
        return await self._deliver(workspace, commit, branch, expected)

    async def takes_unfinished(self, task: Task, *, offered: bool) -> bool:
        """Say yes: the branch is between this person and us, and a further run goes on from there."""
        return True

    async def publish(self, task: Task, run: Run, work: Work) -> Published | None:
        """Open nothing: the branch is all there is."""
        return None

    async def propose(self, task: Task, run: Run, plan: PlanProposed, sheet: Sheet | None) -> str | None:
        """Ask the person about a plan that waits; one that does not is shown with the events."""
        if not plan.waits:
            return None
        asked = [plan.text, *(f"? {question}" for question in plan.questions), plan.waits]
        shown = "\n\n".join(asked)
        return await self._prompt(f"{shown}\nCarry the plan out? [y]es, [n]o, or say what to change: ")

    async def threads(self, task: Task, run: Run) -> Threads:
        """Know of none: there is no pull request."""
        return Threads()

    async def answer_threads(self, task: Task, run: Run, commit: str | None, view: RoundView) -> RoundAnswered:
        """Do nothing: there are none."""
        return RoundAnswered(0, 0)

    async def evidence(self, task: Task, run: Run, head: str) -> str:
        """Do nothing: the terminal shows the events."""
        return ""

    async def outdated(self, task: Task, head: str) -> None:
        """Do nothing: there is no pull request."""

    async def answer(self, task: Task, run: Run, answer: str, thread: str) -> None:
        """Do nothing: the terminal shows the end of the run."""

    async def ask(self, task: Task, run: Run, question: str, number: int) -> str | None:
        """Ask the person."""
        return await self._prompt(f"The model asks:\n{question}\nYour answer: ")

    async def request(self, task: Task, run: Run, slot: str, body: str, call: ActionRequest) -> Posted:
        """Show nothing: the person was asked before the call."""
        return Posted(0)

    async def point_out(self, task: Task, run: Run, commit: str, marks: Sequence[tuple[str, int, str]]) -> None:
        """Do nothing: there is no pull request."""

    async def progress(self, task: Task, run: Run) -> None:
        """Do nothing: the terminal shows the events."""

    async def ended(self, task: Task) -> None:
        """Do nothing: nobody else checks it."""

    async def report(self, task: Task, run: Run) -> None:
        """Do nothing: the terminal shows the last event."""
