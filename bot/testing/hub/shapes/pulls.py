"""JSON of pull requests and the comments on their lines."""

from __future__ import annotations

from bot.testing.hub.core import Core
from bot.testing.hub.records import Issue, Pull, Repository, ReviewComment
from bot.testing.hub.shapes.common import Json, label_json, optional_stamp, rollup_json, stamp, user_json
from bot.testing.hub.shapes.issues import html_url
from bot.testing.hub.shapes.repositories import repository_json


def pull_of(issue: Issue) -> Pull:
    """Return the pull request half of an issue that is one."""
    assert issue.pull is not None, "asked for the pull request of a plain issue"  # noqa: S101
    return issue.pull


def side_json(hub: Core, repository: Repository, ref: str, sha: str) -> Json:
    """Return `head` or `base`."""
    return {
        "label": f"{repository.owner.login}:{ref}",
        "ref": ref,
        "sha": sha,
        "user": user_json(hub, repository.owner),
        "repo": repository_json(hub, repository),
    }


def pull_simple_json(hub: Core, issue: Issue) -> Json:
    """Return a `pull-request-simple`."""
    pull = pull_of(issue)
    api = f"{hub.api_url}/repos/{issue.repository.full_name}"
    url, html = f"{api}/pulls/{issue.number}", html_url(hub, issue)
    issue_url, statuses_url = f"{api}/issues/{issue.number}", f"{api}/statuses/{pull.head_sha}"
    assignees = [user_json(hub, user) for user in issue.assignees]
    return {
        "url": url,
        "id": pull.id,
        "node_id": pull.node_id,
        "html_url": html,
        "diff_url": f"{html}.diff",
        "patch_url": f"{html}.patch",
        "issue_url": issue_url,
        "number": issue.number,
        "state": issue.state,
        "locked": issue.locked,
        "title": issue.title,
        "user": user_json(hub, issue.user),
        "body": issue.body,
        "created_at": stamp(issue.created_at),
        "updated_at": stamp(issue.updated_at),
        "closed_at": optional_stamp(issue.closed_at),
        "merged_at": optional_stamp(pull.merged_at),
        "merge_commit_sha": pull.merge_commit_sha,
        "assignee": assignees[0] if assignees else None,
        "assignees": assignees,
        "requested_reviewers": [user_json(hub, user) for user in pull.requested_reviewers],
        "requested_teams": [],
        # GitHub's schema of a pull request wants a text where that of a label allows null
        "labels": [
            {**label_json(hub, issue.repository, label), "description": label.description or ""}
            for label in issue.labels
        ],
        "milestone": None,
        "draft": pull.draft,
        "commits_url": f"{url}/commits",
        "review_comments_url": f"{url}/comments",
        "review_comment_url": f"{api}/pulls/comments{{/number}}",
        "comments_url": f"{issue_url}/comments",
        "statuses_url": statuses_url,
        "head": side_json(hub, pull.head_repository, pull.head_ref, pull.head_sha),
        "base": side_json(hub, issue.repository, pull.base_ref, pull.base_sha),
        "_links": _links(hub, issue),
        "author_association": hub.association(issue.repository, issue.user),
        "auto_merge": _auto_merge(hub, issue),
        "active_lock_reason": None,
    }


def _links(hub: Core, issue: Issue) -> Json:
    api = f"{hub.api_url}/repos/{issue.repository.full_name}"
    url, issue_url = f"{api}/pulls/{issue.number}", f"{api}/issues/{issue.number}"
    links = {
        "self": url,
        "html": html_url(hub, issue),
        "issue": issue_url,
        "comments": f"{issue_url}/comments",
        "review_comments": f"{url}/comments",
        "review_comment": f"{api}/pulls/comments{{/number}}",
        "commits": f"{url}/commits",
        "statuses": f"{api}/statuses/{pull_of(issue).head_sha}",
    }
    return {name: {"href": href} for name, href in links.items()}


