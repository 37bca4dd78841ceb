"""GitHub over its REST API: the operations of `base.py` in our own narrow types."""

import asyncio
import base64
import binascii
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import datetime
from typing import Literal, TypeVar

import httpx

from bot import __version__
from bot.domain.ci import CiCheck
from bot.domain.refs import Actor, RepositoryRef
from bot.errors import Conflict, Forbidden, GitHubError, NotFound, OperatorError
from bot.github import payloads
from bot.github.auth import AppAuth, Credentials, GivenCredentials, InstallationCredentials, Scope, Tokens
from bot.github.base import CheckRun, Comment, Issue, Permission, Pull
from bot.github.calls import Caller, part, read, root
from bot.github.checks import Checks
from bot.github.retry import Timing
from bot.github.review_client import ReviewClient
from bot.github.reviews import Reaction, Reviews
from bot.github.transport import MAX_CONCURRENT, Connection, LastingKit, Manners, Query, web_url
from bot.redaction import register_secret

T = TypeVar("T")

_PAGE = 100
_ROLES: dict[str, Permission] = {
    "admin": "admin",
    "maintain": "maintain",
    "write": "write",
    "triage": "triage",
    "read": "read",
    "none": "none",
}
_JOB_ACTOR = Actor(41_898_282, "github-actions[bot]", is_bot=True)
"""The account behind the token of a GitHub Actions job on github.com, which may not ask who it is."""


