"""What differs between two commits: modes, sizes and where links lead."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

from bot.domain.changes import FileChange
from bot.workspace.git import Git
from bot.workspace.paths import LONGEST
from bot.workspace.restore import beginning, content, requests
from bot.workspace.tree import LINK, Leaf

_LISTED = ("ls-tree", "-r", "-z", "--long", "--full-tree")


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
    then, sizes = [dict(_sizes(await git.check(git_dir, *_LISTED, one))) for one in (base, commit)]
    links = [(path, Leaf(LINK, sha)) for path, _, after, _, sha in found if after == LINK]
    targets = dict(zip((path for path, _ in links), await _contents(git, git_dir, links), strict=True))
    made = (
        FileChange(
            os.fsdecode(path),
            before,
            after,
            sizes.get(path, 0),
            os.fsdecode(targets.get(path, b"")),
            sha,
            was,
            then.get(path, 0),
        )
        for path, before, after, was, sha in found
    )
    return sorted(made, key=lambda one: one.path), len(then)


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


def _rows(raw: bytes) -> Iterator[tuple[bytes, int, int, str, str]]:
    """Read `diff-tree --raw -z`: path, modes before and after, ids of the old object and of the new one."""
    pieces = raw.split(b"\0")
    for about, path in zip(pieces[::2], pieces[1::2], strict=False):
        before, after, was, sha, _ = about.lstrip(b":").split()
        yield path, int(before, 8), int(after, 8), was.decode(), sha.decode()


def _sizes(listing: bytes) -> Iterator[tuple[bytes, int]]:
    """Read `ls-tree --long`; a submodule has no size."""
    for record in filter(None, listing.split(b"\0")):
        about, _, path = record.partition(b"\t")
        size = about.split()[3]
        yield path, int(size) if size.isdigit() else 0


async def _contents(git: Git, git_dir: Path, links: Sequence[tuple[bytes, Leaf]]) -> Sequence[bytes]:
    """Read where links lead, as far as Linux takes it for a path."""
    if not links:
        return []

    def read(stream: IO[bytes]) -> list[bytes]:
        return [beginning(content(stream), LONGEST) for _ in links]

    return await git.stream(git_dir, "cat-file", "--batch", stdin=requests(links), consume=read)
