"""Workflow runs, their jobs and the logs of these."""

from __future__ import annotations

from bot.testing.hub.errors import not_found
from bot.testing.hub.permissions import read
from bot.testing.hub.records import CheckRun, WorkflowRun
from bot.testing.hub.rest.call import Answer, Call
from bot.testing.hub.rest.routing import Route
from bot.testing.hub.shapes.actions import job_json, workflow_run_json
from bot.testing.hub.shapes.common import Json


def _run(call: Call) -> WorkflowRun:
    return call.hub.find_workflow_run(call.repository, call.number("run_id"))


def list_runs(call: Call) -> Answer:
    """List workflow runs, newest first, of one commit, branch, event or suite if asked for."""
    query = call.query
    runs = [
        run
        for run in reversed(call.repository.workflow_runs)
        if query.get("head_sha") in (None, run.head_sha)
        and query.get("branch") in (None, run.head_branch)
        and query.get("event") in (None, run.event)
        and query.get("check_suite_id") in (None, str(run.suite_id))
    ]

    def wrap(page: list[object]) -> Json:
        return {"total_count": len(runs), "workflow_runs": page}

    return call.paged(runs, lambda run: workflow_run_json(call.hub, run), wrap)


def get_run(call: Call) -> Answer:
    """Return a workflow run."""
    return Answer(workflow_run_json(call.hub, _run(call)))


def list_jobs(call: Call) -> Answer:
    """List the jobs of a workflow run."""
    run = _run(call)

    def wrap(page: list[object]) -> Json:
        return {"total_count": len(run.jobs), "jobs": page}

    return call.paged(run.jobs, lambda job: job_json(call.hub, job, run), wrap)


def get_job(call: Call) -> Answer:
    """Return a job."""
    job: CheckRun = call.hub.find_check_run(call.repository, call.number("job_id"))
    if job.workflow_run is None:
        raise not_found()
    return Answer(job_json(call.hub, job, job.workflow_run))


def job_logs(call: Call) -> Answer:
    """Say where the log of a job is."""
    return Answer(b"", 302, {"Location": call.hub.log_link(call.repository, call.number("job_id"))})


RUNS = "/repos/{owner}/{repo}/actions/runs"
JOBS = "/repos/{owner}/{repo}/actions/jobs"
READ = read("actions")
ROUTES = [
    Route("GET", RUNS, READ, list_runs),
    Route("GET", f"{RUNS}/{{run_id}}", READ, get_run),
    Route("GET", f"{RUNS}/{{run_id}}/jobs", READ, list_jobs),
    Route("GET", f"{JOBS}/{{job_id}}", READ, get_job),
    Route("GET", f"{JOBS}/{{job_id}}/logs", READ, job_logs),
]
"""Routes of Actions."""
