"""One task's working copy."""

import asyncio
import os
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import IO

from bot.domain.changes import FileChange
from bot.domain.merging import Merged, PutOn
from bot.errors import PushRejected, WorkspaceError
from bot.workspace import files, merging, remote, view
from bot.workspace.base import SUBMODULE_LEFT, Credentials, DiffStat, Identity, Origin
from bot.workspace.changes import changes, links
from bot.workspace.git import Git
from bot.workspace.ignore import LARGEST, Rules
from bot.workspace.objects import ObjectStore
from bot.workspace.record import Recorder, left_out_with
from bot.workspace.restore import Plan, Writer, beginning, content, requests
from bot.workspace.tree import FOLDER, SUBMODULE, Folder, Leaf, Limits, leaves, loader, placed, regular_files, save

WIP = "refs/agent/wip"
"""Where a task's latest checkpoint stands in its own git directory."""
OURSELVES = Identity("issuewright", "noreply@issuewright.invalid")
_LISTED = ("ls-tree", "-r", "-t", "-z", "--long", "--full-tree")
_DIFF = ("diff", "--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=all")
_NAMED = 1 << 20
"""Bytes of paths that a command is given: Linux takes 2 MiB of arguments and environment in all."""


class GitWorkspace:
    """A work tree, and outside of it a bare git directory that borrows the cache's objects.

    Git never sees the work tree: it is read and written through open folders that follow no link.
    """

    def __init__(  # noqa: PLR0913 made by `GitWorkspaces` only
        self,
        git: Git,
        git_dir: Path,
        root: Path,
        origin: Origin | None,
        *,
        limits: Limits,
        owner: int | None = None,
        excludes: bytes = b"",
        keep_foreign: bool = False,
    ) -> None:
        self._git = git
        self._store = ObjectStore(git_dir)
        self._root = root
        self._origin = origin
        self._limits = limits
        self._owner = owner
        self._rules = Rules().plus(excludes)
        self._keep_foreign = keep_foreign
        self._lock = asyncio.Lock()
        self._index: Folder | None = None
        self._current = ""
        self._current_tree = ""
        self._files = 0
        self._view: Path | None = None
        self._left_out: dict[str, str] = {}
        self._tracked: set[bytes] = set()
        """What the commits hold that the work stands on, folders too: ignore rules are no matter of theirs."""

    @property
    def root(self) -> Path:
        """The work tree; holds no `.git`."""
        return self._root

    @property
    def git_dir(self) -> Path:
        """The task's own bare repository."""
        return self._store.git_dir

    @property
    def left_out(self) -> Mapping[str, str]:
        """What the last checkpoints did not take in, by path, with the reason."""
        return dict(self._left_out)

    @property
    def files(self) -> int:
        """How many files the commit holds that was loaded last."""
        return self._files

    async def show(self, place: Path) -> None:
        """Lead the git of commands to a view of the repository, from now on and after each restore."""
        async with self._lock:
            self._view = place
            await asyncio.to_thread(self._point, self._root)

    def _point(self, root: Path) -> None:
        if self._view is not None:
            with _telling("given its view of git"), files.opened_root(root) as fd:
                view.point(fd, self._view, self._owner)

    async def adopt(self, commit: str) -> None:
        """Take a commit for what the work tree holds, without looking at it."""
        self._index = await self._load(commit)
        self._current, self._current_tree = commit, self._index.sha or ""

    async def fill(self, commit: str) -> None:
        """Make the work tree where there is none; it appears when it is complete."""
        new = await self._load(commit)
        staging = self._root.with_name(f"{self._root.name}.new")
        with _telling("written"):
            await asyncio.to_thread(_emptied, staging)
            await self._restore(None, new, staging, alone=True)
        if self._owner is not None:
            os.chown(staging, self._owner, self._owner)
        staging.replace(self._root)
        self._current, self._current_tree = commit, new.sha or ""
        self._store.point(WIP, commit)

    async def checkpoint(self, paths: Sequence[str] | None, message: str, at: datetime) -> str:
        """Keep the work tree as a commit; see `Workspace.checkpoint`."""
        async with self._lock:
            with _telling("recorded"):
                tree = await asyncio.to_thread(self._record, paths)
            if tree != self._current_tree:
                self._current = self._store.commit(tree, self._current, OURSELVES, at, message)
                self._current_tree = tree
                self._store.point(WIP, self._current)
            return self._current

    async def restore(self, commit: str, *, bare: bool = False) -> None:
        """Make the work tree equal to a commit; see `Workspace.restore`."""
        async with self._lock:
            new = await self._load(commit)
            with _telling("restored"):
                await self._restore(self._index, new, self._root, bare=bare and not self._keep_foreign)
            self._current, self._current_tree = commit, new.sha or ""
            self._store.point(WIP, commit)

    async def commit(
        self, message: str, author: Identity, at: datetime, *, parent: str, without: str | None = None
    ) -> str | None:
        """Turn all that changed since `parent` into one commit; see `Workspace.commit`."""
        async with self._lock:
            self._track(await self._paths(parent))
            with _telling("recorded"):
                tree = await asyncio.to_thread(self._record, None)
            if without is not None and self._index is not None:
                names, old = _inside(without).split(b"/"), await self._entry(parent, without)
                tree = await asyncio.to_thread(save, placed(self._index, names, old), self._store)
            if tree == await self._tree_of(parent):
                return None
            made = self._store.commit(tree, parent, author, at, message)
            self._store.point("refs/agent/commit", made)
            return made

    async def push(
        self, commit: str, branch: str, *, expected: str | None, credentials: Credentials | None = None
    ) -> None:
        """Put the commit on the remote branch; see `Workspace.push`."""
        if self._origin is None:
            raise PushRejected("this run works in the checkout itself: look at the change, commit and push it yourself")
        origin = self._origin if credentials is None else replace(self._origin, credentials=credentials)
        await remote.push(self._git, self.git_dir, origin, commit, branch, expected=expected)

    async def diff(self, base: str, commit: str, *, limit_chars: int, paths: Sequence[str] = ()) -> str:
        """Return the unified diff between two commits; see `Workspace.diff`."""

        def read(stream: IO[bytes]) -> str:
            # A character takes four bytes at most.
            text = stream.read(limit_chars * 4 + 4).decode(errors="replace")
            return text if len(text) <= limit_chars else text[: text.rfind("\n", 0, limit_chars) + 1]

        some = paths if sum(len(os.fsencode(path)) + 9 for path in paths) <= _NAMED else ()
        # Who asks for some wants to see what is there, also of a submodule.
        modules = ("--ignore-submodules=none",) if paths else ()
        options = (*_DIFF, *modules, "-M", *_ids(base, commit))
        return await self._git.stream(self.git_dir, *options, "--", *some, consume=read)

    async def diff_stat(self, base: str, commit: str) -> DiffStat:
        """Count what changed between two commits; a renamed file counts once, a binary one has no lines."""
        text = (await self._git.check(self.git_dir, *_DIFF, "-M", "--shortstat", *_ids(base, commit), "--")).decode()
        counts = {word: int(number) for number, word in re.findall(r"(\d+) (file|insertion|deletion)", text)}
        return DiffStat(counts.get("file", 0), counts.get("insertion", 0), counts.get("deletion", 0))

    async def changed_paths(self, base: str, commit: str) -> Sequence[str]:
        """List the paths that differ between two commits, sorted; a renamed file gives both its names."""
        options = ("--name-only", "-z", "--no-renames")
        raw = await self._git.check(self.git_dir, *_DIFF, *options, *_ids(base, commit), "--")
        return sorted(os.fsdecode(path) for path in raw.split(b"\0") if path)

    async def changes(self, base: str, commit: str) -> tuple[Sequence[FileChange], int]:
        """List what differs, with modes and sizes; see `Workspace.changes`."""
        return await changes(self._git, self.git_dir, *_ids(base, commit))

    async def links(self, commit: str) -> Mapping[str, str]:
        """List the symbolic links as of a commit; see `Workspace.links`."""
        return await links(self._git, self.git_dir, *_ids(commit))

    async def read_at(self, commit: str, path: str) -> bytes | None:
        """Read a file as of a commit; None where it has none."""
        plain = posixpath.normpath(path)
        if plain.startswith(("/", "../")) or plain in {"..", "."}:
            return None
        (one,) = _ids(commit)
        outcome = await self._git.run(self.git_dir, "cat-file", "blob", f"{one}:{plain}")
        if outcome.code == 0:
            return outcome.stdout
        await self._tree_of(commit)
        return None

    async def files_at(self, commit: str, folder: str) -> Mapping[str, int]:
        """List the files in a folder as of a commit; see `Workspace.files_at`."""
        plain = "" if posixpath.normpath(folder) == "." else os.fsdecode(_inside(folder))
        (one,) = _ids(commit)
        outcome = await self._git.run(self.git_dir, "ls-tree", "-z", "--long", f"{one}:{plain}")
        if outcome.code:
            await self._tree_of(commit)
            return {}
        return regular_files(outcome.stdout)

    async def paths_named(self, commit: str, name: str) -> frozenset[str]:
        """List the paths of all files that have a name as of a commit; see `Workspace.paths_named`."""
        paths = map(os.fsdecode, await self._paths(commit))
        return frozenset(path for path in paths if path.rpartition("/")[2] == name)

    async def _paths(self, commit: str) -> Sequence[bytes]:
        """List the paths of all files as of a commit."""
        raw = await self._git.check(self.git_dir, "ls-tree", "-r", "-z", "--name-only", "--full-tree", *_ids(commit))
        return [path for path in raw.split(b"\0") if path]

    def _track(self, paths: Iterable[bytes]) -> None:
        for path in paths:
            above = path
            while above and above not in self._tracked:
                self._tracked.add(above)
                above = above.rpartition(b"/")[0]

    async def tree_of(self, commit: str) -> str:
        """Return the id of a commit's tree; see `Workspace.tree_of`."""
        return await self._tree_of(commit)

    async def mixed(self, commit: str, other: str, paths: Sequence[str], at: datetime) -> str:
        """Make a commit of two others' files; see `Workspace.mixed`."""
        async with self._lock:
            folder = await self._git.stream(
                self.git_dir, *_LISTED, await self._tree_of(commit), consume=loader(self._limits)
            )
            for path in paths:
                folder = placed(folder, _inside(path).split(b"/"), await self._entry(other, path))
            tree = await asyncio.to_thread(save, folder, self._store)
            return self._store.commit(tree, commit, OURSELVES, at, "Mixed for a check")

    async def with_file(
        self, commit: str, path: str, data: bytes | None, author: Identity, at: datetime, message: str
    ) -> str:
        """Make a commit in which a single file is another; see `Workspace.with_file`."""
        async with self._lock:
            folder = await self._git.stream(
                self.git_dir, *_LISTED, await self._tree_of(commit), consume=loader(self._limits)
            )
            entry = None if data is None else Leaf(0o100644, self._store.write("blob", data))
            tree = await asyncio.to_thread(save, placed(folder, _inside(path).split(b"/"), entry), self._store)
            return self._store.commit(tree, commit, author, at, message)

    async def merge(self, ours: str, theirs: str) -> Merged:
        """Join two commits; see `Workspace.merge`."""
        return await merging.merge(self._git, self.git_dir, *_ids(ours, theirs))

    async def joined(self, tree: str, parents: Sequence[str], author: Identity, at: datetime, message: str) -> str:
        """Make a commit of a tree; see `Workspace.joined`."""
        made, first, *also = _ids(tree, *parents)
        return self._store.commit(made, first, author, at, message, also=also)

    async def put_on(self, commit: str, head: str, *, since: str) -> PutOn | None:
        """Make the same change on top of another head; see `Workspace.put_on`."""
        return await merging.put_on(self._git, self._store, *_ids(commit, head, since))

    async def _entry(self, commit: str, path: str) -> Leaf | Folder | None:
        """Find what lies at a path as of a commit; of a folder the id alone is known."""
        plain = os.fsdecode(_inside(path))
        listing = await self._git.check(self.git_dir, "ls-tree", "-z", "--full-tree", *_ids(commit), "--", plain)
        if not listing:
            return None
        mode, _, sha = listing.partition(b"\t")[0].split()
        return Folder(sha=sha.decode()) if int(mode, 8) == FOLDER else Leaf(int(mode, 8), sha.decode())

    async def close(self) -> None:
        """Forget what is held in memory; the work tree stays."""
        async with self._lock:
            self._index = None

    async def _load(self, commit: str) -> Folder:
        tree = await self._tree_of(commit)
        folder = await self._git.stream(self.git_dir, *_LISTED, tree, consume=loader(self._limits))
        folder.sha = tree
        found = list(leaves(folder))
        self._files = len(found)
        self._track(path for path, _ in found)
        self._left_out = {os.fsdecode(path): SUBMODULE_LEFT for path, leaf in found if leaf.mode == SUBMODULE}
        return folder

    async def _tree_of(self, commit: str) -> str:
        (one,) = _ids(commit)
        outcome = await self._git.run(self.git_dir, "rev-parse", "--verify", "--quiet", f"{one}^{{tree}}")
        if outcome.code:
            raise WorkspaceError(f"commit {one[:12]} is not on this machine")
        return outcome.text

    async def _restore(
        self, old: Folder | None, new: Folder, root: Path, *, alone: bool = False, bare: bool = False
    ) -> None:
        self._index = None
        plan = Plan(await self._ignores(new), self._owner, keep_foreign=self._keep_foreign, bare=bare)
        await asyncio.to_thread(self._clear, plan, old, new, root)
        if plan.writes:
            with files.opened_root(root) as fd:
                writer = Writer(fd, plan.writes, self._owner, alone=alone)
                command = ("cat-file", "--batch", "--buffer")
                await self._git.stream(self.git_dir, *command, stdin=requests(plan.writes), consume=writer)
        await asyncio.to_thread(self._point, root)
        if alone:
            # A later change then shows in the time stamps, whose tick is 10 ms at most.
            await asyncio.sleep(0.012)
        self._index = new

    async def _ignores(self, folder: Folder) -> dict[bytes, bytes]:
        """Read a tree's own `.gitignore` files."""
        found = [(path, leaf) for path, leaf in leaves(folder) if path.rpartition(b"/")[2] == b".gitignore"]
        if not found:
            return {}

        def read(stream: IO[bytes]) -> dict[bytes, bytes]:
            return {path: beginning(content(stream), LARGEST) for path, _ in found}

        return await self._git.stream(self.git_dir, "cat-file", "--batch", stdin=requests(found), consume=read)

    def _clear(self, plan: Plan, old: Folder | None, new: Folder, root: Path) -> None:
        with files.opened_root(root) as fd:
            plan.folder(fd, old, new, b"", self._rules)

    def _record(self, paths: Sequence[str] | None) -> str:
        index = self._index
        if index is None:
            raise WorkspaceError("the working copy is closed or was not restored; open it again")
        recorder = Recorder(self._store, self._limits, self._owner, self._tracked)
        with files.opened_root(self._root) as root:
            if paths is None:
                recorder.everything(root, index, self._rules)
            for path in paths or ():
                recorder.path(root, index, _inside(path), self._rules)
        submodules = {path: reason for path, reason in self._left_out.items() if reason == SUBMODULE_LEFT}
        known = submodules if paths is None else self._left_out
        self._left_out = left_out_with(recorder.left_out, known)
        return save(index, self._store)


@contextmanager
def _telling(done: str) -> Iterator[None]:
    """Turn what the system says into an error of ours, as a full disk or a tree that changes all the time."""
    try:
        yield
    except OSError as error:
        raise WorkspaceError(f"the work tree could not be {done}: {error}") from error


def _emptied(folder: Path) -> None:
    with files.opened_root(folder.parent) as parent:
        if folder.exists():
            files.remove(parent, os.fsencode(folder.name))
    folder.mkdir(mode=0o700)


def _inside(path: str) -> bytes:
    plain = posixpath.normpath(path)
    if plain.startswith(("/", "../")) or plain in {"..", "."} or "\0" in plain:
        raise WorkspaceError(f"`{path}` is no path inside the work tree")
    return os.fsencode(plain)


def _ids(*commits: str) -> tuple[str, ...]:
    for commit in commits:
        if not re.fullmatch(r"[0-9a-f]{40}", commit):
            raise WorkspaceError(f"`{commit[:100]}` is no full commit id")
    return commits
