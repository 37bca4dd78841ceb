"""Which run may start, which runs, and how each ended."""

from collections import Counter, deque
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from sqlalchemy import Connection, func, or_, select, update

from bot.domain.ceilings import Ceilings, Reached, Spending
from bot.domain.task import Outcome, Run
from bot.store.base import Effect, NewRequest
from bot.store.database import Shelf, lock_queue, lock_task, replace
from bot.store.intake import accept
from bot.store.rows import to_run
from bot.store.schema import effects, inbox, runs, tasks
from bot.store.spending import spent

_NEVER = datetime.min.replace(tzinfo=UTC)


class Queue(Shelf):
    """Runs and the executors that have them."""

    async def runs(self, task_id: str) -> Sequence[Run]:
        """Return all runs of a task, oldest first."""
        query = select(runs).where(runs.c.task_id == task_id).order_by(runs.c.seq)
        rows = await self._database.read(lambda connection: connection.execute(query).all())
        return [to_run(row) for row in rows]

    async def run(self, task_id: str, seq: int) -> Run | None:
        """Return one run."""
        query = select(runs).where(runs.c.task_id == task_id, runs.c.seq == seq)
        row = await self._database.read(lambda connection: connection.execute(query).one_or_none())
        return None if row is None else to_run(row)

    async def open_run(self, task_id: str) -> Run | None:
        """Return the run that is queued or running; there is at most one."""
        query = select(runs).where(runs.c.task_id == task_id, runs.c.state != "finished")
        row = await self._database.read(lambda connection: connection.execute(query).one_or_none())
        return None if row is None else to_run(row)

    async def admit(
        self, executor: str, *, slots: int, per_installation: int, ceilings: Ceilings | None = None
    ) -> Sequence[Run]:
        """Turn queued runs into running ones.

        Args:
            executor: who takes them.
            slots: how many this worker can still take.
            per_installation: how many may run at once for one installation, over all workers.
            ceilings: daily ones; what they keep waiting stays queued.

        Returns:
            The runs taken, in order. The installation with the fewest running runs comes first, of those the one whose
            last run started longest ago, of those the oldest request.
        """
        # Idle workers ask all the time; a look costs no lock and no sync.
        if slots <= 0 or not await self._database.read(_anything_queued):
            return []
        return await self._database.write(
            lambda connection: _admit(connection, executor, self._now, slots, per_installation, ceilings or Ceilings())
        )

    async def held(self, ceilings: Ceilings) -> Sequence[tuple[Run, Reached]]:
        """Return the queued runs that a daily ceiling keeps waiting and the ceiling of each, oldest request first."""
        if not ceilings.any or not await self._database.read(_anything_queued):
            return []
        return await self._database.read(lambda connection: _held(connection, ceilings, self._now()))

    async def claim(self, run: Run, executor: str) -> bool:
        """Turn this one queued run into a running one, whatever else is queued; False where it is queued no more."""
        change = (
            update(runs)
            .where(runs.c.task_id == run.task_id, runs.c.seq == run.seq, runs.c.state == "queued")
            .values(state="running", executor=executor, started_at=self._now())
            .returning(runs.c.seq)
        )

        def act(connection: Connection) -> bool:
            lock_queue(connection)
            return connection.execute(change).first() is not None

        return await self._database.write(act)

    async def running(self) -> Sequence[tuple[Run, str]]:
        """Return the runs that are running and the executor of each, oldest start first."""
        query = (
            select(runs).where(runs.c.state == "running").order_by(runs.c.started_at, runs.c.created_at, runs.c.task_id)
        )
        rows = await self._database.read(lambda connection: connection.execute(query).all())
        return [(to_run(row), row.executor) for row in rows]

    async def take_over(self, run: Run, executor: str) -> None:
        """Note that another executor goes on with a run."""
        change = (
            update(runs)
            .where(runs.c.task_id == run.task_id, runs.c.seq == run.seq, runs.c.state == "running")
            .values(executor=executor)
        )
        await self._database.write(lambda connection: connection.execute(change))

    async def finish(self, task_id: str, seq: int, outcome: Outcome, reason: str, at: datetime) -> None:
        """End a run; ending it again changes nothing, but that one which waits may still be stopped."""

        def act(connection: Connection) -> None:
            lock_queue(connection)
            _finish(connection, task_id, seq, outcome, reason, at)

        await self._database.write(act)

    async def hand_over(  # noqa: PLR0913 - an end and a beginning
        self,
        task_id: str,
        seq: int,
        outcome: Outcome,
        reason: str,
        at: datetime,
        *,
        cursor: Effect,
        behind: NewRequest | None,
    ) -> bool:
        """End a run, note how far the inbox was read, and queue what follows, all at once; again it changes nothing.

        False, and nothing is done, where more is in the inbox by now.
        """

        def act(connection: Connection) -> bool:
            lock_queue(connection)
            lock_task(connection, task_id)
            last = connection.scalar(select(func.max(inbox.c.id)).where(inbox.c.task_id == task_id)) or 0
            state = connection.scalar(select(runs.c.state).where(runs.c.task_id == task_id, runs.c.seq == seq))
            if state == "finished" or last > int(cursor.remote_id):
                return state == "finished"
            _finish(connection, task_id, seq, outcome, reason, at)
            values = {"task_id": task_id, "slot": cursor.slot, "kind": cursor.kind, "remote_id": cursor.remote_id}
            replace(connection, effects, values)
            if behind is not None:
                accept(connection, behind, at)
            return True

        return await self._database.write(act)


