"""What webhooks say of checks that came to an end: suites of checks, runs of workflows, commit statuses."""

from collections.abc import Iterable, Sequence

from bot.domain.refs import RepositoryRef, ThreadRef
from bot.domain.trigger import CiFinished, TriggerContext
from bot.github.payloads import CheckSuite, Payload, PullRequest, WorkflowRun, to_actor, to_repository

EVENTS = frozenset({"check_suite", "workflow_run", "status"})
_ENDS = frozenset({"success", "failure", "error"})
"""States of a commit status, which has no other that is an end."""


def ci_finished(event: str, payload: Payload, *, own_app_id: int | None = None) -> CiFinished | None:
    """Say on which commit something ended; None where nothing did, or where it was ours.

    Who sent it says nothing: checks of what we pushed begin in our own name.

    Args:
        event: one of `EVENTS`.
        payload: the decoded body.
        own_app_id: our App, whose own suites are not what others say.
    """
    repository = to_repository(payload.repository)
    if repository is None:
        return None
    match event, payload.action:
        case "check_suite", "completed" if suite := payload.check_suite:
            if own_app_id is not None and suite.app is not None and suite.app.id == own_app_id:
                return None
            return _of(payload, repository, "suite", suite, suite.updated_at or "")
        case "workflow_run", "completed" if run := payload.workflow_run:
            return _of(payload, repository, "workflow", run, f"{run.run_attempt or 1}:{run.updated_at or ''}")
        case "status", _ if payload.sha and payload.id is not None and payload.state in _ENDS:
            branches = [branch.name for branch in payload.branches or () if branch.name]
            key = f"status:{repository.id}:{payload.sha}:{payload.id}"
            return CiFinished(_context(payload, repository, key), payload.sha, (), branches)
    return None


def _of(
    payload: Payload, repository: RepositoryRef, kind: str, ended: CheckSuite | WorkflowRun, edition: str
) -> CiFinished | None:
    if ended.id is None or not ended.head_sha:
        return None
    # Run again it keeps its id, and ends once more.
    key = f"{kind}:{repository.id}:{ended.head_sha}:{ended.id}:{edition}"
    branches = [ended.head_branch] if ended.head_branch else []
    numbers = _numbers(ended.pull_requests or (), repository)
    return CiFinished(_context(payload, repository, key), ended.head_sha, numbers, branches)


def _numbers(pulls: Iterable[PullRequest], repository: RepositoryRef) -> Sequence[int]:
    """Name the pull requests of the repository itself: one of a fork into another one may have the same head."""
    homes = [(pull.number, pull.base.repo.id if pull.base and pull.base.repo else None) for pull in pulls]
    return [number for number, home in homes if number is not None and home in {None, repository.id}]


def _context(payload: Payload, repository: RepositoryRef, key: str) -> TriggerContext:
    return TriggerContext(
        event_key=key,
        installation_id=payload.installation.id if payload.installation else None,
        actor=to_actor(payload.sender),
        thread=ThreadRef(repository, 0, "pull"),
        title="",
        body="",
        author=None,
    )
