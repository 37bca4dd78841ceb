"""Reviews, comments on lines and their threads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from bot.testing.hub.core import locked
from bot.testing.hub.diffs import Place, locate
from bot.testing.hub.errors import HubError, not_found
from bot.testing.hub.records import Issue, Repository, Review, ReviewComment, ReviewState, Thread, User
from bot.testing.hub.shapes.common import Json
from bot.testing.hub.shapes.issues import review_json
from bot.testing.hub.shapes.pulls import pull_of, pull_simple_json, review_comment_json
from bot.testing.hub.state.comments import check_body
from bot.testing.hub.state.pushes import Pushes


@dataclass(frozen=True, slots=True)
class LineComment:
    """A comment to make on a line; `line` is a line number of the file on that side of the diff."""

    path: str
    line: int
    body: str
    side: Literal["LEFT", "RIGHT"] = "RIGHT"
    start_line: int | None = None


class Reviews(Pushes):
    """Reviews of pull requests."""

    @locked
    def review(
        self,
        issue: Issue,
        by: User,
        state: ReviewState = "COMMENTED",
        body: str = "",
        comments: Sequence[LineComment] = (),
    ) -> Review:
        """Submit a review.

        Raises:
            HubError: 422 for one's own pull request (unless COMMENTED), for nothing said, for a line outside the diff.
        """
        pull = pull_of(issue)
        _check_review(issue, by, state, body, comments)
        places = [self._place(issue, comment) for comment in comments]
        number, node = self.new_ids("PRR")
        review = Review(number, node, by, body, state, pull.head_sha, self.now())
        pull.reviews.append(review)
        self.nodes[node] = review
        if by in pull.requested_reviewers:
            pull.requested_reviewers.remove(by)
        self.record(issue, "reviewed", by, review=review)
        self._announce_review(issue, review)
        for comment, place in zip(comments, places, strict=True):
            self._start_thread(issue, review, comment, place)
        return review

    @locked
    def reply(self, thread: Thread, by: User, body: str) -> ReviewComment:
        """Answer in a review thread; GitHub wraps each answer into a review of its own."""
        check_body(body)
        issue = thread.issue
        number, node = self.new_ids("PRR")
        review = Review(number, node, by, "", "COMMENTED", pull_of(issue).head_sha, self.now())
        pull_of(issue).reviews.append(review)
        self.nodes[node] = review
        first = thread.comments[0]
        return self._append(thread, review, body, hunk=first.diff_hunk, in_reply_to=first.id)

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

    @locked
    def find_review(self, issue: Issue, number: int) -> Review:
        """Return a review by id.

        Raises:
            HubError: 404 when the pull request has none of that id.
        """
        for review in pull_of(issue).reviews:
            if review.id == number:
                return review
        raise not_found()

    @locked
    def find_review_comment(self, repository: Repository, number: int) -> ReviewComment:
        """Return a line comment by id.

        Raises:
            HubError: 404 when the repository has none of that id.
        """
        for issue in repository.issues.values():
            for comment in issue.pull.review_comments() if issue.pull else ():
                if comment.id == number:
                    return comment
        raise not_found()

    def _place(self, issue: Issue, comment: LineComment) -> Place:
        pull, git = pull_of(issue), self.git(issue.repository)
        base = git.merge_base(pull.base_sha, pull.head_sha) or pull.base_sha
        patch = next((c.patch for c in git.diff(base, pull.head_sha) if c.path == comment.path), None)
        if patch is None:
            raise HubError(422, "Unprocessable Entity", errors=["Path could not be resolved"])
        place = locate(patch, comment.line, comment.side)
        if place is None:
            message = "Pull request review thread line must be part of the diff"
            raise HubError(422, "Unprocessable Entity", errors=[message])
        return place

    def _start_thread(self, issue: Issue, review: Review, comment: LineComment, place: Place) -> None:
        number, node = self.new_ids("PRRT")
        thread = Thread(
            number, node, issue, comment.path, comment.line, comment.side, comment.start_line, place.position
        )
        pull_of(issue).threads.append(thread)
        self.nodes[node] = thread
        self._append(thread, review, comment.body, hunk=place.hunk)

    def _append(
        self, thread: Thread, review: Review, body: str, *, hunk: str, in_reply_to: int | None = None
    ) -> ReviewComment:
        number, node = self.new_ids("PRRC")
        now = self.now()
        comment = ReviewComment(
            number, node, thread, review, review.user, body, now, now, review.commit_id, hunk, in_reply_to
        )
        thread.comments.append(comment)
        self.nodes[node] = comment
        self.touch(thread.issue)
        payload: Json = {
            "action": "created",
            "comment": review_comment_json(self, comment),
            "pull_request": pull_simple_json(self, thread.issue),
        }
        self.emit(thread.issue.repository, "pull_request_review_comment", review.user, payload)
        return comment

    def _announce_review(self, issue: Issue, review: Review) -> None:
        payload: Json = {
            "action": "submitted",
            "review": {**review_json(self, issue, review), "state": review.state.lower()},
            "pull_request": pull_simple_json(self, issue),
        }
        self.emit(issue.repository, "pull_request_review", review.user, payload)

    def _announce_thread(self, thread: Thread, action: str, by: User) -> None:
        comments = [review_comment_json(self, comment) for comment in thread.comments]
        payload: Json = {
            "action": action,
            "thread": {"node_id": thread.node_id, "comments": comments},
            "pull_request": pull_simple_json(self, thread.issue),
        }
        self.emit(thread.issue.repository, "pull_request_review_thread", by, payload)


def _check_review(issue: Issue, by: User, state: ReviewState, body: str, comments: Sequence[LineComment]) -> None:
    if by is issue.user and state in ("APPROVED", "CHANGES_REQUESTED"):
        verb = "approve" if state == "APPROVED" else "request changes on"
        message = f"Can not {verb} your own pull request"
        raise HubError(422, "Unprocessable Entity", errors=[f"Review {message}"])
    if not body.strip() and not comments and state != "APPROVED":
        raise HubError(422, "Unprocessable Entity", errors=["Review body can not be blank"])
