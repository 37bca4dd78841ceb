"""GitHub Actions as others see it: runs of workflows whose jobs end as somebody says, and the logs of these jobs."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta

from bot.testing.hub.core import locked
from bot.testing.hub.errors import HubError, not_found
from bot.testing.hub.records import CheckRun, Repository, User, WorkflowRun
from bot.testing.hub.shapes.actions import workflow_json, workflow_run_json
from bot.testing.hub.shapes.checks import head_branch_of
from bot.testing.hub.state.apps import Apps

LINK_LIFE = timedelta(minutes=1)
"""How long the link to a log works (https://docs.github.com/rest/actions/workflow-jobs)."""


class Actions(Apps):
    """Workflow runs; nothing runs here, so each job ends when and as it is told to."""

    @locked
    def run_workflow(
        self, repository: Repository, by: User, sha: str, jobs: Sequence[str], *, name: str = "CI"
    ) -> WorkflowRun:
        """Let a workflow of a repository begin on a commit, as for a pull request; its jobs are in progress.

        Args:
            repository: whose.
            by: who pushed the commit.
            sha: the commit.
            jobs: their names.
            name: of the workflow; its file is called alike.

        Raises:
            HubError: 422 when the repository has no such commit.
        """
        number, node = self.new_ids("WFR")
        now, path = self.now(), f".github/workflows/{name.lower()}.yml"
        run = WorkflowRun(
            id=number,
            node_id=node,
            repository=repository,
            name=name,
            path=path,
            number=1 + sum(one.path == path for one in repository.workflow_runs),
            event="pull_request",
            head_sha=sha,
            head_branch=head_branch_of(repository, sha),
            actor=by,
            suite_id=self.next_id(),
            created_at=now,
            updated_at=now,
        )
        repository.workflow_runs.append(run)
        # All of them before the first one may be done: with the last one the run is over.
        for job in jobs:
            fields = {"status": "in_progress"}
            self.create_check_run(repository, self.actions_app(), job, sha, fields, workflow_run=run)
        return run

    @locked
    def finish_job(self, job: CheckRun, conclusion: str, log: str | bytes = "") -> None:
        """End a job of a workflow run; with the last one the run has ended too.

        Args:
            job: one of `WorkflowRun.jobs`.
            conclusion: `success`, `failure`, `cancelled`, `skipped` or `timed_out`.
            log: what it printed; text gets GitHub's time before each line.
        """
        run = job.workflow_run
        if run is None:
            raise not_found()
        job.log = log if isinstance(log, bytes) else stamped(log, self.now())
        self.update_check_run(job, {"conclusion": conclusion})
        if all(one.status == "completed" for one in run.jobs):
            run.updated_at = self.now()
            fields = {"workflow": workflow_json(self, run), "workflow_run": workflow_run_json(self, run)}
            self.emit(run.repository, "workflow_run", run.actor, {"action": "completed", **fields})

    @locked
    def delete_log(self, job: CheckRun) -> None:
        """Delete the log of a job, as GitHub does after the time that the repository says."""
        job.log, job.log_deleted = None, True

    @locked
    def find_workflow_run(self, repository: Repository, number: int) -> WorkflowRun:
        """Return a workflow run by id.

        Raises:
            HubError: 404 when the repository has none of that id.
        """
        for run in repository.workflow_runs:
            if run.id == number:
                return run
        raise not_found()

    @locked
    def log_link(self, repository: Repository, number: int) -> str:
        """Return where the log of a job is for a minute: at another host, which asks for no login.

        Raises:
            HubError: 404 for no job, or one that goes on; 410 when its log is deleted.
        """
        job = self.find_check_run(repository, number)
        if job.log_deleted:
            raise HubError(410, "Gone")
        if job.log is None:
            raise not_found()
        code = secrets.token_hex(16)
        self.log_links[code] = (job.log, self.clock() + LINK_LIFE)
        # The same server by its other name, which is another origin.
        return f"{self.base_url.replace('127.0.0.1', 'localhost')}/actions-logs/{code}"

    @locked
    def linked_log(self, code: str) -> bytes | None:
        """Return the log behind a link; None where the link is unknown or too old."""
        log, until = self.log_links.get(code, (b"", self.clock()))
        return log if self.clock() < until else None


def stamped(text: str, when: datetime) -> bytes:
    """Return a log as GitHub gives it out: a byte order mark, and a time before each line."""
    begin = when.strftime("%Y-%m-%dT%H:%M:%S.1234567Z ")
    return ("\ufeff" + "".join(f"{begin}{line}\n" for line in text.removesuffix("\n").split("\n"))).encode()
