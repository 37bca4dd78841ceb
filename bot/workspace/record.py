"""Brings a tree in memory up to date with a work tree, as `git add -A` would, but reading it as an enemy's."""

import os
import stat
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from bot.errors import WorkspaceError
from bot.workspace import files
from bot.workspace.base import GIT_LEFT
from bot.workspace.ignore import LARGEST, Rules
from bot.workspace.objects import ObjectStore, blob_id
from bot.workspace.paths import DEEPEST, LONGEST, is_dot_git
from bot.workspace.tree import LINK, SUBMODULE, Folder, Leaf, Limits, Stamp, is_regular
from bot.workspace.view import NAME as VIEW

# A file that changes twice within one tick of the kernel's clock keeps its time stamps.
_TICK_NS = 50_000_000


def stamp_of(status: os.stat_result) -> Stamp:
    """Return what changes whenever a file's content may have changed; its owner cannot set the change time."""
    return (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)


def settled(status: os.stat_result, now_ns: int) -> Stamp | None:
    """Return a file's stamp where it can be trusted later; None where it is too fresh."""
    return stamp_of(status) if status.st_ctime_ns + _TICK_NS < now_ns else None


@dataclass
class Recorder:
    """One pass over a work tree."""

    store: ObjectStore
    limits: Limits
    owner: int | None = None
    tracked: Collection[bytes] = ()
    """Paths of files and folders that are the repository's, so that no rule ignores them: also where they were gone
    for a while."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Path and reason of what a commit will not hold."""
    count: int = 0
    size: int = 0

    def everything(self, root: int, index: Folder, rules: Rules) -> None:
        """Record the whole tree."""
        self._folder(root, index, b"", rules)

    def path(self, root: int, index: Folder, path: bytes, rules: Rules) -> None:
        """Record one path, which may be a file, a folder, or gone."""
        first, _, rest = path.partition(b"/")
        try:
            changed = self._descend(root, index, first, rest, b"", rules.plus(read_ignore(root, self.owner)))
        except OSError as error:
            # A folder above it changed under our hands; the next full pass takes it in.
            self.left_out[_text(path)] = error.strerror or str(error)
            return
        if changed:
            index.sha = None

    def _descend(self, fd: int, node: Folder, name: bytes, rest: bytes, above: bytes, rules: Rules) -> bool:
        if not rest:
            return self._entry(fd, node, name, above, rules)
        known = node.children.get(name)
        path = above + name
        try:
            is_folder = stat.S_ISDIR(files.status_of(fd, name).st_mode)
        except (FileNotFoundError, NotADirectoryError):
            is_folder = False
        if not is_folder or isinstance(known, Leaf) or is_dot_git(name):
            return self._entry(fd, node, name, above, rules)
        with files.opened(fd, name) as child:
            if known is None and (reason := _foreign(set(files.names_in(child)))):
                self.left_out[_text(path)] = reason
                return False
            folder = known or Folder()
            inside = rules.enter(name).plus(read_ignore(child, self.owner))
            first, _, further = rest.partition(b"/")
            changed = self._descend(child, folder, first, further, path + b"/", inside)
        return _attach(node, name, folder, changed=changed)

    def _folder(self, fd: int, node: Folder, above: bytes, rules: Rules) -> bool:
        names = files.names_in(fd)
        if b".gitignore" in names:
            rules = rules.plus(read_ignore(fd, self.owner))
        changed = False
        for name in [known for known in node.children if known not in set(names)]:
            changed |= self._drop(node, name)
        for name in names:
            changed |= self._entry(fd, node, name, above, rules)
        if changed:
            node.sha = None
        return changed

    def _entry(self, fd: int, node: Folder, name: bytes, above: bytes, rules: Rules) -> bool:
        known = node.children.get(name)
        path = above + name
        try:
            status = files.status_of(fd, name)
        except FileNotFoundError:
            return self._drop(node, name)
        if is_dot_git(name) and not (path == VIEW and stat.S_ISREG(status.st_mode)):
            self.left_out[_text(path)] = GIT_LEFT
            return False
        if path == VIEW or (isinstance(known, Leaf) and known.mode == SUBMODULE):
            return False
        try:
            return self._present(fd, node, name, above, rules, status)
        except OSError as error:
            # It changed under our hands, or its owner hid it.
            self.left_out[_text(path)] = error.strerror or str(error)
            return False

    def _present(self, fd: int, node: Folder, name: bytes, above: bytes, rules: Rules, status: os.stat_result) -> bool:
        path = above + name
        if len(path) > LONGEST:
            # Nobody could check it out, we ourselves no more than others.
            self.left_out[_text(path)] = f"a path longer than {LONGEST} bytes"
            return self._drop(node, name)
        if stat.S_ISDIR(status.st_mode):
            return self._subfolder(fd, node, name, above, rules)
        known = path in self.tracked or isinstance(node.children.get(name), Leaf)
        if not known and rules.ignores(name, is_folder=False):
            return self._drop(node, name)
        return self._leaf(fd, node, name, path, status)

    def _subfolder(self, fd: int, node: Folder, name: bytes, above: bytes, rules: Rules) -> bool:
        known = node.children.get(name)
        path = above + name
        if not isinstance(known, Folder) and path not in self.tracked and rules.ignores(name, is_folder=True):
            return self._drop(node, name)
        if path.count(b"/") >= DEEPEST:
            self.left_out[_text(path)] = f"deeper than {DEEPEST} folders"
            return False
        with files.opened(fd, name) as child:
            if not isinstance(known, Folder) and (reason := _foreign(set(files.names_in(child)))):
                self.left_out[_text(path)] = reason
                return self._drop(node, name)
            folder = known if isinstance(known, Folder) else Folder()
            changed = self._folder(child, folder, path + b"/", rules.enter(name))
        return _attach(node, name, folder, changed=changed)

    def _leaf(self, fd: int, node: Folder, name: bytes, path: bytes, status: os.stat_result) -> bool:
        self._count(status)
        known = node.children.get(name)
        old = known if isinstance(known, Leaf) else None
        if stat.S_ISLNK(status.st_mode):
            target = os.readlink(name, dir_fd=fd)
            made = Leaf(LINK, self.store.write("blob", target, known=old.sha if old else None))
        elif not stat.S_ISREG(status.st_mode):
            self.left_out[_text(path)] = "a pipe, socket or device"
            return self._drop(node, name)
        elif old and is_regular(old.mode) and old.stamp == stamp_of(status):
            made = Leaf(_mode(old, status), old.sha, old.stamp)
        else:
            read = self._regular(fd, name, path, old)
            if read is None:
                return False
            made = read
        node.children[name] = made
        return old is None or (old.mode, old.sha) != (made.mode, made.sha)

    def _regular(self, fd: int, name: bytes, path: bytes, old: Leaf | None) -> Leaf | None:
        now = time.time_ns()
        limit = self.limits.max_file_bytes
        with files.readable(fd, name, self.owner) as (file, status):
            stamp = settled(status, now)
            if status.st_size > limit and old:
                sha = blob_id(status.st_size, lambda size: os.read(file, size))
                if sha == old.sha:
                    return Leaf(_mode(old, status), sha, stamp)
            data = files.read_all(file, limit) if status.st_size <= limit else b""
            if status.st_size > limit or len(data) > limit:
                self.left_out[_text(path)] = f"larger than {limit / 2**20:.0f} MiB"
                return None
        return Leaf(_mode(old, status), self.store.write("blob", data, known=old.sha if old else None), stamp)

    def _count(self, status: os.stat_result) -> None:
        self.count += 1
        self.size += status.st_size if status.st_size <= self.limits.max_file_bytes else 0
        if self.count > self.limits.max_files or self.size > self.limits.max_bytes:
            raise WorkspaceError(
                f"the work tree has grown beyond {self.limits.max_files:,} files or "
                f"{self.limits.max_bytes / 2**20:,.0f} MiB; delete what was generated, or have `.gitignore` name it"
            )

    def _drop(self, node: Folder, name: bytes) -> bool:
        known = node.children.get(name)
        if known is None or (isinstance(known, Leaf) and known.mode == SUBMODULE):
            return False
        if isinstance(known, Folder) and (kept := _submodules(known)).children:
            # A submodule is never checked out, so its absence says nothing.
            node.children[name] = kept
        else:
            del node.children[name]
        node.sha = None
        return True