class GitHubClient:
    """GitHub as one installation, or the token of an Actions job, sees it."""

    def __init__(
        self,
        caller: Caller,
        credentials: Credentials,
        identify: Callable[["GitHubClient"], Awaitable[Actor]],
        web: str,
    ) -> None:
        self._caller = caller
        self._credentials = credentials
        self._identify = identify
        self._web = web
        self._checks = Checks(caller, credentials)

    async def identity(self) -> Actor:
        """Say who we are: the account that our comments carry."""
        return await self._identify(self)

    async def user(self, login: str) -> Actor:
        """Fetch an account by its login."""
        response = await self._send(None, "GET", f"/users/{part(login)}")
        return _known(payloads.to_actor(read(response, payloads.User)), "account")

    async def viewer(self) -> Actor:
        """Fetch the account of a given token; the token of an Actions job may not ask."""
        response = await self._send(None, "GET", "/user")
        return _known(payloads.to_actor(read(response, payloads.User)), "account")

    async def repository(self, repository_id: int) -> RepositoryRef:
        """Fetch a repository by its numeric id."""
        response = await self._send(repository_id, "GET", f"/repositories/{repository_id}")
        return _known(payloads.to_repository(read(response, payloads.Repository)), "repository")

    async def permission(self, repository: RepositoryRef, actor: Actor) -> Permission:
        """Fetch the role of a person, by login, and check that the answer is about the same numeric id."""
        path = f"{root(repository)}/collaborators/{part(actor.login)}/permission"
        try:
            role = read(await self._send(repository.id, "GET", path), payloads.Role)
        except NotFound:
            return "none"
        if role.user is None or role.user.id != actor.id:
            # The login is somebody else's by now.
            return "none"
        # A custom role has a name of its own; `permission` then says what it is built upon.
        return _ROLES.get(role.role_name or "") or _ROLES.get(role.permission or "") or "none"

    async def issue(self, repository: RepositoryRef, number: int) -> Issue:
        """Fetch one issue."""
        response = await self._send(repository.id, "GET", f"{root(repository)}/issues/{number}")
        return _issue(read(response, payloads.Issue))

    async def pull(self, repository: RepositoryRef, number: int) -> Pull:
        """Fetch one pull request."""
        response = await self._send(repository.id, "GET", f"{root(repository)}/pulls/{number}")
        return _pull(read(response, payloads.PullRequest))

    async def find_pull(self, repository: RepositoryRef, head_branch: str) -> Pull | None:
        """Find the newest pull request, open first, whose head is this branch of the same repository."""
        query: dict[str, str | int] = {"head": f"{repository.owner}:{head_branch}", "state": "all"}
        found: list[Pull] = []
        async for response in self._pages(repository, f"{root(repository)}/pulls", query):
            found += [_pull(pull) for pull in read(response, tuple[payloads.PullRequest, ...])]
        # GitHub leaves the filter out when it cannot read it, and a fork may carry a branch of the same name.
        ours = [pull for pull in found if pull.head_branch == head_branch and pull.head_repository_id == repository.id]
        return max(ours, key=lambda pull: (pull.state == "open", pull.number), default=None)

    async def open_pull(
        self, repository: RepositoryRef, *, head: str, base: str, title: str, body: str, draft: bool
    ) -> Pull:
        """Open a pull request; never tried again by itself where it may have been opened."""
        json = {"head": head, "base": base, "title": title, "body": body, "draft": draft}
        response = await self._send(repository.id, "POST", f"{root(repository)}/pulls", json=json)
        return _pull(read(response, payloads.PullRequest))

    async def update_pull(self, repository: RepositoryRef, number: int, *, body: str, title: str | None = None) -> Pull:
        """Replace a pull request's text, and its title where another is given."""
        path = f"{root(repository)}/pulls/{number}"
        changes = {"body": body} | ({} if title is None else {"title": title})
        response = await self._send(repository.id, "PATCH", path, json=changes, idempotent=True)
        return _pull(read(response, payloads.PullRequest))

    async def comments(self, repository: RepositoryRef, number: int) -> Sequence[Comment]:
        """List all comments of a conversation, oldest first."""
        found: list[Comment] = []
        async for response in self._pages(repository, f"{root(repository)}/issues/{number}/comments", {}):
            found += [_comment(comment) for comment in read(response, tuple[payloads.Comment, ...])]
        return sorted({comment.id: comment for comment in found}.values(), key=lambda comment: comment.id)

    async def comment(self, repository: RepositoryRef, number: int, body: str) -> Comment:
        """Make a comment; never tried again by itself where it may have been made."""
        path = f"{root(repository)}/issues/{number}/comments"
        return _comment(read(await self._send(repository.id, "POST", path, json={"body": body}), payloads.Comment))

    async def edit_comment(self, repository: RepositoryRef, comment_id: int, body: str) -> Comment:
        """Replace a comment's text."""
        path = f"{root(repository)}/issues/comments/{comment_id}"
        response = await self._send(repository.id, "PATCH", path, json={"body": body}, idempotent=True)
        return _comment(read(response, payloads.Comment))

    async def react(self, repository: RepositoryRef, number: int, comment_id: int | None, content: Reaction) -> None:
        """Put a reaction on an issue or pull request, or on one of its comments; there is at most one of a kind."""
        subject = str(number) if comment_id is None else f"comments/{comment_id}"
        path = f"{root(repository)}/issues/{subject}/reactions"
        await self._send(repository.id, "POST", path, json={"content": content}, idempotent=True)

    async def read_file(self, repository: RepositoryRef, path: str, ref: str) -> bytes | None:
        """Read a file as of a ref; None where there is none."""
        parts = path.split("/")
        if any(part in ("", ".", "..") for part in parts):
            return None
        where = f"{root(repository)}/contents/{'/'.join(map(part, parts))}"
        try:
            response = await self._send(repository.id, "GET", where, query={"ref": ref})
        except NotFound:
            return None
        if response.content.lstrip().startswith(b"["):
            return None  # a folder
        content = read(response, payloads.Content)
        if content.type != "file":
            return None
        if content.encoding != "base64" or content.content is None:
            raise GitHubError(f"`{path}` is larger than 1 MB")
        try:
            return base64.b64decode(content.content)
        except binascii.Error as error:
            raise GitHubError(f"`{path}` came in an encoding that cannot be read") from error

    async def put_check(self, repository: RepositoryRef, check: CheckRun) -> int:
        """Make our check run, or bring the one of this name and external id on this commit up to date."""
        return await self._checks.put(repository, check, await self.identity())

    async def ci_status(self, repository: RepositoryRef, ref: str) -> Sequence[CiCheck]:
        """List the check runs, ours too, and the commit statuses of a commit, by name; of re-runs the newest."""
        return await self._checks.status(repository, ref, await self.identity())

    async def ci_log(self, repository: RepositoryRef, job_id: int) -> str:
        """Return the log of a job of GitHub Actions: at most 8 MiB of it, without times and escape codes."""
        return await self._checks.log(repository, job_id)

    @property
    def reviews(self) -> Reviews:
        """The operations on reviews of pull requests."""
        return ReviewClient(self._caller, self._credentials)

    async def clone_url(self, repository: RepositoryRef) -> str:
        """Return the URL for git, without credentials."""
        return f"{self._web}/{part(repository.owner)}/{part(repository.name)}.git"

    async def git_token(self, repository: RepositoryRef, *, workflows: bool = False) -> str:
        """Return a token for git, valid for at least five more minutes and only for this repository."""
        return await self._credentials.git_token(repository.id, workflows=workflows)

    async def _send(
        self,
        repository_id: int | None,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        json: object = None,
        idempotent: bool = False,
    ) -> httpx.Response:
        kit = self._caller.kit(self._credentials.auth(repository_id))
        return await self._caller.send(kit, method, path, query=query, json=json, idempotent=idempotent)

    async def _pages(self, repository: RepositoryRef, path: str, query: Query) -> AsyncIterator[httpx.Response]:
        """Yield the pages of a list; their numbers are counted here, so no answer's link leads us elsewhere."""
        page = 1
        while True:
            full = {**query, "per_page": _PAGE, "page": page}
            response = await self._send(repository.id, "GET", path, query=full)
            yield response
            if "next" not in response.links:
                return
            page += 1


