"""A further run of a task that no new command asks for."""

from bot.domain.refs import ThreadKind
from bot.domain.task import Task
from bot.store.base import NewRequest
from bot.tasks.engines.base import ABI


def further(task: Task, number: int, kind: ThreadKind, event_key: str, requester: str) -> NewRequest:
    """Make the request of a run that goes on with a task as it stands.

    Args:
        task: to go on with.
        number: of the thread on which it shows itself.
        kind: of that thread.
        event_key: names what it follows from, once.
        requester: login of who is to be told.
    """
    return NewRequest(
        task_id=task.id,
        event_key=event_key,
        repository=task.repository,
        number=number,
        kind=kind,
        title=task.title,
        body=task.body,
        requester=requester,
        requester_id=0,
        request="",
        model=None,
        comment_id=None,
        installation_id=task.installation_id,
        branch=task.branch,
        base_branch=task.base_branch,
        pull_number=task.pull_number,
        abi=ABI,
    )
