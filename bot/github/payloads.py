"""What we read of GitHub's JSON, in webhooks and answers; everything else is skipped unread.

No published schema accepts all of GitHub's own example payloads, so each field is optional that ever was missing or
null.
"""

from typing import TypeVar

import msgspec

from bot.domain.refs import Actor, RepositoryRef

T = TypeVar("T")


class BadPayload(ValueError):  # noqa: N818 - says what it is
    """Bytes that are no JSON of the shape that we read."""


class User(msgspec.Struct, frozen=True):
    """An account; `type` is `User`, `Bot`, `Organization` or `Mannequin`."""

    id: int | None = None
    login: str | None = None
    type: str | None = None


class Label(msgspec.Struct, frozen=True):
    """A label of a repository."""

    id: int | None = None
    name: str | None = None


class Repository(msgspec.Struct, frozen=True):
    """A repository."""

    id: int | None = None
    full_name: str | None = None
    default_branch: str | None = None
    private: bool | None = None


class Installation(msgspec.Struct, frozen=True):
    """An App installed on an account."""

    id: int | None = None


class App(msgspec.Struct, frozen=True):
    """A GitHub App."""

    id: int | None = None
    slug: str | None = None


class PullMark(msgspec.Struct, frozen=True):
    """Its presence on an issue says that the issue is a pull request."""

    html_url: str | None = None


class Issue(msgspec.Struct, frozen=True):
    """An issue, or the issue half of a pull request."""

    id: int | None = None
    number: int | None = None
    title: str | None = None
    body: str | None = None
    state: str | None = None
    user: User | None = None
    labels: tuple[Label | str, ...] | None = None
    pull_request: PullMark | None = None
    updated_at: str | None = None
    closed_at: str | None = None


class Branch(msgspec.Struct, frozen=True):
    """One side of a pull request; `repo` is null where the fork was deleted."""

    ref: str | None = None
    sha: str | None = None
    repo: Repository | None = None


class PullRequest(msgspec.Struct, frozen=True):
    """A pull request; lists leave `merged` out and have `merged_at`."""

    id: int | None = None
    number: int | None = None
    html_url: str | None = None
    title: str | None = None
    body: str | None = None
    state: str | None = None
    draft: bool | None = None
    merged: bool | None = None
    merged_at: str | None = None
    user: User | None = None
    head: Branch | None = None
    base: Branch | None = None
    updated_at: str | None = None
    closed_at: str | None = None


class Comment(msgspec.Struct, frozen=True):
    """A comment of a conversation, or one on a line, which has the latter fields too."""

    id: int | None = None
    body: str | None = None
    html_url: str | None = None
    user: User | None = None
    created_at: str | None = None
    updated_at: str | None = None
    performed_via_github_app: App | None = None
    pull_request_review_id: int | None = None
    in_reply_to_id: int | None = None
    path: str | None = None
    line: int | None = None


class Review(msgspec.Struct, frozen=True):
    """A review; webhooks have its state in lower case."""

    id: int | None = None
    state: str | None = None
    body: str | None = None
    commit_id: str | None = None
    submitted_at: str | None = None
    user: User | None = None
    performed_via_github_app: App | None = None


class Change(msgspec.Struct, frozen=True):
    """What a text was before an edit."""

    before: str | None = msgspec.field(default=None, name="from")


class Changes(msgspec.Struct, frozen=True):
    """What an edit changed, as far as we read it."""

    body: Change | None = None


class CheckSuite(msgspec.Struct, frozen=True):
    """What an App made of one commit; of GitHub Actions each workflow's run has its own, and only webhooks have all."""

    id: int | None = None
    head_branch: str | None = None
    head_sha: str | None = None
    updated_at: str | None = None
    app: App | None = None
    pull_requests: tuple[PullRequest, ...] | None = None


class WorkflowRun(msgspec.Struct, frozen=True):
    """A run of a workflow of GitHub Actions; run again it keeps its id."""

    id: int | None = None
    head_branch: str | None = None
    head_sha: str | None = None
    updated_at: str | None = None
    run_attempt: int | None = None
    pull_requests: tuple[PullRequest, ...] | None = None


