"""Files that decide what others may do or what a check means: a change of them is for a person to decide."""

import posixpath
import re
import unicodedata
from fnmatch import fnmatchcase

PROTECTED = (
    ".forgejo/**",
    ".gitea/**",
    ".github/**",
    ".gitlab-ci.yml",
    ".gitlab/CODEOWNERS",
    ".gitmodules",
    ".lfsconfig",
    "CODEOWNERS",
    "docs/CODEOWNERS",
    "**/.agents/**",
    "**/.aider.conf.yml",
    "**/.amazonq/**",
    "**/.augment/**",
    "**/.claude/**",
    "**/.clinerules",
    "**/.clinerules-*",
    "**/.clinerules/**",
    "**/.codex/**",
    "**/.continue/**",
    "**/.cursor/**",
    "**/.cursorrules",
    "**/.gemini/**",
    "**/.goosehints",
    "**/.junie/**",
    "**/.kiro/**",
    "**/.mcp.json",
    "**/.opencode/**",
    "**/.roo/**",
    "**/.roorules",
    "**/.trae/**",
    "**/.vscode/mcp.json",
    "**/.windsurf/**",
    "**/.windsurfrules",
    "**/AGENT.md",
    "**/AGENTS.md",
    "**/AGENTS.override.md",
    "**/CLAUDE.local.md",
    "**/CLAUDE.md",
    "**/GEMINI.md",
    "**/WARP.md",
    "**/copilot-instructions.md",
    "**/opencode.json",
    "**/opencode.jsonc",
)
"""Patterns as in `.gitignore` with all slashes: workflows, owners, where submodules and large files come from, what
agents are told and may do."""
_MARKS = " \t\r\n'\"`"
_REMARK = re.compile(r"\s*\([^()]*\)$")
"""As in `AGENTS.md (new)`, which a model may well write."""


def is_protected(path: str) -> bool:
    """Say whether a path of a repository is protected, in whatever case it is written: some file systems see none."""
    written = plain(path)
    # `fnmatch` lets `*` cross slashes, so `**/` alone needs a second look for the top folder; and a folder counts as
    # what is in it.
    return any(
        fnmatchcase(one, pattern)
        for whole in map(str.casefold, PROTECTED)
        for pattern in (whole, whole.removeprefix("**/"))
        for one in (written, f"{written}/")
    )


def plain(path: str) -> str:
    """Write a path as the repository does, however a model puts it into words; it never leaves the repository."""
    seen = "".join(letter for letter in path if unicodedata.category(letter) != "Cf").strip(_MARKS)
    bare = _REMARK.sub("", seen).strip(_MARKS).replace("\\", "/")
    return posixpath.normpath(f"/{bare}").strip("/").casefold()
