"""The seam to working copies."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from bot.domain.changes import FileChange
from bot.domain.merging import Merged, PutOn

Credentials = Callable[[], Awaitable[str | None]]
"""Gives a fresh token for the remote when git asks for one; None where the remote needs none."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a repository comes from and goes to."""

    key: str
    """Names the cache folder: `github-<id>` or `local-<hash of the path>`."""
    url: str
    """`https://…` without credentials, or a path for a local repository."""
    credentials: Credentials


@dataclass(frozen=True, slots=True)
class Identity:
    """Author and committer of a commit."""

    name: str
    email: str


@dataclass(frozen=True, slots=True)
class DiffStat:
    """How large a change is."""

    files: int
    insertions: int
    deletions: int


SUBMODULE_LEFT = "a submodule"
GIT_LEFT = "git's own folder"
EXPECTED = frozenset({SUBMODULE_LEFT, GIT_LEFT})
"""Reasons for which everybody expects something to be left out of commits."""


class Workspace(Protocol):
    """One task's working copy."""

    @property
    def root(self) -> Path:
        """The work tree; holds no `.git`."""
        ...

    @property
    def git_dir(self) -> Path:
        """The git directory, outside the work tree."""
        ...

    @property
    def left_out(self) -> Mapping[str, str]:
        """What the last checkpoint or commit did not take in although no rule ignores it, by path, with the reason."""
        ...

    async def checkpoint(self, paths: Sequence[str] | None, message: str, at: datetime) -> str:
        """Keep the work tree as a commit on the work-in-progress ref and return its id.

        Args:
            paths: what changed, so that the tree need not be scanned again; None scans it.
            message: for people who look at the ref.
            at: author and commit date; the same inputs give the same id.
        """
        ...

    async def restore(self, commit: str, *, bare: bool = False) -> None:
        """Make the work tree equal to a commit; what is not in it goes.

        Args:
            commit: that it is to be equal to.
            bare: whether what is ignored goes too; never so in a person's own checkout.
        """
        ...

    async def commit(
        self, message: str, author: Identity, at: datetime, *, parent: str, without: str | None = None
    ) -> str | None:
        """Turn all that changed since `parent` into one commit on the branch; None where nothing changed.

        Args:
            message: of the commit.
            author: and committer.
            at: author and commit date.
            parent: what the change is told from.
            without: a path, mostly of a folder, that stays as it is in `parent`; the work tree keeps its own.
        """
        ...

    async def push(
        self, commit: str, branch: str, *, expected: str | None, credentials: Credentials | None = None
    ) -> None:
        """Put the commit on the remote branch.

        Args:
            commit: what to push.
            branch: where; never the default branch.
            expected: where the remote branch has to stand; None where it must not exist. A branch that stands at
                `commit` already is left alone.
            credentials: other ones than the origin's.

        Raises:
            PushRejected: the branch stands elsewhere, or the remote refused; the text says which.
        """
        ...

    async def diff(self, base: str, commit: str, *, limit_chars: int, paths: Sequence[str] = ()) -> str:
        """Return the unified diff between two commits, of all files or of some, cut at a whole line.

        Where some are too many for one command, it is that of all.
        """
        ...

    async def diff_stat(self, base: str, commit: str) -> DiffStat:
        """Count what changed between two commits."""
        ...

    async def changed_paths(self, base: str, commit: str) -> Sequence[str]:
        """List the paths that differ between two commits, sorted."""
        ...

    async def changes(self, base: str, commit: str) -> tuple[Sequence[FileChange], int]:
        """List what differs between two commits, sorted by path, and count the files of the first."""
        ...

    async def links(self, commit: str) -> Mapping[str, str]:
        """List the symbolic links as of a commit, by path, with their targets as they are written."""
        ...

    async def read_at(self, commit: str, path: str) -> bytes | None:
        """Read a file as of a commit; None where it has none."""
        ...

    async def files_at(self, commit: str, folder: str) -> Mapping[str, int]:
        """List the regular files that lie in a folder as of a commit, by name, with their sizes in bytes.

        Args:
            commit: a full id.
            folder: `.` for the top one; no links are followed, and a folder that is not there holds nothing.
        """
        ...

    async def paths_named(self, commit: str, name: str) -> frozenset[str]:
        """List the paths of all files and links that have a name, in any folder, as of a commit."""
        ...

    async def tree_of(self, commit: str) -> str:
        """Return the id of a commit's tree: two commits that hold the same files have the same."""
        ...

    async def mixed(self, commit: str, other: str, paths: Sequence[str], at: datetime) -> str:
        """Make a commit of one's tree in which some paths are as another one has them, and return its id.

        Args:
            commit: whose tree it is, but for the paths.
            other: what the paths are taken from; one that it has not is gone.
            paths: of files.
            at: author and commit date; the same inputs give the same id.
        """
        ...

    async def with_file(
        self, commit: str, path: str, data: bytes | None, author: Identity, at: datetime, message: str
    ) -> str:
        """Make a commit on top of one in which a single file is another, and return its id.

        Neither the work tree nor a ref changes.

        Args:
            commit: what it stands on.
            path: of the file.
            data: what the file holds; None takes it away.
            author: and committer.
            at: author and commit date; the same inputs give the same id.
            message: of the commit.
        """
        ...

    async def merge(self, ours: str, theirs: str) -> Merged:
        """Join two commits; neither the work tree nor a ref changes, and nothing of the repository is run.

        Args:
            ours: full id; names its side in markers, as the other one does.
            theirs: full id.

        Raises:
            WorkspaceError: they have nothing in common.
        """
        ...

    async def joined(self, tree: str, parents: Sequence[str], author: Identity, at: datetime, message: str) -> str:
        """Make a commit of a tree that is there, as `merge` left it, and return its id.

        Args:
            tree: its id.
            parents: the first is what it stands on.
            author: and committer.
            at: author and commit date; the same inputs give the same id.
            message: of the commit.
        """
        ...

    async def put_on(self, commit: str, head: str, *, since: str) -> PutOn | None:
        """Make a commit whose change is the same on top of another head; author, date and message stay.

        Args:
            commit: whose change it is.
            head: what it is to stand on; fetched before.
            since: what both came from.

        Returns:
            None where the changes conflict, or `head` does not go on from `since`.
        """
        ...

    async def close(self) -> None:
        """Give back file handles; the work tree stays for a later run until `Workspaces.forget`."""
        ...