class NamedBranch(msgspec.Struct, frozen=True):
    """A branch on which a commit stands."""

    name: str | None = None


class Payload(msgspec.Struct, frozen=True):
    """One webhook body, as far as we read it; the last four are those of a commit status."""

    action: str | None = None
    sender: User | None = None
    repository: Repository | None = None
    installation: Installation | None = None
    issue: Issue | None = None
    pull_request: PullRequest | None = None
    comment: Comment | None = None
    review: Review | None = None
    changes: Changes | None = None
    label: Label | None = None
    before: str | None = None
    check_suite: CheckSuite | None = None
    workflow_run: WorkflowRun | None = None
    id: int | None = None
    sha: str | None = None
    state: str | None = None
    branches: tuple[NamedBranch, ...] | None = None


class CheckOutput(msgspec.Struct, frozen=True):
    """What a check run says of itself."""

    title: str | None = None


class CheckRun(msgspec.Struct, frozen=True):
    """A check run."""

    id: int | None = None
    name: str | None = None
    head_sha: str | None = None
    external_id: str | None = None
    status: str | None = None
    conclusion: str | None = None
    html_url: str | None = None
    details_url: str | None = None
    output: CheckOutput | None = None
    app: App | None = None
    check_suite: CheckSuite | None = None


class CheckRuns(msgspec.Struct, frozen=True):
    """A page of the check runs of a commit."""

    check_runs: tuple[CheckRun, ...] | None = None


class Status(msgspec.Struct, frozen=True):
    """A commit status."""

    context: str | None = None
    state: str | None = None
    description: str | None = None
    target_url: str | None = None


class CombinedStatus(msgspec.Struct, frozen=True):
    """The newest status of each context of a commit."""

    sha: str | None = None
    statuses: tuple[Status, ...] | None = None


class AccessToken(msgspec.Struct, frozen=True):
    """A minted installation token; `expires_at` comes with or without milliseconds."""

    token: str
    expires_at: str


class Role(msgspec.Struct, frozen=True):
    """A person's permission; `permission` knows four levels, `role_name` all of them and custom ones."""

    permission: str | None = None
    role_name: str | None = None
    user: User | None = None


class Content(msgspec.Struct, frozen=True):
    """A file of a repository; beyond 1 MB GitHub sends `encoding` `none` and no content."""

    type: str | None = None
    encoding: str | None = None
    content: str | None = None


class Failure(msgspec.Struct, frozen=True):
    """The body of a refusal; each error is an object, or a plain sentence."""

    message: str | None = None
    errors: tuple["FailureDetail | str", ...] | None = None


class FailureDetail(msgspec.Struct, frozen=True):
    """One cause of a 422, or one error of GraphQL, whose `type` says which."""

    type: str | None = None
    resource: str | None = None
    field: str | None = None
    code: str | None = None
    message: str | None = None


def parse(data: bytes, made: type[T]) -> T:
    """Decode JSON bytes into one of the types above.

    Raises:
        BadPayload: no JSON, no UTF-8, nested too deeply, or another shape.
    """
    try:
        return msgspec.json.decode(data, type=made)
    except (msgspec.MsgspecError, UnicodeError, RecursionError, ValueError) as error:
        raise BadPayload(f"not the JSON that was expected: {error}") from error


def to_actor(user: User | None) -> Actor | None:
    """Name an account; None where it was deleted.

    A bot is one by GitHub's `type` alone: a person may call themselves `something-bot`.
    """
    if user is None or user.id is None or user.login is None:
        return None
    return Actor(user.id, user.login, is_bot=user.type == "Bot")


def to_repository(repository: Repository | None) -> RepositoryRef | None:
    """Point at a repository; None where the payload names none."""
    if repository is None or repository.id is None or not repository.full_name:
        return None
    # Without the field nobody said that it is public.
    private = repository.private is not False
    return RepositoryRef(repository.id, repository.full_name, repository.default_branch or None, private=private)
