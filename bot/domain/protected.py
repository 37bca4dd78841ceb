"""Files that decide what others may do or what a check means: a change of them is for a person to decide."""

import posixpath
import re
import unicodedata
from fnmatch import fnmatchcase

PROTECTED = (
    ".github/**",
    ".gitlab-ci.yml",
    "CODEOWNERS",
    "docs/CODEOWNERS",
    "**/AGENTS.md",
    "**/CLAUDE.md",
    "**/.clinerules",
    "**/.clinerules/**",
    "**/.cursorrules",
    "**/.cursor/**",
)
"""Patterns as in `.gitignore` with every slash written: workflows and owners, and what agents are told."""
_MARKS = " \t\r\n'\"`"
_REMARK = re.compile(r"\s*\([^()]*\)$")
"""As in `AGENTS.md (new)`, which a model may well write."""


def is_protected(path: str) -> bool:
    """Say whether a path of a repository is protected, in whatever case it is written: some file systems see none."""
    plain = _plain(path)
    # `fnmatch` lets `*` cross slashes, so `**/` alone needs a second look for the top folder; and a folder counts as
    # what is in it.
    return any(
        fnmatchcase(written, pattern)
        for whole in map(str.casefold, PROTECTED)
        for pattern in (whole, whole.removeprefix("**/"))
        for written in (plain, f"{plain}/")
    )


def _plain(path: str) -> str:
    """Write a path as the repository does, however a model puts it into words; it never leaves the repository."""
    seen = "".join(letter for letter in path if unicodedata.category(letter) != "Cf").strip(_MARKS)
    bare = _REMARK.sub("", seen).strip(_MARKS).replace("\\", "/")
    return posixpath.normpath(f"/{bare}").strip("/").casefold()