def read_ignore(fd: int, owner: int | None) -> bytes | None:
    """Read a folder's `.gitignore`; None where it has none that can be read."""
    try:
        with files.readable(fd, b".gitignore", owner) as (file, _):
            return files.read_all(file, LARGEST)[:LARGEST]
    except OSError:
        return None


def _attach(node: Folder, name: bytes, folder: Folder, *, changed: bool) -> bool:
    known = node.children.get(name)
    if folder.children:
        node.children[name] = folder
    elif known is not None:
        del node.children[name]
        changed = True
    if changed or node.children.get(name) is not known:
        folder.sha = None if changed else folder.sha
        node.sha = None
        return True
    return False


def _submodules(folder: Folder) -> Folder:
    kept = Folder()
    for name, child in folder.children.items():
        below = _submodules(child) if isinstance(child, Folder) else child
        if (isinstance(below, Folder) and below.children) or (isinstance(below, Leaf) and below.mode == SUBMODULE):
            kept.children[name] = below
    return kept


def _foreign(names: set[bytes]) -> str | None:
    """Say why a new folder is not ours; None where it is."""
    if any(is_dot_git(name) for name in names):
        return "a repository of its own"
    if {b"HEAD", b"objects", b"refs"} <= names:
        return "a bare repository"
    return None


def _mode(old: Leaf | None, status: os.stat_result) -> int:
    executable = bool(status.st_mode & 0o100)
    if old and is_regular(old.mode) and bool(old.mode & 0o100) == executable:
        return old.mode
    return 0o100755 if executable else 0o100644


def _text(path: bytes) -> str:
    return os.fsdecode(path)


def left_out_with(found: Mapping[str, str], submodules: Mapping[str, str]) -> dict[str, str]:
    """Join what a pass left out with the submodules, sorted by path."""
    return dict(sorted({**submodules, **found}.items()))
