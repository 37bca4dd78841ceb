"""What the terminal shows of a task: its events, as people read them or as JSON lines."""

import asyncio
import json
import sys
from collections.abc import Mapping

from rich.console import Console
from rich.text import Text

from bot.domain.context import ContextMeter, thousands
from bot.domain.events import ModelReplied, PlanProposed, RunEvent, RunFinished, kind_of, to_data
from bot.domain.task import Outcome, Run
from bot.log import inert, inert_json
from bot.redaction import mask, masked
from bot.store.base import TaskStore
from bot.tasks.standing import line_of

EXIT_CODES: Mapping[Outcome, int] = {"done": 0, "failed": 1, "waiting": 3, "budget": 5, "stopped": 130}
LOOK_S = 0.1
STYLES = {"failed": "red", "done": "green", "budget": "yellow", "stopped": "yellow", "waiting": "yellow"}


def harmless(text: str) -> str:
    """Take out what could steer a terminal or GitHub's runner, and secrets: the words may be anybody's."""
    plain = "".join(char if char.isprintable() or char in "\n\t" else "\N{REPLACEMENT CHARACTER}" for char in text)
    return inert(mask(plain))


class Screen:
    """Prints events: one JSON object a line on standard output, or a line of text each on standard error."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        self.console = Console(stderr=True, highlight=False, soft_wrap=True)

    def say(self, text: str, style: str = "") -> None:
        """Say a sentence to people."""
        self.console.print(Text(harmless(text), style=style))

    def event(self, event: RunEvent) -> None:
        """Show one event."""
        if self.as_json:
            data = {"task": event.task_id, "seq": event.seq, "run": event.run, "at": event.at.isoformat()}
            line = masked({**data, "kind": kind_of(event.fact), **to_data(event.fact)})
            sys.stdout.write(inert_json(json.dumps(line)) + "\n")
            sys.stdout.flush()
        elif isinstance(event.fact, ModelReplied):
            self._line(event, _meter(event.fact), "dim")
        elif isinstance(event.fact, PlanProposed) and not event.fact.waits:
            # One that waits is shown with the question about it.
            self._line(event, line_of(event.fact) or "", "")
            self.say(event.fact.text)
        elif (line := line_of(event.fact)) is not None:
            style = STYLES.get(event.fact.outcome, "") if isinstance(event.fact, RunFinished) else ""
            self._line(event, line, style)

    def _line(self, event: RunEvent, line: str, style: str) -> None:
        # One line each: a command with a line break in it must not look like a further event.
        told = harmless(line).replace("\n", " ")
        self.console.print(Text(f"{event.at:%H:%M:%S}  ", style="dim"), Text(told, style=style), sep="")

    async def follow(self, store: TaskStore, run: Run, *, after: int = 0) -> None:
        """Show a run's events behind a position of its task's stream until its last one."""
        while True:
            for event in await store.events(run.task_id, after=after):
                after = event.seq
                if event.run == run.seq:
                    self.event(event)
                    if isinstance(event.fact, RunFinished):
                        return
            await asyncio.sleep(LOOK_S)


def _meter(fact: ModelReplied) -> str:
    """Say how full the window is and what the turn cost."""
    tokens = fact.input_tokens + fact.cache_read_tokens + fact.cache_write_tokens + fact.output_tokens
    context = str(ContextMeter(tokens, fact.window)) if fact.window else f"ctx {thousands(tokens)}"
    cost = "cost unknown" if fact.cost_usd is None else f"≈ ${fact.cost_usd:.4f}"
    return f"turn {fact.turn} · {context} · {cost}"


def exit_code(run: Run) -> int:
    """Return the exit code of a finished run."""
    return EXIT_CODES[run.outcome or "failed"]
