"""How each field of each type is read from its record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from bot.testing.hub.graphql import overview
from bot.testing.hub.graphql.asking import Ask, issue_node
from bot.testing.hub.graphql.overview import CONNECTION, OneCommit, author, did_author
from bot.testing.hub.graphql.paging import Page, page
from bot.testing.hub.graphql.resolver import Resolver, of
from bot.testing.hub.records import Comment, Issue, Repository, Review, ReviewComment, Thread, User
from bot.testing.hub.shapes.common import Json, optional_stamp, stamp
from bot.testing.hub.shapes.pulls import pull_of
from bot.testing.hub.state.reviews import comments_of


def _viewer(_: object, ask: Ask, _args: Mapping[str, Any]) -> User:
    return ask.user


def _rate_limit(_: object, ask: Ask, _args: Mapping[str, Any]) -> Json:
    overview = ask.hub.meter.overview(ask.caller.key)
    reset = datetime.fromtimestamp(overview["reset"], UTC)
    return {"limit": overview["limit"], "cost": 1, "remaining": overview["remaining"], "resetAt": stamp(reset)}


def _repository(_: object, ask: Ask, args: Mapping[str, Any]) -> Repository:
    return ask.repository(args["owner"], args["name"])


def _node(_: object, ask: Ask, args: Mapping[str, Any]) -> object:
    return ask.node(args["id"])


def _issue(repository: Repository, ask: Ask, args: Mapping[str, Any]) -> Issue:
    return ask.numbered(repository, "Issue", args["number"])


def _pull_request(repository: Repository, ask: Ask, args: Mapping[str, Any]) -> Issue:
    return ask.numbered(repository, "PullRequest", args["number"])


def _pull_state(issue: Issue) -> str:
    return "MERGED" if pull_of(issue).merged_at else issue.state.upper()


def _threads(issue: Issue, ask: Ask, args: Mapping[str, Any]) -> Page:
    shown = [thread for thread in pull_of(issue).threads if thread.shown_to(ask.caller.user)]
    return page("reviewThreads", shown, args)


def _comments(thread: Thread, ask: Ask, args: Mapping[str, Any]) -> Page:
    return page("comments", thread.shown_to(ask.caller.user), args)


def _reviews(issue: Issue, ask: Ask, args: Mapping[str, Any]) -> Page:
    shown = [review for review in pull_of(issue).reviews if review.shown_to(ask.caller.user)]
    return page("reviews", [review for review in shown if review.state in (args.get("states") or [review.state])], args)


def _review_comments(review: Review, _: Ask, args: Mapping[str, Any]) -> Page:
    return page("comments", comments_of(review), args)


def _edited_at(comment: ReviewComment) -> str | None:
    return stamp(comment.updated_at) if comment.updated_at != comment.created_at else None


def _user(login: Callable[[User], str]) -> dict[str, Resolver]:
    return {"id": of(lambda user: user.node_id), "login": of(login), "databaseId": of(lambda user: user.id)}


def _minimized_reason(comment: Comment | ReviewComment) -> str | None:
    return comment.minimized_reason


ISSUE: dict[str, Resolver] = {
    "id": of(issue_node),
    "number": of(lambda issue: issue.number),
    "title": of(lambda issue: issue.title),
    "body": of(lambda issue: issue.body or ""),
}

COMMENT: dict[str, Resolver] = {
    "id": of(lambda comment: comment.node_id),
    "databaseId": of(lambda comment: comment.id),
    "body": of(lambda comment: comment.body),
    "createdAt": of(lambda comment: stamp(comment.created_at)),
    "author": of(author),
    "isMinimized": of(lambda comment: _minimized_reason(comment) is not None),
    "minimizedReason": of(_minimized_reason),
}

FIELDS: dict[str, dict[str, Resolver]] = {
    "Query": {"viewer": _viewer, "rateLimit": _rate_limit, "repository": _repository, "node": _node},
    "User": {**_user(lambda user: user.login), "name": of(lambda user: user.name)},
    # GraphQL names an App's account without the `[bot]` that REST, and `viewer`, put behind it
    "Bot": _user(lambda user: user.login.removesuffix("[bot]")),
    "Organization": _user(lambda user: user.login),
    "Repository": {
        "id": of(lambda repository: repository.node_id),
        "name": of(lambda repository: repository.name),
        "nameWithOwner": of(lambda repository: repository.full_name),
        "issue": _issue,
        "pullRequest": _pull_request,
    },
    "Issue": {**ISSUE, "state": of(lambda issue: issue.state.upper())},
    "IssueComment": {**COMMENT, **overview.ISSUE_COMMENT},
    "PullRequest": {
        **ISSUE,
        **overview.PULL_REQUEST,
        "isDraft": of(lambda issue: pull_of(issue).draft),
        "state": of(_pull_state),
        "headRefOid": of(lambda issue: pull_of(issue).head_sha),
        "headRefName": of(lambda issue: pull_of(issue).head_ref),
        "baseRefName": of(lambda issue: pull_of(issue).base_ref),
        "reviews": _reviews,
        "reviewThreads": _threads,
    },
    "PageInfo": {"endCursor": of(lambda page: page.end), "hasNextPage": of(lambda page: page.more)},
    "PullRequestReviewThreadConnection": CONNECTION,
    "PullRequestReviewThread": {
        "id": of(lambda thread: thread.node_id),
        "isResolved": of(lambda thread: thread.is_resolved),
        "isOutdated": of(lambda thread: thread.outdated),
        "path": of(lambda thread: thread.path),
        "line": of(lambda thread: None if thread.outdated else thread.line),
        "startLine": of(lambda thread: None if thread.outdated else thread.start_line),
        "originalLine": of(lambda thread: thread.line),
        "diffSide": of(lambda thread: thread.side),
        "resolvedBy": of(lambda thread: thread.resolved_by),
        "comments": _comments,
    },
    "PullRequestReviewCommentConnection": CONNECTION,
    "PullRequestReviewComment": {
        **COMMENT,
        "fullDatabaseId": of(lambda comment: str(comment.id)),
        "lastEditedAt": of(_edited_at),
        "diffHunk": of(lambda comment: comment.diff_hunk),
        "state": of(lambda comment: "PENDING" if comment.review.state == "PENDING" else "SUBMITTED"),
        "pullRequestReview": of(lambda comment: comment.review),
        "viewerDidAuthor": did_author,
    },
    "PullRequestReviewConnection": CONNECTION,
    "PullRequestReview": {
        **overview.IN_CONVERSATION,
        "id": of(lambda review: review.node_id),
        "fullDatabaseId": of(lambda review: str(review.id)),
        "author": of(author),
        "body": of(lambda review: review.body),
        "state": of(lambda review: review.state),
        "commit": of(lambda review: OneCommit(0, review.commit_id, review.issue.repository)),
        "submittedAt": of(lambda review: optional_stamp(review.submitted_at)),
        "comments": _review_comments,
    },
    **overview.FIELDS,
}
"""By type and field; what is left out (`RateLimit`, payloads) is a mapping that reads itself."""
