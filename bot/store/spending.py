"""What runs cost on the present day."""

from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Select, and_, case, or_, select, tuple_

from bot.domain.ceilings import Ceilings, Spending
from bot.store.rows import AnyRow
from bot.store.schema import blobs, events, runs, tasks
from bot.store.spill import unspill

_TOGETHER = 500
"""Runs that one statement asks for; SQLite bounds how many values a statement may hold."""


def spent(connection: Connection, ceilings: Ceilings, at: datetime) -> Spending:
    """Add up what was spent on the UTC day of a moment; without ceilings nothing is read.

    A run counts on the day on which it ends, with what it says that it cost. While it runs, and where its end names no
    price since one was unknown, its replies count, of which those without a price are nothing.
    """
    spending = Spending(ceilings, at)
    if not ceilings.any:
        return spending
    counted = or_(runs.c.state == "running", runs.c.finished_at >= spending.day)
    tells = case((runs.c.state == "running", "model.replied"), else_="run.finished")
    unpriced: list[tuple[str, int]] = []
    for row in connection.execute(_costs().where(counted, events.c.kind == tells)):
        usd = _cost(row)
        if usd is not None:
            spending.add(row.installation_id, row.repository_id, usd)
        elif row.kind == "run.finished":
            unpriced.append((row.task_id, row.run))
    for first in range(0, len(unpriced), _TOGETHER):
        some = unpriced[first : first + _TOGETHER]
        replies = tuple_(events.c.task_id, events.c.run).in_(some) & (events.c.kind == "model.replied")
        for row in connection.execute(_costs().where(replies)):
            spending.add(row.installation_id, row.repository_id, _cost(row) or 0.0)
    return spending


def _costs() -> Select[tuple[Any, ...]]:
    """Select events beside the places that their cost counts for."""
    return (
        select(
            tasks.c.installation_id,
            tasks.c.repository_id,
            events.c.task_id,
            events.c.run,
            events.c.kind,
            events.c.data,
            blobs.c.data.label("spilled"),
        )
        .select_from(runs)
        .join(tasks, tasks.c.id == runs.c.task_id)
        .join(events, and_(events.c.task_id == runs.c.task_id, events.c.run == runs.c.seq))
        .outerjoin(blobs, blobs.c.sha256 == events.c.blob)
    )


def _cost(row: AnyRow) -> float | None:
    usd = unspill(row.data, row.spilled).get("cost_usd")
    return usd if isinstance(usd, int | float) else None
