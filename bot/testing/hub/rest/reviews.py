"""Reviews and comments on lines."""

from __future__ import annotations

from bot.testing.hub.errors import HubError, invalid
from bot.testing.hub.permissions import read, write
from bot.testing.hub.records import ReviewComment, ReviewState
from bot.testing.hub.rest.body import Body
from bot.testing.hub.rest.call import Answer, Call
from bot.testing.hub.rest.pulls import ONE, PERMISSION, PULLS
from bot.testing.hub.rest.routing import Route
from bot.testing.hub.shapes.issues import review_json
from bot.testing.hub.shapes.pulls import pull_of, review_comment_json
from bot.testing.hub.state.reviews import LineComment

STATES: dict[str, ReviewState] = {
    "APPROVE": "APPROVED",
    "REQUEST_CHANGES": "CHANGES_REQUESTED",
    "COMMENT": "COMMENTED",
}
"""What each `event` makes; drafts of reviews (no event) are not served."""


def list_reviews(call: Call) -> Answer:
    """List reviews, oldest first."""
    issue = call.pull()
    return call.paged(pull_of(issue).reviews, lambda review: review_json(call.hub, issue, review))


def create_review(call: Call) -> Answer:
    """Submit a review with its comments on lines."""
    issue, body = call.pull(), Body(call.raw)
    state = STATES.get(body.text("event", "COMMENT"))
    if state is None:
        raise HubError(422, "Unprocessable Entity", errors=["Variable $event is invalid"])
    comments = [_line_comment(comment) for comment in body.objects("comments")]
    review = call.hub.review(issue, call.user, state, body.text("body", ""), comments)
    return Answer(review_json(call.hub, issue, review))


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
    issue = call.pull()
    review = call.hub.find_review(issue, call.number("review_id"))
    comments = [comment for comment in pull_of(issue).review_comments() if comment.review is review]
    return _answer(call, comments)


def list_comments(call: Call) -> Answer:
    """List the comments on lines, oldest first."""
    return _answer(call, pull_of(call.pull()).review_comments())


def get_comment(call: Call) -> Answer:
    """Return a comment on a line."""
    comment = call.hub.find_review_comment(call.repository, call.number("comment_id"))
    return Answer(review_comment_json(call.hub, comment))


def reply(call: Call) -> Answer:
    """Answer a comment on a line."""
    comment = call.hub.find_review_comment(call.repository, call.number("comment_id"))
    answer = call.hub.reply(comment.thread, call.user, Body(call.raw).text("body"))
    return Answer(review_comment_json(call.hub, answer), 201)


ROUTES = [
    Route("GET", f"{ONE}/reviews", read(PERMISSION), list_reviews),
    Route("POST", f"{ONE}/reviews", write(PERMISSION, role="read"), create_review),
    Route("GET", f"{ONE}/reviews/{{review_id}}/comments", read(PERMISSION), review_comments),
    Route("GET", f"{ONE}/comments", read(PERMISSION), list_comments),
    Route("POST", f"{ONE}/comments/{{comment_id}}/replies", write(PERMISSION, role="read"), reply),
    Route("GET", f"{PULLS}/comments/{{comment_id}}", read(PERMISSION), get_comment),
]
"""Routes of reviews."""
