"""The working copy of one run: opened when the first live step needs it, at the commit that the record names."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from bot.agent.gate import Gate
from bot.agent.rules import Guidance
from bot.domain.task import Task
from bot.errors import BotError, SandboxError
from bot.sandbox.base import Access, Sandbox
from bot.settings.policy import Rule
from bot.settings.resolve import RunMemory
from bot.tasks.desk import Desk
from bot.tasks.guidance import GuidedToolset
from bot.tools.base import FileLedger, Tool, Toolset
from bot.workspace.base import Opened, Origin, Workspace
from bot.workspace.prepared import own_folder

FIT_S = 600.0
"""Seconds that it may take to put what was prepared into the work tree."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """What a work tree's commands find, beside what is in it."""

    access: Access = field(default_factory=Access)
    first: str = ""
    """Shell command that puts what was prepared where it belongs, and does nothing where that was done before."""
    release: Callable[[], None] = lambda: None
    """Lets what is held go."""


Fit = Callable[[Opened], Awaitable[Fitted]]
"""Says what one opened work tree is given."""


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


async def bare(_: Opened) -> Fitted:
    """Give nothing."""
    return Fitted()


class Lease:
    """Holds one task's working copy while a run needs it.

    Steps that are replayed only move `commit` and the ledger; the first step that really acts opens the copy there,
    so that a half-done step of a killed worker leaves no trace.
    """

    def __init__(self, desk: Desk, task: Task) -> None:
        self._desk = desk
        self._task = task
        self._origin: Origin | None = None
        self._opened: Opened | None = None
        self._live: Live | None = None
        self._fit: Fit = bare
        self._fitted = Fitted()
        self._opening = asyncio.Lock()
        self._failure: BotError | None = None
        self._left_out: Mapping[str, str] = {}
        self.branch = task.base_branch
        """The remote branch that the copy is made from."""
        self.base: str | None = None
        """The commit that this run began from; None until it is prepared."""
        self.ci = desk.publisher.ci(task, lambda: self.base)
        """The way to CI; None where the task is not on GitHub."""
        self.commit: str | None = None
        """Where the work tree has to stand; None before the copy was ever made."""
        self.tools: Sequence[Tool] = ()
        """The tools that are offered in this run."""
        self.ledger = FileLedger()
        self.memory = RunMemory()
        """What applies to the repository's memory bank."""
        self.guidance = Guidance()
        """What the base branch says to who works on the repository; read when the run is prepared."""
        self.gate: Gate | None = None
        """What calls are judged by; None for a run that began with an earlier version."""
        self.always: Sequence[Rule] = ()
        """What people allowed for the rest of the task."""
        self.parallel = False
        """Whether the tools' commands may go side by side."""
        self.shell = desk.shelter.shell
        """Whether this run runs commands; a machine that cannot any more does not take it up."""

    async def origin(self) -> Origin:
        """Return where the repository is."""
        if self._origin is None:
            self._origin = await self._desk.publisher.origin(self._task)
        return self._origin

    async def live(self) -> Live:
        """Return the working copy, made or taken up again where this process has none yet."""
        # Calls side by side may all be the first that needs it: they share one attempt, and its failure.
        waits = self._opening.locked()
        async with self._opening:
            if waits and self._failure is not None:
                raise self._failure
            if self._live is None:
                self._failure = None
                try:
                    return await self._make_live()
                except BotError as error:
                    self._failure = error
                    raise
            return self._live

    async def _make_live(self) -> Live:
        self._require_shell()
        opened = await self.opened()
        self._fitted = await self._fit(opened)
        sandbox = await self._desk.sandbox(opened, replace(self._fitted.access, parallel=self.parallel))
        toolset = GuidedToolset(
            self._desk.toolset(self.tools, sandbox, self.ledger, self.ci),
            self.ledger,
            opened.workspace,
            self._task.id,
            lambda: self.guidance,
        )
        self._live = live = Live(opened, sandbox, toolset)
        if self._fitted.first:
            await self._put(live, self._fitted.first)
        return live

    async def opened(self) -> Opened:
        """Return the working copy without a place for tools."""
        if self._opened is None:
            self._opened = await self._desk.workspaces.open(
                self._task.id, await self.origin(), self.branch, commit=self.commit
            )
            self.commit = self.commit or self._opened.base
        return self._opened

    def _require_shell(self) -> None:
        if self.shell and not self._desk.shelter.shell:
            raise SandboxError(
                "This run began where commands are run, and nothing shuts them in here any more. "
                "Ask again once the server has its sandbox back."
            )

    async def refit(self, fit: Fit) -> None:
        """Give the work tree other things from now on."""
        await self._end()
        self._fit = fit

    @property
    def left_out(self) -> Mapping[str, str]:
        """What the work held that is in no commit, by path, with the reason."""
        return {**self._left_out, **(self._opened.workspace.left_out if self._opened else {})}

    async def renew(self) -> None:
        """Take away all but the commit's files and what set-up made, so that nothing else plays a part from here on.

        What a command left goes: processes, its home, and what git ignores, as caches and installed packages. A
        person's own checkout keeps what is in it.
        """
        await self._end()
        opened = await self.opened()
        if opened.movable:
            # Of what goes now nobody could tell later that the work held it.
            self._left_out = self.left_out
            await opened.workspace.restore(self.commit or opened.base, bare=True)
            if opened.own.exists():
                await asyncio.to_thread(own_folder, opened.own, opened.owner_uid, empty=True)

    @asynccontextmanager
    async def apart(self, access: Access) -> AsyncIterator[Sandbox]:
        """Open the work tree for other commands than the tools', which meanwhile have no place.

        Args:
            access: what these commands are given.
        """
        self._require_shell()
        opened = await self.opened()
        await self._end()
        sandbox = await self._desk.sandbox(opened, access)
        try:
            yield sandbox
        finally:
            await sandbox.close()

    async def close(self) -> None:
        """End the helper process and give back file handles."""
        await self._end()
        if self._opened is not None:
            await self._opened.workspace.close()
            self._opened = None

    async def _put(self, live: Live, first: str) -> None:
        outcome = await live.sandbox.run(first, timeout_s=FIT_S)
        if outcome.exit_code != 0:
            raise SandboxError(f"what was set up could not be put into the work tree: {outcome.stderr.strip()[-500:]}")
        # Whatever came with it, the work begins at what the commit says.
        await live.workspace.restore(self.commit or live.opened.base)

    async def _end(self) -> None:
        live, self._live = self._live, None
        fitted, self._fitted = self._fitted, Fitted()
        if live is not None:
            await live.sandbox.close()
        fitted.release()