@dataclass(frozen=True, slots=True)
class Opened:
    """A working copy and what it stands on."""

    workspace: Workspace
    base: str
    """The commit it was made from."""
    files: int
    owner_uid: int | None
    """The unprivileged uid that owns the work tree; None where that is the server's own."""
    readable: Sequence[Path] = ()
    """What commands need to read beside the tree, so that git shows its history."""
    guarded: Sequence[Path] = ()
    """What commands must not change although it is in the tree: a person's own `.git`."""
    alone: bool = True
    """Whether nobody else has the owner's uid."""
    movable: bool = True
    """Whether commands may find the tree under another path."""

    @property
    def own(self) -> Path:
        """The task's own folder for what its set-up writes to, beside its git directory: it goes with the task."""
        return self.workspace.git_dir.with_name("own")


class Workspaces(Protocol):
    """All working copies of this machine."""

    async def open(self, task_id: str, origin: Origin, branch: str, *, commit: str | None = None) -> Opened:
        """Fetch what is new and make (or take up again) the task's work tree.

        Args:
            task_id: whose.
            origin: where from.
            branch: the remote branch to start from.
            commit: an exact commit to stand on, as after a restart; None takes the branch's tip.

        Raises:
            CloneFailed: the remote could not be read.
            RepositoryRefused: it is empty, lacks the branch, is too large, or has paths that cannot be checked out.
        """
        ...

    async def remote_head(self, task_id: str, origin: Origin, branch: str) -> str | None:
        """Ask the remote where a branch stands; None where there is none."""
        ...

    async def fetch(self, task_id: str, origin: Origin, branch: str) -> str:
        """Bring a branch's newest commit within reach of the task's working copy and return its id.

        Raises:
            CloneFailed: the remote could not be read.
            RepositoryRefused: it lacks the branch.
        """
        ...

    async def forget(self, task_id: str, *, but_commits: bool = False) -> None:
        """Remove the task's work tree and git directory.

        Args:
            task_id: whose.
            but_commits: whether its git directory stays, so that a further run can go on from what is in it.
        """
        ...
