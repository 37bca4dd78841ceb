"""What we point at: repositories, threads and the people who act."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class RepositoryRef:
    """A repository; its numeric id survives renames, its name does not."""

    id: int
    full_name: str
    """`owner/name` as of the event that brought it."""
    default_branch: str | None = None
    """None where the event did not say, as for an empty repository."""
    private: bool = False

    @property
    def owner(self) -> str:
        """The part before the slash."""
        return self.full_name.partition("/")[0]

    @property
    def name(self) -> str:
        """The part after the slash."""
        return self.full_name.partition("/")[2]

    @property
    def is_local(self) -> bool:
        """Whether it lies on this machine, and not on GitHub, whose ids are positive."""
        return self.id < 0


ThreadKind = Literal["issue", "pull"]


@dataclass(frozen=True, slots=True)
class ThreadRef:
    """The conversation of one issue or pull request."""

    repository: RepositoryRef
    number: int
    kind: ThreadKind


@dataclass(frozen=True, slots=True)
class Actor:
    """Who did something, by GitHub's numeric id."""

    id: int
    login: str
    is_bot: bool = False
