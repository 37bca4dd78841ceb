"""Check runs and commit statuses."""

from __future__ import annotations

from bot.testing.hub.errors import HubError, invalid, not_supplied
from bot.testing.hub.permissions import read, write
from bot.testing.hub.records import App, CheckRun, CommitStatus
from bot.testing.hub.rest.body import Body
from bot.testing.hub.rest.call import Answer, Call
from bot.testing.hub.rest.routing import Route
from bot.testing.hub.shapes.checks import annotation_json, check_run_json, combined_json, status_json, suite_id
from bot.testing.hub.shapes.common import Json

STATUSES = ("queued", "in_progress", "completed", "waiting", "requested", "pending")
CONCLUSIONS = (
    "action_required",
    "cancelled",
    "failure",
    "neutral",
    "success",
    "skipped",
    "stale",
    "timed_out",
)
STATES = ("error", "failure", "pending", "success")
LONGEST_OUTPUT = 65_535
MOST_ANNOTATIONS = 50
"""Annotations that one request may add."""


def _app(call: Call) -> App:
    if call.caller.app is None:
        raise HubError(403, "You must authenticate via a GitHub App.")
    return call.caller.app


def _fields(body: Body) -> dict[str, str | None]:
    fields: dict[str, str | None] = {
        name: body.optional_text(name)
        for name in ("status", "conclusion", "external_id", "details_url", "name")
        if name in body
    }
    if fields.get("status") not in (None, *STATUSES):
        raise invalid("CheckRun", "status")
    if fields.get("conclusion") not in (None, *CONCLUSIONS):
        raise invalid("CheckRun", "conclusion")
    if fields.get("status") == "completed" and fields.get("conclusion") is None:
        raise not_supplied("conclusion")
    output = body.nested("output")
    if output is not None:
        fields |= {"title": output.text("title"), "summary": output.text("summary")}
        fields |= {"text": output.optional_text("text")} if "text" in output else {}
        if any(len(fields.get(name) or "") > LONGEST_OUTPUT for name in ("summary", "text")):
            raise invalid("CheckRun", "summary", message=f"Only {LONGEST_OUTPUT} characters are allowed")
    return fields


def _annotate(run: CheckRun, body: Body) -> None:
    output = body.nested("output")
    annotations = output.objects("annotations") if output else []
    if len(annotations) > MOST_ANNOTATIONS:
        raise HubError(422, f"Invalid request.\n\nNo more than {MOST_ANNOTATIONS} items are allowed.")
    for annotation in annotations:
        annotation.text("path"), annotation.text("message"), annotation.text("annotation_level")
        annotation.number("start_line"), annotation.number("end_line")
        run.annotations.append(annotation.fields)


def create(call: Call) -> Answer:
    """Create a check run of the caller's App."""
    body = Body(call.raw)
    run = call.hub.create_check_run(
        call.repository, _app(call), body.text("name"), body.text("head_sha"), _fields(body)
    )
    _annotate(run, body)
    return Answer(check_run_json(call.hub, run), 201)


def update(call: Call) -> Answer:
    """Change a check run of the caller's App."""
    run, body = call.hub.find_check_run(call.repository, call.number("check_run_id")), Body(call.raw)
    if run.app is not _app(call):
        raise HubError(
            403,
            "Invalid app_id `" + str(_app(call).id) + "` - check run can only be modified by the GitHub "
            "App that created it.",
        )
    fields = _fields(body)
    _annotate(run, body)
    call.hub.update_check_run(run, fields)
    return Answer(check_run_json(call.hub, run))


def get(call: Call) -> Answer:
    """Return a check run."""
    return Answer(check_run_json(call.hub, call.hub.find_check_run(call.repository, call.number("check_run_id"))))


def list_annotations(call: Call) -> Answer:
    """List the annotations of a check run."""
    run = call.hub.find_check_run(call.repository, call.number("check_run_id"))
    return call.paged(run.annotations, lambda annotation: annotation_json(call.hub, run, annotation))


def _sha(call: Call) -> str:
    sha = call.git.resolve(call.params["ref"])
    if sha is None:
        raise HubError(422, f"No commit found for SHA: {call.params['ref']}")
    return sha


def list_for_ref(call: Call) -> Answer:
    """List the check runs of a commit, newest first; of a suite's name, only the newest unless `filter=all`."""
    sha = _sha(call)
    name, status, app_id = call.query.get("check_name"), call.query.get("status"), call.query.get("app_id")
    runs = [
        run
        for run in call.repository.check_runs
        if run.head_sha == sha
        and name in (None, run.name)
        and status in (None, run.status)
        and app_id in (None, str(run.app.id))
    ]
    if call.query.get("filter", "latest") == "latest":
        runs = list({(suite_id(run), run.name): run for run in runs}.values())
    runs.reverse()

    def wrap(page: list[object]) -> Json:
        return {"total_count": len(runs), "check_runs": page}

    return call.paged(runs, lambda run: check_run_json(call.hub, run), wrap)


def create_status(call: Call) -> Answer:
    """Set a commit status."""
    body = Body(call.raw)
    state = body.text("state")
    if state not in STATES:
        raise invalid("Status", "state")
    status = call.hub.set_status(
        call.repository,
        call.user,
        call.params["sha"],
        state,
        context=body.text("context", "default"),
        description=body.optional_text("description"),
        target_url=body.optional_text("target_url"),
    )
    return Answer(status_json(call.hub, call.repository, status), 201)


def combined(call: Call) -> Answer:
    """Return the combined status of a commit."""
    sha = _sha(call)
    found = call.hub.statuses_of(call.repository, sha)
    page: list[CommitStatus] = []

    def wrap(_: list[object]) -> Json:
        return combined_json(call.hub, call.repository, sha, found, page)

    return call.paged(found, page.append, wrap)


REPO = "/repos/{owner}/{repo}"
CHECKS = write("checks", apps_only=True)
ROUTES = [
    Route("POST", f"{REPO}/check-runs", CHECKS, create),
    Route("PATCH", f"{REPO}/check-runs/{{check_run_id}}", CHECKS, update),
    Route("GET", f"{REPO}/check-runs/{{check_run_id}}", read("checks"), get),
    Route("GET", f"{REPO}/check-runs/{{check_run_id}}/annotations", read("checks"), list_annotations),
    Route("GET", f"{REPO}/commits/{{ref}}/check-runs", read("checks"), list_for_ref),
    Route("POST", f"{REPO}/statuses/{{sha}}", write("statuses"), create_status),
    Route("GET", f"{REPO}/commits/{{ref}}/status", read("statuses"), combined),
]
"""Routes of checks."""