def _auto_merge(hub: Core, issue: Issue) -> Json | None:
    by = pull_of(issue).auto_merge_by
    if by is None:
        return None
    enabled_by = user_json(hub, by)
    return {"enabled_by": enabled_by, "merge_method": "merge", "commit_title": issue.title, "commit_message": ""}


def pull_json(hub: Core, issue: Issue) -> Json:
    """Return a `pull-request`; counts come from git."""
    pull = pull_of(issue)
    git = hub.git(issue.repository)
    base = git.merge_base(pull.base_sha, pull.head_sha) or pull.base_sha
    changes = git.diff(base, pull.head_sha)
    merged = pull.merged_at is not None
    clean = merged or git.merges_cleanly(pull.base_sha, pull.head_sha)
    return {
        **pull_simple_json(hub, issue),
        "merged": merged,
        "mergeable": None if merged else clean,
        "rebaseable": None if merged else clean,
        "mergeable_state": "unknown" if merged else "draft" if pull.draft else "clean" if clean else "dirty",
        "merged_by": user_json(hub, pull.merged_by) if pull.merged_by else None,
        "comments": len(issue.comments),
        "review_comments": len(pull.review_comments()),
        "maintainer_can_modify": pull.head_repository is not issue.repository,
        "commits": git.count(base, pull.head_sha),
        "additions": sum(change.additions for change in changes),
        "deletions": sum(change.deletions for change in changes),
        "changed_files": len(changes),
    }


def pull_minimal_json(hub: Core, issue: Issue) -> Json:
    """Return a `pull-request-minimal`, as check runs list them."""
    pull = pull_of(issue)

    def side(repository: Repository, ref: str, sha: str) -> Json:
        url = f"{hub.api_url}/repos/{repository.full_name}"
        return {"ref": ref, "sha": sha, "repo": {"id": repository.id, "url": url, "name": repository.name}}

    return {
        "id": pull.id,
        "number": issue.number,
        "url": f"{hub.api_url}/repos/{issue.repository.full_name}/pulls/{issue.number}",
        "head": side(pull.head_repository, pull.head_ref, pull.head_sha),
        "base": side(issue.repository, pull.base_ref, pull.base_sha),
    }


def review_comment_json(hub: Core, comment: ReviewComment) -> Json:
    """Return a `pull-request-review-comment`."""
    thread = comment.thread
    issue = thread.issue
    api = f"{hub.api_url}/repos/{issue.repository.full_name}/pulls"
    url, html = f"{api}/comments/{comment.id}", f"{html_url(hub, issue)}#discussion_r{comment.id}"
    pull_url = f"{api}/{issue.number}"
    start_side = thread.side if thread.start_line else None
    body: Json = {
        "url": url,
        "pull_request_review_id": comment.review.id,
        "id": comment.id,
        "node_id": comment.node_id,
        "diff_hunk": comment.diff_hunk,
        "path": thread.path,
        "commit_id": comment.commit_id,
        "original_commit_id": comment.commit_id,
        "user": user_json(hub, comment.user),
        "body": comment.body,
        "created_at": stamp(comment.created_at),
        "updated_at": stamp(comment.updated_at),
        "html_url": html,
        "pull_request_url": pull_url,
        "author_association": hub.association(issue.repository, comment.user),
        "_links": {"self": {"href": url}, "html": {"href": html}, "pull_request": {"href": pull_url}},
        "reactions": rollup_json(url, comment.reactions),
        "start_line": None if thread.outdated else thread.start_line,
        "original_start_line": thread.start_line,
        "start_side": start_side,
        "line": None if thread.outdated else thread.line,
        "original_line": thread.line,
        "side": thread.side,
        "original_position": thread.position,
        "position": None if thread.outdated else thread.position,
        "subject_type": "line",
    }
    if comment.in_reply_to is not None:
        body["in_reply_to_id"] = comment.in_reply_to
    return body
