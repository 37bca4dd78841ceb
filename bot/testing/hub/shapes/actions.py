"""JSON of workflow runs and their jobs."""

from __future__ import annotations

from bot.testing.hub.core import Core
from bot.testing.hub.records import CheckRun, WorkflowRun
from bot.testing.hub.shapes.checks import conclusion_of
from bot.testing.hub.shapes.common import Json, optional_stamp, stamp, user_json
from bot.testing.hub.shapes.pulls import pull_minimal_json
from bot.testing.hub.shapes.repositories import head_commit_json, repository_json


def workflow_json(hub: Core, run: WorkflowRun) -> Json:
    """Return the `workflow` of a run."""
    root = f"{hub.base_url}/{run.repository.full_name}"
    return {
        "id": workflow_id(run),
        "node_id": f"W_{workflow_id(run)}",
        "name": run.name,
        "path": run.path,
        "state": "active",
        "created_at": stamp(run.repository.created_at),
        "updated_at": stamp(run.repository.created_at),
        "url": f"{hub.api_url}/repos/{run.repository.full_name}/actions/workflows/{workflow_id(run)}",
        "html_url": f"{root}/blob/{run.repository.default_branch}/{run.path}",
        "badge_url": f"{root}/workflows/{workflow_id(run)}/badge.svg",
    }


def workflow_id(run: WorkflowRun) -> int:
    """Return the id of a run's workflow: that of its first run."""
    return next(one.id for one in run.repository.workflow_runs if one.path == run.path)


def workflow_run_json(hub: Core, run: WorkflowRun) -> Json:
    """Return a `workflow-run`, as the API and webhooks both have it."""
    url = f"{hub.api_url}/repos/{run.repository.full_name}/actions/runs/{run.id}"
    conclusion = conclusion_of(run.jobs)
    pulls = [
        pull_minimal_json(hub, issue)
        for issue in run.repository.issues.values()
        if issue.pull and issue.state == "open" and issue.pull.head_sha == run.head_sha
    ]
    repository = repository_json(hub, run.repository)
    return {
        "id": run.id,
        "name": run.name,
        "node_id": run.node_id,
        "head_branch": run.head_branch,
        "head_sha": run.head_sha,
        "path": run.path,
        "display_title": run.name,
        "run_number": run.number,
        "run_attempt": 1,
        "event": run.event,
        "status": "completed" if conclusion else "in_progress",
        "conclusion": conclusion,
        "workflow_id": workflow_id(run),
        "check_suite_id": run.suite_id,
        "check_suite_node_id": f"CS_{run.suite_id}",
        "url": url,
        "html_url": f"{hub.base_url}/{run.repository.full_name}/actions/runs/{run.id}",
        "pull_requests": pulls,
        "created_at": stamp(run.created_at),
        "updated_at": stamp(run.updated_at),
        "run_started_at": stamp(run.created_at),
        "actor": user_json(hub, run.actor),
        "triggering_actor": user_json(hub, run.actor),
        "jobs_url": f"{url}/jobs",
        "logs_url": f"{url}/logs",
        "check_suite_url": f"{hub.api_url}/repos/{run.repository.full_name}/check-suites/{run.suite_id}",
        "artifacts_url": f"{url}/artifacts",
        "cancel_url": f"{url}/cancel",
        "rerun_url": f"{url}/rerun",
        "previous_attempt_url": None,
        "workflow_url": workflow_json(hub, run)["url"],
        "head_commit": head_commit_json(hub, run.repository, run.head_sha),
        "repository": repository,
        "head_repository": repository,
    }


def job_json(hub: Core, job: CheckRun, run: WorkflowRun) -> Json:
    """Return a `job`; its id is that of its check run."""
    root = f"{hub.api_url}/repos/{run.repository.full_name}"
    return {
        "id": job.id,
        "run_id": run.id,
        "run_url": f"{root}/actions/runs/{run.id}",
        "run_attempt": 1,
        "node_id": job.node_id,
        "head_sha": job.head_sha,
        "head_branch": run.head_branch,
        "workflow_name": run.name,
        "name": job.name,
        "url": f"{root}/actions/jobs/{job.id}",
        "html_url": f"{hub.base_url}/{run.repository.full_name}/actions/runs/{run.id}/job/{job.id}",
        "check_run_url": f"{root}/check-runs/{job.id}",
        "status": job.status,
        "conclusion": job.conclusion,
        "created_at": stamp(job.started_at),
        "started_at": stamp(job.started_at),
        "completed_at": optional_stamp(job.completed_at),
        "steps": [],
        "labels": ["ubuntu-latest"],
        "runner_id": 1,
        "runner_name": "GitHub Actions 1",
        "runner_group_id": 0,
        "runner_group_name": "GitHub Actions",
    }
