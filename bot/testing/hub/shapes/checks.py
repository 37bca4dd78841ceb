"""JSON of check runs and commit statuses."""

from __future__ import annotations

from collections.abc import Sequence

from bot.testing.hub.core import Core
from bot.testing.hub.records import CheckRun, CommitStatus, Repository
from bot.testing.hub.shapes.common import Json, app_json, optional_stamp, stamp, user_json
from bot.testing.hub.shapes.pulls import pull_minimal_json
from bot.testing.hub.shapes.repositories import repository_json


def check_run_json(hub: Core, run: CheckRun) -> Json:
    """Return a `check-run`."""
    url = f"{hub.api_url}/repos/{run.repository.full_name}/check-runs/{run.id}"
    html = f"{hub.base_url}/{run.repository.full_name}/runs/{run.id}"
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
        "details_url": run.details_url or run.app.external_url,
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


def suite_id(run: CheckRun) -> int:
    """Return the check suite of a run: one for each App and commit."""
    first = next(r for r in run.repository.check_runs if r.app is run.app and r.head_sha == run.head_sha)
    return first.id


def check_event_json(hub: Core, run: CheckRun) -> Json:
    """Return a check run as webhooks carry it, with its suite spelled out."""
    body = check_run_json(hub, run)
    repository_url = f"{hub.api_url}/repos/{run.repository.full_name}"
    body["check_suite"] = {
        "id": suite_id(run),
        "node_id": f"CS_{suite_id(run)}",
        "head_branch": next(
            (i.pull.head_ref for i in run.repository.issues.values() if i.pull and i.pull.head_sha == run.head_sha),
            None,
        ),
        "head_sha": run.head_sha,
        "status": run.status,
        "conclusion": run.conclusion,
        "url": f"{repository_url}/check-suites/{suite_id(run)}",
        "before": None,
        "after": run.head_sha,
        "pull_requests": body["pull_requests"],
        "app": body["app"],
        "created_at": stamp(run.started_at),
        "updated_at": stamp(run.completed_at or run.started_at),
    }
    return body


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


def combined_json(hub: Core, repository: Repository, sha: str, statuses: Sequence[CommitStatus]) -> Json:
    """Return a `combined-commit-status`; `statuses` are the newest of each context."""
    states = {status.state for status in statuses}
    state = "failure" if states & {"failure", "error"} else "success" if states == {"success"} else "pending"
    url = f"{hub.api_url}/repos/{repository.full_name}/commits/{sha}"
    return {
        "state": state,
        "statuses": [status_json(hub, repository, status) for status in statuses],
        "sha": sha,
        "total_count": len(statuses),
        "repository": repository_json(hub, repository),
        "commit_url": url,
        "url": f"{url}/status",
    }
