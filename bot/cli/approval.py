"""Asking the person at the terminal before a change or a command."""

import asyncio
import json
import sys
from collections.abc import Sequence
from typing import Literal

from bot.cli.screen import Screen
from bot.domain.messages import ToolSpec
from bot.tools.base import ToolOutput, Toolset

Mode = Literal["never", "edits", "all"]
SHOWN_CHARS = 4_000


class Approval:
    """Decides what the person is asked about, and asks them."""

    def __init__(self, mode: Mode, screen: Screen) -> None:
        self._mode = mode
        self._screen = screen
        self._lock = asyncio.Lock()

    def needed(self, name: str, *, reads_only: bool) -> bool:
        """Say whether a call has to be approved.

        Args:
            name: of the tool.
            reads_only: whether it changes nothing.
        """
        if reads_only or name == "finish" or self._mode == "all":
            return False
        return self._mode == "never" or name == "run"

    async def ask(self, name: str, arguments: str) -> str | None:
        """Ask; None means yes, else why not."""
        if not sys.stdin.isatty():
            return (
                f"Nobody can be asked here, so `{name}` is not allowed; the person chose `--approve {self._mode}`. "
                "Work without it, or finish and say what is left."
            )
        async with self._lock:
            self._screen.say(f"\n{name} {_shown(arguments)}", "bold")
            self._screen.say("Allow? [y]es, or say why not: ")
            answer = (await asyncio.to_thread(sys.stdin.readline)).strip()
        if answer.lower() in {"y", "yes"}:
            return None
        return f"The person did not allow this call{': ' + answer if answer.lower() not in {'', 'n', 'no'} else ''}."


class Asking:
    """A toolset whose calls may have to be approved first."""

    def __init__(self, inner: Toolset, approval: Approval) -> None:
        self._inner = inner
        self._approval = approval

    @property
    def specs(self) -> Sequence[ToolSpec]:
        """The tools' schemas."""
        return self._inner.specs

    def reads_only(self, name: str) -> bool:
        """Whether a tool changes nothing."""
        return self._inner.reads_only(name)

    async def call(self, turn: int, index: int, name: str, arguments: str) -> ToolOutput:
        """Ask where that is needed, then call."""
        wanted, without = _wanted(arguments)
        # Where nobody is there the tool itself says so, and what to do instead.
        wanted = wanted and sys.stdin.isatty()
        if wanted or self._approval.needed(name, reads_only=self._inner.reads_only(name)):
            why_not = await self._approval.ask(name, arguments)
            if why_not is not None:
                return ToolOutput(why_not, f"{name}: not allowed", is_error=True)
            arguments = without
        return await self._inner.call(turn, index, name, arguments)


def _wanted(arguments: str) -> tuple[bool, str]:
    """Say whether the model wants a person asked, and give the arguments without that wish: it is then fulfilled."""
    try:
        values = json.loads(arguments or "{}")
        if values.pop("requires_approval", False) is not True:
            return False, arguments
    except (ValueError, AttributeError, TypeError, RecursionError):
        return False, arguments
    return True, json.dumps(values)


def _shown(arguments: str) -> str:
    try:
        values = json.loads(arguments or "{}")
        text = "\n".join(f"  {key}: {value}" for key, value in values.items())
    except (ValueError, AttributeError):
        text = arguments
    more = len(text) - SHOWN_CHARS
    # Nobody should allow what they were not told of.
    return f"\n{text[:SHOWN_CHARS]}" + (f"\n[{more} more characters are not shown]" if more > 0 else "")