class GitHubAppClient:
    """GitHub as the App sees it: the pool, the App's key and the tokens of its installations.

    Args:
        api_url: as `https://api.github.com`, `https://HOST/api/v3`, or a local one over plain HTTP.
        app_id: the App's id or client id; None with a token alone.
        private_key: PEM text; None with a token alone.
        token: stands in for an installation, as that of an Actions job.
        clock: the wall clock, aware.
        random: uniform in [0, 1).
        sleep: waits for seconds.
        monotonic: seconds, never going back.
        ca_bundle: file of certificate authorities to trust beside the system's own.
        proxy: URL of a proxy, with its login; the environment is not asked.
        timeout_s: seconds without progress after which an attempt has failed.
        web: where people and git go; None derives it from `api_url`.
        write_interval_s: seconds between writes of one installation; 0 for a local GitHub.
    """

    def __init__(  # noqa: PLR0913 - all by name
        self,
        *,
        api_url: str,
        clock: Callable[[], datetime],
        random: Callable[[], float],
        app_id: int | str | None = None,
        private_key: str | None = None,
        token: str | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        monotonic: Callable[[], float] = time.monotonic,
        ca_bundle: str | None = None,
        proxy: str | None = None,
        timeout_s: float = 10.0,
        web: str | None = None,
        write_interval_s: float = 1.0,
    ) -> None:
        timing = Timing(clock, random, sleep, monotonic)
        self._connection = Connection(
            api_url,
            timing,
            user_agent=f"issuewright/{__version__}",
            ca_bundle=ca_bundle,
            proxy=proxy,
            timeout_s=timeout_s,
        )
        self._app_id = str(app_id) if app_id is not None else None
        self._token = token
        if token is not None:
            register_secret(token)
        self._web = web.rstrip("/") if web else web_url(api_url)
        self._write_interval_s = write_interval_s
        self._gate = asyncio.Semaphore(MAX_CONCURRENT)
        self._app = Caller(self._connection, None)
        self._app_kit: LastingKit | None = None
        if self._app_id is not None and private_key is not None:
            self._app_kit = self._app.kit(AppAuth(self._connection.base_url, self._app_id, private_key, timing))
        self._tokens = Tokens(self._mint, timing)
        self._clients: dict[int | None, GitHubClient] = {}
        self._identity: Actor | None = None

    def installation(self, installation_id: int | None) -> GitHubClient:
        """Return GitHub as one installation sees it; None is the given token."""
        client = self._clients.get(installation_id)
        if client is None:
            client = self._clients[installation_id] = self._client(installation_id)
        return client

    async def close(self) -> None:
        """Give back connections."""
        await self._connection.close()

    def _client(self, installation_id: int | None) -> GitHubClient:
        base_url, timing = self._connection.base_url, self._connection.timing
        manners = Manners(self._gate, timing, write_interval_s=self._write_interval_s)
        caller = Caller(self._connection, manners)
        if installation_id is None:
            if self._token is None:
                raise OperatorError("a call came without an installation, and no token is configured")
            return GitHubClient(caller, GivenCredentials(base_url, self._token), _identify_token, self._web)
        if self._app_id is None:
            raise OperatorError("a call came for an installation, and no App id is configured")
        credentials = InstallationCredentials(base_url, self._app_id, installation_id, self._tokens, timing)
        return GitHubClient(caller, credentials, self._identify_app, self._web)

    async def _identify_app(self, client: GitHubClient) -> Actor:
        if self._identity is None:
            app = read(await self._app.send(self._own_kit(), "GET", "/app"), payloads.App)
            self._identity = await client.user(f"{app.slug}[bot]")
        return self._identity

    async def _mint(self, scope: Scope) -> payloads.AccessToken:
        body: dict[str, object] = {"permissions": dict(scope.permissions)}
        if scope.repositories:
            body["repository_ids"] = list(scope.repositories)
        path = f"/app/installations/{scope.installation_id}/access_tokens"
        # A second token is no harm: the first one dies unused.
        try:
            response = await self._app.send(self._own_kit(), "POST", path, json=body, idempotent=True)
        except (NotFound, Conflict) as error:
            # Uninstalled, or without this repository or permission; a call on a file would take a 404 for its absence.
            raise Forbidden(f"the App may not act there: {error}", status=error.status) from error
        return read(response, payloads.AccessToken)

    def _own_kit(self) -> LastingKit:
        if self._app_kit is None:
            raise OperatorError("no App id with a private key is configured")
        return self._app_kit


