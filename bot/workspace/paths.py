"""Which paths of a repository may be written to disk."""

import re

LONGEST = 4_096
"""Bytes; Linux takes no longer path."""
_LONGEST_NAME = 255
DEEPEST = 128
"""Folders above a file; each costs an open descriptor while a tree is read."""

# `.git` as Windows and macOS would take it too, so that what we push harms nobody: trailing dots and spaces,
# a stream name after a colon, the short name, and code points that HFS+ ignores.
_IGNORED_BY_HFS = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")
_DOT_GIT = re.compile(r"(\.git|git~1)[ .]*(:.*)?", re.IGNORECASE | re.DOTALL)


def is_dot_git(name: bytes) -> bool:
    """Tell whether some file system takes this name for `.git`."""
    if b"git" not in name.lower() and b"\xe2\x80" not in name and b"\xe2\x81" not in name and b"\xef\xbb" not in name:
        return False
    plain = _IGNORED_BY_HFS.sub("", name.decode("utf-8", "surrogateescape"))
    return any(_DOT_GIT.fullmatch(part) for part in plain.split("\\"))


def why_unsafe(path: bytes) -> str | None:
    """Say why an entry cannot be checked out in a folder that can; None where it can."""
    if len(path) > LONGEST:
        return f"is longer than {LONGEST} bytes"
    if path.count(b"/") >= DEEPEST:
        return f"is deeper than {DEEPEST} folders"
    name = path.rpartition(b"/")[2]
    if name in {b"", b".", b".."}:
        return "is absolute or leaves its folder"
    if len(name) > _LONGEST_NAME:
        return f"has a name longer than {_LONGEST_NAME} bytes"
    return "would be taken for git's own folder" if is_dot_git(name) else None