def _finish(connection: Connection, task_id: str, seq: int, outcome: Outcome, reason: str, at: datetime) -> None:
    open_ = [runs.c.state != "finished"]
    if outcome == "stopped":
        open_.append(runs.c.outcome == "waiting")
    mine = (runs.c.task_id == task_id) & (runs.c.seq == seq)
    values = {"state": "finished", "outcome": outcome, "reason": reason, "finished_at": at}
    connection.execute(update(runs).where(mine, or_(*open_)).values(values))


def _anything_queued(connection: Connection) -> bool:
    return connection.execute(select(runs.c.seq).where(runs.c.state == "queued").limit(1)).first() is not None


def _held(connection: Connection, ceilings: Ceilings, at: datetime) -> list[tuple[Run, Reached]]:
    spending = spent(connection, ceilings, at)
    query = (
        select(runs, tasks.c.installation_id, tasks.c.repository_id)
        .join(tasks, tasks.c.id == runs.c.task_id)
        .where(runs.c.state == "queued")
        .order_by(runs.c.created_at, runs.c.task_id)
    )
    return [
        (to_run(row), reached)
        for row in connection.execute(query)
        if (reached := spending.reached(row.installation_id, row.repository_id))
    ]


def _admit(
    connection: Connection,
    executor: str,
    now: Callable[[], datetime],
    slots: int,
    per_installation: int,
    ceilings: Ceilings,
) -> list[Run]:
    lock_queue(connection)
    at = now()
    waiting = _waiting(connection, spent(connection, ceilings, at))
    busy = _busy(connection)
    last = _last_started(connection, list(waiting))
    taken: list[Run] = []
    while len(taken) < slots:
        ready = [name for name, line in waiting.items() if line and busy[name] < per_installation]
        if not ready:
            break
        # The dictionary is in the order of each installation's oldest request, and `min` keeps the first of equals.
        chosen = min(ready, key=lambda name: (busy[name], last.get(name, _NEVER)))
        task_id, seq = waiting[chosen].popleft()
        change = (
            update(runs)
            .where(runs.c.task_id == task_id, runs.c.seq == seq)
            .values(state="running", executor=executor, started_at=at)
            .returning(runs)
        )
        taken.append(to_run(connection.execute(change).one()))
        busy[chosen] += 1
        last[chosen] = at
    return taken


def _waiting(connection: Connection, spending: Spending) -> dict[int | None, deque[tuple[str, int]]]:
    """Return the queued runs of each installation that no ceiling keeps waiting, oldest first."""
    query = (
        select(tasks.c.installation_id, tasks.c.repository_id, runs.c.task_id, runs.c.seq)
        .join(tasks, tasks.c.id == runs.c.task_id)
        .where(runs.c.state == "queued")
        .order_by(runs.c.created_at, runs.c.task_id)
    )
    lines: dict[int | None, deque[tuple[str, int]]] = {}
    for installation_id, repository_id, task_id, seq in connection.execute(query):
        if spending.reached(installation_id, repository_id) is None:
            lines.setdefault(installation_id, deque()).append((task_id, seq))
    return lines


def _busy(connection: Connection) -> Counter[int | None]:
    """Count the running runs of each installation."""
    query = (
        select(tasks.c.installation_id, func.count())
        .join(runs, tasks.c.id == runs.c.task_id)
        .where(runs.c.state == "running")
        .group_by(tasks.c.installation_id)
    )
    return Counter({row[0]: row[1] for row in connection.execute(query)})


def _last_started(connection: Connection, installations: Sequence[int | None]) -> dict[int | None, datetime]:
    """Return when each installation last had its turn; empty where there is nobody to take turns with."""
    if len(installations) < 2:  # noqa: PLR2004 - one alone has every turn
        return {}
    query = (
        select(tasks.c.installation_id, func.max(runs.c.started_at))
        .join(runs, tasks.c.id == runs.c.task_id)
        .where(tasks.c.installation_id.in_([name for name in installations if name is not None]))
        .where(runs.c.started_at.is_not(None))
        .group_by(tasks.c.installation_id)
    )
    return {row[0]: row[1] for row in connection.execute(query)}
