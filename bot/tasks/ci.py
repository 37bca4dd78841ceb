"""CI of the task's own repository, asked from here with the App's own permissions: what the tools of CI use."""

from collections.abc import Callable, Sequence

from bot.domain.ci import CiCheck
from bot.domain.refs import RepositoryRef
from bot.errors import NotFound
from bot.github.base import GitHub


class GitHubCi:
    """Asks GitHub about one repository, and no other.

    Args:
        github: makes the client of one installation; only when CI is asked.
        repository: the task's.
        head: tells the commit that the work began from; None until that is known.
    """

    def __init__(self, github: Callable[[], GitHub], repository: RepositoryRef, head: Callable[[], str | None]) -> None:
        self._github = github
        self._repository = repository
        self._head = head

    @property
    def head(self) -> str:
        """The commit that the work began from."""
        head = self._head()
        if head is None:
            raise NotFound("the work has no commit yet")
        return head

    async def status(self, commit: str) -> Sequence[CiCheck]:
        """List all checks of a commit, by name."""
        return await self._github().ci_status(self._repository, commit)

    async def log(self, job: int) -> str:
        """Return the log of a job of the repository."""
        return await self._github().ci_log(self._repository, job)
