"""Works in a person's own checkout: only its work tree changes, its `.git` is read and never written."""

import asyncio
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from bot.errors import RepositoryRefused
from bot.workspace import local
from bot.workspace.base import Opened, Origin
from bot.workspace.clone import GitWorkspaces, named
from bot.workspace.git import Git
from bot.workspace.objects import ObjectStore
from bot.workspace.tree import Limits
from bot.workspace.worktree import GitWorkspace


class InPlaceWorkspaces:
    """Working copies that are the person's checkouts; our git directories lie under the state folder."""

    def __init__(
        self, state: Path, *, max_files: int = 50_000, max_bytes: int = 1 << 30, excludes: Sequence[Path] = ()
    ) -> None:
        """Keep checkpoints in one folder.

        Args:
            state: for our own git directories.
            max_files: of a work tree.
            max_bytes: of a work tree.
            excludes: the person's own ignore files, as `~/.config/git/ignore`.
        """
        self._state = GitWorkspaces(state)
        self._git = Git(state.absolute())
        self._tasks = state.absolute() / "tasks"
        self._limits = Limits(max_files, max_bytes)
        self._excludes = excludes

    async def open(self, task_id: str, origin: Origin, branch: str, *, commit: str | None = None) -> Opened:
        """Take a checkout as it stands, with all that is not committed; the branch plays no part.

        The base is HEAD, or a commit of our own on top of it that holds what the person has not committed, so that
        later differences are the task's alone. A commit that is named is only what differences are told from: between
        two processes the person may have worked here, so nothing is put back.
        """
        root = Path(origin.url)
        checkout = local.locate(root)
        head = await local.tip(self._git, checkout, "HEAD")
        if head is None:
            raise RepositoryRefused("the repository is empty; make a first commit, then ask again")
        git_dir = self._tasks / named(task_id) / "repository.git"
        await asyncio.to_thread(ObjectStore(git_dir).create, checkout.objects)
        excludes = b"\n".join(_read(path) for path in (*self._excludes, checkout.common_dir / "info" / "exclude"))
        workspace = GitWorkspace(
            self._git, git_dir, root, None, limits=self._limits, excludes=excludes, keep_foreign=True
        )
        await workspace.adopt(commit or head)
        base = commit
        if base is None:
            date = await self._git.check(git_dir, "show", "--no-patch", "--format=%ct", head, "--")
            at = datetime.fromtimestamp(int(date), UTC)
            base = await workspace.checkpoint(None, "The checkout as it was found", at)
        owner = (await asyncio.to_thread(root.stat)).st_uid if os.geteuid() == 0 else None
        return Opened(workspace, base, workspace.files, owner, guarded=[root / ".git"], alone=False, movable=False)

    async def remote_head(self, task_id: str, origin: Origin, branch: str) -> str | None:
        """Tell where the checkout's own branch stands; None where there is none."""
        return await local.tip(self._git, local.locate(Path(origin.url)), f"refs/heads/{branch}")

    async def fetch(self, task_id: str, origin: Origin, branch: str) -> str:
        """Name the checkout's own branch's tip; nothing has to be brought."""
        return await local.branch_tip(self._git, local.locate(Path(origin.url)), branch)

    async def forget(self, task_id: str, *, but_commits: bool = False) -> None:
        """Remove our git directory; the checkout stays as it is."""
        await self._state.forget(task_id, but_commits=but_commits)

    async def uncommitted(self, checkout: Path) -> Sequence[str]:
        """List what a person has not committed, which the task would mix with its own changes."""
        return await local.uncommitted(self._git, checkout)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
