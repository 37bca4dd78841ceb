"""Blobs, trees and commits of a bare repository: reading and writing."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from bot.testing.hub.git.plumbing import ZERO, Plumbing

SCRATCH = "refs/hub/scratch"


@dataclass(frozen=True, slots=True)
class Person:
    """Author or committer of a commit."""

    name: str
    email: str
    date: datetime


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a tree; `size` is 0 for anything but a blob."""

    mode: str
    type: str
    sha: str
    path: str
    size: int


class Objects(Plumbing):
    """What a repository stores."""

    def tree(self, revision: str, path: str = "") -> list[Entry]:
        """Return the entries of a directory; `path` is relative to the root, without slashes at its ends."""
        spec = f"{revision}:{path}" if path else f"{revision}^{{tree}}"
        raw = self.run("ls-tree", "-z", "--long", "--end-of-options", spec).decode(errors="replace")
        return [_entry(record) for record in raw.split("\0") if record]

    def find(self, revision: str, path: str) -> Entry | None:
        """Return the entry at a path, or None."""
        parent, _, name = path.rpartition("/")
        if parent and self.kind(f"{revision}:{parent}") != "tree":
            return None
        return next((entry for entry in self.tree(revision, parent) if entry.path == name), None)

    def blob(self, sha: str) -> bytes:
        """Return the bytes of a blob."""
        return self.run("cat-file", "blob", sha)

    def write_blob(self, content: bytes) -> str:
        """Store a blob and return its id."""
        return self.run("hash-object", "-w", "--stdin", stdin=content).decode().strip()

    def write_tree(self, changes: Sequence[tuple[str, str | None, str]], base: str | None = None) -> str:
        """Store a tree and return its id.

        Args:
            changes: (mode, blob id or None to delete, path).
            base: tree or commit that the changes are laid upon.
        """
        with tempfile.TemporaryDirectory(prefix="hub-index-") as folder:
            env = {"GIT_INDEX_FILE": f"{folder}/index"}
            self.run("read-tree", *([base] if base else ["--empty"]), env=env)
            trees = [(sha, path) for mode, sha, path in changes if mode == "040000" and sha]
            for sha, path in trees:
                self.run("read-tree", f"--prefix={path}/", sha, env=env)
            lines = [
                f"{mode} {sha}\t{path}\0" if sha else f"0 {ZERO}\t{path}\0"
                for mode, sha, path in changes
                if mode != "040000"
            ]
            self.run("update-index", "-z", "--index-info", stdin="".join(lines).encode(), env=env)
            return self.run("write-tree", env=env).decode().strip()

    def import_commit(
        self,
        files: Sequence[tuple[str, str, bytes | None]],
        message: str,
        author: Person,
        *,
        parent: str | None,
        ref: str | None,
    ) -> str:
        """Store a commit with its files in one go, set a full ref to it if given, and return its id.

        Args:
            files: (mode, path, content or None to delete), laid upon the parent.
            message: of the commit.
            author: and committer.
            parent: commit id, or None for a root commit.
            ref: full name, set without a check.
        """
        done = self.run("fast-import", "--quiet", "--force", stdin=_stream(files, message, author, parent, ref))
        return done.decode().strip()

    def write_commit(
        self, tree: str, parents: Sequence[str], message: str, author: Person, committer: Person | None = None
    ) -> str:
        """Store a commit and return its id."""
        committer = committer or author
        env = {
            "GIT_AUTHOR_NAME": author.name,
            "GIT_AUTHOR_EMAIL": author.email,
            "GIT_AUTHOR_DATE": author.date.isoformat(),
            "GIT_COMMITTER_NAME": committer.name,
            "GIT_COMMITTER_EMAIL": committer.email,
            "GIT_COMMITTER_DATE": committer.date.isoformat(),
        }
        flags = [flag for parent in parents for flag in ("-p", parent)]
        return self.run("commit-tree", tree, *flags, stdin=message.encode(), env=env).decode().strip()


def _entry(record: str) -> Entry:
    head, _, path = record.partition("\t")
    mode, kind, sha, size = head.split()
    return Entry(mode, kind, sha, path, int(size) if size != "-" else 0)


def _stream(
    files: Sequence[tuple[str, str, bytes | None]], message: str, author: Person, parent: str | None, ref: str | None
) -> bytes:
    """Return the commands of git-fast-import(1); the commit is made on a ref that is gone at the end."""
    when = f"{int(author.date.timestamp())} +0000"
    text = message.encode()
    parts = [
        f"commit {SCRATCH}\nmark :1\n".encode(),
        f"committer {author.name} <{author.email}> {when}\n".encode(),
        b"data %d\n%s\n" % (len(text), text),
        f"from {parent}\n".encode() if parent else b"",
    ]
    for mode, path, content in files:
        quoted = '"' + path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
        if content is None:
            parts.append(f"D {quoted}\n".encode())
        else:
            parts += [f"M {mode} inline {quoted}\n".encode(), b"data %d\n%s\n" % (len(content), content)]
    parts.append(b"get-mark :1\n")
    if ref is not None:
        parts.append(f"reset {ref}\nfrom :1\n\n".encode())
    parts.append(f"reset {SCRATCH}\nfrom {ZERO}\n\n".encode())
    return b"".join(parts)
