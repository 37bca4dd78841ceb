"""The things a GitHub holds: plain records, changed only by the methods of `state/`."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Literal

Role = Literal["admin", "maintain", "write", "triage", "read", "none"]
"""What a person may do in a repository, as `role_name` of the REST API."""

ROLES: tuple[Role, ...] = ("none", "read", "triage", "write", "maintain", "admin")
"""Weakest first."""

ReviewState = Literal["APPROVED", "CHANGES_REQUESTED", "COMMENTED", "DISMISSED", "PENDING"]
TokenKind = Literal["installation", "person", "job"]


class Record:
    """Base of all records: compared by identity, shown by the fields that name it."""

    __slots__ = ()

    def __repr__(self) -> str:
        names = ("id", "login", "number", "name", "slug", "kind", "event")
        shown = (f"{name}={getattr(self, name)!r}" for name in names if name in type(self).__slots__)
        return f"{type(self).__name__}({', '.join(shown)})"


@dataclass(slots=True, eq=False, repr=False)
class User(Record):
    """A person, an organisation or the `[bot]` account of an App."""

    id: int
    node_id: str
    login: str
    created_at: datetime
    type: Literal["User", "Bot", "Organization"] = "User"
    name: str | None = None
    email: str | None = None
    deleted: bool = False
    """The account is no more: what it said is shown as `ghost`'s."""


@dataclass(slots=True, eq=False, repr=False)
class Label(Record):
    """A label of one repository."""

    id: int
    node_id: str
    name: str
    color: str = "ededed"
    description: str | None = None


@dataclass(slots=True, eq=False, repr=False)
class Reaction(Record):
    """One person's reaction to an issue or comment."""

    id: int
    node_id: str
    user: User
    content: str
    created_at: datetime


@dataclass(slots=True, eq=False, repr=False)
class Comment(Record):
    """A comment in the conversation of an issue or pull request."""

    id: int
    node_id: str
    issue: Issue
    user: User
    body: str
    created_at: datetime
    updated_at: datetime
    reactions: list[Reaction] = field(default_factory=list)
    minimized_reason: str | None = None
    """`outdated`, `resolved`, ... once minimised; None while shown."""


@dataclass(slots=True, eq=False, repr=False)
class TimelineEvent(Record):
    """One event of an issue's history; comments and reviews appear by reference."""

    id: int
    node_id: str
    event: str
    actor: User
    created_at: datetime
    label: Label | None = None
    rename: tuple[str, str] | None = None
    comment: Comment | None = None
    review: Review | None = None
    reviewer: User | None = None
    commit_id: str | None = None


@dataclass(slots=True, eq=False, repr=False)
class Review(Record):
    """A review of a pull request; nobody but its author sees a pending one."""

    id: int
    node_id: str
    issue: Issue
    user: User
    body: str
    state: ReviewState
    commit_id: str
    submitted_at: datetime | None = None
    """None while pending."""

    def shown_to(self, user: User | None) -> bool:
        """Tell whether somebody may see it; None is anybody."""
        return self.state != "PENDING" or self.user is user


@dataclass(slots=True, eq=False, repr=False)
class ReviewComment(Record):
    """A comment on a line of a pull request's diff."""

    id: int
    node_id: str
    thread: Thread
    review: Review
    user: User
    body: str
    created_at: datetime
    updated_at: datetime
    commit_id: str
    diff_hunk: str
    in_reply_to: int | None = None
    reactions: list[Reaction] = field(default_factory=list)
    minimized_reason: str | None = None


@dataclass(slots=True, eq=False, repr=False)
class Thread(Record):
    """A review thread: the comments on one place of the diff, and whether it is resolved."""

    id: int
    node_id: str
    issue: Issue
    path: str
    line: int
    side: Literal["LEFT", "RIGHT"] = "RIGHT"
    start_line: int | None = None
    position: int = 1
    comments: list[ReviewComment] = field(default_factory=list)
    resolved_by: User | None = None
    outdated: bool = False

    @property
    def is_resolved(self) -> bool:
        """Whether somebody resolved it."""
        return self.resolved_by is not None

    def shown_to(self, user: User | None) -> list[ReviewComment]:
        """Return the comments that somebody may see, oldest first; None is anybody."""
        return [comment for comment in self.comments if comment.review.shown_to(user)]


@dataclass(slots=True, eq=False, repr=False)
class Pull(Record):
    """What makes an issue a pull request."""

    id: int
    node_id: str
    head_repository: Repository
    head_ref: str
    head_sha: str
    base_ref: str
    base_sha: str
    draft: bool = False
    merged_at: datetime | None = None
    merged_by: User | None = None
    merge_commit_sha: str | None = None
    auto_merge_by: User | None = None
    requested_reviewers: list[User] = field(default_factory=list)
    reviews: list[Review] = field(default_factory=list)
    threads: list[Thread] = field(default_factory=list)

    def review_comments(self) -> list[ReviewComment]:
        """Return all submitted line comments, oldest first."""
        return sorted((c for t in self.threads for c in t.shown_to(None)), key=lambda c: c.id)


