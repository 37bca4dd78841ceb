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
"""Of all files that may be deleted, at once or bit by bit; one file alone may always go."""
REST = 0.05
"""Of a file's bytes: with no more than that left, next to nothing of it is."""
LARGEST_FILE = 5 << 20
"""Bytes. What was pushed once stays in every clone: GitHub asks to keep files small, and refuses 100 MiB."""
LARGEST_CHANGE = 20 << 20
"""Bytes of all files that are added or changed: beyond it a change is generated, and nobody reads it."""
MOST_FILES = 500
"""Beyond it nobody reads a change, and GitHub's page of it shows 300 files."""
_GITLINK = 0o160000
"""Mode of what names a commit of another repository."""
_LOCKS = frozenset({
    ".terraform.lock.hcl", "bun.lock", "bun.lockb", "cargo.lock", "composer.lock", "conan.lock", "deno.lock",
    "flake.lock", "gemfile.lock", "go.sum", "go.work.sum", "gradle.lockfile", "mix.lock", "module.bazel.lock",
    "npm-shrinkwrap.json", "package-lock.json", "package.resolved", "packages.lock.json", "pdm.lock", "pipfile.lock",
    "pixi.lock", "pnpm-lock.yaml", "podfile.lock", "poetry.lock", "pubspec.lock", "pylock.toml", "requirements.lock",
    "uv.lock", "verification-metadata.xml", "yarn.lock",
})  # fmt: skip
_IMAGE = re.compile(
    r"(docker|container)file([.-].+)?|.+\.(docker|container)file|(docker-)?compose([.-].+)?\.ya?ml"
    r"|docker-bake(\..+)?\.(hcl|json)"
)
_CI = re.compile(
    r"(.*/)?(jenkinsfile(\..+)?|\.?(appveyor|cirrus|drone|travis|woodpecker)\.ya?ml"
    r"|(azure|bitbucket)-pipelines(-.+)?\.ya?ml|cloudbuild(\..+)?\.(ya?ml|json))"
    r"|\.(circleci|buildkite|woodpecker)/.*"
)
_WORKSPACE = re.compile(r"(\$GITHUB_WORKSPACE|\$\{GITHUB_WORKSPACE\}|\$\{\{\s*github\.workspace\s*\}\})\"?/")
"""The top of the repository, as workflows write it."""
_ACTION = re.compile(r"uses:\s*[\"']?\./([\w./-]+)")
"""An action that is in the repository itself: all that is in its folder may be run."""


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
    was_size: int = 0
    """Bytes of the content before."""

    @property
    def is_empty(self) -> bool:
        """Whether it had content and next to none is left, or a link to elsewhere, though its name stays."""
        if not S_ISREG(self.before) or self.sha == self.was:
            return False
        return S_ISLNK(self.after) or (S_ISREG(self.after) and self.size <= REST * self.was_size)

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


def judge(  # noqa: PLR0913 - a change is seen beside all of this
    changes: Sequence[FileChange],
    there: int,
    workflows: Sequence[str] = (),
    agreed: Collection[str] = (),
    seals: Mapping[str, str] = MappingProxyType({}),
    *,
    whole: tuple[Sequence[FileChange], int] = ((), 0),
    links: Mapping[str, str] = MappingProxyType({}),
) -> list[Finding]:
    """Say what people have to know of a change, or to decide.

    Args:
        changes: all paths that differ.
        there: how many files there were before.
        workflows: texts of the workflows; what they call helps them, as far as they name it.
        agreed: files of a plan that people approved, which are not asked about again.
        seals: of single files that are as a call left them which people approved, by path; nor are these.
        whole: the same of all that the task did up to here, where that is more: many deletions may come bit by bit.
        links: targets of the symbolic links that there were, by path: what stands behind a protected name is protected.
    """
    behind = _behind(links)
    known = {plain(path) for path in agreed}
    protected = [
        one.path
        for one in changes
        if (is_protected(one.path) or _is_below(one.path, behind))
        and plain(one.path) not in known
        and seals.get(one.path) != one.seal
    ]
    found = [
        Finding("protected", protected),
        Finding("link", [one.path for one in changes if S_ISLNK(one.after) and leaves(one.path, one.target)]),
        Finding("submodule", [one.path for one in changes if _GITLINK in {one.before, one.after}]),
        _deletions(changes, there, whole),
        _size(changes),
    ]
    told = {path for finding in found for path in finding.paths}
    workflows = [_WORKSPACE.sub("./", text) for text in workflows]
    actions = {match.rstrip("/") for text in workflows for match in _ACTION.findall(text)}
    marks: tuple[tuple[Kind, list[str]], ...] = (
        ("lock", [one.path for one in changes if _name(one.path) in _LOCKS]),
        ("image", [one.path for one in changes if _IMAGE.fullmatch(_name(one.path))]),
        ("ci", [one.path for one in changes if _is_ci(one.path, workflows, actions)]),
        ("mode", [one.path for one in changes if _other_mode(one)]),
    )
    found += [Finding(kind, [path for path in paths if path not in told]) for kind, paths in marks]
    return [finding for finding in found if finding.paths]


