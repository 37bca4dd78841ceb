"""JSON of check runs and commit statuses."""

from __future__ import annotations

from collections.abc import Sequence

from bot.testing.hub.core import Core
from bot.testing.hub.records import CheckRun, CommitStatus, Repository
from bot.testing.hub.shapes.common import Json, app_json, optional_stamp, stamp, user_json
from bot.testing.hub.shapes.pulls import pull_minimal_json
from bot.testing.hub.shapes.repositories import head_commit_json, repository_json

WORST_FIRST = ("failure", "timed_out", "cancelled", "action_required", "stale", "success", "neutral", "skipped")
"""Which conclusion of its runs a suite has."""


def check_run_json(hub: Core, run: CheckRun) -> Json:
    """Return a `check-run`."""
    url = f"{hub.api_url}/repos/{run.repository.full_name}/check-runs/{run.id}"
    html = f"{hub.base_url}/{run.repository.full_name}/runs/{run.id}"
    if run.workflow_run is not None:
        html = f"{hub.base_url}/{run.repository.full_name}/actions/runs/{run.workflow_run.id}/job/{run.id}"
    pulls = [
        pull_minimal_json(hub, issue)
        for issue in run.repository.issues.values()
        if issue.pull and issue.state == "open" and issue.pull.head_sha == run.head_sha
    ]
    return {
        "id": run.id,
        "name": run.name,
        "node_id": run.node_id,
        "head_sha": run.head_sha,
        "external_id": run.external_id,
        "url": url,
        "html_url": html,
        "details_url": run.details_url or (html if run.workflow_run else run.app.external_url),
        "status": run.status,
        "conclusion": run.conclusion,
        "started_at": stamp(run.started_at),
        "completed_at": optional_stamp(run.completed_at),
        "output": {
            "title": run.title,
            "summary": run.summary,
            "text": run.text,
            "annotations_count": len(run.annotations),
            "annotations_url": f"{url}/annotations",
        },
        "check_suite": {"id": suite_id(run)},
        "app": app_json(hub, run.app),
        "pull_requests": pulls,
    }


def suite_of(run: CheckRun) -> list[CheckRun]:
    """Return the check runs of a run's suite: one suite for each workflow run, else for each App and commit."""
    return [
        one
        for one in run.repository.check_runs
        if (one.app, one.head_sha, one.workflow_run) == (run.app, run.head_sha, run.workflow_run)
    ]


def suite_id(run: CheckRun) -> int:
    """Return the id of the check suite of a run."""
    return run.workflow_run.suite_id if run.workflow_run else suite_of(run)[0].id


def conclusion_of(runs: Sequence[CheckRun]) -> str | None:
    """Return what check runs come to together; None while one goes on."""
    if any(run.status != "completed" for run in runs):
        return None
    return next((worst for worst in WORST_FIRST if any(run.conclusion == worst for run in runs)), "success")


def head_branch_of(repository: Repository, sha: str) -> str | None:
    """Return the head branch of a pull request that stands at a commit."""
    heads = (issue.pull for issue in repository.issues.values() if issue.pull)
    return next((pull.head_ref for pull in heads if pull.head_sha == sha), None)


def check_event_json(hub: Core, run: CheckRun) -> Json:
    """Return a check run as webhooks carry it, with its suite spelled out."""
    body = check_run_json(hub, run)
    body["check_suite"] = _suite_json(hub, run, body)
    return body


def check_suite_json(hub: Core, run: CheckRun) -> Json:
    """Return the suite of a check run as its own webhook carries it."""
    suite = _suite_json(hub, run, check_run_json(hub, run))
    return {
        **suite,
        "latest_check_runs_count": len(suite_of(run)),
        "check_runs_url": f"{suite['url']}/check-runs",
        "head_commit": head_commit_json(hub, run.repository, run.head_sha),
        "rerequestable": True,
        "runs_rerequestable": True,
    }


def _suite_json(hub: Core, run: CheckRun, body: Json) -> Json:
    runs = suite_of(run)
    done = conclusion_of(runs)
    return {
        "id": suite_id(run),
        "node_id": f"CS_{suite_id(run)}",
        "head_branch": head_branch_of(run.repository, run.head_sha),
        "head_sha": run.head_sha,
        "status": "completed" if done else run.status if run.status != "completed" else "in_progress",
        "conclusion": done,
        "url": f"{hub.api_url}/repos/{run.repository.full_name}/check-suites/{suite_id(run)}",
        "before": None,
        "after": run.head_sha,
        "pull_requests": body["pull_requests"],
        "app": body["app"],
        "created_at": stamp(runs[0].started_at),
        "updated_at": stamp(run.completed_at or run.started_at),
    }


def annotation_json(hub: Core, run: CheckRun, annotation: dict[str, object]) -> Json:
    """Return a `check-annotation`."""
    path = annotation["path"]
    return {
        "path": path,
        "blob_href": f"{hub.base_url}/{run.repository.full_name}/blob/{run.head_sha}/{path}",
        "start_line": annotation["start_line"],
        "end_line": annotation["end_line"],
        "start_column": annotation.get("start_column"),
        "end_column": annotation.get("end_column"),
        "annotation_level": annotation["annotation_level"],
        "title": annotation.get("title"),
        "message": annotation["message"],
        "raw_details": annotation.get("raw_details"),
    }


def status_json(hub: Core, repository: Repository, status: CommitStatus) -> Json:
    """Return a `status`."""
    creator = user_json(hub, status.creator)
    return {
        "url": f"{hub.api_url}/repos/{repository.full_name}/statuses/{status.sha}",
        "avatar_url": creator["avatar_url"],
        "id": status.id,
        "node_id": status.node_id,
        "state": status.state,
        "description": status.description,
        "target_url": status.target_url,
        "context": status.context,
        "created_at": stamp(status.created_at),
        "updated_at": stamp(status.created_at),
        "creator": creator,
    }


def status_event_json(hub: Core, repository: Repository, status: CommitStatus) -> Json:
    """Return what a `status` webhook says beside repository and sender; branches are those that end at the commit."""
    refs = hub.git(repository).refs("refs/heads/")
    url = f"{hub.api_url}/repos/{repository.full_name}/commits/{status.sha}"
    said = status_json(hub, repository, status)
    kept = ("id", "target_url", "avatar_url", "context", "description", "state", "created_at", "updated_at")
    return {
        **{name: said[name] for name in kept},
        "sha": status.sha,
        "name": repository.full_name,
        "commit": {"sha": status.sha, "url": url},
        "branches": [
            {"name": ref.removeprefix("refs/heads/"), "commit": {"sha": sha, "url": url}, "protected": False}
            for ref, sha in refs.items()
            if sha == status.sha
        ],
    }


def combined_json(
    hub: Core, repository: Repository, sha: str, statuses: Sequence[CommitStatus], page: Sequence[CommitStatus]
) -> Json:
    """Return a `combined-commit-status` of the newest status of each context, of which it lists a page."""
    states = {status.state for status in statuses}
    state = "failure" if states & {"failure", "error"} else "success" if states == {"success"} else "pending"
    url = f"{hub.api_url}/repos/{repository.full_name}/commits/{sha}"
    return {
        "state": state,
        "statuses": [status_json(hub, repository, status) for status in page],
        "sha": sha,
        "total_count": len(statuses),
        "repository": repository_json(hub, repository),
        "commit_url": url,
        "url": f"{url}/status",
    }
