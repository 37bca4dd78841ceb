"""Asking the person at the terminal before a change or a command."""

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from typing import Literal

from bot.cli.screen import Screen
from bot.domain.messages import ToolSpec
from bot.tasks.gates import nobody
from bot.tools.base import COMMANDS, Tool, ToolOutput, Toolset
from bot.tools.checks import Checks

Mode = Literal["never", "edits", "all"]
SHOWN_CHARS = 4_000
CHECKS = "checks"


class Approval:
    """Decides what the person is asked about, and asks them."""

    def __init__(self, mode: Mode, screen: Screen) -> None:
        self._mode = mode
        self._screen = screen
        self._lock = asyncio.Lock()
        self._permitted: set[tuple[str, str]] = set()
        self.stop = asyncio.Event()
        """Set when the person wants the end, and no further question."""

    def needed(self, name: str, *, reads_only: bool) -> bool:
        """Say whether a call has to be approved.

        Args:
            name: of the tool.
            reads_only: whether it changes nothing.
        """
        if reads_only or name == "finish" or self._mode == "all":
            return False
        return self._mode == "never" or name in COMMANDS

    async def permits(self, name: str, arguments: str, why: str) -> str:
        """Ask because of the policy, whatever was chosen at the start; returns why not, empty for a yes.

        Args:
            name: of the tool.
            arguments: as they are handed to it.
            why: the policy asks.
        """
        if not sys.stdin.isatty():
            return await nobody(name, arguments, why)
        why_not = await self.ask(name, arguments, about=f"({why}) ")
        if why_not is None:
            self._permitted.add((name, arguments))
        return why_not or ""

    def permitted(self, name: str, arguments: str) -> bool:
        """Whether this very call was allowed just now; true once."""
        known = (name, arguments) in self._permitted
        self._permitted.discard((name, arguments))
        return known

    async def ask(self, name: str, arguments: str, *, about: str = "") -> str | None:
        """Ask; None means yes, else why not.

        Args:
            name: of the tool.
            arguments: as the model wrote them.
            about: what the call would do where its arguments do not say.
        """
        if not sys.stdin.isatty():
            return (
                f"Nobody can be asked here, so `{name}` is not allowed; the person chose `--approve {self._mode}`. "
                "Work without it, or finish and say what is left."
            )
        async with self._lock:
            self._screen.say(f"\n{name} {about}{_shown(arguments)}", "bold")
            self._screen.say("Allow? [y]es, or say why not: ")
            answer = await self._line()
        if answer is None:
            return "The person did not answer: the run was stopped."
        if answer.lower() in {"y", "yes"}:
            return None
        return f"The person did not allow this call{': ' + answer if answer.lower() not in {'', 'n', 'no'} else ''}."

    async def _line(self) -> str | None:
        """Read what is typed up to the end of the line; None where the person wants the end instead.

        No thread waits for it: such a one would keep the process from its end.
        """
        loop, file, typed = asyncio.get_running_loop(), sys.stdin.fileno(), bytearray()
        complete = asyncio.Event()

        def read() -> None:
            try:
                data = os.read(file, 4096)
            except OSError:
                # The terminal was closed.
                data = b""
            typed.extend(data)
            if not data or b"\n" in data:
                complete.set()

        waits = [asyncio.ensure_future(event.wait()) for event in (complete, self.stop)]
        loop.add_reader(file, read)
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            loop.remove_reader(file)
            for wait in waits:
                wait.cancel()
        if self.stop.is_set():
            return None
        return typed.partition(b"\n")[0].decode(errors="replace").strip()

    async def line(self, text: str) -> str | None:
        """Say something and take a line for an answer; None where nobody is there, or wants the end."""
        async with self._lock:
            self._screen.say(f"\n{text}", "bold")
            return await self._line() if sys.stdin.isatty() else None


class Asking:
    """A toolset whose calls may have to be approved first."""

    def __init__(self, inner: Toolset, approval: Approval, tools: Sequence[Tool] = ()) -> None:
        """Make one.

        Args:
            inner: runs the calls.
            approval: decides and asks.
            tools: those behind `inner`, which know what some calls would run.
        """
        self._checks = next((tool.own for tool in tools if isinstance(tool, Checks)), ())
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
        if self._approval.permitted(name, arguments):
            return await self._inner.call(turn, index, name, arguments)
        wanted, without = _wanted(arguments)
        # Where nobody is there the tool itself says so, and what to do instead.
        wanted = wanted and sys.stdin.isatty()
        if wanted or self._approval.needed(name, reads_only=self._inner.reads_only(name)):
            about = self._about(arguments) if name == CHECKS else ""
            why_not = await self._approval.ask(name, arguments, about=about)
            if why_not is not None:
                return ToolOutput(why_not, f"{name}: not allowed", is_error=True)
            arguments = without
        return await self._inner.call(turn, index, name, arguments)

    def _about(self, arguments: str) -> str:
        """Say what `checks` would run."""
        if not self._checks:
            return "(those that the repository's files tell of)"
        names = _names(arguments)
        chosen = [check for check in self._checks if not names or check.name in names]
        return "".join(f"\n  {check.name}: {check.run}" for check in chosen)


def _names(arguments: str) -> Sequence[object]:
    """Return the checks that are asked for by name; empty asks for all."""
    try:
        names = json.loads(arguments or "{}").get("names", ())
    except (ValueError, AttributeError, TypeError, RecursionError):
        return ()
    return names if isinstance(names, list) else ()


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
