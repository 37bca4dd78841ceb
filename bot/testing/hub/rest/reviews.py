"""Reviews and comments on lines."""

from __future__ import annotations

from bot.testing.hub.errors import HubError, invalid
from bot.testing.hub.permissions import read, write
from bot.testing.hub.records import Review, ReviewComment, ReviewState
from bot.testing.hub.rest.body import Body
from bot.testing.hub.rest.call import Answer, Call
from bot.testing.hub.rest.pulls import ONE, PERMISSION, PULLS
from bot.testing.hub.rest.routing import Route
from bot.testing.hub.shapes.issues import review_json
from bot.testing.hub.shapes.pulls import pull_of, review_comment_json
from bot.testing.hub.state.reviews import LineComment, comments_of

STATES: dict[str, ReviewState] = {
    "APPROVE": "APPROVED",
    "REQUEST_CHANGES": "CHANGES_REQUESTED",
    "COMMENT": "COMMENTED",
}
"""What each `event` makes; without one a review stays pending."""


def list_reviews(call: Call) -> Answer:
    """List reviews, oldest first; of pending ones only one's own."""
    issue = call.pull()
    shown = [review for review in pull_of(issue).reviews if review.shown_to(call.caller.user)]
    return call.paged(shown, lambda review: review_json(call.hub, issue, review))


def get_review(call: Call) -> Answer:
    """Return a review."""
    return _review(call, _found(call))


def create_review(call: Call) -> Answer:
    """Submit a review with its comments on lines, or begin one."""
    issue, body = call.pull(), Body(call.raw)
    comments = [_line_comment(comment) for comment in body.objects("comments")]
    text, commit = body.text("body", ""), body.optional_text("commit_id")
    if not body.text("event", ""):
        return _review(call, call.hub.start_review(issue, call.user, text, comments, commit=commit))
    return _review(call, call.hub.review(issue, call.user, _state(body), text, comments, commit=commit))


def submit_review(call: Call) -> Answer:
    """Submit a pending review."""
    body = Body(call.raw)
    return _review(call, call.hub.submit_review(_found(call), _state(body), body.optional_text("body")))


def edit_review(call: Call) -> Answer:
    """Change the text of one's own review."""
    review = _found(call)
    call.require_author_or(review.user, "admin")
    return _review(call, call.hub.edit_review(review, call.user, Body(call.raw).text("body")))


def delete_review(call: Call) -> Answer:
    """Delete one's own pending review."""
    review = _found(call)
    call.hub.delete_review(review)
    return _review(call, review)


def dismiss_review(call: Call) -> Answer:
    """Dismiss a review, with a message that is not kept."""
    Body(call.raw).text("message")
    return _review(call, call.hub.dismiss_review(_found(call), call.user))


def _found(call: Call) -> Review:
    return call.hub.find_review(call.pull(), call.number("review_id"), call.caller.user)


def _review(call: Call, review: Review) -> Answer:
    return Answer(review_json(call.hub, review.issue, review))


def _state(body: Body) -> ReviewState:
    state = STATES.get(body.text("event"))
    if state is None:
        raise HubError(422, "Unprocessable Entity", errors=["Variable $event is invalid"])
    return state


def _line_comment(body: Body) -> LineComment:
    side = body.text("side", "RIGHT")
    if side not in ("LEFT", "RIGHT"):
        raise invalid("PullRequestReviewComment", "side")
    return LineComment(
        path=body.text("path"),
        line=body.number("line"),
        body=body.text("body"),
        side="LEFT" if side == "LEFT" else "RIGHT",
        start_line=body.number("start_line") if "start_line" in body else None,
    )


def _answer(call: Call, comments: list[ReviewComment]) -> Answer:
    return call.paged(comments, lambda comment: review_comment_json(call.hub, comment))


def review_comments(call: Call) -> Answer:
    """List the comments of one review."""
    return _answer(call, comments_of(_found(call)))


def list_comments(call: Call) -> Answer:
    """List the comments on lines, oldest first."""
    return _answer(call, pull_of(call.pull()).review_comments())


def create_comment(call: Call) -> Answer:
    """Comment on one line."""
    body = Body(call.raw)
    comment = call.hub.comment_on_line(call.pull(), call.user, _line_comment(body), commit=body.text("commit_id"))
    return Answer(review_comment_json(call.hub, comment), 201)


def get_comment(call: Call) -> Answer:
    """Return a comment on a line."""
    return Answer(review_comment_json(call.hub, _comment(call)))


def edit_comment(call: Call) -> Answer:
    """Change the text of a comment on a line."""
    comment = _comment(call)
    call.require_author_or(comment.user, "write")
    return Answer(
        review_comment_json(call.hub, call.hub.edit_review_comment(comment, call.user, Body(call.raw).text("body")))
    )


def delete_comment(call: Call) -> Answer:
    """Delete a comment on a line."""
    comment = _comment(call)
    call.require_author_or(comment.user, "write")
    call.hub.delete_review_comment(comment, call.user)
    return Answer(status=204)


def _comment(call: Call) -> ReviewComment:
    return call.hub.find_review_comment(call.repository, call.number("comment_id"))


def reply(call: Call) -> Answer:
    """Answer a comment on a line."""
    answer = call.hub.reply(_comment(call).thread, call.user, Body(call.raw).text("body"))
    return Answer(review_comment_json(call.hub, answer), 201)


ROUTES = [
    Route("GET", f"{ONE}/reviews", read(PERMISSION), list_reviews),
    Route("POST", f"{ONE}/reviews", write(PERMISSION, role="read"), create_review),
    Route("GET", f"{ONE}/reviews/{{review_id}}", read(PERMISSION), get_review),
    Route("PUT", f"{ONE}/reviews/{{review_id}}", write(PERMISSION, role="read"), edit_review),
    Route("DELETE", f"{ONE}/reviews/{{review_id}}", write(PERMISSION, role="read"), delete_review),
    Route("POST", f"{ONE}/reviews/{{review_id}}/events", write(PERMISSION, role="read"), submit_review),
    Route("PUT", f"{ONE}/reviews/{{review_id}}/dismissals", write(PERMISSION), dismiss_review),
    Route("GET", f"{ONE}/reviews/{{review_id}}/comments", read(PERMISSION), review_comments),
    Route("GET", f"{ONE}/comments", read(PERMISSION), list_comments),
    Route("POST", f"{ONE}/comments", write(PERMISSION, role="read"), create_comment),
    Route("POST", f"{ONE}/comments/{{comment_id}}/replies", write(PERMISSION, role="read"), reply),
    Route("GET", f"{PULLS}/comments/{{comment_id}}", read(PERMISSION), get_comment),
    Route("PATCH", f"{PULLS}/comments/{{comment_id}}", write(PERMISSION, role="read"), edit_comment),
    Route("DELETE", f"{PULLS}/comments/{{comment_id}}", write(PERMISSION, role="read"), delete_comment),
]
"""Routes of reviews."""
