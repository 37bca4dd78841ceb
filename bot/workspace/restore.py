"""Makes a work tree equal to a tree in memory: removes, compares, and writes only what differs."""

import os
import stat
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from io import BytesIO
from typing import IO

from bot.errors import WorkspaceError
from bot.workspace import files
from bot.workspace.ignore import Rules
from bot.workspace.objects import blob_id
from bot.workspace.paths import DEEPEST, is_dot_git
from bot.workspace.record import settled, stamp_of
from bot.workspace.tree import LINK, SUBMODULE, Folder, Leaf, is_regular, leaves

_CHUNK = 1 << 20
Write = tuple[bytes, Leaf]


@dataclass
class Plan:
    """Finds what has to be written after removing what is in the way."""

    ignores: Mapping[bytes, bytes]
    """Content of the wanted tree's `.gitignore` files by path: those on disk may be part of the mess."""
    owner: int | None = None
    keep_foreign: bool = False
    """Whether repositories inside the tree and their like stay, as in a person's own checkout."""
    bare: bool = False
    """Whether what is ignored goes too."""
    writes: list[Write] = field(default_factory=list)

    def folder(self, fd: int, old: Folder | None, new: Folder, above: bytes, rules: Rules) -> None:
        """Go through one folder that is on disk."""
        files.unlock(fd)
        rules = rules.plus(self.ignores.get(above + b".gitignore"))
        names = files.names_in(fd)
        for name in names:
            was = old.children.get(name) if old else None
            self._entry(fd, was, new.children.get(name), name, above, rules)
        for name in new.children.keys() - set(names):
            self._want(above + name, new.children[name])

    def _entry(
        self, fd: int, old: Leaf | Folder | None, new: Leaf | Folder | None, name: bytes, above: bytes, rules: Rules
    ) -> None:
        is_folder = stat.S_ISDIR(files.status_of(fd, name).st_mode)
        if new is None:
            self._stray(fd, name, above, rules, is_folder=is_folder)
        elif isinstance(new, Folder):
            if not is_folder:
                files.remove(fd, name)
                self._want(above + name, new)
                return
            with files.opened(fd, name) as child:
                was = old if isinstance(old, Folder) else None
                self.folder(child, was, new, above + name + b"/", rules.enter(name))
        elif new.mode == SUBMODULE:
            if not self.keep_foreign:
                files.remove(fd, name)
        elif is_folder or not self._same(fd, name, old if isinstance(old, Leaf) else None, new):
            files.remove(fd, name)
            self._want(above + name, new)

    def _stray(self, fd: int, name: bytes, above: bytes, rules: Rules, *, is_folder: bool) -> None:
        if self.bare:
            files.remove(fd, name)
            return
        foreign = is_dot_git(name)
        if foreign and self.keep_foreign:
            return
        if not foreign and rules.ignores(name, is_folder=is_folder):
            return
        if is_folder and not foreign and above.count(b"/") < DEEPEST:
            with files.opened(fd, name) as child:
                foreign = any(is_dot_git(inside) for inside in files.names_in(child))
                if foreign and self.keep_foreign:
                    return
                if not foreign:
                    self.folder(child, None, Folder(), above + name + b"/", rules.enter(name))
                if files.names_in(child) and not foreign:
                    # Something ignored is left in it.
                    return
        files.remove(fd, name)

    def _same(self, fd: int, name: bytes, old: Leaf | None, new: Leaf) -> bool:
        status = files.status_of(fd, name)
        if stat.S_ISLNK(status.st_mode):
            target = os.readlink(name, dir_fd=fd)
            return new.mode == LINK and blob_id(len(target), BytesIO(target).read) == new.sha
        if not stat.S_ISREG(status.st_mode) or not is_regular(new.mode):
            return False
        if bool(status.st_mode & 0o100) != bool(new.mode & 0o100):
            return False
        if old and old.stamp == stamp_of(status) and is_regular(old.mode):
            new.stamp = old.stamp
            return old.sha == new.sha
        return self._hash(fd, name, new)

    def _hash(self, fd: int, name: bytes, new: Leaf) -> bool:
        now = time.time_ns()
        try:
            with files.readable(fd, name, self.owner) as (file, status):
                same = blob_id(status.st_size, lambda size: os.read(file, size)) == new.sha
        except OSError:
            return False
        if same:
            new.stamp = settled(status, now)
        return same

    def _want(self, path: bytes, new: Leaf | Folder) -> None:
        if isinstance(new, Folder):
            self.writes += [(path + b"/" + below, leaf) for below, leaf in leaves(new) if leaf.mode != SUBMODULE]
        elif new.mode != SUBMODULE:
            self.writes.append((path, new))


def requests(writes: Sequence[Write]) -> bytes:
    """Return what to ask `cat-file --batch` for."""
    return b"".join(leaf.sha.encode() + b"\n" for _, leaf in writes)


@dataclass
class Writer:
    """Writes files from the answers of `cat-file --batch`."""

    root: int
    writes: Sequence[Write]
    owner: int | None = None
    alone: bool = False
    """Whether nobody else can reach the tree yet, so that fresh time stamps can be trusted."""

    def __call__(self, stream: IO[bytes]) -> None:
        """Write everything, keeping the last folder open for its neighbours."""
        last: bytes | None = None
        with ExitStack() as stack:
            fd = self.root
            for path, leaf in self.writes:
                above, _, name = path.rpartition(b"/")
                if above != last:
                    stack.close()
                    fd = self._folder(stack, above)
                    last = above
                self._leaf(fd, name, leaf, content(stream))

    def _folder(self, stack: ExitStack, path: bytes) -> int:
        fd = self.root
        for name in path.split(b"/") if path else ():
            files.make_folder(fd, name, self.owner)
            fd = stack.enter_context(files.opened(fd, name))
            files.unlock(fd)
        return fd

    def _leaf(self, fd: int, name: bytes, leaf: Leaf, chunks: Iterator[bytes]) -> None:
        if leaf.mode == LINK:
            files.write_link(fd, name, b"".join(chunks), self.owner)
            return
        status = files.write_file(fd, name, leaf.mode, chunks, self.owner)
        leaf.stamp = stamp_of(status) if self.alone else settled(status, time.time_ns())


def content(stream: IO[bytes]) -> Iterator[bytes]:
    """Yield one answer of `cat-file --batch`; it has to be read to its end before the next.

    Raises:
        WorkspaceError: git has no such object, or ended.
    """
    header = stream.readline().split()
    if len(header) != 3:  # noqa: PLR2004 id, kind, size
        raise WorkspaceError(f"git could not read an object: {b' '.join(header).decode(errors='replace')}")
    left = int(header[2])
    while left:
        chunk = stream.read(min(left, _CHUNK))
        if not chunk:
            raise WorkspaceError("git ended in the middle of an object")
        left -= len(chunk)
        yield chunk
    stream.read(1)


def beginning(chunks: Iterable[bytes], limit: int) -> bytes:
    """Take chunks to their end and keep the first `limit` bytes."""
    kept = bytearray()
    for chunk in chunks:
        kept += chunk[: limit - len(kept)]
    return bytes(kept)
