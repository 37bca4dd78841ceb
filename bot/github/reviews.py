"""The seam to reviews of pull requests: what people say on lines, and what we answer there.

Nothing here approves, asks for changes, dismisses or merges, and nothing ever may.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from bot.domain.refs import Actor, RepositoryRef
from bot.domain.trigger import ReviewState

Reaction = Literal["eyes", "rocket", "confused", "+1"]
Side = Literal["LEFT", "RIGHT"]
"""LEFT is the file before the change, RIGHT after it."""


@dataclass(frozen=True, slots=True)
class ReviewComment:
    """One comment on a line."""

    id: int
    node_id: str
    author: Actor | None
    """None where the account was deleted."""
    is_ours: bool
    body: str
    created_at: datetime
    edited_at: datetime | None
    """When the text was last changed, by whomever."""
    diff_hunk: str
    """The hunk from its header down to the line, as of the comment."""
    review_id: int | None

    @property
    def is_bot(self) -> bool:
        """Whether GitHub says that a bot wrote it."""
        return self.author is not None and self.author.is_bot


@dataclass(frozen=True, slots=True)
class ReviewThread:
    """The comments on one place of the diff."""

    id: str
    """A node id."""
    is_resolved: bool
    is_outdated: bool
    path: str
    line: int | None
    """Of the file as it is now; None where the thread is outdated, and for a thread on a whole file."""
    start_line: int | None
    """The first of several lines."""
    original_line: int | None
    """Where it stood when the thread was begun."""
    side: Side
    comments: Sequence[ReviewComment]
    """Oldest first; never empty."""


@dataclass(frozen=True, slots=True)
class Review:
    """One review; a pending one is ours, since GitHub shows nobody else's."""

    id: int
    node_id: str
    author: Actor | None
    is_ours: bool
    state: ReviewState
    body: str
    commit: str | None
    """The head that was looked at; None where it is no more."""
    submitted_at: datetime | None
    """None while pending."""
    comments: int
    """How many on lines, answers in threads included; those that were deleted do not count."""


class Reviews(Protocol):
    """Reviews of pull requests as one installation sees them; raises what `GitHub` does.

    Each answer in a thread is a review to GitHub: one that stands alone is a review of one comment without words.
    """

    async def review_threads(self, repository: RepositoryRef, number: int) -> Sequence[ReviewThread]:
        """List all threads in the order in which they were begun, without what nobody submitted yet."""
        ...

    async def reviews(self, repository: RepositoryRef, number: int) -> Sequence[Review]:
        """List all reviews, oldest first."""
        ...

    async def reply_in_review(
        self, repository: RepositoryRef, number: int, commit: str, body: str, replies: Sequence[tuple[str, str]]
    ) -> int:
        """Answer in threads, all at once, as one review that only comments; returns the review's id.

        Made once, however often it is called: a review of ours with the same mark is returned as it is.

        Args:
            repository: where.
            number: of the pull request.
            commit: the full id of the commit that the answers are about; it has to be in the pull request.
            body: Markdown that ends with a mark of `markers`.
            replies: node ids of threads, and Markdown for each; a thread that was deleted meanwhile is passed over.

        Raises:
            ValueError: the body has no mark.
            Conflict: somebody else's pending review stands under our account, or GitHub takes one of the texts not;
                nothing was said then.
        """
        ...

    async def resolve_thread(self, repository: RepositoryRef, thread_id: str) -> None:
        """Resolve a thread by its node id; a resolved one stays so."""
        ...

    async def ready_for_review(self, repository: RepositoryRef, number: int) -> None:
        """Make a draft ready for review; what is no draft stays as it is."""
        ...

    async def request_review(self, repository: RepositoryRef, number: int, logins: Sequence[str]) -> None:
        """Ask people for a review.

        Raises:
            Conflict: one of them opened the pull request or does not work on the repository; nobody was asked then.
        """
        ...

    async def review_comment(  # noqa: PLR0913 - a place in a diff has this many sides
        self, repository: RepositoryRef, number: int, commit: str, *, path: str, line: int, side: Side, body: str
    ) -> int:
        """Comment on one line of the diff, never tried again by itself; returns the comment's id.

        Raises:
            Conflict: the line is not in the diff as of that commit.
        """
        ...

    async def edit_review_comment(self, repository: RepositoryRef, comment_id: int, body: str) -> None:
        """Replace the text of a comment of ours on a line."""
        ...

    async def react_on_line(self, repository: RepositoryRef, comment_id: int, content: Reaction) -> None:
        """Put a reaction on a comment on a line; there is at most one of a kind."""
        ...
