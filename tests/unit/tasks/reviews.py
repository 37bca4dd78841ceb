"""Reviews of a pull request in memory."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from bot.domain.refs import Actor, RepositoryRef
from bot.domain.trigger import ReviewState
from bot.errors import NotFound
from bot.github import markers
from bot.github.reviews import Reaction, Review, ReviewComment, ReviewThread, Side

BEGUN = datetime(2026, 11, 30, 12, tzinfo=UTC)


@dataclass
class MemoryReviews:
    """The reviews and threads of all pull requests, by number."""

    us: Actor
    call: Callable[[str], None]
    """Told each call's name; may raise."""
    threads: dict[int, list[ReviewThread]] = field(default_factory=dict)
    given: dict[int, list[Review]] = field(default_factory=dict)
    asked: dict[int, list[str]] = field(default_factory=dict)
    """Logins."""
    reactions: list[tuple[int, Reaction]] = field(default_factory=list)
    ready: set[int] = field(default_factory=set)
    now: datetime = BEGUN
    _next: int = 5000

    def _id(self) -> int:
        self._next += 1
        return self._next

    def review(
        self, number: int, author: Actor | None, state: ReviewState, body: str = "", *, commit: str = "c0ffee"
    ) -> Review:
        """Let somebody review."""
        made_id, ours = self._id(), author == self.us
        made = Review(made_id, f"PRR_{made_id}", author, ours, state, body, commit, self.now, 0)
        self.given.setdefault(number, []).append(made)
        return made

    def begin(self, number: int, review: Review, path: str, line: int | None, body: str) -> ReviewThread:
        """Let the author of a review say something on a line."""
        made = ReviewThread(
            f"PRRT_{self._id()}",
            is_resolved=False,
            is_outdated=line is None,
            path=path,
            line=line,
            start_line=None,
            original_line=line,
            side="RIGHT",
            comments=(self._comment(review, body),),
        )
        self.threads.setdefault(number, []).append(made)
        self._count(number, review)
        return made

    def change(self, number: int, thread_id: str, **changes: object) -> ReviewThread:
        """Replace fields of a thread."""
        threads = self.threads.get(number, [])
        for index, thread in enumerate(threads):
            if thread.id == thread_id:
                threads[index] = replace(thread, **changes)  # type: ignore[arg-type]  # as the caller wants it
                return threads[index]
        raise NotFound(thread_id)

    async def review_threads(self, repository: RepositoryRef, number: int) -> Sequence[ReviewThread]:
        """List the threads."""
        self.call("review_threads")
        return list(self.threads.get(number, []))

    async def reviews(self, repository: RepositoryRef, number: int) -> Sequence[Review]:
        """List the reviews."""
        self.call("reviews")
        return list(self.given.get(number, []))

    async def reply_in_review(
        self, repository: RepositoryRef, number: int, commit: str, body: str, replies: Sequence[tuple[str, str]]
    ) -> int:
        """Answer in threads, once for each mark."""
        self.call("reply_in_review")
        mark = markers.last(body)
        if mark is None:
            raise ValueError(body)
        for made in self.given.get(number, []):
            if made.is_ours and mark in made.body:
                return made.id
        made = self.review(number, self.us, "COMMENTED", body, commit=commit)
        for thread_id, text in replies:
            known = next((one for one in self.threads.get(number, []) if one.id == thread_id), None)
            if known is not None:
                self.change(number, thread_id, comments=(*known.comments, self._comment(made, text)))
                self._count(number, made)
        return made.id

    async def resolve_thread(self, repository: RepositoryRef, thread_id: str) -> None:
        """Resolve a thread."""
        self.call("resolve_thread")
        for number in list(self.threads):
            if any(thread.id == thread_id for thread in self.threads[number]):
                self.change(number, thread_id, is_resolved=True)
                return
        raise NotFound(thread_id)

    async def ready_for_review(self, repository: RepositoryRef, number: int) -> None:
        """Note it."""
        self.call("ready_for_review")
        self.ready.add(number)

    async def request_review(self, repository: RepositoryRef, number: int, logins: Sequence[str]) -> None:
        """Note whom."""
        self.call("request_review")
        self.asked.setdefault(number, []).extend(logins)

    async def review_comment(
        self, repository: RepositoryRef, number: int, commit: str, *, path: str, line: int, side: Side, body: str
    ) -> int:
        """Say something on a line."""
        self.call("review_comment")
        made = self.review(number, self.us, "COMMENTED", "", commit=commit)
        return self.begin(number, made, path, line, body).comments[0].id

    async def edit_review_comment(self, repository: RepositoryRef, comment_id: int, body: str) -> None:
        """Replace a text."""
        self.call("edit_review_comment")
        for number, threads in self.threads.items():
            for thread in list(threads):
                if any(comment.id == comment_id for comment in thread.comments):
                    changed = (
                        replace(one, body=body, edited_at=self.now) if one.id == comment_id else one
                        for one in thread.comments
                    )
                    self.change(number, thread.id, comments=tuple(changed))
                    return
        raise NotFound(str(comment_id))

    async def react_on_line(self, repository: RepositoryRef, comment_id: int, content: Reaction) -> None:
        """Note it."""
        self.call("react_on_line")
        self.reactions.append((comment_id, content))

    def _comment(self, review: Review, body: str) -> ReviewComment:
        made_id = self._id()
        return ReviewComment(
            made_id,
            f"PRRC_{made_id}",
            review.author,
            is_ours=review.is_ours,
            body=body,
            created_at=self.now,
            edited_at=None,
            diff_hunk="@@ -1 +1 @@\n-old\n+new",
            review_id=review.id,
        )

    def _count(self, number: int, review: Review) -> None:
        reviews = self.given[number]
        reviews[:] = [replace(one, comments=one.comments + (one.id == review.id)) for one in reviews]