def _behind(links: Mapping[str, str]) -> frozenset[str]:
    """Return where links below protected names lead; followed once."""
    found = (
        posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
        for path, target in links.items()
        if is_protected(path) and not leaves(path, target)
    )
    return frozenset(found) - {"."}


def _is_below(path: str, tops: Collection[str]) -> bool:
    """Whether a path is one of some, or in such a folder."""
    while path:
        if path in tops:
            return True
        path = posixpath.dirname(path)
    return False


def leaves(path: str, target: str) -> bool:
    """Say whether a symbolic link may lead out of the tree, or into git's own folder.

    What goes up behind a name cannot be told from the text: the name may be a link to somewhere else.
    """
    parts = [part for part in target.split("/") if part not in {"", "."}]
    up = next((number for number, part in enumerate(parts) if part != ".."), len(parts))
    down = {part.casefold() for part in parts[up:]}
    return target.startswith("/") or up > path.count("/") or bool(down & {"..", ".git"})


def _deletions(changes: Sequence[FileChange], there: int, whole: tuple[Sequence[FileChange], int]) -> Finding:
    """List what is gone or emptied where that is too much."""
    if len(gone := _gone(changes)) > 1:
        for paths, of in ((gone, there), (_gone(whole[0]), whole[1])):
            if len(paths) > SHARE * of and len(paths) > 1:
                return Finding("deletions", paths, of)
    return Finding("deletions", [], there)


def _gone(changes: Sequence[FileChange]) -> list[str]:
    """List what is gone or emptied; what only moved elsewhere, to the byte, is not gone."""
    fresh = Counter(one.sha for one in changes if not one.before)
    gone = []
    for one in changes:
        if one.after and not one.is_empty:
            continue
        if not S_ISREG(one.after) and fresh[one.was]:
            fresh[one.was] -= 1
        else:
            gone.append(one.path)
    return gone


def _size(changes: Sequence[FileChange]) -> Finding:
    large = [one.path for one in changes if one.size > LARGEST_FILE]
    total = sum(one.size for one in changes)
    if not large and (total > LARGEST_CHANGE or len(changes) > MOST_FILES):
        large = [one.path for one in sorted(changes, key=lambda one: (-one.size, one.path))]
    return Finding("size", large, total)


def _other_mode(one: FileChange) -> bool:
    """Whether a file that stays becomes executable or is that no more, or becomes a link or is that no more."""
    if not one.before or not one.after or not (S_ISREG(one.before) or S_ISREG(one.after)):
        return False
    return S_ISLNK(one.before) != S_ISLNK(one.after) or bool(one.before & 0o100) != bool(one.after & 0o100)


def _is_ci(path: str, workflows: Sequence[str], actions: Collection[str]) -> bool:
    is_read = _is_below(posixpath.dirname(path), actions) or _CI.fullmatch(path.casefold())
    return bool(is_read) or _is_called(path, workflows)


def _is_called(path: str, workflows: Sequence[str]) -> bool:
    """Whether a workflow names a file with its path, or runs `make` where it is the top Makefile."""
    if path in {"Makefile", "makefile", "GNUmakefile"}:
        return any(re.search(r"(?<![\w.-])make(?![\w.-])", text) for text in workflows)
    if "/" not in path and "." not in path:
        # A bare word stands in many texts.
        return any(f"./{path}" in text for text in workflows)
    # Plainly looked for first: a change may have thousands of paths.
    texts = [text for text in workflows if path in text]
    return any(re.search(rf"(?<![\w/-])(\./)?{re.escape(path)}(?![\w/-])", text) for text in texts)


def _name(path: str) -> str:
    return posixpath.basename(path).casefold()
