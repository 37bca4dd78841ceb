"""JSON of issues, their comments and their history."""

from __future__ import annotations

from bot.testing.hub.core import Core
from bot.testing.hub.records import Comment, Issue, Review, TimelineEvent
from bot.testing.hub.shapes.common import (
    Json,
    label_json,
    optional_stamp,
    performed_via,
    rollup_json,
    stamp,
    user_json,
)


def issue_json(hub: Core, issue: Issue) -> Json:
    """Return an `issue`; a pull request carries `pull_request` links."""
    repository = issue.repository
    api = f"{hub.api_url}/repos/{repository.full_name}"
    url = f"{api}/issues/{issue.number}"
    html = html_url(hub, issue)
    assignees = [user_json(hub, user) for user in issue.assignees]
    body: Json = {
        "url": url,
        "repository_url": api,
        "labels_url": f"{url}/labels{{/name}}",
        "comments_url": f"{url}/comments",
        "events_url": f"{url}/events",
        "html_url": html,
        "id": issue.id,
        "node_id": issue.node_id,
        "number": issue.number,
        "title": issue.title,
        "user": user_json(hub, issue.user),
        "labels": [label_json(hub, repository, label) for label in issue.labels],
        "state": issue.state,
        "locked": issue.locked,
        "assignee": assignees[0] if assignees else None,
        "assignees": assignees,
        "milestone": None,
        "comments": len(issue.comments),
        "created_at": stamp(issue.created_at),
        "updated_at": stamp(issue.updated_at),
        "closed_at": optional_stamp(issue.closed_at),
        "author_association": hub.association(repository, issue.user),
        "active_lock_reason": None,
        "sub_issues_summary": {"total": 0, "completed": 0, "percent_completed": 0},
        "body": issue.body,
        "closed_by": user_json(hub, issue.closed_by) if issue.closed_by else None,
        "reactions": rollup_json(url, issue.reactions),
        "timeline_url": f"{url}/timeline",
        "performed_via_github_app": performed_via(hub, issue.user),
        "state_reason": issue.state_reason,
    }
    if issue.pull is not None:
        body["draft"] = issue.pull.draft
        body["pull_request"] = {
            "url": f"{api}/pulls/{issue.number}",
            "html_url": html,
            "diff_url": f"{html}.diff",
            "patch_url": f"{html}.patch",
            "merged_at": optional_stamp(issue.pull.merged_at),
        }
    return body


def html_url(hub: Core, issue: Issue) -> str:
    """Return the page of an issue or pull request."""
    folder = "pull" if issue.pull else "issues"
    return f"{hub.base_url}/{issue.repository.full_name}/{folder}/{issue.number}"


def comment_json(hub: Core, comment: Comment) -> Json:
    """Return an `issue-comment`."""
    issue = comment.issue
    url = f"{hub.api_url}/repos/{issue.repository.full_name}/issues/comments/{comment.id}"
    return {
        "url": url,
        "html_url": f"{html_url(hub, issue)}#issuecomment-{comment.id}",
        "issue_url": f"{hub.api_url}/repos/{issue.repository.full_name}/issues/{issue.number}",
        "id": comment.id,
        "node_id": comment.node_id,
        "user": user_json(hub, comment.user),
        "created_at": stamp(comment.created_at),
        "updated_at": stamp(comment.updated_at),
        "body": comment.body,
        "author_association": hub.association(issue.repository, comment.user),
        "reactions": rollup_json(url, comment.reactions),
        "performed_via_github_app": performed_via(hub, comment.user),
    }


def event_json(hub: Core, issue: Issue, event: TimelineEvent) -> Json:
    """Return one entry of a timeline."""
    if event.comment is not None:
        return {**comment_json(hub, event.comment), "event": "commented", "actor": user_json(hub, event.actor)}
    if event.review is not None:
        return {**review_json(hub, issue, event.review), "event": "reviewed"}
    body: Json = {
        "id": event.id,
        "node_id": event.node_id,
        "url": f"{hub.api_url}/repos/{issue.repository.full_name}/issues/events/{event.id}",
        "actor": user_json(hub, event.actor),
        "event": event.event,
        "commit_id": event.commit_id,
        "commit_url": None,
        "created_at": stamp(event.created_at),
        "performed_via_github_app": performed_via(hub, event.actor),
    }
    if event.label is not None:
        body["label"] = {"name": event.label.name, "color": event.label.color}
    if event.rename is not None:
        body["rename"] = {"from": event.rename[0], "to": event.rename[1]}
    if event.reviewer is not None:
        body["review_requester"] = user_json(hub, event.actor)
        body["requested_reviewer"] = user_json(hub, event.reviewer)
    return body


def review_json(hub: Core, issue: Issue, review: Review) -> Json:
    """Return a `pull-request-review`."""
    html = f"{html_url(hub, issue)}#pullrequestreview-{review.id}"
    pull_url = f"{hub.api_url}/repos/{issue.repository.full_name}/pulls/{issue.number}"
    return {
        "id": review.id,
        "node_id": review.node_id,
        "user": None if review.user.deleted else user_json(hub, review.user),
        "body": review.body,
        "state": review.state,
        "html_url": html,
        "pull_request_url": pull_url,
        "author_association": hub.association(issue.repository, review.user),
        "_links": {"html": {"href": html}, "pull_request": {"href": pull_url}},
        "commit_id": review.commit_id,
        # a pending review has no such field at all
        **({"submitted_at": stamp(review.submitted_at)} if review.submitted_at else {}),
    }
