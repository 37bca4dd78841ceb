"""Requests become tasks and runs."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Connection, func, or_, select, update

from bot.domain.events import RunQueued
from bot.domain.task import REPAIR, Run, Task, branch_name
from bot.store.base import Accepted, NewRequest
from bot.store.database import Shelf, insert, lock_queue, lock_task, replace
from bot.store.rows import snapshot, to_run, to_task
from bot.store.schema import inbox, runs, tasks, threads
from bot.store.stream import append


class Intake(Shelf):
    """Tasks and the threads that belong to them."""

    async def accept(self, request: NewRequest, at: datetime) -> Accepted:
        """Turn a request into a queued run and append `run.queued`, or put its text into the inbox of the open run."""
        return await self._database.write(lambda connection: accept(connection, request, at))

    async def accepted(self, event_key: str) -> Accepted | None:
        """Return what a request became that was accepted before, or said to a run; None where it was not."""

        def act(connection: Connection) -> Accepted | None:
            task_id = known_key(connection, event_key)
            return None if task_id is None else _known(connection, task_id, event_key)

        return await self._database.read(act)

    async def task(self, task_id: str) -> Task | None:
        """Return one task."""
        return await self._database.read(lambda connection: find_task(connection, task_id))

    async def task_of(self, repository_id: int, number: int) -> Task | None:
        """Return the task to which an issue or pull request belongs."""
        return await self._database.read(lambda connection: _task_of(connection, repository_id, number))

    async def tasks(self, *, limit: int = 50) -> Sequence[Task]:
        """Return tasks, newest first."""
        query = select(tasks).order_by(tasks.c.created_at.desc(), tasks.c.id).limit(limit)
        rows = await self._database.read(lambda connection: connection.execute(query).all())
        return [to_task(row) for row in rows]

    async def choose_model(self, task_id: str, name: str) -> None:
        """Note the model, as `provider:name`, that further runs of a task use where their request names none."""
        values = update(tasks).where(tasks.c.id == task_id).values(model=name)
        await self._database.write(lambda connection: connection.execute(values))

    async def set_pull(self, task_id: str, number: int) -> None:
        """Note the pull request of a task, and that its thread belongs to the task.

        Raises:
            KeyError: no such task.
        """
        await self._database.write(lambda connection: _set_pull(connection, task_id, number))


def known_key(connection: Connection, event_key: str) -> str | None:
    """Return the task to which an event was accepted before."""
    for table in (runs, inbox):
        task_id = connection.scalar(select(table.c.task_id).where(table.c.event_key == event_key))
        if task_id is not None:
            return str(task_id)
    return None


def find_task(connection: Connection, task_id: str) -> Task | None:
    """Return one task."""
    row = connection.execute(select(tasks).where(tasks.c.id == task_id)).one_or_none()
    return None if row is None else to_task(row)


def _task_of(connection: Connection, repository_id: int, number: int) -> Task | None:
    query = (
        select(tasks)
        .join(threads, threads.c.task_id == tasks.c.id)
        .where(threads.c.repository_id == repository_id, threads.c.number == number)
    )
    row = connection.execute(query).one_or_none()
    return None if row is None else to_task(row)


def accept(connection: Connection, request: NewRequest, at: datetime) -> Accepted:
    """Turn a request into a run, or put it into the inbox of the open one."""
    lock_queue(connection)
    known = known_key(connection, request.event_key)
    if known is not None:
        return _known(connection, known, request.event_key)
    task = _task_of(connection, request.repository.id, request.number)
    if task is None:
        task = _begin(connection, request, at)
        return _queue(connection, task, 1, request, at)
    newest = _newest(connection, task.id)
    if newest.state != "finished":
        if not request.joins:
            return Accepted(task, newest, "busy", 0)
        return _join(connection, task, newest, request, at)
    if request.is_talk:
        return Accepted(task, newest, "unheard", 0)
    return _queue(connection, _refresh(connection, task, request, newest.seq + 1), newest.seq + 1, request, at)


def _known(connection: Connection, task_id: str, event_key: str) -> Accepted:
    # An event that went to the inbox has no run of its own; the newest is the one that people look at.
    query = select(runs).where(runs.c.event_key == event_key)
    row = connection.execute(query).one_or_none()
    run = _newest(connection, task_id) if row is None else to_run(row)
    return Accepted(_existing(connection, task_id), run, "known", _before(connection, run))


def _join(connection: Connection, task: Task, run: Run, request: NewRequest, at: datetime) -> Accepted:
    lock_task(connection, task.id)
    values = {
        "task_id": task.id,
        "kind": "talk" if request.is_talk else "round" if request.is_round else "steer",
        "author": request.requester,
        "author_id": request.requester_id,
        "commanded": request.commanded,
        "model": request.model,
        "text": request.request,
        "number": request.number,
        "thread": request.kind,
        "comment_id": request.comment_id,
        "event_key": request.event_key,
        "at": at,
        "asked_at": request.asked_at,
    }
    kept = insert(connection, inbox, values)
    return Accepted(task, run, "joined" if kept else "known", _before(connection, run))


def _begin(connection: Connection, request: NewRequest, at: datetime) -> Task:
    values = {
        "id": request.task_id,
        "repository_id": request.repository.id,
        "default_branch": request.repository.default_branch,
        "number": request.number,
        "kind": request.kind,
        "title": request.title,
        "body": request.body,
        "requester": request.requester,
        "branch": request.branch,
        "base_branch": request.base_branch,
        "pull_number": request.pull_number,
        "created_at": at,
    }
    connection.execute(tasks.insert().values(values | snapshot(request)))
    thread = {"repository_id": request.repository.id, "number": request.number, "task_id": request.task_id}
    connection.execute(threads.insert().values(thread))
    return _existing(connection, request.task_id)


def _refresh(connection: Connection, task: Task, request: NewRequest, seq: int) -> Task:
    values = snapshot(request) | {"base_branch": request.base_branch}
    if (request.fresh or request.merged) and task.kind == "issue":
        values |= {"branch": branch_name(task.number, task.id, seq), "pull_number": None}
    # A request on the task's pull request carries that one's text; the task stays about the issue.
    if request.number == task.number:
        values |= {"title": request.title, "body": request.body}
    connection.execute(update(tasks).where(tasks.c.id == task.id).values(values))
    return _existing(connection, task.id)


def _queue(connection: Connection, task: Task, seq: int, request: NewRequest, at: datetime) -> Accepted:
    lock_task(connection, task.id)
    values = {
        "task_id": task.id,
        "seq": seq,
        "number": request.number,
        "kind": request.kind,
        "state": "queued",
        "reason": "",
        "request": request.request,
        "requester": request.requester,
        "requester_id": request.requester_id,
        "model": request.model or _chosen(connection, task.id),
        "commanded": request.commanded,
        "intent": request.intent,
        "usd": request.usd,
        "fresh": request.fresh,
        "comment_id": request.comment_id,
        "event_key": request.event_key,
        "abi": request.abi,
        "created_at": at,
        "asked_at": request.asked_at,
    }
    connection.execute(runs.insert().values(values))
    run = _newest(connection, task.id)
    position = _before(connection, run)
    repair = request.event_key.startswith(REPAIR)
    fact = RunQueued(request.requester, request.request, position, request.intent, repair)
    append(connection, task.id, seq, f"run/{seq}/queued", fact, at)
    return Accepted(task, run, "new" if seq == 1 else "again", position)


def _chosen(connection: Connection, task_id: str) -> str | None:
    """Return the model that people chose for a task's further runs."""
    return connection.scalar(select(tasks.c.model).where(tasks.c.id == task_id))


def _before(connection: Connection, run: Run) -> int:
    """Count the runs that were queued before a queued run."""
    if run.state != "queued":
        return 0
    earlier = or_(
        runs.c.created_at < run.created_at,
        # Two requests of one microsecond; `admit` breaks the tie in the same way.
        (runs.c.created_at == run.created_at) & (runs.c.task_id < run.task_id),
    )
    return connection.scalar(select(func.count()).select_from(runs).where(runs.c.state == "queued", earlier)) or 0


def _newest(connection: Connection, task_id: str) -> Run:
    query = select(runs).where(runs.c.task_id == task_id).order_by(runs.c.seq.desc()).limit(1)
    return to_run(connection.execute(query).one())


def _existing(connection: Connection, task_id: str) -> Task:
    return to_task(connection.execute(select(tasks).where(tasks.c.id == task_id)).one())


def _set_pull(connection: Connection, task_id: str, number: int) -> None:
    lock_queue(connection)
    lock_task(connection, task_id)
    connection.execute(update(tasks).where(tasks.c.id == task_id).values(pull_number=number))
    repository_id = _existing(connection, task_id).repository.id
    replace(connection, threads, {"repository_id": repository_id, "number": number, "task_id": task_id})
