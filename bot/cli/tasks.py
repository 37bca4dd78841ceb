"""`issuewright tasks`: what this server's tasks are doing, and which of them wait for people."""

import asyncio
import json
import sys
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bot import bootstrap
from bot.cli.screen import harmless
from bot.domain.task import Run, Task
from bot.log import inert_json
from bot.redaction import masked
from bot.store.base import TaskStore
from bot.tasks.plans import deciding_run
from bot.tasks.standing import stand

WIDTH = 400
"""Columns that no row needs."""
REASON_CHARS = 120
MOST = 1_000
"""Tasks among which those that wait are looked for."""


@dataclass(frozen=True, slots=True)
class Row:
    """One task as it stands."""

    task: Task
    run: Run
    state: str
    """`queued`, `running`, or how the last run ended."""
    cost_usd: float | None
    """Of all runs; None where the price of one is unknown."""

    def data(self) -> dict[str, object]:
        """Return plain JSON values."""
        return {
            "task": self.task.id,
            "repository": self.task.repository.full_name,
            "number": self.task.number,
            "pull": self.task.pull_number,
            "title": self.task.title,
            "run": self.run.seq,
            "state": self.state,
            "reason": self.run.reason,
            "cost_usd": self.cost_usd,
            "asked_at": self.run.created_at.isoformat(),
        }


def show(*, config: Path | None, limit: int, waiting: bool, as_json: bool) -> int:
    """Print tasks, newest first; returns 0."""
    rows = asyncio.run(_read(config, limit, waiting=waiting))
    if as_json:
        for row in rows:
            sys.stdout.write(inert_json(json.dumps(masked(row.data()))) + "\n")
        return 0
    if not rows:
        Console(stderr=True).print("No task waits." if waiting else "There are no tasks yet.")
        return 0
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("Task", "Thread", "Pull", "State", "Cost", "Asked", "Title", "Why"):
        table.add_column(column, no_wrap=True)
    for row in rows:
        table.add_row(*(harmless(cell).replace("\n", " ") for cell in _cells(row)))
    Console(highlight=False, markup=False, width=WIDTH).print(table)
    return 0


async def _read(config: Path | None, limit: int, *, waiting: bool) -> list[Row]:
    stores = bootstrap.open_stores(bootstrap.load(config, {}, quiet=True))
    try:
        rows: list[Row] = []
        for task in await stores.tasks.tasks(limit=MOST if waiting else limit):
            run = await deciding_run(stores.tasks, task)
            if not waiting or (run.state, run.outcome) == ("finished", "waiting"):
                rows.append(await _row(stores.tasks, task, run))
            if len(rows) == limit:
                break
    finally:
        await stores.close()
    return rows


async def _row(store: TaskStore, task: Task, run: Run) -> Row:
    events = await store.events(task.id)
    ends = [stand(events, one.seq).finished for one in await store.runs(task.id)]
    costs = [end.cost_usd for end in ends if end is not None]
    known = [cost for cost in costs if cost is not None]
    state = run.outcome or "failed" if run.state == "finished" else run.state
    return Row(task, run, state, sum(known) if len(known) == len(costs) else None)


def _cells(row: Row) -> list[str]:
    task, reason = row.task, row.run.reason
    thread = f"{task.repository.full_name}#{task.number}" if task.number else task.repository.full_name
    return [
        task.id[:8],
        thread,
        f"#{task.pull_number}" if task.pull_number else "",
        row.state,
        "unknown" if row.cost_usd is None else f"≈${row.cost_usd:.2f}",
        f"{row.run.created_at:%Y-%m-%d %H:%M}",
        task.title if len(task.title) <= REASON_CHARS else f"{task.title[:REASON_CHARS]}…",
        reason if len(reason) <= REASON_CHARS else f"{reason[:REASON_CHARS]}…",
    ]
