"""The seam to GitHub: the operations that tasks use, in our own narrow types."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from bot.domain.ci import CiCheck
from bot.domain.refs import Actor, RepositoryRef
from bot.github.reviews import Reaction, Reviews

Permission = Literal["admin", "maintain", "write", "triage", "read", "none"]
CheckStatus = Literal["queued", "in_progress", "completed"]
CheckConclusion = Literal["success", "failure", "neutral", "action_required"]


@dataclass(frozen=True, slots=True)
class Comment:
    """One comment of a conversation."""

    id: int
    body: str
    author_id: int | None
    url: str


@dataclass(frozen=True, slots=True)
class Pull:
    """One pull request."""

    number: int
    url: str
    title: str
    body: str
    state: Literal["open", "closed"]
    draft: bool
    merged: bool
    head_branch: str
    head_sha: str
    head_repository_id: int | None
    """None where the fork was deleted."""
    base_branch: str
    author: Actor | None


@dataclass(frozen=True, slots=True)
class Issue:
    """One issue, or the issue half of a pull request."""

    number: int
    title: str
    body: str
    state: Literal["open", "closed"]
    author: Actor | None
    labels: Sequence[str]
    is_pull: bool


@dataclass(frozen=True, slots=True)
class CheckRun:
    """A check run of ours on one commit; its name and external id say which."""

    name: str
    head_sha: str
    external_id: str
    status: CheckStatus
    conclusion: CheckConclusion | None
    """None until it is completed."""
    title: str
    summary: str
    """Markdown, as is `text`; foreign parts are made harmless before. What is too long is cut."""
    text: str = ""


class GitHub(Protocol):
    """GitHub as one installation (or one Actions job) sees it.

    Every method raises RateLimited, GitHubUnavailable, NotFound, Forbidden or Conflict; reads are tried again inside,
    writes only where trying again cannot repeat an effect.
    """

    async def identity(self) -> Actor:
        """Say who we are: the account that our comments carry."""
        ...

    async def repository(self, repository_id: int) -> RepositoryRef:
        """Fetch a repository by its numeric id."""
        ...

    async def permission(self, repository: RepositoryRef, actor: Actor) -> Permission:
        """Fetch the role of a person, by login, and check that the answer is about the same numeric id."""
        ...

    async def issue(self, repository: RepositoryRef, number: int) -> Issue:
        """Fetch one issue."""
        ...

    async def pull(self, repository: RepositoryRef, number: int) -> Pull:
        """Fetch one pull request."""
        ...

    async def find_pull(self, repository: RepositoryRef, head_branch: str) -> Pull | None:
        """Find the newest pull request, open first, whose head is this branch of the same repository."""
        ...

    async def open_pull(
        self, repository: RepositoryRef, *, head: str, base: str, title: str, body: str, draft: bool
    ) -> Pull:
        """Open a pull request."""
        ...

    async def update_pull(self, repository: RepositoryRef, number: int, *, body: str, title: str | None = None) -> Pull:
        """Replace a pull request's text, and its title where another is given."""
        ...

    async def comments(self, repository: RepositoryRef, number: int) -> Sequence[Comment]:
        """List all comments of a conversation, oldest first."""
        ...

    async def comment(self, repository: RepositoryRef, number: int, body: str) -> Comment:
        """Make a comment; never tried again by itself, since that could repeat it."""
        ...

    async def edit_comment(self, repository: RepositoryRef, comment_id: int, body: str) -> Comment:
        """Replace a comment's text."""
        ...

    async def react(self, repository: RepositoryRef, number: int, comment_id: int | None, content: Reaction) -> None:
        """Put a reaction on an issue or pull request, or on one of its comments; there is at most one of a kind."""
        ...

    async def read_file(self, repository: RepositoryRef, path: str, ref: str) -> bytes | None:
        """Read a file as of a ref; None where there is none."""
        ...

    async def put_check(self, repository: RepositoryRef, check: CheckRun) -> int:
        """Make our check run, or bring the one of this name and external id on this commit up to date.

        Returns:
            Its id.

        Raises:
            Forbidden: the App has no permission to write checks; the text says so.
        """
        ...

    async def ci_status(self, repository: RepositoryRef, ref: str) -> Sequence[CiCheck]:
        """List the check runs, ours too, and the commit statuses of a commit, by name; of re-runs the newest.

        Two workflows with a job of the same name are two checks.

        Args:
            repository: of the commit.
            ref: a commit id, a branch or a tag.
        """
        ...

    async def ci_log(self, repository: RepositoryRef, job_id: int) -> str:
        """Return the log of a job of GitHub Actions: at most 8 MiB of it, without times and escape codes.

        Raises:
            NotFound: there is no log, or none any more; the text says why.
        """
        ...

    @property
    def reviews(self) -> Reviews:
        """The operations on reviews of pull requests."""
        ...

    async def clone_url(self, repository: RepositoryRef) -> str:
        """Return the URL for git, without credentials."""
        ...

    async def git_token(self, repository: RepositoryRef, *, workflows: bool = False) -> str:
        """Return a token for git, valid for at least five more minutes and only for this repository.

        Args:
            repository: which.
            workflows: whether it is to change workflows; without that permission of the App it cannot.
        """
        ...


class GitHubApp(Protocol):
    """GitHub as the App sees it."""

    def installation(self, installation_id: int | None) -> GitHub:
        """Return GitHub as one installation sees it; None is the Actions job's own token."""
        ...

    async def close(self) -> None:
        """Give back connections."""
        ...
