"""All working copies of this machine: a bare cache for each repository, a git directory and a tree for each task."""

import asyncio
import logging
import os
import re
from collections.abc import Collection, Sequence
from pathlib import Path

from bot.errors import WorkspaceError
from bot.workspace import files, local, remote, view
from bot.workspace.base import Opened, Origin
from bot.workspace.git import Git
from bot.workspace.locks import locked
from bot.workspace.objects import ObjectStore
from bot.workspace.tree import Limits
from bot.workspace.uids import POOL, allocate
from bot.workspace.worktree import GitWorkspace

log = logging.getLogger(__name__)

LEFT_BEHIND = b"""\
.issuewright-*.tmp
__pycache__/
*.py[cod]
.pytest_cache/
.mypy_cache/
.ruff_cache/
.coverage
.tox/
.nox/
node_modules/
.gradle/
.DS_Store
"""
"""What running a project leaves behind; kept out of commits also where the repository's own `.gitignore` forgets it.

Files that the repository tracks are no matter of ignore rules.
"""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class GitWorkspaces:
    """Working copies under one state folder."""

    def __init__(  # noqa: PLR0913 settings
        self,
        state: Path,
        *,
        max_files: int = 50_000,
        max_bytes: int = 1 << 30,
        max_file_bytes: int = 50 << 20,
        uids: Sequence[int] | None = None,
        ca_bundle: Path | None = None,
        https_proxy: str | None = None,
        remote_timeout_s: float = 900.0,
    ) -> None:
        """Keep everything in one folder.

        Args:
            state: when the server is root, the folders above it must let others pass (mode 0711): the work trees
                belong to other users.
            max_files: of a work tree.
            max_bytes: of a work tree.
            max_file_bytes: of a new file; a larger one is left out of commits.
            uids: owners of the work trees when the server is root; None takes the usual pool.
            ca_bundle: certificates of a company's own authority.
            https_proxy: URL of a company's proxy.
            remote_timeout_s: seconds until a fetch or push is given up.
        """
        state = state.absolute()
        self._git = Git(state, ca_bundle=ca_bundle, https_proxy=https_proxy, remote_timeout_s=remote_timeout_s)
        self._state = state
        self._tasks = state / "tasks"
        self._limits = Limits(max_files, max_bytes, max_file_bytes)
        self._uids = POOL if uids is None else uids

    async def open(self, task_id: str, origin: Origin, branch: str, *, commit: str | None = None) -> Opened:
        """Make the task's work tree or take it up again; see `Workspaces.open`."""
        task = self._tasks / named(task_id)
        git_dir = task / "repository.git"
        base = await self._base(git_dir, origin, branch, commit)
        for folder in (self._state, self._tasks, task):
            folder.chmod(0o711)
        owner = await allocate(self._tasks, task.name, self._uids)
        workspace = GitWorkspace(
            self._git, git_dir, task / "tree", origin, limits=self._limits, owner=owner, excludes=LEFT_BEHIND
        )
        if workspace.root.is_dir():
            await workspace.restore(base)
        else:
            await workspace.fill(base)
        readable = await self._show(workspace, task / "view.git", origin, branch, base, shared=owner is None)
        return Opened(workspace, base, workspace.files, owner, readable)

    async def _show(
        self, workspace: GitWorkspace, place: Path, origin: Origin, branch: str, commit: str, *, shared: bool
    ) -> Sequence[Path]:
        """Give the git of commands something to look at; without it they work all the same."""
        objects = [workspace.git_dir / "objects", self._borrowed(origin)]
        name = branch if await remote.is_branch(self._git, workspace.git_dir, branch) else "work"
        try:
            readable = await asyncio.to_thread(view.build, place, objects, name, commit, shared=shared)
            await self._git.check(place, "read-tree", commit)
        except (OSError, WorkspaceError) as error:
            # Git does not take every tree that we take, as one whose `.gitmodules` is a link.
            log.warning("view.missing", extra={"why": str(error)})
            return ()
        (place / "index").chmod(0o644)
        await workspace.show(place)
        return readable

    def _borrowed(self, origin: Origin) -> Path:
        """Find the object folder that the task's own one borrows from."""
        if remote.is_local(origin):
            return local.locate(Path(origin.url)).objects
        return self._state / "repositories" / f"{named(origin.key)}.git" / "objects"

    async def remote_head(self, task_id: str, origin: Origin, branch: str) -> str | None:
        """Ask the remote where a branch stands; None where there is none."""
        git_dir = self._tasks / named(task_id) / "repository.git"
        _, found = await remote.heads(self._git, git_dir, origin, branch)
        return found.get(branch)

    async def fetch(self, task_id: str, origin: Origin, branch: str) -> str:
        """Bring a branch's newest commit within reach; see `Workspaces.fetch`."""
        return await self._base(self._tasks / named(task_id) / "repository.git", origin, branch, None)

    async def forget(self, task_id: str, *, but_commits: bool = False) -> None:
        """Remove the task's work tree and git directory, and give back its uid; see `Workspaces.forget`."""
        kept = {b"repository.git"} if but_commits else set()
        await asyncio.to_thread(_remove, self._tasks, named(task_id), kept)

    async def fetch_back(self, checkout: Path, workspace: GitWorkspace, commit: str, branch: str) -> None:
        """Bring a finished commit as a new branch into a person's repository; see `local.fetch_back`."""
        await local.fetch_back(self._git, checkout, workspace.git_dir, commit, branch)

    async def uncommitted(self, checkout: Path) -> Sequence[str]:
        """List what a person has not committed, which a task would not see."""
        return await local.uncommitted(self._git, checkout)

    async def _base(self, git_dir: Path, origin: Origin, branch: str, commit: str | None) -> str:
        """Make the commit to stand on readable in the task's git directory."""
        store = ObjectStore(git_dir)
        if remote.is_local(origin):
            checkout = local.locate(Path(origin.url))
            await asyncio.to_thread(store.create, self._borrowed(origin))
            if commit is not None and await self._has(git_dir, commit):
                return commit
            tip = await local.branch_tip(self._git, checkout, branch)
            return tip if commit is None else await self._required(git_dir, commit)
        cache = self._state / "repositories" / f"{named(origin.key)}.git"
        await asyncio.to_thread(store.create, self._borrowed(origin))
        if commit is not None and cache.exists() and await self._has(git_dir, commit):
            return commit
        async with locked(cache.with_suffix(".lock")):
            await asyncio.to_thread(_prepare, cache)
            tip = await remote.fetch(self._git, cache, origin, branch)
            if commit is not None and not await self._has(git_dir, commit):
                await remote.fetch_commit(self._git, cache, origin, commit)
        return tip if commit is None else await self._required(git_dir, commit)

    async def _has(self, git_dir: Path, commit: str) -> bool:
        return (await self._git.run(git_dir, "cat-file", "-e", f"{_full(commit)}^{{commit}}")).code == 0

    async def _required(self, git_dir: Path, commit: str) -> str:
        if not await self._has(git_dir, commit):
            raise WorkspaceError(f"commit {commit[:12]} is not on this machine")
        return commit


def _prepare(cache: Path) -> None:
    ObjectStore(cache).create()
    remote.sweep(cache)


def _remove(tasks: Path, name: str, kept: Collection[bytes]) -> None:
    if not (tasks / name).exists():
        return
    with files.opened_root(tasks) as parent, files.opened(parent, os.fsencode(name)) as task:
        # The tree first, the uid's record last: nobody gets the uid while its files are there.
        for entry in sorted(files.names_in(task), key=lambda entry: (entry != b"tree", entry)):
            if entry not in kept:
                files.remove(task, entry)
        if not kept:
            os.rmdir(name, dir_fd=parent)


def named(name: str) -> str:
    """Refuse an id that is no plain folder name."""
    if not _NAME.fullmatch(name):
        raise WorkspaceError(f"`{name[:100]}` cannot name a folder")
    return name


def _full(commit: str) -> str:
    if not re.fullmatch(r"[0-9a-f]{40}", commit):
        raise WorkspaceError(f"`{commit[:100]}` is no full commit id")
    return commit
