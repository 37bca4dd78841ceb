"""How each field of each type is read from its record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from bot.testing.hub.graphql.asking import Ask, issue_node
from bot.testing.hub.graphql.paging import Page, page
from bot.testing.hub.records import Comment, Issue, Repository, Review, ReviewComment, Thread, User
from bot.testing.hub.shapes.common import Json, optional_stamp, stamp
from bot.testing.hub.shapes.pulls import pull_of
from bot.testing.hub.state.reviews import comments_of

# Any: the record that the schema's type stands for; each function below says which.
Resolver = Callable[[Any, Ask, Mapping[str, Any]], object]


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


def _author(said: Comment | ReviewComment | Review) -> User | None:
    """REST names a deleted account `ghost`, GraphQL none."""
    return None if said.user.deleted else said.user


def _did_author(said: ReviewComment | Review, ask: Ask, _args: Mapping[str, Any]) -> bool:
    return said.user is ask.user


def _edited_at(comment: ReviewComment) -> str | None:
    return stamp(comment.updated_at) if comment.updated_at != comment.created_at else None


def _of(read: Callable[[Any], object]) -> Resolver:
    """Make a resolver of what needs only the record."""
    return lambda record, _ask, _args: read(record)


def _user(login: Callable[[User], str]) -> dict[str, Resolver]:
    return {"id": _of(lambda user: user.node_id), "login": _of(login), "databaseId": _of(lambda user: user.id)}


def _minimized_reason(comment: Comment | ReviewComment) -> str | None:
    return comment.minimized_reason


ISSUE: dict[str, Resolver] = {
    "id": _of(issue_node),
    "number": _of(lambda issue: issue.number),
    "title": _of(lambda issue: issue.title),
    "body": _of(lambda issue: issue.body or ""),
}

COMMENT: dict[str, Resolver] = {
    "id": _of(lambda comment: comment.node_id),
    "databaseId": _of(lambda comment: comment.id),
    "body": _of(lambda comment: comment.body),
    "createdAt": _of(lambda comment: stamp(comment.created_at)),
    "author": _of(_author),
    "isMinimized": _of(lambda comment: _minimized_reason(comment) is not None),
    "minimizedReason": _of(_minimized_reason),
}

CONNECTION: dict[str, Resolver] = {
    "nodes": _of(lambda page: page.nodes),
    "pageInfo": _of(lambda page: page),
    "totalCount": _of(lambda page: page.total),
}

FIELDS: dict[str, dict[str, Resolver]] = {
    "Query": {"viewer": _viewer, "rateLimit": _rate_limit, "repository": _repository, "node": _node},
    "User": _user(lambda user: user.login),
    # GraphQL names an App's account without the `[bot]` that REST, and `viewer`, put behind it
    "Bot": _user(lambda user: user.login.removesuffix("[bot]")),
    "Organization": _user(lambda user: user.login),
    "Repository": {
        "id": _of(lambda repository: repository.node_id),
        "name": _of(lambda repository: repository.name),
        "nameWithOwner": _of(lambda repository: repository.full_name),
        "issue": _issue,
        "pullRequest": _pull_request,
    },
    "Issue": {**ISSUE, "state": _of(lambda issue: issue.state.upper())},
    "IssueComment": COMMENT,
    "PullRequest": {
        **ISSUE,
        "isDraft": _of(lambda issue: pull_of(issue).draft),
        "state": _of(_pull_state),
        "headRefOid": _of(lambda issue: pull_of(issue).head_sha),
        "headRefName": _of(lambda issue: pull_of(issue).head_ref),
        "baseRefName": _of(lambda issue: pull_of(issue).base_ref),
        "reviews": _reviews,
        "reviewThreads": _threads,
    },
    "PageInfo": {"endCursor": _of(lambda page: page.end), "hasNextPage": _of(lambda page: page.more)},
    "PullRequestReviewThreadConnection": CONNECTION,
    "PullRequestReviewThread": {
        "id": _of(lambda thread: thread.node_id),
        "isResolved": _of(lambda thread: thread.is_resolved),
        "isOutdated": _of(lambda thread: thread.outdated),
        "path": _of(lambda thread: thread.path),
        "line": _of(lambda thread: None if thread.outdated else thread.line),
        "startLine": _of(lambda thread: None if thread.outdated else thread.start_line),
        "originalLine": _of(lambda thread: thread.line),
        "diffSide": _of(lambda thread: thread.side),
        "resolvedBy": _of(lambda thread: thread.resolved_by),
        "comments": _comments,
    },
    "PullRequestReviewCommentConnection": CONNECTION,
    "PullRequestReviewComment": {
        **COMMENT,
        "fullDatabaseId": _of(lambda comment: str(comment.id)),
        "lastEditedAt": _of(_edited_at),
        "diffHunk": _of(lambda comment: comment.diff_hunk),
        "state": _of(lambda comment: "PENDING" if comment.review.state == "PENDING" else "SUBMITTED"),
        "pullRequestReview": _of(lambda comment: comment.review),
        "viewerDidAuthor": _did_author,
    },
    "PullRequestReviewConnection": CONNECTION,
    "PullRequestReview": {
        "id": _of(lambda review: review.node_id),
        "fullDatabaseId": _of(lambda review: str(review.id)),
        "author": _of(_author),
        "body": _of(lambda review: review.body),
        "state": _of(lambda review: review.state),
        "commit": _of(lambda review: review.commit_id),
        "submittedAt": _of(lambda review: optional_stamp(review.submitted_at)),
        "viewerDidAuthor": _did_author,
        "comments": _review_comments,
    },
    "Commit": {"oid": _of(lambda sha: sha)},
}
"""By type and field; what is left out (`RateLimit`, payloads) is a mapping that reads itself."""
