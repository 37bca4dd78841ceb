"""The mutations: each finds its subject, asks for permission, changes the hub's state and returns its payload."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from graphql import GraphQLError

from bot.testing.hub.errors import HubError
from bot.testing.hub.graphql.asking import Ask, refused, type_name
from bot.testing.hub.permissions import write
from bot.testing.hub.records import Comment, Issue, Review, ReviewComment, ReviewState, Role, Thread
from bot.testing.hub.rest.reviews import STATES
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
    """Answer in a review thread; a pending review of one's own takes the answer in, whether it was named or not."""
    thread = _subject(ask, given["pullRequestReviewThreadId"], Thread, "PullRequestReviewThread")
    ask.require(thread.issue.repository, write("pull_requests", role="read"))
    named = given.get("pullRequestReviewId")
    review = _subject(ask, named, Review, "PullRequestReview") if named else None
    pending = review or ask.hub.pending_review(thread.issue, ask.user)
    return {"comment": ask.hub.reply(thread, ask.user, given["body"], pending)}


def add_review(ask: Ask, given: Mapping[str, Any]) -> Json:
    """Submit a review, or begin one where no event is given."""
    issue = _subject(ask, given["pullRequestId"], Issue, "PullRequest")
    ask.require(issue.repository, write("pull_requests", role="read"))
    if ask.hub.pending_review(issue, ask.user) is not None:
        raise refused("UNPROCESSABLE", "User can only have one pending review per pull request")
    text, commit = given.get("body") or "", given.get("commitOID")
    if given.get("event") is None:
        return {"pullRequestReview": ask.hub.start_review(issue, ask.user, text, commit=commit)}
    return {"pullRequestReview": ask.hub.review(issue, ask.user, _state(given), text, commit=commit)}


def submit_review(ask: Ask, given: Mapping[str, Any]) -> Json:
    """Submit one's pending review, named by its own id or by the pull request's."""
    if given.get("pullRequestReviewId") is None:
        issue = _subject(ask, given.get("pullRequestId") or "", Issue, "PullRequest")
        review = ask.hub.pending_review(issue, ask.user)
        if review is None:
            raise refused("UNPROCESSABLE", "Could not find a pending review for this pull request")
    else:
        review = _own_review(ask, given["pullRequestReviewId"])
    ask.require(review.issue.repository, write("pull_requests", role="read"))
    return {"pullRequestReview": ask.hub.submit_review(review, _state(given), given.get("body"))}


def delete_review(ask: Ask, given: Mapping[str, Any]) -> Json:
    """Delete one's pending review."""
    review = _own_review(ask, given["pullRequestReviewId"])
    ask.require(review.issue.repository, write("pull_requests", role="read"))
    ask.hub.delete_review(review)
    return {"pullRequestReview": review}


def _own_review(ask: Ask, node_id: str) -> Review:
    review = _subject(ask, node_id, Review, "PullRequestReview")
    if review.user is not ask.user:
        raise HubError(403, "Forbidden")
    return review


def _state(given: Mapping[str, Any]) -> ReviewState:
    state = STATES.get(given["event"])
    if state is None:
        raise refused("UNPROCESSABLE", "Can not dismiss a pending pull request review")
    return state


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
    _require_contents_too(ask, issue)
    ask.hub.set_draft(issue, ask.user, draft)
    return {"pullRequest": issue}


def _own_thread(ask: Ask, node_id: str) -> Thread:
    """Return a thread that the caller may resolve."""
    thread = _subject(ask, node_id, Thread, "PullRequestReviewThread")
    _require_contents_too(ask, thread.issue)
    return thread


def _require_contents_too(ask: Ask, issue: Issue) -> None:
    """Refuse an App without `contents`, which it needs for threads and drafts although GitHub documents it nowhere.

    Sources: https://github.com/github/gh-aw/issues/35726 and https://github.com/cli/cli/discussions/6924
    """
    role = _role(ask, issue)
    ask.require(issue.repository, write("pull_requests", role=role), write("contents", role=role))


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
    "addPullRequestReview": add_review,
    "submitPullRequestReview": submit_review,
    "deletePullRequestReview": delete_review,
    "minimizeComment": minimize,
    "convertPullRequestToDraft": to_draft,
    "markPullRequestReadyForReview": ready_for_review,
}
"""By field of `Mutation`."""
