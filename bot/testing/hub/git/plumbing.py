"""Bare repositories on disk, through `git` plumbing with an environment of its own: the truth for refs and commits."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

from bot.testing.hub.errors import HubError

ZERO = "0" * 40
"""The object id git uses for "no object"."""

BOUNDS_S = 60.0
"""Longest time one plumbing command may take."""

ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "LC_ALL": "C.UTF-8",
}
"""Nothing of the caller's environment or configuration reaches git."""

REPOSITORY_CONFIG = {
    ("core", "hooksPath"): "/dev/null",
    ("core", "logAllRefUpdates"): "false",
    ("gc", "auto"): "0",
    ("receive", "hideRefs"): "refs/pull",
    ("receive", "autogc"): "false",
    ("fastimport", "unpackLimit"): "1000",
    ("uploadpack", "allowFilter"): "true",
    ("uploadpack", "allowAnySHA1InWant"): "true",
}


class Plumbing:
    """One bare repository.

    Args:
        path: the git directory.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def run(self, *args: str, stdin: bytes = b"", env: Mapping[str, str] | None = None) -> bytes:
        """Run one git command and return its standard output.

        Raises:
            HubError: 422 when git refuses; the message is git's own.
        """
        done = self.attempt(*args, stdin=stdin, env=env)
        if done.returncode != 0:
            raise HubError(422, done.stderr.decode(errors="replace").strip() or f"git {args[0]} failed")
        return done.stdout

    def attempt(
        self, *args: str, stdin: bytes = b"", env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        """Run one git command and return how it ended."""
        return subprocess.run(
            ["git", f"--git-dir={self.path}", *args],
            input=stdin,
            env={**ENVIRONMENT, **(env or {})},
            capture_output=True,
            check=False,
            timeout=BOUNDS_S,
        )

    def create(self, default_branch: str) -> None:
        """Make the repository, empty, with `default_branch` as HEAD."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.run("init", "--quiet", "--bare", "--template=", f"--initial-branch={default_branch}", str(self.path))
        lines = [f"[{section}]\n\t{key} = {value}\n" for (section, key), value in REPOSITORY_CONFIG.items()]
        with (self.path / "config").open("a", encoding="utf-8") as config:
            config.writelines(lines)  # one process a setting would take most of a test's time

    def refs(self, prefix: str = "refs/") -> dict[str, str]:
        """Return full ref names with their object ids, sorted by name."""
        lines = self.run("for-each-ref", "--format=%(refname) %(objectname)", prefix).decode().splitlines()
        return {name: sha for name, _, sha in (line.rpartition(" ") for line in lines)}

    def set_ref(self, ref: str, sha: str | None, old: str | None = None) -> None:
        """Create, move or (None) delete a full ref, only when it is at `old` if that is given."""
        if sha is None:
            self.run("update-ref", "-d", ref)
        else:
            self.run("update-ref", ref, sha, *([old] if old else []))

    def fetch(self, source: Path, sha: str, ref: str) -> None:
        """Bring a commit of another repository here under a full ref."""
        self.run("fetch", "--quiet", "--no-tags", str(source), f"+{sha}:{ref}")

    def kind(self, name: str) -> str | None:
        """Return `blob`, `tree`, `commit` or `tag`, or None when there is no such object."""
        done = self.attempt("cat-file", "-t", name)
        return done.stdout.decode().strip() if done.returncode == 0 else None
