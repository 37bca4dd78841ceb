"""What differs between two commits: modes, sizes and where links lead."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

from bot.domain.changes import FileChange
from bot.workspace.git import Git
from bot.workspace.paths import LONGEST
from bot.workspace.restore import beginning, content, requests
from bot.workspace.tree import LINK, SUBMODULE, Leaf

Row = tuple[bytes, int, int, str, str]
"""A path that differs: its modes before and after, the ids of the old object and of the new one."""

_LISTED = ("ls-tree", "-r", "-z", "--full-tree")


async def changes(git: Git, git_dir: Path, base: str, commit: str) -> tuple[Sequence[FileChange], int]:
    """List the paths that differ, sorted, and count the files of the base; a renamed file gives both its names.

    Args:
        git: git.
        git_dir: the repository.
        base: a full id.
        commit: a full id.
    """
    options = ("-r", "-z", "--raw", "--no-renames", "--no-abbrev")
    found = list(_rows(await git.check(git_dir, "diff-tree", *options, base, commit, "--")))
    listing = await git.check(git_dir, *_LISTED, "--name-only", base)
    sizes = await _sizes(git, git_dir, found)
    links = [(path, Leaf(LINK, sha)) for path, _, after, _, sha in found if after == LINK]
    targets = dict(zip((path for path, _ in links), await _contents(git, git_dir, links), strict=True))
    made = (
        FileChange(
            os.fsdecode(path),
            before,
            after,
            sizes.get(sha, 0),
            os.fsdecode(targets.get(path, b"")),
            sha,
            was,
            sizes.get(was, 0),
        )
        for path, before, after, was, sha in found
    )
    return sorted(made, key=lambda one: one.path), listing.count(b"\0")


async def links(git: Git, git_dir: Path, commit: str) -> Mapping[str, str]:
    """List the symbolic links as of a commit, by path, with their targets.

    Args:
        git: git.
        git_dir: the repository.
        commit: a full id.
    """
    records = [
        record.partition(b"\t") for record in (await git.check(git_dir, *_LISTED, commit)).split(b"\0") if record
    ]
    found = [(path, about.split()) for about, _, path in records]
    made = [(path, Leaf(LINK, facts[2].decode())) for path, facts in found if int(facts[0], 8) == LINK]
    targets = await _contents(git, git_dir, made)
    return {os.fsdecode(path): os.fsdecode(target) for (path, _), target in zip(made, targets, strict=True)}


def _rows(raw: bytes) -> Iterator[Row]:
    """Read `diff-tree --raw -z`."""
    pieces = raw.split(b"\0")
    for about, path in zip(pieces[::2], pieces[1::2], strict=False):
        before, after, was, sha, _ = about.lstrip(b":").split()
        yield path, int(before, 8), int(after, 8), was.decode(), sha.decode()


async def _sizes(git: Git, git_dir: Path, found: Sequence[Row]) -> Mapping[str, int]:
    """Ask for the bytes of what differs, by id: of a whole tree that takes long."""
    sides = (side for _, before, after, was, sha in found for side in ((before, was), (after, sha)))
    ids = {one for mode, one in sides if mode not in {0, SUBMODULE}}
    asked = "".join(f"{one}\n" for one in ids).encode()
    raw = await git.check(git_dir, "cat-file", "--batch-check=%(objectname) %(objectsize)", stdin=asked)
    lines = (line.split() for line in raw.decode().splitlines())
    return {one: int(size) for one, size in lines if size.isdigit()}


async def _contents(git: Git, git_dir: Path, links: Sequence[tuple[bytes, Leaf]]) -> Sequence[bytes]:
    """Read where links lead, as far as Linux takes it for a path."""
    if not links:
        return []

    def read(stream: IO[bytes]) -> list[bytes]:
        return [beginning(content(stream), LONGEST) for _ in links]

    return await git.stream(git_dir, "cat-file", "--batch", stdin=requests(links), consume=read)
