"""The mutations: each finds its subject, asks for permission, changes the hub's state and returns its payload."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from graphql import GraphQLError

from bot.testing.hub.graphql.asking import Ask, refused, type_name
from bot.testing.hub.permissions import write
from bot.testing.hub.records import Comment, Issue, ReviewComment, Role, Thread
from bot.testing.hub.shapes.common import Json

T = TypeVar("T")

# Any: a mutation's `input`, whose types the schema has checked.
Mutation = Callable[[Ask, Mapping[str, Any]], Json]


def resolve_thread(ask: Ask, given: Mapping[str, Any]) -> Json:
    """Resolve a review thread."""
    thread = _own_thread(ask, given["threadId"])
    ask.hub.resolve_thread(thread, ask.user)
    return {"thread": thread}


def unresolve_thread(ask: Ask, given: Mapping[str, Any]) -> Json:
    """Open a resolved review thread again."""
    thread = _own_thread(ask, given["threadId"])
    ask.hub.unresolve_thread(thread, ask.user)
    return {"thread": thread}


def reply(ask: Ask, given: Mapping[str, Any]) -> Json:
    """Answer in a review thread."""
    thread = _subject(ask, given["pullRequestReviewThreadId"], Thread, "PullRequestReviewThread")
    ask.require(thread.issue.repository, write("pull_requests", role="read"))
    return {"comment": ask.hub.reply(thread, ask.user, given["body"])}


def minimize(ask: Ask, given: Mapping[str, Any]) -> Json:
    """Hide a comment of a conversation or on a line."""
    comment = ask.node(given["subjectId"])
    match comment:
        case Comment():
            ask.require(comment.issue.repository, write("issues", "pull_requests"))
        case ReviewComment():
            ask.require(comment.thread.issue.repository, write("pull_requests"))
        case _:
            raise _not_a("Minimizable", given["subjectId"])
    ask.hub.minimize(comment, given["classifier"].lower().replace("_", "-"))
    return {"minimizedComment": comment}


def to_draft(ask: Ask, given: Mapping[str, Any]) -> Json:
    """Convert a pull request to a draft."""
    return _set_draft(ask, given["pullRequestId"], draft=True)


def ready_for_review(ask: Ask, given: Mapping[str, Any]) -> Json:
    """Mark a draft as ready for review."""
    return _set_draft(ask, given["pullRequestId"], draft=False)


def _set_draft(ask: Ask, node_id: str, *, draft: bool) -> Json:
    issue = _subject(ask, node_id, Issue, "PullRequest")
    ask.require(issue.repository, write("pull_requests", role=_role(ask, issue)))
    ask.hub.set_draft(issue, ask.user, draft)
    return {"pullRequest": issue}


def _own_thread(ask: Ask, node_id: str) -> Thread:
    """Return a thread that the caller may resolve.

    An App needs `contents` too, which GitHub does not document: https://github.com/github/gh-aw/issues/35726
    """
    thread = _subject(ask, node_id, Thread, "PullRequestReviewThread")
    role = _role(ask, thread.issue)
    ask.require(thread.issue.repository, write("pull_requests", role=role), write("contents", role=role))
    return thread


def _role(ask: Ask, issue: Issue) -> Role:
    """Return the weakest role that does: the author of a pull request needs none to write."""
    return "read" if ask.user is issue.user else "write"


def _subject(ask: Ask, node_id: str, record: type[T], kind: str) -> T:
    found = ask.node(node_id)
    if not isinstance(found, record) or type_name(found) != kind:
        raise _not_a(kind, node_id)
    return found


def _not_a(kind: str, node_id: str) -> GraphQLError:
    return refused("NOT_FOUND", f"Could not resolve to {kind} node with the global id of '{node_id}'.")


MUTATIONS: dict[str, Mutation] = {
    "resolveReviewThread": resolve_thread,
    "unresolveReviewThread": unresolve_thread,
    "addPullRequestReviewThreadReply": reply,
    "minimizeComment": minimize,
    "convertPullRequestToDraft": to_draft,
    "markPullRequestReadyForReview": ready_for_review,
}
"""By field of `Mutation`."""
