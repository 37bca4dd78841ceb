"""Issues, their labels and their history."""

from __future__ import annotations

from datetime import datetime

from bot.testing.hub.errors import invalid, not_found, not_supplied
from bot.testing.hub.permissions import read, write
from bot.testing.hub.records import Issue
from bot.testing.hub.rest.body import Body
from bot.testing.hub.rest.call import Answer, Call
from bot.testing.hub.rest.routing import Route
from bot.testing.hub.shapes.common import label_json
from bot.testing.hub.shapes.issues import event_json, issue_json

EITHER = ("issues", "pull_requests")
REASONS = ("completed", "not_planned", "duplicate", "reopened")


def list_issues(call: Call) -> Answer:
    """List issues and pull requests, newest first, by state, labels, creator and `since`."""
    state, creator = call.query.get("state", "open"), call.query.get("creator", "")
    labels = {name.lower() for name in call.query.get("labels", "").split(",") if name}
    issues = [
        issue
        for issue in call.repository.issues.values()
        if state in ("all", issue.state)
        and labels <= {label.name.lower() for label in issue.labels}
        and creator.lower() in ("", issue.user.login.lower())
    ]
    since = call.query.get("since")
    if since:
        issues = [issue for issue in issues if issue.updated_at >= _time(since)]
    by_update = call.query.get("sort") == "updated"
    issues.sort(key=lambda issue: (issue.updated_at if by_update else issue.created_at, issue.number))
    if call.query.get("direction") != "asc":
        issues.reverse()
    return call.paged(issues, lambda issue: issue_json(call.hub, issue))


def _time(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise invalid("Issue", "since") from None


def create_issue(call: Call) -> Answer:
    """Open an issue; labels of people without a role are dropped, as on GitHub."""
    body = Body(call.raw)
    labels = body.texts("labels") if call.has_role("triage") else []
    issue = call.hub.open_issue(call.repository, call.user, body.text("title"), body.optional_text("body"), labels)
    return Answer(issue_json(call.hub, issue), 201)


def get_issue(call: Call) -> Answer:
    """Return an issue or pull request."""
    return Answer(issue_json(call.hub, call.issue()))


def patch_issue(call: Call) -> Answer:
    """Change title, body, state or labels."""
    issue, body = call.issue(), Body(call.raw)
    call.require_author_or(issue.user, "triage")
    state = body.optional_text("state")
    if state not in (None, "open", "closed"):
        raise invalid("Issue", "state")
    reason = body.optional_text("state_reason")
    if reason not in (None, *REASONS):
        raise invalid("Issue", "state_reason")
    call.hub.edit_issue(issue, call.user, title=body.optional_text("title"), body=body.optional_text("body"))
    if state == "closed":
        call.hub.close_issue(issue, call.user, reason or "completed")
    elif state == "open":
        call.hub.reopen_issue(issue, call.user)
    if "labels" in body:
        _replace_labels(call, issue, body.texts("labels"))
    return Answer(issue_json(call.hub, issue))


def _replace_labels(call: Call, issue: Issue, names: list[str]) -> None:
    wanted = {name.lower() for name in names}
    for label in list(issue.labels):
        if label.name.lower() not in wanted:
            call.hub.remove_label(issue, call.user, label.name)
    call.hub.add_labels(issue, call.user, names)


def timeline(call: Call) -> Answer:
    """List the history of an issue, oldest first."""
    issue = call.issue()
    return call.paged(issue.timeline, lambda event: event_json(call.hub, issue, event))


def list_labels(call: Call) -> Answer:
    """List the labels of an issue."""
    return call.paged(call.issue().labels, lambda label: label_json(call.hub, call.repository, label))


def add_labels(call: Call) -> Answer:
    """Put labels on an issue; the body is an object or a bare list."""
    raw = b'{"labels":' + call.raw + b"}" if call.raw.lstrip().startswith(b"[") else call.raw
    body = Body(raw)
    if "labels" not in body:
        raise not_supplied("labels")
    labels = call.hub.add_labels(call.issue(), call.user, body.texts("labels"))
    return Answer([label_json(call.hub, call.repository, label) for label in labels])


def remove_label(call: Call) -> Answer:
    """Take a label off an issue."""
    labels = call.hub.remove_label(call.issue(), call.user, call.params["name"])
    return Answer([label_json(call.hub, call.repository, label) for label in labels])


def repository_labels(call: Call) -> Answer:
    """List the labels of a repository."""
    labels = list(call.repository.labels.values())
    return call.paged(labels, lambda label: label_json(call.hub, call.repository, label))


def get_label(call: Call) -> Answer:
    """Return a label of the repository."""
    label = call.repository.labels.get(call.params["name"].lower())
    if label is None:
        raise not_found()
    return Answer(label_json(call.hub, call.repository, label))


def create_label(call: Call) -> Answer:
    """Create a label."""
    body = Body(call.raw)
    label = call.hub.create_label(
        call.repository,
        body.text("name"),
        color=body.text("color", "ededed"),
        description=body.optional_text("description"),
    )
    return Answer(label_json(call.hub, call.repository, label), 201)


ISSUES = "/repos/{owner}/{repo}/issues"
ROUTES = [
    Route("GET", ISSUES, read("issues"), list_issues),
    Route("POST", ISSUES, write("issues", role="read"), create_issue),
    Route("GET", f"{ISSUES}/{{issue_number}}", read("issues"), get_issue),
    Route("PATCH", f"{ISSUES}/{{issue_number}}", write(*EITHER, role="read"), patch_issue),
    Route("GET", f"{ISSUES}/{{issue_number}}/timeline", read(*EITHER), timeline),
    Route("GET", f"{ISSUES}/{{issue_number}}/labels", read(*EITHER), list_labels),
    Route("POST", f"{ISSUES}/{{issue_number}}/labels", write(*EITHER, role="triage"), add_labels),
    Route("DELETE", f"{ISSUES}/{{issue_number}}/labels/{{name}}", write(*EITHER, role="triage"), remove_label),
    Route("GET", "/repos/{owner}/{repo}/labels", read(*EITHER), repository_labels),
    Route("POST", "/repos/{owner}/{repo}/labels", write(*EITHER), create_label),
    Route("GET", "/repos/{owner}/{repo}/labels/{name}", read(*EITHER), get_label),
]
"""Routes of issues and labels."""
