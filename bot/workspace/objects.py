"""Writes git objects and refs into a task's own git directory, without starting git."""

import hashlib
import os
import re
import zlib
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from bot.errors import WorkspaceError
from bot.workspace import atomic
from bot.workspace.base import Identity

# Speed counts more than size: these objects live as long as the task.
_LEVEL = 1
_CHUNK = 1 << 20
ATTRIBUTES = b"* -text -filter -ident !working-tree-encoding !diff !merge\n"
"""Beats every `.gitattributes` in the tree: no filter, no conversion, no diff driver."""
# A finished commit is fetched by its id into a person's checkout.
_CONFIG = b"[core]\n\trepositoryformatversion = 0\n\tbare = true\n[uploadpack]\n\tallowAnySHA1InWant = true\n"


class ObjectStore:
    """The loose objects and refs of one bare repository.

    Source: https://git-scm.com/book/en/v2/Git-Internals-Git-Objects
    """

    def __init__(self, git_dir: Path) -> None:
        self.git_dir = git_dir
        self._objects = git_dir / "objects"

    def create(self, borrowed: Path | None = None) -> None:
        """Make the bare repository where there is none.

        Args:
            borrowed: an object folder that is read too, as a cache's.
        """
        for name in ("objects/info", "objects/pack", "refs/heads", "refs/agent", "info"):
            (self.git_dir / name).mkdir(mode=0o700, parents=True, exist_ok=True)
        self.git_dir.chmod(0o700)
        atomic.replace(self.git_dir / "config", _CONFIG)
        atomic.replace(self.git_dir / "HEAD", b"ref: refs/heads/none\n")
        atomic.replace(self.git_dir / "info" / "attributes", ATTRIBUTES)
        if borrowed is not None:
            atomic.replace(self._objects / "info" / "alternates", os.fsencode(borrowed) + b"\n")

    def write(self, kind: str, data: bytes, *, known: str | None = None) -> str:
        """Keep an object and return its id.

        Args:
            kind: `blob`, `tree` or `commit`.
            data: its content.
            known: the id of an object that is there already, which is then not written again.
        """
        header = f"{kind} {len(data)}\0".encode()
        digest = hashlib.sha1(header + data, usedforsecurity=False).hexdigest()
        path = self._objects / digest[:2] / digest[2:]
        if digest == known or path.exists():
            return digest
        path.parent.mkdir(mode=0o700, exist_ok=True)
        compressor = zlib.compressobj(_LEVEL)
        atomic.replace(path, compressor.compress(header) + compressor.compress(data) + compressor.flush())
        return digest

    def commit(
        self,
        tree: str,
        parent: str | None,
        author: Identity,
        at: datetime,
        message: str,
        *,
        also: Sequence[str] = (),
    ) -> str:
        """Make a commit; the same arguments give the same id.

        Args:
            tree: its files.
            parent: what it stands on; None for the first.
            author: and committer.
            at: author and commit date.
            message: of the commit.
            also: further parents, of a merge.
        """
        who = f"{_plain(author.name)} <{_plain(author.email)}> {_seconds(at)} +0000"
        lines = [
            f"tree {tree}",
            *(f"parent {one}" for one in (parent, *also) if one),
            f"author {who}",
            f"committer {who}",
        ]
        text = "\n".join(lines) + "\n\n" + message.replace("\0", "").strip("\n") + "\n"
        return self.write("commit", text.encode("utf-8", "replace"))

    def point(self, ref: str, commit: str) -> None:
        """Set a ref."""
        path = self.git_dir / ref
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        atomic.replace(path, commit.encode() + b"\n")

    def ref(self, name: str) -> str | None:
        """Read a ref that `point` wrote."""
        try:
            return (self.git_dir / name).read_text().strip()
        except FileNotFoundError:
            return None


def blob_id(size: int, read: Callable[[int], bytes]) -> str:
    """Compute the id of a blob that is too large to hold."""
    digest = hashlib.sha1(f"blob {size}\0".encode(), usedforsecurity=False)
    while chunk := read(_CHUNK):
        digest.update(chunk)
    return digest.hexdigest()


def _plain(text: str) -> str:
    plain = re.sub(r"[<>\x00-\x1f\x7f]", "", text).strip(" .,:;\"'\\")
    return plain or "unknown"


def _seconds(at: datetime) -> int:
    if at.tzinfo is None:
        raise WorkspaceError("a commit's date needs a time zone")
    return int(at.astimezone(UTC).timestamp())
