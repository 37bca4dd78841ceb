"""GitHub in memory: state first, and switches for what goes wrong."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from bot.domain.ci import CiCheck
from bot.domain.refs import Actor, RepositoryRef
from bot.errors import Conflict, NotFound
from bot.github.base import CheckRun, Comment, GitHub, Issue, Permission, Pull
from bot.github.reviews import Reaction
from tests.unit.tasks.reviews import MemoryReviews

US = Actor(900, "wright[bot]", is_bot=True)
REPOSITORY = RepositoryRef(5_000_000_000, "octo/garden", "main", private=True)


@dataclass
class MemoryGitHub:
    """One repository as one installation sees it."""

    permissions: dict[int, Permission] = field(default_factory=dict)
    """By the person's id."""
    repositories: dict[int, RepositoryRef] = field(default_factory=lambda: {REPOSITORY.id: REPOSITORY})
    files: dict[str, bytes] = field(default_factory=dict)
    """On the default branch."""
    commits: dict[str, dict[str, bytes]] = field(default_factory=dict)
    """What others hold, by commit."""
    pulls: dict[int, Pull] = field(default_factory=dict)
    threads: dict[int, list[Comment]] = field(default_factory=dict)
    reactions: list[tuple[int, int | None, Reaction]] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    faults: dict[str, list[Exception]] = field(default_factory=dict)
    """By the method's name: raised by its next calls, one each."""
    own_checks: dict[tuple[str, str, str], CheckRun] = field(default_factory=dict)
    """By commit, name and external id."""
    ci: dict[str, list[CiCheck]] = field(default_factory=dict)
    """What others say, by commit."""
    logs: dict[int, str] = field(default_factory=dict)
    rival: Pull | None = None
    """A pull request that somebody opens just before us."""
    drafts: bool = True
    """Whether drafts are allowed."""
    _next: int = 100

    def __post_init__(self) -> None:
        self.reviews = MemoryReviews(US, self._call)

    def _call(self, name: str) -> None:
        self.calls.append(name)
        if self.faults.get(name):
            raise self.faults[name].pop(0)

    def _id(self) -> int:
        self._next += 1
        return self._next

    def say(self, number: int, body: str, author_id: int | None) -> Comment:
        """Let somebody comment."""
        comment = Comment(self._id(), body, author_id, f"https://hub/{number}")
        self.threads.setdefault(number, []).append(comment)
        return comment

    def bodies(self, number: int) -> list[str]:
        """Return what was said on a thread."""
        return [comment.body for comment in self.threads.get(number, [])]

    async def identity(self) -> Actor:
        """Return our account."""
        self._call("identity")
        return US

    async def repository(self, repository_id: int) -> RepositoryRef:
        """Return a repository."""
        self._call("repository")
        if repository_id not in self.repositories:
            raise NotFound("no such repository", status=404)
        return self.repositories[repository_id]

    async def permission(self, repository: RepositoryRef, actor: Actor) -> Permission:
        """Return a role."""
        self._call("permission")
        return self.permissions.get(actor.id, "none")

    async def issue(self, repository: RepositoryRef, number: int) -> Issue:
        """Not needed by tasks."""
        raise NotFound("no such issue", status=404)

    async def pull(self, repository: RepositoryRef, number: int) -> Pull:
        """Return a pull request."""
        self._call("pull")
        if number not in self.pulls:
            raise NotFound("no such pull request", status=404)
        return self.pulls[number]

    async def find_pull(self, repository: RepositoryRef, head_branch: str) -> Pull | None:
        """Find by head: open first, then newest."""
        self._call("find_pull")
        found = [one for one in self.pulls.values() if one.head_branch == head_branch]
        return max(found, key=lambda one: (one.state == "open", one.number), default=None)

    async def open_pull(
        self, repository: RepositoryRef, *, head: str, base: str, title: str, body: str, draft: bool
    ) -> Pull:
        """Open one, where none with this head is open."""
        if self.rival is not None:
            self.pulls[self.rival.number] = self.rival
        self._call("open_pull")
        if any(one.head_branch == head and one.state == "open" for one in self.pulls.values()):
            raise Conflict("A pull request already exists", status=422)
        if draft and not self.drafts:
            raise Conflict("answered 422: Draft pull requests are not supported in this repository.", status=422)
        made = pull(self._id(), head, title=title, body=body, draft=draft, base=base)
        self.pulls[made.number] = made
        return made

    async def update_pull(self, repository: RepositoryRef, number: int, *, body: str, title: str | None = None) -> Pull:
        """Replace its text, and its title where one is given."""
        self._call("update_pull")
        self.pulls[number] = replace(self.pulls[number], body=body, title=title or self.pulls[number].title)
        return self.pulls[number]

    async def comments(self, repository: RepositoryRef, number: int) -> Sequence[Comment]:
        """List a thread."""
        self._call("comments")
        return list(self.threads.get(number, []))

    async def comment(self, repository: RepositoryRef, number: int, body: str) -> Comment:
        """Comment as us."""
        self._call("comment")
        return self.say(number, body, US.id)

    async def edit_comment(self, repository: RepositoryRef, comment_id: int, body: str) -> Comment:
        """Edit a comment."""
        self._call("edit_comment")
        for thread in self.threads.values():
            for index, comment in enumerate(thread):
                if comment.id == comment_id:
                    thread[index] = replace(comment, body=body)
                    return thread[index]
        raise NotFound("no such comment", status=404)

    async def react(self, repository: RepositoryRef, number: int, comment_id: int | None, content: Reaction) -> None:
        """React once of a kind."""
        self._call("react")
        if (number, comment_id, content) not in self.reactions:
            self.reactions.append((number, comment_id, content))

    async def read_file(self, repository: RepositoryRef, path: str, ref: str) -> bytes | None:
        """Read a file of the default branch, or of a commit."""
        self._call("read_file")
        return self.files.get(path) if ref == repository.default_branch else self.commits.get(ref, {}).get(path)

    async def put_check(self, repository: RepositoryRef, check: CheckRun) -> int:
        """Keep our check as it is now."""
        self._call("put_check")
        key = (check.head_sha, check.name, check.external_id)
        self.own_checks[key] = check
        return [*self.own_checks].index(key) + 1

    async def ci_status(self, repository: RepositoryRef, ref: str) -> Sequence[CiCheck]:
        """List what is said of a commit."""
        self._call("ci_status")
        return self.ci.get(ref, [])

    async def ci_log(self, repository: RepositoryRef, job_id: int) -> str:
        """Return a job's log."""
        self._call("ci_log")
        if job_id not in self.logs:
            raise NotFound("there is no log", status=404)
        return self.logs[job_id]

    async def clone_url(self, repository: RepositoryRef) -> str:
        """Return a URL."""
        return f"https://hub/{repository.full_name}.git"

    async def git_token(self, repository: RepositoryRef, *, workflows: bool = False) -> str:
        """Return a token."""
        return "ghs_made_up"


@dataclass
class MemoryApp:
    """The App, installed once."""

    github: MemoryGitHub
    asked: list[int | None] = field(default_factory=list)

    def installation(self, installation_id: int | None) -> GitHub:
        """Return the one installation."""
        self.asked.append(installation_id)
        return self.github

    async def close(self) -> None:
        """Do nothing."""


def pull(  # noqa: D103 - one of GitHub's
    number: int,
    head: str,
    *,
    title: str = "A change",
    body: str = "",
    draft: bool = False,
    base: str = "main",
    author: Actor | None = US,
    state: str = "open",
    home: int | None = REPOSITORY.id,
) -> Pull:
    return Pull(
        number=number,
        url=f"https://hub/pull/{number}",
        title=title,
        body=body,
        state="open" if state == "open" else "closed",
        draft=draft,
        merged=False,
        head_branch=head,
        head_sha="a" * 40,
        head_repository_id=home,
        base_branch=base,
        author=author,
    )
