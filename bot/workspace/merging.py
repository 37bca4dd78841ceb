"""Joins commits without a work tree: git writes objects alone, and no program that a repository names has a say.

A bare repository's git reads no `.gitattributes`, its own attributes beat them all the same, and its configuration is
ours, so that no merge driver is known.

Source: https://git-scm.com/docs/git-merge-tree
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bot.domain.merging import Clash, Conflict, Merged, PutOn
from bot.errors import WorkspaceError
from bot.workspace.git import Git
from bot.workspace.objects import ObjectStore
from bot.workspace.tree import LINK, SUBMODULE

_SETTINGS = (
    "merge.conflictStyle=diff3",
    "merge.renames=true",
    # A file that is new in a folder which the other side renamed stays where its author put it.
    "merge.directoryRenames=false",
)
_CLASHES: Mapping[str, Clash] = {
    "binary": "binary",
    "modify/delete": "deleted",
    "rename/delete": "renamed",
    "rename/rename": "renamed",
    "rename involved in collision": "renamed",
    "file/directory": "kind",
    "distinct modes": "kind",
}
_TOLD_BY = re.compile(r"CONFLICT \((.+)\)")
_MOST = 1_000
"""Commits of others among which an earlier life's is looked for."""
_FACTS = "%H%x00%an%x00%ae%x00%at%x00%cn%x00%ce%x00%ct%x00%B"
_FIELDS = 8


async def merge(git: Git, git_dir: Path, ours: str, theirs: str) -> Merged:
    """Join two commits; in markers each side is named by its full id.

    Raises:
        WorkspaceError: they have nothing in common, or are not on this machine.
    """
    there = (await git.run(git_dir, "merge-base", "--is-ancestor", theirs, ours)).code == 0
    options = [part for one in _SETTINGS for part in ("-c", one)]
    command = ("merge-tree", "--write-tree", "-z", "--messages")
    outcome = await git.run(git_dir, *options, *command, ours, theirs)
    if outcome.code not in {0, 1}:
        why = outcome.stderr.strip() or f"exit code {outcome.code}"
        raise WorkspaceError(f"{ours[:12]} and {theirs[:12]} could not be joined: {why}")
    tree, _, rest = outcome.stdout.partition(b"\0")
    if outcome.code == 0:
        return Merged(tree.decode(), there=there)
    listed, _, told = rest.partition(b"\0\0")
    conflicts = _conflicts([line for line in listed.split(b"\0") if line], told.split(b"\0"))
    if not conflicts:
        raise WorkspaceError(f"{ours[:12]} and {theirs[:12]} could not be joined, and git does not say where")
    return Merged(tree.decode(), conflicts)


def _conflicts(listed: Sequence[bytes], told: Sequence[bytes]) -> list[Conflict]:
    modes: dict[bytes, set[int]] = {}
    for line in listed:
        facts, _, path = line.partition(b"\t")
        modes.setdefault(path, set()).add(int(facts.split()[0], 8))
    found: dict[bytes, Clash] = {}
    for paths, kind in _told(told):
        match = _TOLD_BY.fullmatch(kind)
        for path in paths if match else ():
            if match and found.get(path, "lines") == "lines" and (path in modes or not modes):
                found[path] = _CLASHES.get(match[1], "lines")
    made = {path: _clash(kinds, found.get(path, "lines")) for path, kinds in modes.items()} or found
    return [Conflict(os.fsdecode(path), clash) for path, clash in sorted(made.items())]


def _told(fields: Sequence[bytes]) -> Iterator[tuple[Sequence[bytes], str]]:
    """Read git's remarks: how many paths, these, a stable kind, and words."""
    at = 0
    # Advice on submodules stands behind them.
    while at < len(fields) and fields[at].isdigit():
        count = int(fields[at])
        yield fields[at + 1 : at + 1 + count], fields[at + 1 + count].decode(errors="replace")
        at += count + 3


def _clash(modes: set[int], told: Clash) -> Clash:
    if SUBMODULE in modes:
        return "submodule"
    if modes == {LINK}:
        return "link" if told == "lines" else told
    return "kind" if LINK in modes else told


async def put_on(git: Git, store: ObjectStore, commit: str, head: str, since: str) -> PutOn | None:
    """Make a commit whose change is the same on top of another head; author, date and message stay.

    Args:
        git: the runner.
        store: takes the commit in; the same arguments give the same id.
        commit: whose change it is.
        head: what it is to stand on.
        since: what both came from.

    Returns:
        None where the changes conflict, or `head` does not go on from `since`.
    """
    ahead = await git.run(store.git_dir, "merge-base", "--is-ancestor", since, head)
    if ahead.code:
        return None
    ((_, *ours),) = await _facts(git, store.git_dir, "--no-walk", commit)
    others = await _facts(git, store.git_dir, f"--max-count={_MOST}", f"{since}..{head}")
    there = next((str(sha) for sha, *facts in others if facts == ours), None)
    if there is not None:
        below = await _facts(git, store.git_dir, f"--max-count={_MOST}", f"{since}..{there}")
        return PutOn(there, len(below) - 1, there=True)
    merged = await merge(git, store.git_dir, head, commit)
    if merged.conflicts:
        return None
    if merged.tree == (await git.check(store.git_dir, "rev-parse", "--verify", f"{head}^{{tree}}")).decode().strip():
        return PutOn(head, len(others), there=True, same=True)
    raw = await git.check(store.git_dir, "cat-file", "commit", commit)
    header, _, message = raw.partition(b"\n\n")
    kept = [line for line in header.split(b"\n") if not line.startswith((b"tree ", b"parent "))]
    lines = [b"tree " + merged.tree.encode(), b"parent " + head.encode(), *kept]
    return PutOn(store.write("commit", b"\n".join(lines) + b"\n\n" + message), len(others), there=False)


async def _facts(git: Git, git_dir: Path, *which: str) -> list[list[str]]:
    """Tell commits by id, author, dates and message; two of one author, date and message are the same work."""
    raw = await git.check(git_dir, "log", "-z", f"--format={_FACTS}", *which, "--")
    fields = raw.decode(errors="surrogateescape").split("\0")
    return [fields[at : at + _FIELDS] for at in range(0, len(fields) - _FIELDS + 1, _FIELDS)]