async def _identify_token(client: GitHubClient) -> Actor:
    try:
        return await client.viewer()
    except (Forbidden, NotFound):
        pass
    try:
        return await client.user(_JOB_ACTOR.login)
    except (Forbidden, NotFound):
        return _JOB_ACTOR


def _known(value: T | None, what: str) -> T:
    if value is None:
        raise GitHubError(f"GitHub sent no id of the {what}")
    return value


def _state(state: str | None) -> Literal["open", "closed"]:
    return "closed" if state == "closed" else "open"


def _issue(issue: payloads.Issue) -> Issue:
    names = [label if isinstance(label, str) else label.name for label in issue.labels or ()]
    return Issue(
        number=_known(issue.number, "issue"),
        title=issue.title or "",
        body=issue.body or "",
        state=_state(issue.state),
        author=payloads.to_actor(issue.user),
        labels=tuple(name for name in names if name),
        is_pull=issue.pull_request is not None,
    )


def _pull(pull: payloads.PullRequest) -> Pull:
    head, base = pull.head or payloads.Branch(), pull.base or payloads.Branch()
    return Pull(
        number=_known(pull.number, "pull request"),
        url=pull.html_url or "",
        title=pull.title or "",
        body=pull.body or "",
        state=_state(pull.state),
        draft=bool(pull.draft),
        merged=bool(pull.merged) or pull.merged_at is not None,
        head_branch=head.ref or "",
        head_sha=head.sha or "",
        head_repository_id=head.repo.id if head.repo else None,
        base_branch=base.ref or "",
        author=payloads.to_actor(pull.user),
    )


def _comment(comment: payloads.Comment) -> Comment:
    author_id = comment.user.id if comment.user else None
    return Comment(_known(comment.id, "comment"), comment.body or "", author_id, comment.html_url or "")
