"""Commits, differences and ancestry of a bare repository."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from bot.testing.hub.errors import HubError
from bot.testing.hub.git.objects import Objects, Person
from bot.testing.hub.git.plumbing import ZERO

STATUSES = {"A": "added", "D": "removed", "M": "modified", "R": "renamed", "C": "copied", "T": "changed"}


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit as git holds it."""

    sha: str
    tree: str
    parents: tuple[str, ...]
    author: Person
    committer: Person
    message: str


@dataclass(frozen=True, slots=True)
class FileChange:
    """One file of a diff; `patch` is None for binary files."""

    path: str
    status: str
    additions: int
    deletions: int
    blob: str
    patch: str | None
    previous: str | None = None


class Git(Objects):
    """One bare repository, whole."""

    def resolve(self, name: str) -> str | None:
        """Return the commit that a branch, tag, full ref or object id names, or None."""
        for candidate in (f"refs/heads/{name}", f"refs/tags/{name}", name):
            done = self.attempt("rev-parse", "--verify", "--quiet", "--end-of-options", f"{candidate}^{{commit}}")
            if done.returncode == 0:
                return done.stdout.decode().strip()
        return None

    def commits(self, *revisions: str, limit: int = 250, paths: Sequence[str] = ()) -> list[Commit]:
        """Return the newest commits, oldest first, as `git log` selects them by revisions (`base..head`) and paths."""
        form = "%H%x00%T%x00%P%x00%an%x00%ae%x00%aI%x00%cn%x00%ce%x00%cI%x00%B%x00%x01"
        raw = self.run("log", "--reverse", f"--max-count={limit}", f"--format={form}", *revisions, "--", *paths).decode(
            errors="replace"
        )
        return [_commit(record.lstrip("\n")) for record in raw.split("\x01") if record.strip("\n")]

    def commit(self, sha: str) -> Commit:
        """Return one commit.

        Raises:
            HubError: 404 when there is none of that id.
        """
        known = self.resolve(sha)
        if known is None:
            raise HubError(404, "Not Found")
        return self.commits("-1", known)[0]

    def merge_base(self, one: str, other: str) -> str | None:
        """Return the best common ancestor, or None."""
        done = self.attempt("merge-base", one, other)
        return done.stdout.decode().strip() if done.returncode == 0 else None

    def count(self, base: str, head: str) -> int:
        """Return how many commits `head` has that `base` has not."""
        return int(self.run("rev-list", "--count", f"{base}..{head}"))

    def is_ancestor(self, old: str, new: str) -> bool:
        """Tell whether moving from `old` to `new` is a fast-forward."""
        return self.attempt("merge-base", "--is-ancestor", old, new).returncode == 0

    def merges_cleanly(self, base: str, head: str) -> bool:
        """Tell whether the two commits merge without a conflict."""
        return self.attempt("merge-tree", "--write-tree", base, head).returncode == 0

    def diff(self, base: str, head: str) -> list[FileChange]:
        """Return the files that differ between two commits or trees, with patches."""
        flags = ("--no-ext-diff", "--no-textconv", "--find-renames", "-r", base, head)
        raw = self.run("diff-tree", "--raw", "-z", "--no-abbrev", *flags).decode(errors="replace")
        counts = self.run("diff-tree", "--numstat", *flags).decode(errors="replace").splitlines()
        patches = _patches(self.run("diff-tree", "-p", *flags).decode(errors="replace"))
        return _changes(raw.split("\0"), counts, patches)

    def paths_touched(self, old: str, new: str, folder: str) -> list[str]:
        """Return the paths under `folder` that commits of `new` touch which no ref has yet."""
        flags = ("--format=", "--name-only", "-m", "--no-renames", new, "--not", "--all")
        known = () if old == ZERO else (old,)
        raw = self.run("log", *flags, *known, "--", folder).decode(errors="replace")
        return sorted({line for line in raw.splitlines() if line})


def _commit(record: str) -> Commit:
    sha, tree, parents, *people, message, _ = record.split("\x00")
    author = Person(people[0], people[1], datetime.fromisoformat(people[2]))
    committer = Person(people[3], people[4], datetime.fromisoformat(people[5]))
    return Commit(sha, tree, tuple(parents.split()), author, committer, message.rstrip("\n"))


def _patches(text: str) -> list[str | None]:
    """Split a patch by file, keeping only the hunks; None where git shows none."""
    parts = re.split(r"(?m)^diff --git .*\n", text)[1:]
    hunks = (re.search(r"(?ms)^@@ .*", part) for part in parts)
    return [found.group().rstrip("\n") if found else None for found in hunks]


def _changes(raw: Sequence[str], counts: Sequence[str], patches: Sequence[str | None]) -> list[FileChange]:
    changes: list[FileChange] = []
    fields = iter(raw)
    for head in fields:
        if not head.startswith(":"):
            continue
        _, _, old, new, letter = head.split()
        path = next(fields)
        previous = None
        if letter[0] in "RC":
            previous, path = path, next(fields)
        added, removed, _ = counts[len(changes)].split("\t", 2)
        changes.append(
            FileChange(
                path=path,
                status=STATUSES[letter[0]],
                additions=int(added) if added != "-" else 0,
                deletions=int(removed) if removed != "-" else 0,
                blob=old if letter[0] == "D" else new,
                patch=patches[len(changes)] if len(changes) < len(patches) else None,
                previous=previous,
            )
        )
    return changes