@dataclass(slots=True, eq=False, repr=False)
class Issue(Record):
    """An issue, or a pull request when `pull` is set."""

    id: int
    node_id: str
    number: int
    repository: Repository
    user: User
    title: str
    body: str | None
    created_at: datetime
    updated_at: datetime
    state: Literal["open", "closed"] = "open"
    state_reason: str | None = None
    closed_at: datetime | None = None
    closed_by: User | None = None
    locked: bool = False
    labels: list[Label] = field(default_factory=list)
    assignees: list[User] = field(default_factory=list)
    comments: list[Comment] = field(default_factory=list)
    timeline: list[TimelineEvent] = field(default_factory=list)
    reactions: list[Reaction] = field(default_factory=list)
    pull: Pull | None = None


@dataclass(slots=True, eq=False, repr=False)
class CheckRun(Record):
    """A check run of an App on a commit."""

    id: int
    node_id: str
    repository: Repository
    app: App
    name: str
    head_sha: str
    started_at: datetime
    status: str = "queued"
    conclusion: str | None = None
    completed_at: datetime | None = None
    external_id: str = ""
    details_url: str | None = None
    title: str | None = None
    summary: str | None = None
    text: str | None = None
    annotations: list[dict[str, object]] = field(default_factory=list)
    workflow_run: WorkflowRun | None = None
    """The run whose job this is; None for a check of another App than `github-actions`."""
    log: bytes | None = None
    """What the job printed, as GitHub keeps it; None until it has ended, and once it is deleted."""
    log_deleted: bool = False


@dataclass(slots=True, eq=False, repr=False)
class WorkflowRun(Record):
    """One run of a workflow of GitHub Actions; its check runs are its jobs."""

    id: int
    node_id: str
    repository: Repository
    name: str
    path: str
    number: int
    event: str
    head_sha: str
    head_branch: str | None
    actor: User
    suite_id: int
    created_at: datetime
    updated_at: datetime
    jobs: list[CheckRun] = field(default_factory=list)


@dataclass(slots=True, eq=False, repr=False)
class CommitStatus(Record):
    """One commit status; the newest of a context counts."""

    id: int
    node_id: str
    sha: str
    state: str
    context: str
    creator: User
    created_at: datetime
    description: str | None = None
    target_url: str | None = None


@dataclass(slots=True, eq=False, repr=False)
class Repository(Record):
    """A repository; its refs and commits live only in the bare git repository at `path`."""

    id: int
    node_id: str
    owner: User
    name: str
    path: Path
    created_at: datetime
    pushed_at: datetime
    private: bool = False
    drafts: bool = True
    """Whether its plan has draft pull requests."""
    default_branch: str = "main"
    description: str | None = None
    parent: Repository | None = None
    last_number: int = 0
    roles: dict[int, Role] = field(default_factory=dict)
    labels: dict[str, Label] = field(default_factory=dict)
    issues: dict[int, Issue] = field(default_factory=dict)
    check_runs: list[CheckRun] = field(default_factory=list)
    statuses: list[CommitStatus] = field(default_factory=list)
    workflow_runs: list[WorkflowRun] = field(default_factory=list)
    announced: dict[str, str] = field(default_factory=dict)
    """Full ref names and ids as the last events told them."""
    dispatches: list[tuple[str, dict[str, object]]] = field(default_factory=list)

    @property
    def full_name(self) -> str:
        """`owner/name`."""
        return f"{self.owner.login}/{self.name}"


@dataclass(slots=True, eq=False, repr=False)
class App(Record):
    """A GitHub App and its one webhook."""

    id: int
    node_id: str
    slug: str
    name: str
    client_id: str
    client_secret: str
    owner: User
    bot: User
    permissions: dict[str, str]
    events: list[str]
    private_key: str
    """PEM, as the App's owner downloads it."""
    created_at: datetime
    hook_id: int
    webhook_url: str | None = None
    webhook_secret: str | None = None
    external_url: str = "https://example.com"


@dataclass(slots=True, eq=False, repr=False)
class Installation(Record):
    """An App installed on an account, for all or for some of its repositories."""

    id: int
    app: App
    account: User
    repository_ids: set[int]
    permissions: dict[str, str]
    created_at: datetime
    selection: Literal["all", "selected"] = "selected"
    suspended_at: datetime | None = None
    suspended_by: User | None = None
    deleted: bool = False


@dataclass(slots=True, eq=False, repr=False)
class Token(Record):
    """A credential: whom it lets act, where, how far and until when."""

    value: str
    kind: TokenKind
    user: User
    created_at: datetime
    expires_at: datetime | None = None
    installation: Installation | None = None
    permissions: dict[str, str] = field(default_factory=dict)
    repository_ids: frozenset[int] | None = None
    """None: every repository of the installation or person."""
    revoked: bool = False


@dataclass(slots=True, eq=False, repr=False)
class Delivery(Record):
    """One webhook delivery, sent or still to be sent."""

    id: int
    guid: str
    app: App
    event: str
    action: str | None
    body: bytes
    created_at: datetime
    delivered_at: datetime
    installation_id: int | None = None
    repository_id: int | None = None
    redelivery: bool = False
    duration: float = 0.0
    status: str = "pending"
    status_code: int = 0
    request_headers: dict[str, str] = field(default_factory=dict)
    response_headers: dict[str, str] = field(default_factory=dict)
    response_body: str = ""
