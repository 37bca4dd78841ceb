"""A commit's tree in memory: loaded once, changed by path, written back where it changed."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from stat import S_ISREG
from typing import IO

from bot.errors import RepositoryRefused
from bot.workspace.objects import ObjectStore
from bot.workspace.paths import why_unsafe

LINK = 0o120000
SUBMODULE = 0o160000
FOLDER = 0o40000

Stamp = tuple[int, int, int, int]
"""Modification time, change time, size and inode of a file that is known to hold what its `Leaf` says."""


@dataclass(slots=True)
class Leaf:
    """A file, a symbolic link or a submodule."""

    mode: int
    sha: str
    stamp: Stamp | None = None


@dataclass(slots=True)
class Folder:
    """A folder; only folders that hold something are kept in git."""

    children: dict[bytes, "Leaf | Folder"] = field(default_factory=dict)
    sha: str | None = None
    """Its tree's id; None where it changed since it was written."""


def is_regular(mode: int) -> bool:
    """Tell a regular file from a link, a folder and a submodule."""
    return S_ISREG(mode)


def save(folder: Folder, store: ObjectStore) -> str:
    """Write every tree that changed and return the root's id."""
    if folder.sha is None:
        rows = sorted((name + b"/" * isinstance(child, Folder), child) for name, child in folder.children.items())
        data = bytearray()
        for key, child in rows:
            is_folder = isinstance(child, Folder)
            sha = save(child, store) if isinstance(child, Folder) else child.sha
            mode = FOLDER if isinstance(child, Folder) else child.mode
            data += b"%o %s\0" % (mode, key[:-1] if is_folder else key) + bytes.fromhex(sha)
        folder.sha = store.write("tree", bytes(data))
    return folder.sha


def placed(folder: Folder, path: Sequence[bytes], entry: "Leaf | Folder | None") -> Folder:
    """Return a tree in which an entry lies at a path, or None does; the tree that is given stays as it is.

    Args:
        folder: the tree.
        path: names from its top on.
        entry: what is to be there; of a folder its id is enough.
    """
    name, *rest = path
    children = dict(folder.children)
    there = children.pop(name, None)
    if rest:
        inside = placed(there if isinstance(there, Folder) else Folder(), rest, entry)
        # A file that stands where the path would go through gives way only to something.
        entry = inside if inside.children else there if isinstance(there, Leaf) else None
    if entry is not None:
        children[name] = entry
    return Folder(children)


def regular_files(listing: bytes) -> dict[str, int]:
    """Read `ls-tree -z --long` of one folder: its regular files, with their sizes in bytes."""
    found = {}
    for record in filter(None, listing.split(b"\0")):
        about, _, name = record.partition(b"\t")
        mode, _, _, size = about.split()
        if is_regular(int(mode, 8)) and size.isdigit():
            found[os.fsdecode(name)] = int(size)
    return found


def leaves(folder: Folder, above: bytes = b"") -> Iterator[tuple[bytes, Leaf]]:
    """Yield every file with its path, folder by folder."""
    for name, child in folder.children.items():
        if isinstance(child, Folder):
            yield from leaves(child, above + name + b"/")
        else:
            yield above + name, child


@dataclass(frozen=True, slots=True)
class Limits:
    """What a work tree may hold."""

    max_files: int = 50_000
    max_bytes: int = 1 << 30
    max_file_bytes: int = 50 << 20
    """A new file above this is left out of commits; GitHub refuses 100 MB and warns at 50."""


def loader(limits: Limits) -> Callable[[IO[bytes]], Folder]:
    """Return a reader of `ls-tree -r -t -z --long` that stops at the first thing we cannot check out."""

    def load(stream: IO[bytes]) -> Folder:
        folders = {b"": Folder()}
        files = size = 0
        for record in _records(stream):
            about, _, path = record.partition(b"\t")
            mode, kind, sha, length = about.split()
            above, _, name = path.rpartition(b"/")
            reason = why_unsafe(path) or _why_misplaced(folders.get(above), name)
            if reason:
                raise RepositoryRefused(f"the repository cannot be checked out: `{_shown(path)}` {reason}")
            if kind == b"tree":
                made = folders[path] = Folder(sha=sha.decode())
                folders[above].children[name] = made
                # A bomb may be nothing but folders.
                _refuse_above(limits, len(folders), size)
                continue
            folders[above].children[name] = Leaf(int(mode, 8), sha.decode())
            files += 1
            size += _size(length, path)
            _refuse_above(limits, files, size)
        return folders[b""]

    return load


def _size(length: bytes, path: bytes) -> int:
    """Read a size as `--long` gives it: `-` for a submodule, `BAD` for an object that is not there."""
    if length == b"BAD":
        raise RepositoryRefused(f"the repository is incomplete: `{_shown(path)}` is missing; `git fetch --refetch` it")
    return int(length) if length != b"-" else 0


def _why_misplaced(folder: Folder | None, name: bytes) -> str | None:
    """Say why a broken tree's entry has no place of its own, as a file below a link; None where it has."""
    if folder is None:
        return "is absolute or leaves its folder"
    return "is there twice" if name in folder.children else None


def _refuse_above(limits: Limits, files: int, size: int) -> None:
    if files > limits.max_files:
        raise RepositoryRefused(
            f"the repository is too large: more than {limits.max_files:,} files or folders; "
            "raise the limit to work on it"
        )
    if size > limits.max_bytes:
        raise RepositoryRefused(
            f"the repository is too large: its files take more than {limits.max_bytes / 2**20:,.0f} MiB; "
            "raise the limit to work on it"
        )


def _records(stream: IO[bytes]) -> Iterator[bytes]:
    rest = b""
    while chunk := stream.read(1 << 16):
        *records, rest = (rest + chunk).split(b"\0")
        yield from records


def _shown(path: bytes) -> str:
    return path[:200].decode(errors="replace").replace("`", "'")
