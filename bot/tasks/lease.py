"""The working copy of one run: opened when the first live step needs it, at the commit that the record names."""

from collections.abc import Sequence
from dataclasses import dataclass

from bot.domain.task import Task
from bot.sandbox.base import Sandbox
from bot.tasks.desk import Desk
from bot.tools.base import FileLedger, Tool, Toolset
from bot.workspace.base import Opened, Origin, Workspace


@dataclass(frozen=True, slots=True)
class Live:
    """A working copy with its tools, in this process."""

    opened: Opened
    sandbox: Sandbox
    toolset: Toolset

    @property
    def workspace(self) -> Workspace:
        """The working copy."""
        return self.opened.workspace


class Lease:
    """Holds one task's working copy while a run needs it.

    Steps that are replayed only move `commit` and the ledger; the first step that really acts opens the copy there,
    so that a half-done step of a killed worker leaves no trace.
    """

    def __init__(self, desk: Desk, task: Task) -> None:
        self._desk = desk
        self._task = task
        self._origin: Origin | None = None
        self._live: Live | None = None
        self.branch = task.base_branch
        """The remote branch that the copy is made from."""
        self.commit: str | None = None
        """Where the work tree has to stand; None before the copy was ever made."""
        self.tools: Sequence[Tool] = ()
        """The tools that are offered in this run."""
        self.ledger = FileLedger()

    async def origin(self) -> Origin:
        """Return where the repository is."""
        if self._origin is None:
            self._origin = await self._desk.publisher.origin(self._task)
        return self._origin

    async def live(self) -> Live:
        """Return the working copy, made or taken up again where this process has none yet."""
        if self._live is None:
            opened = await self._desk.workspaces.open(
                self._task.id, await self.origin(), self.branch, commit=self.commit
            )
            sandbox = await self._desk.sandbox(opened)
            self._live = Live(opened, sandbox, self._desk.toolset(self.tools, sandbox, self.ledger))
            self.commit = self.commit or opened.base
        return self._live

    async def close(self) -> None:
        """End the helper process and give back file handles."""
        if self._live is not None:
            await self._live.sandbox.close()
            await self._live.workspace.close()
            self._live = None
