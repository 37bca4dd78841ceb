"""The seam to tools."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from bot.domain.ci import CiCheck
from bot.domain.messages import Image, ToolSpec
from bot.domain.plan import PlanItem
from bot.domain.proposal import Proposal
from bot.domain.review import ThreadAnswer
from bot.sandbox.base import Sandbox

COMMANDS = frozenset({"checks", "run"})
"""Tools that run commands: absent where none are run, asked about by who wants to be, and cut short by a stop."""

OF_CI = frozenset({"ci_logs", "ci_status"})
"""Tools that ask CI: absent where a task is not on GitHub."""


@dataclass(slots=True)
class FileLedger:
    """What the model has seen of each file in this task, so that a stale overwrite is refused."""

    seen: dict[str, str] = field(default_factory=dict)
    """Path to SHA-256 of the bytes as last read or written through a tool."""
    there: frozenset[str] | None = None
    """The files that were there when the tools first looked; None before. See `bot.tools.deletions`."""
    files: int = 0
    """How many there were at the last look."""
    looking: asyncio.Lock = field(default_factory=asyncio.Lock, compare=False, repr=False)
    """Held by the first look: no command begins before it is over, also not beside the one that looks."""


class Ci(Protocol):
    """What CI says about the task's own repository; asked from the server, not from the sandbox."""

    @property
    def head(self) -> str:
        """The commit that the work began from, which CI may have seen."""
        ...

    async def status(self, commit: str) -> Sequence[CiCheck]:
        """List all checks of a commit, by name.

        Raises:
            GitHubError: GitHub did not answer, or does not let us.
        """
        ...

    async def log(self, job: int) -> str:
        """Return the log of a job, as plain text.

        Raises:
            GitHubError: as of `status`, or there is no log; the text says why.
        """
        ...


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a tool may use."""

    sandbox: Sandbox
    ledger: FileLedger
    ci: Ci | None = None
    """None where the task is not on GitHub."""


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What a tool gave, and what the harness records about it."""

    text: str
    """For the model; within the tool's own limit."""
    summary: str
    """One line for people: the path or the command."""
    changed: Sequence[str] | None = ()
    """Paths that it changed; None where it may have changed anything."""
    is_error: bool = False
    malformed: bool = False
    """The call could not be read: unknown tool, arguments that are no JSON or do not fit the schema."""
    finished: bool = False
    """The run, or the part of it that plans, ends with this call."""
    command: str | None = None
    exit_code: int | None = None
    images: Sequence[Image] = ()
    """For a model that sees, behind the text; the text stands for itself all the same."""
    plan: Sequence[PlanItem] | None = None
    """The whole to-do list as it stands from now on; None where the call said nothing of it."""
    proposal: Proposal | None = None
    """The plan that stands before the work, where the call ends planning."""
    question: str | None = None
    """What people are asked, where the call ends in a question."""
    answer: ThreadAnswer | None = None
    """What is answered in a review thread."""


class Tool(Protocol):
    """One thing the model may do."""

    @property
    def spec(self) -> ToolSpec:
        """Name, description and schema, the same at every call."""
        ...

    @property
    def reads_only(self) -> bool:
        """Whether it changes nothing at all."""
        ...

    async def call(self, arguments: Mapping[str, object], context: ToolContext) -> ToolOutput:
        """Do it.

        Raises:
            ToolError: what the model can mend; the text says how.
        """
        ...


class Toolset(Protocol):
    """The tools of one mode."""

    @property
    def specs(self) -> Sequence[ToolSpec]:
        """Sorted by name."""
        ...

    def reads_only(self, name: str) -> bool:
        """Whether a tool changes nothing; True for a name that is not offered."""
        ...

    async def call(self, turn: int, index: int, name: str, arguments: str) -> ToolOutput:
        """Parse the arguments, check them and run the tool; what goes wrong is a result with `is_error`.

        Args:
            turn: 1 for the first reply of the run.
            index: position among the calls of that reply, from 0.
            name: as the model wrote it.
            arguments: JSON text as the model wrote it.
        """
        ...
