"""Rows as the domain's values."""

from typing import Any

from sqlalchemy import Row

from bot.domain.refs import RepositoryRef
from bot.domain.task import Run, Task
from bot.store.base import NewRequest

# A row's columns are known to the schema only.
AnyRow = Row[*tuple[Any, ...]]


def to_task(row: AnyRow) -> Task:
    """Read a row of `tasks`."""
    return Task(
        id=row.id,
        repository=RepositoryRef(row.repository_id, row.full_name, row.default_branch, row.private),
        number=row.number,
        kind=row.kind,
        title=row.title,
        body=row.body,
        requester=row.requester,
        installation_id=row.installation_id,
        branch=row.branch,
        base_branch=row.base_branch,
        pull_number=row.pull_number,
        created_at=row.created_at,
    )


def to_run(row: AnyRow) -> Run:
    """Read a row of `runs`."""
    return Run(
        task_id=row.task_id,
        seq=row.seq,
        number=row.number,
        kind=row.kind,
        state=row.state,
        outcome=row.outcome,
        reason=row.reason,
        request=row.request,
        requester=row.requester,
        model=row.model,
        comment_id=row.comment_id,
        abi=row.abi,
        created_at=row.created_at,
        commanded=row.commanded,
        intent=row.intent,
        usd=row.usd,
        fresh=row.fresh,
        requester_id=row.requester_id,
        event_key=row.event_key,
        asked_at=row.asked_at,
    )


def snapshot(request: NewRequest) -> dict[str, object]:
    """Give the columns of `tasks` that every request brings up to date."""
    values: dict[str, object] = {
        "full_name": request.repository.full_name,
        "private": request.repository.private,
        "installation_id": request.installation_id,
    }
    if request.repository.default_branch is not None:
        values["default_branch"] = request.repository.default_branch
    return values
