"""Check runs and commit statuses."""

from __future__ import annotations

from collections.abc import Mapping

from bot.testing.hub.core import locked
from bot.testing.hub.errors import HubError, not_found
from bot.testing.hub.records import App, CheckRun, CommitStatus, Repository, User, WorkflowRun
from bot.testing.hub.shapes.checks import check_event_json, check_suite_json, status_event_json, suite_of
from bot.testing.hub.state.revisions import Revisions

FIELDS = ("status", "conclusion", "external_id", "details_url", "title", "summary", "text", "name")
"""What may be set on a check run."""


class Checks(Revisions):
    """Checks on commits."""

    @locked
    def create_check_run(
        self,
        repository: Repository,
        app: App,
        name: str,
        head_sha: str,
        fields: Mapping[str, str | None] | None = None,
        *,
        workflow_run: WorkflowRun | None = None,
    ) -> CheckRun:
        """Create a check run; `fields` are those of `update_check_run`, `workflow_run` is that of a job.

        Raises:
            HubError: 422 `No commit found for SHA` when the repository has no such commit.
        """
        if self.git(repository).resolve(head_sha) is None:
            raise HubError(422, f"No commit found for SHA: {head_sha}")
        number, node = self.new_ids("CR")
        run = CheckRun(number, node, repository, app, name, head_sha, self.now(), workflow_run=workflow_run)
        repository.check_runs.append(run)
        if workflow_run is not None:
            workflow_run.jobs.append(run)
        self.nodes[node] = run
        self._set(run, fields or {})
        self.emit(repository, "check_run", app.bot, {"action": "created", "check_run": check_event_json(self, run)})
        if run.status == "completed":
            self._announce_done(run)
        return run

    @locked
    def update_check_run(self, run: CheckRun, fields: Mapping[str, str | None]) -> CheckRun:
        """Set `status`, `conclusion`, `external_id`, `details_url`, `name`, `title`, `summary` or `text`.

        A conclusion completes the run.
        """
        was_done = run.status == "completed"
        self._set(run, fields)
        if run.status == "completed" and not was_done:
            self._announce_done(run)
        return run

    @locked
    def find_check_run(self, repository: Repository, number: int) -> CheckRun:
        """Return a check run by id.

        Raises:
            HubError: 404 when the repository has none of that id.
        """
        for run in repository.check_runs:
            if run.id == number:
                return run
        raise not_found()

    @locked
    def rerequest_check(self, run: CheckRun, by: User) -> None:
        """Press "Re-run": sends `check_run` `rerequested`."""
        payload = {"action": "rerequested", "check_run": check_event_json(self, run)}
        self.emit(run.repository, "check_run", by, payload)

    @locked
    def set_status(  # noqa: PLR0913 -- each is a field of the request
        self,
        repository: Repository,
        by: User,
        sha: str,
        state: str,
        *,
        context: str = "default",
        description: str | None = None,
        target_url: str | None = None,
    ) -> CommitStatus:
        """Set a commit status: `error`, `failure`, `pending` or `success`; sends `status`.

        Raises:
            HubError: 422 `No commit found for SHA` when the repository has no such commit.
        """
        if self.git(repository).resolve(sha) is None:
            raise HubError(422, f"No commit found for SHA: {sha}")
        number, node = self.new_ids("SC")
        status = CommitStatus(number, node, sha, state, context, by, self.now(), description, target_url)
        repository.statuses.append(status)
        self.emit(repository, "status", by, status_event_json(self, repository, status))
        return status

    @locked
    def statuses_of(self, repository: Repository, sha: str) -> list[CommitStatus]:
        """Return the newest status of each context of a commit."""
        newest = {status.context: status for status in repository.statuses if status.sha == sha}
        return list(newest.values())

    def _set(self, run: CheckRun, fields: Mapping[str, str | None]) -> None:
        for name in FIELDS:
            if name in fields:
                setattr(run, name, fields[name])
        if run.conclusion is not None and "conclusion" in fields:
            run.status, run.completed_at = "completed", self.now()

    def _announce_done(self, run: CheckRun) -> None:
        payload = {"action": "completed", "check_run": check_event_json(self, run)}
        self.emit(run.repository, "check_run", run.app.bot, payload)
        if all(one.status == "completed" for one in suite_of(run)):
            suite = {"action": "completed", "check_suite": check_suite_json(self, run)}
            self.emit(run.repository, "check_suite", run.app.bot, suite)
