"""What a commit does to files, and what of that people decide about before it is pushed; pure."""

import posixpath
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from stat import S_ISLNK, S_ISREG
from types import MappingProxyType
from typing import Any, Literal

from bot.domain.protected import is_protected, plain

Kind = Literal["protected", "link", "submodule", "deletions", "size", "lock", "image", "ci", "mode"]
WAITS: frozenset[Kind] = frozenset({"protected", "link", "submodule", "deletions", "size"})
"""What is pushed only when a person agrees; the other kinds are pushed and pointed out."""
SHARE = 0.2
"""Of all files that may be deleted at once; one file alone may always go."""
LARGEST_FILE = 5 << 20
"""Bytes. What was pushed once stays in every clone: GitHub asks to keep files small, and refuses 100 MiB."""
LARGEST_CHANGE = 20 << 20
"""Bytes of all files that are added or changed: beyond it a change is generated, and nobody reads it."""
MOST_FILES = 500
"""Beyond it nobody reads a change, and GitHub's page of it shows 300 files."""
_GITLINK = 0o160000
"""Mode of what names a commit of another repository."""
_LOCKS = frozenset({
    "bun.lock", "bun.lockb", "cargo.lock", "composer.lock", "conan.lock", "deno.lock", "flake.lock", "gemfile.lock",
    "go.sum", "gradle.lockfile", "mix.lock", "npm-shrinkwrap.json", "package-lock.json", "package.resolved",
    "packages.lock.json", "pdm.lock", "pipfile.lock", "pnpm-lock.yaml", "podfile.lock", "poetry.lock", "pubspec.lock",
    "uv.lock", "yarn.lock",
})  # fmt: skip
_IMAGE = re.compile(r"(docker|container)file(\..+)?|.+\.(docker|container)file|(docker-)?compose(\..+)?\.ya?ml")
_CI = re.compile(
    r"(.*/)?(jenkinsfile|\.travis\.yml|appveyor\.yml|azure-pipelines\.yml|bitbucket-pipelines\.yml)"
    r"|\.(circleci|buildkite)/.*"
)


@dataclass(frozen=True, slots=True)
class FileChange:
    """One path that differs between two commits."""

    path: str
    before: int
    """Mode as git has it; 0 where the path was not there."""
    after: int
    """Mode; 0 where the path is not there any more."""
    size: int = 0
    """Bytes of the new content."""
    target: str = ""
    """Of what is a symbolic link afterwards."""
    sha: str = ""
    """Id of the new content."""
    was: str = ""
    """Id of the content before."""

    @property
    def is_empty(self) -> bool:
        """Whether it had content and has none, though its name stays."""
        return S_ISREG(self.before) and S_ISREG(self.after) and not self.size and self.sha != self.was

    @property
    def seal(self) -> str:
        """What is there now, to the byte."""
        return f"{self.after:o} {self.sha}"


@dataclass(frozen=True, slots=True)
class Finding:
    """Some paths of a change, and what is about them."""

    kind: Kind
    paths: Sequence[str]
    of: int = 0
    """All files that there were, where many are deleted; bytes of all content, where that is too much."""

    def to_data(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {"kind": self.kind, "paths": list(self.paths), "of": self.of}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> "Finding":
        """Turn stored values back."""
        return cls(**data)


def judge(
    changes: Sequence[FileChange],
    there: int,
    workflows: Sequence[str] = (),
    agreed: Collection[str] = (),
    seals: Mapping[str, str] = MappingProxyType({}),
) -> list[Finding]:
    """Say what people have to know of a change, or to decide.

    Args:
        changes: all paths that differ.
        there: how many files there were before.
        workflows: texts of the workflows; what they call helps them.
        agreed: files of a plan that people approved, which are not asked about again.
        seals: of single files that are as a call left them which people approved, by path; nor are these.
    """
    known = {plain(path) for path in agreed}
    protected = [
        one.path
        for one in changes
        if is_protected(one.path) and plain(one.path) not in known and seals.get(one.path) != one.seal
    ]
    found = [
        Finding("protected", protected),
        Finding("link", [one.path for one in changes if S_ISLNK(one.after) and leaves(one.path, one.target)]),
        Finding("submodule", [one.path for one in changes if _GITLINK in {one.before, one.after}]),
        Finding("deletions", _deleted(changes, there), there),
        _size(changes),
    ]
    told = {path for finding in found for path in finding.paths}
    marks: tuple[tuple[Kind, list[str]], ...] = (
        ("lock", [one.path for one in changes if _name(one.path) in _LOCKS]),
        ("image", [one.path for one in changes if _IMAGE.fullmatch(_name(one.path))]),
        ("ci", [one.path for one in changes if _CI.fullmatch(one.path.casefold()) or _is_called(one.path, workflows)]),
        ("mode", [one.path for one in changes if _other_mode(one)]),
    )
    found += [Finding(kind, [path for path in paths if path not in told]) for kind, paths in marks]
    return [finding for finding in found if finding.paths]


def leaves(path: str, target: str) -> bool:
    """Say whether a symbolic link may lead out of the tree, or into git's own folder.

    What goes up behind a name cannot be told from the text: the name may be a link to somewhere else.
    """
    parts = [part for part in target.split("/") if part not in {"", "."}]
    up = next((number for number, part in enumerate(parts) if part != ".."), len(parts))
    down = {part.casefold() for part in parts[up:]}
    return target.startswith("/") or up > path.count("/") or bool(down & {"..", ".git"})


def _deleted(changes: Sequence[FileChange], there: int) -> list[str]:
    """List what is gone or emptied where that is too much; what only moved elsewhere, to the byte, is not gone."""
    fresh = Counter(one.sha for one in changes if not one.before)
    gone = []
    for one in changes:
        if one.after and not one.is_empty:
            continue
        if not one.after and fresh[one.was]:
            fresh[one.was] -= 1
        else:
            gone.append(one.path)
    return gone if len(gone) > 1 and len(gone) > SHARE * there else []


def _size(changes: Sequence[FileChange]) -> Finding:
    large = [one.path for one in changes if one.size > LARGEST_FILE]
    total = sum(one.size for one in changes)
    if not large and (total > LARGEST_CHANGE or len(changes) > MOST_FILES):
        large = [one.path for one in sorted(changes, key=lambda one: (-one.size, one.path)) if one.after]
    return Finding("size", large, total)


def _other_mode(one: FileChange) -> bool:
    """Whether a file that stays becomes executable or is that no more, or becomes a link or is that no more."""
    if not one.before or not one.after or not (S_ISREG(one.before) or S_ISREG(one.after)):
        return False
    return S_ISLNK(one.before) != S_ISLNK(one.after) or bool(one.before & 0o100) != bool(one.after & 0o100)


def _is_called(path: str, workflows: Sequence[str]) -> bool:
    """Whether a workflow names a file with its path, or runs `make` where it is the top Makefile."""
    if path in {"Makefile", "makefile", "GNUmakefile"}:
        return any(re.search(r"(?<![\w.-])make(?![\w.-])", text) for text in workflows)
    if "/" not in path and "." not in path:
        # A bare word stands in many texts.
        return any(f"./{path}" in text for text in workflows)
    named = re.compile(rf"(?<![\w/-])(\./)?{re.escape(path)}(?![\w/-])")
    return any(named.search(text) for text in workflows)


def _name(path: str) -> str:
    return posixpath.basename(path).casefold()
