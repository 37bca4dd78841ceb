"""What we read of GraphQL's answers about reviews, in our own types."""

from datetime import datetime

import msgspec

from bot.domain.refs import Actor
from bot.domain.trigger import ReviewState
from bot.errors import GitHubError
from bot.github.reviews import Review, ReviewComment, ReviewThread, Side

AUTHOR = "author { __typename login ... on User { databaseId } ... on Bot { databaseId } }"
COMMENT = f"""
  id fullDatabaseId {AUTHOR} viewerDidAuthor body createdAt lastEditedAt diffHunk state
  pullRequestReview {{ fullDatabaseId }}
"""
"""The fields of `CommentNode`; ids as `fullDatabaseId`, since those of comments no longer fit the older field."""
THREAD = "id isResolved isOutdated path line startLine originalLine diffSide"
"""The fields of `ThreadNode`, but for its comments."""
REVIEW = f"""
  id fullDatabaseId {AUTHOR} viewerDidAuthor state body commit {{ oid }} submittedAt
  comments(first: 1) {{ totalCount }}
"""
"""The fields of `ReviewNode`."""


class Author(msgspec.Struct, frozen=True, rename="camel"):
    """An account; other kinds than people and bots have no id here."""

    login: str | None = None
    kind: str | None = msgspec.field(default=None, name="__typename")
    database_id: int | None = None


class PageInfo(msgspec.Struct, frozen=True, rename="camel"):
    """Whether a page follows, and where it begins."""

    has_next_page: bool = False
    end_cursor: str | None = None

    @property
    def next(self) -> str | None:
        """What to ask for the next page after; None where there is none."""
        return self.end_cursor if self.has_next_page else None


class Commit(msgspec.Struct, frozen=True):
    """A commit."""

    oid: str | None = None


class Named(msgspec.Struct, frozen=True, rename="camel"):
    """A review, named only."""

    full_database_id: str | None = None


class CommentNode(msgspec.Struct, frozen=True, rename="camel"):
    """A comment on a line."""

    id: str
    full_database_id: str
    created_at: datetime
    author: Author | None = None
    viewer_did_author: bool = False
    body: str = ""
    last_edited_at: datetime | None = None
    diff_hunk: str = ""
    state: str = "SUBMITTED"
    pull_request_review: Named | None = None


class CommentPage(msgspec.Struct, frozen=True, rename="camel"):
    """A page of comments, or their number alone."""

    nodes: tuple[CommentNode | None, ...] | None = None
    page_info: PageInfo = PageInfo()
    total_count: int = 0


class ThreadNode(msgspec.Struct, frozen=True, rename="camel"):
    """A thread."""

    id: str
    is_resolved: bool
    is_outdated: bool
    path: str
    diff_side: Side
    comments: CommentPage
    line: int | None = None
    start_line: int | None = None
    original_line: int | None = None


class ThreadPage(msgspec.Struct, frozen=True, rename="camel"):
    """A page of threads."""

    nodes: tuple[ThreadNode | None, ...] | None = None
    page_info: PageInfo = PageInfo()


class ReviewNode(msgspec.Struct, frozen=True, rename="camel"):
    """A review."""

    id: str
    full_database_id: str
    state: ReviewState
    author: Author | None = None
    viewer_did_author: bool = False
    body: str = ""
    commit: Commit | None = None
    submitted_at: datetime | None = None
    comments: CommentPage = CommentPage()


class ReviewPage(msgspec.Struct, frozen=True, rename="camel"):
    """A page of reviews."""

    nodes: tuple[ReviewNode | None, ...] | None = None
    page_info: PageInfo = PageInfo()


class Pull(msgspec.Struct, frozen=True, rename="camel"):
    """A pull request, as far as it was asked about."""

    id: str
    is_draft: bool = False
    review_threads: ThreadPage = ThreadPage()
    reviews: ReviewPage | None = None


class Holder(msgspec.Struct, frozen=True, rename="camel"):
    """What holds what was asked for: a repository, a node, or what a mutation gives back."""

    pull_request: Pull | None = None
    comments: CommentPage | None = None
    pull_request_review: ReviewNode | None = None


class Data(msgspec.Struct, frozen=True, rename="camel"):
    """The data of an answer."""

    repository: Holder | None = None
    node: Holder | None = None
    add_pull_request_review: Holder | None = None
    submit_pull_request_review: Holder | None = None


class Answer(msgspec.Struct, frozen=True):
    """An answer without errors."""

    data: Data | None = None


def to_actor(author: Author | None) -> Actor | None:
    """Name an account as REST does, which puts `[bot]` behind an App's; None where it was deleted."""
    if author is None or author.login is None or author.database_id is None:
        return None
    is_bot = author.kind == "Bot"
    return Actor(author.database_id, f"{author.login}[bot]" if is_bot else author.login, is_bot=is_bot)


def to_comment(node: CommentNode) -> ReviewComment:
    """Read a comment."""
    review = node.pull_request_review
    return ReviewComment(
        id=number(node.full_database_id),
        node_id=node.id,
        author=to_actor(node.author),
        is_ours=node.viewer_did_author,
        body=node.body,
        created_at=node.created_at,
        edited_at=node.last_edited_at,
        diff_hunk=node.diff_hunk,
        review_id=number(review.full_database_id) if review and review.full_database_id else None,
    )


def to_thread(node: ThreadNode, comments: list[CommentNode]) -> ReviewThread:
    """Read a thread with its comments."""
    return ReviewThread(
        id=node.id,
        is_resolved=node.is_resolved,
        is_outdated=node.is_outdated,
        path=node.path,
        line=node.line,
        start_line=node.start_line,
        original_line=node.original_line,
        side=node.diff_side,
        comments=tuple(map(to_comment, comments)),
    )


def to_review(node: ReviewNode) -> Review:
    """Read a review."""
    return Review(
        id=number(node.full_database_id),
        node_id=node.id,
        author=to_actor(node.author),
        is_ours=node.viewer_did_author,
        state=node.state,
        body=node.body,
        commit=node.commit.oid if node.commit else None,
        submitted_at=node.submitted_at,
        comments=node.comments.total_count,
    )


def number(text: str) -> int:
    """Read a number that GraphQL writes as text, since it may be longer than an `Int`."""
    if not (text.isascii() and text.isdecimal()):
        raise GitHubError(f"an id came that is no number: {text[:40]!r}")
    return int(text)
