"""Reviews, comments on lines and their threads: how they are made and submitted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from bot.testing.hub.core import locked
from bot.testing.hub.diffs import Place, locate
from bot.testing.hub.errors import HubError, invalid, not_found
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
        *,
        commit: str | None = None,
    ) -> Review:
        """Submit a review; `commit` defaults to the head.

        Raises:
            HubError: 422 for one's own pull request (unless COMMENTED), for nothing said, for a line outside the diff,
                a commit that is not in the pull request, and while one has a pending review there.
        """
        _check_review(issue, by, state, said=bool(body.strip() or comments))
        return self.submit_review(self.start_review(issue, by, body, comments, commit=commit), state)

    @locked
    def start_review(
        self,
        issue: Issue,
        by: User,
        body: str = "",
        comments: Sequence[LineComment] = (),
        *,
        commit: str | None = None,
    ) -> Review:
        """Begin a pending review, which is its author's alone; nobody hears of it.

        Raises:
            HubError: 422 as above.
        """
        pull, git = pull_of(issue), self.git(issue.repository)
        if self.pending_review(issue, by) is not None:
            message = "user_id can only have one pending review per pull request"
            raise invalid("PullRequestReview", "user_id", message=message)
        commit = commit or pull.head_sha
        if git.resolve(commit) != commit or not git.is_ancestor(commit, pull.head_sha):
            raise HubError(422, "Unprocessable Entity", errors=["commit_id is not part of the pull request"])
        places = [self._place(issue, comment, commit) for comment in comments]
        review = self._new_review(issue, by, body, commit)
        for comment, place in zip(comments, places, strict=True):
            self._start_thread(issue, review, comment, place)
        return review

    @locked
    def submit_review(self, review: Review, state: ReviewState, body: str | None = None) -> Review:
        """Submit a pending review; `body` replaces its text.

        Raises:
            HubError: 422 when it is submitted already, for one's own pull request (unless COMMENTED), for nothing said.
        """
        issue, by = review.issue, review.user
        if review.state != "PENDING":
            raise HubError(422, "Unprocessable Entity", errors=["Review has already been submitted."])
        comments = comments_of(review)
        text = review.body if body is None else body
        _check_review(issue, by, state, said=bool(text.strip() or comments))
        review.body, review.state, review.submitted_at = text, state, self.now()
        pull = pull_of(issue)
        if by in pull.requested_reviewers:
            pull.requested_reviewers.remove(by)
        self.record(issue, "reviewed", by, review=review)
        self.announce_review(review, "submitted", by)
        for comment in comments:
            self._publish(comment)
        return review

    @locked
    def comment_on_line(
        self, issue: Issue, by: User, comment: LineComment, *, commit: str | None = None
    ) -> ReviewComment:
        """Comment on one line at once; GitHub wraps such a comment into a review of its own.

        Raises:
            HubError: 422 as of a review, and for an empty text.
        """
        check_body(comment.body)
        return comments_of(self.review(issue, by, "COMMENTED", "", [comment], commit=commit))[0]

    @locked
    def reply(self, thread: Thread, by: User, body: str, review: Review | None = None) -> ReviewComment:
        """Answer in a review thread, within a pending review of one's own if any is given.

        Without one, GitHub wraps each answer into a review of its own.

        Raises:
            HubError: 422 for an empty text, for a review that is not pending, and, without one, while there is one.
        """
        check_body(body)
        issue, first = thread.issue, thread.comments[0]
        if review is not None:
            if review.state != "PENDING" or review.issue is not issue or review.user is not by:
                raise HubError(422, "Unprocessable Entity", errors=["Review has already been submitted."])
            return self._append(thread, review, body, hunk=first.diff_hunk, in_reply_to=first.id)
        if self.pending_review(issue, by) is not None:
            message = "user_id can only have one pending review per pull request"
            raise invalid("PullRequestReview", "user_id", message=message)
        alone = self._new_review(issue, by, "", pull_of(issue).head_sha)
        comment = self._append(thread, alone, body, hunk=first.diff_hunk, in_reply_to=first.id)
        alone.state, alone.submitted_at = "COMMENTED", self.now()
        self.announce_review(alone, "submitted", by)
        self._publish(comment)
        return comment

    @locked
    def pending_review(self, issue: Issue, by: User) -> Review | None:
        """Return the pending review of a person; there is at most one for each pull request."""
        reviews = pull_of(issue).reviews
        return next((review for review in reviews if review.state == "PENDING" and review.user is by), None)

    @locked
    def find_review(self, issue: Issue, number: int, user: User | None = None) -> Review:
        """Return a review by id.

        Raises:
            HubError: 404 when the pull request has none of that id, or it is pending and somebody else's.
        """
        for review in pull_of(issue).reviews:
            if review.id == number and review.shown_to(user):
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

    def announce_review(self, review: Review, action: str, by: User, fields: Json | None = None) -> None:
        """Send `pull_request_review`."""
        shown = {"state": review.state.lower(), "body": review.body or None}
        payload: Json = {
            "action": action,
            "review": {**review_json(self, review.issue, review), **shown},
            "pull_request": pull_simple_json(self, review.issue),
            **(fields or {}),
        }
        self.emit(review.issue.repository, "pull_request_review", by, payload)

    def announce_line(self, comment: ReviewComment, action: str, by: User, fields: Json | None = None) -> None:
        """Send `pull_request_review_comment`."""
        issue = comment.thread.issue
        payload: Json = {
            "action": action,
            "comment": review_comment_json(self, comment),
            "pull_request": pull_simple_json(self, issue),
            **(fields or {}),
        }
        self.emit(issue.repository, "pull_request_review_comment", by, payload)

    def _new_review(self, issue: Issue, by: User, body: str, commit: str) -> Review:
        number, node = self.new_ids("PRR")
        review = Review(number, node, issue, by, body, "PENDING", commit)
        pull_of(issue).reviews.append(review)
        self.nodes[node] = review
        return review

    def _place(self, issue: Issue, comment: LineComment, commit: str) -> Place:
        pull, git = pull_of(issue), self.git(issue.repository)
        base = git.merge_base(pull.base_sha, commit) or pull.base_sha
        patch = next((c.patch for c in git.diff(base, commit) if c.path == comment.path), None)
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
        pull = pull_of(issue)
        since = self.git(issue.repository).diff(review.commit_id, pull.head_sha)
        thread.outdated = comment.path in {change.path for change in since}
        pull.threads.append(thread)
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
        return comment

    def _publish(self, comment: ReviewComment) -> None:
        self.touch(comment.thread.issue)
        self.announce_line(comment, "created", comment.user)


def comments_of(review: Review) -> list[ReviewComment]:
    """Return the comments of a review, oldest first."""
    threads = pull_of(review.issue).threads
    return sorted((c for t in threads for c in t.comments if c.review is review), key=lambda c: c.id)


def _check_review(issue: Issue, by: User, state: ReviewState, *, said: bool) -> None:
    if by is issue.user and state in ("APPROVED", "CHANGES_REQUESTED"):
        verb = "approve" if state == "APPROVED" else "request changes on"
        message = f"Can not {verb} your own pull request"
        raise HubError(422, "Unprocessable Entity", errors=[f"Review {message}"])
    if not said and state != "APPROVED":
        raise HubError(422, "Unprocessable Entity", errors=["Review body can not be blank"])
