"""What becomes of reviews: edited, dismissed, taken back; comments on lines edited and deleted; threads resolved."""

from __future__ import annotations

from bot.testing.hub.core import locked
from bot.testing.hub.errors import HubError
from bot.testing.hub.records import Review, ReviewComment, Thread, User
from bot.testing.hub.shapes.common import Json
from bot.testing.hub.shapes.pulls import pull_of, pull_simple_json, review_comment_json
from bot.testing.hub.state.comments import check_body
from bot.testing.hub.state.reviews import Reviews, comments_of


class Revisions(Reviews):
    """Changes to reviews, their comments and threads."""

    @locked
    def edit_review(self, review: Review, by: User, body: str) -> Review:
        """Change the text of a review."""
        check_body(body)
        old, review.body = review.body, body
        if old != body and review.state != "PENDING":
            self.announce_review(review, "edited", by, {"changes": {"body": {"from": old}}})
        return review

    @locked
    def dismiss_review(self, review: Review, by: User) -> Review:
        """Take a review's approval, or its objection, away.

        Raises:
            HubError: 422 for one that is neither.
        """
        if review.state not in ("APPROVED", "CHANGES_REQUESTED"):
            message = f"Can not dismiss a {review.state.lower()} pull request review"
            raise HubError(422, "Unprocessable Entity", errors=[message])
        review.state = "DISMISSED"
        self.record(review.issue, "review_dismissed", by)
        self.announce_review(review, "dismissed", by)
        return review

    @locked
    def delete_review(self, review: Review) -> None:
        """Delete a pending review with its comments.

        Raises:
            HubError: 422 when it is submitted.
        """
        if review.state != "PENDING":
            raise HubError(422, "Unprocessable Entity", errors=["Can not delete a non-pending pull request review"])
        for comment in comments_of(review):
            self._drop(comment)
        pull_of(review.issue).reviews.remove(review)
        del self.nodes[review.node_id]

    @locked
    def edit_review_comment(self, comment: ReviewComment, by: User, body: str) -> ReviewComment:
        """Change the text of a comment on a line."""
        check_body(body)
        old, comment.body, comment.updated_at = comment.body, body, self.now()
        if old != body:
            self.announce_line(comment, "edited", by, {"changes": {"body": {"from": old}}})
        return comment

    @locked
    def delete_review_comment(self, comment: ReviewComment, by: User) -> None:
        """Delete a comment on a line; a thread without comments is no more."""
        self._drop(comment)
        self.announce_line(comment, "deleted", by)

    @locked
    def resolve_thread(self, thread: Thread, by: User) -> None:
        """Resolve a thread; resolving a resolved one does nothing."""
        if thread.resolved_by is None:
            thread.resolved_by = by
            self._announce_thread(thread, "resolved", by)

    @locked
    def unresolve_thread(self, thread: Thread, by: User) -> None:
        """Open a resolved thread again."""
        if thread.resolved_by is not None:
            thread.resolved_by = None
            self._announce_thread(thread, "unresolved", by)

    def _drop(self, comment: ReviewComment) -> None:
        thread = comment.thread
        thread.comments.remove(comment)
        del self.nodes[comment.node_id]
        if not thread.comments:
            pull_of(thread.issue).threads.remove(thread)
            del self.nodes[thread.node_id]

    def _announce_thread(self, thread: Thread, action: str, by: User) -> None:
        comments = [review_comment_json(self, comment) for comment in thread.shown_to(None)]
        payload: Json = {
            "action": action,
            "thread": {"node_id": thread.node_id, "comments": comments},
            "pull_request": pull_simple_json(self, thread.issue),
        }
        self.emit(thread.issue.repository, "pull_request_review_thread", by, payload)
