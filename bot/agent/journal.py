"""What the harness knows of a run's work from its tools, to be told anew where the transcript is made shorter."""

from collections.abc import Callable

from bot.agent.context.handover import Facts
from bot.domain.plan import check_boxes
from bot.tools.base import ToolOutput

CHECKS = 10
"""Newest commands whose results are kept."""


class Journal:
    """Takes note of each call; the same after a replay, since it hears recorded outputs only."""

    def __init__(self, budget: Callable[[], str]) -> None:
        """Begin.

        Args:
            budget: says what is used of the limits, in a sentence.
        """
        self._budget = budget
        self._changed: dict[str, None] = {}
        self._commands: dict[str, int] = {}
        self._plan = ""

    def acted(self, output: ToolOutput) -> None:
        """Take note of what a call gave."""
        self._changed |= dict.fromkeys(output.changed or ())
        if output.plan is not None:
            self._plan = check_boxes(output.plan)
        if output.command is not None and output.exit_code is not None:
            # The newest last, whichever ran before.
            self._commands.pop(output.command, None)
            self._commands[output.command] = output.exit_code

    @property
    def facts(self) -> Facts:
        """What is known now."""
        newest = list(self._commands.items())[-CHECKS:]
        checks = [f"`{command}` ended with exit code {code}" for command, code in newest]
        return Facts(list(self._changed), checks, self._plan, self._budget())
