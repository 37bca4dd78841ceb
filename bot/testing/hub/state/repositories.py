"""Repositories: creating, seeding and finding them, and committing to them directly."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from bot.testing.hub.core import locked
from bot.testing.hub.errors import HubError, not_found
from bot.testing.hub.git.objects import Person
from bot.testing.hub.records import Label, Repository, User
from bot.testing.hub.state.accounts import Accounts

Files = Mapping[str, str | bytes | None]
"""Path to content; None deletes the file."""

DEFAULT_LABELS = {"bug": "d73a4a", "documentation": "0075ca", "enhancement": "a2eeef", "question": "d876e3"}


class Repositories(Accounts):
    """Repositories and their files."""

    @locked
    def create_repository(
        self,
        owner: User,
        name: str,
        *,
        files: Files | Path | None = None,
        private: bool = False,
        default_branch: str = "main",
    ) -> Repository:
        """Create a repository with one first commit.

        Args:
            owner: has the role `admin`.
            name: unique for the owner, in any case.
            files: what the first commit holds: a mapping, or a folder that is read without its `.git`; None leaves
                the repository empty, without any branch.
            private: only people with a role and installed Apps see it.
            default_branch: name of the branch that the first commit makes.

        Raises:
            HubError: 422 when the name is taken.
        """
        if self._named(owner.login, name) is not None:
            raise HubError(422, "name already exists on this account")
        number, node = self.new_ids("R")
        now = self.now()
        path = self.root / f"{number}.git"
        repository = Repository(number, node, owner, name, path, now, now, private, default_branch=default_branch)
        self.git(repository).create(default_branch)
        self.repositories[number] = repository
        self.nodes[node] = repository
        for label, color in DEFAULT_LABELS.items():
            self.create_label(repository, label, color=color)
        seed = read_folder(files) if isinstance(files, Path) else files
        if seed is not None:
            self.write_commit(repository, seed, message="Initial commit", by=owner, parent=None, ref=default_branch)
        return repository

    @locked
    def fork(self, repository: Repository, owner: User) -> Repository:
        """Copy a repository with its branches to another owner."""
        copy = self.create_repository(
            owner, repository.name, private=repository.private, default_branch=repository.default_branch
        )
        copy.parent = repository
        for ref, sha in self.git(repository).refs("refs/heads/").items():
            self.git(copy).fetch(repository.path, sha, ref)
        copy.announced = self.git(copy).refs()
        return copy

    @locked
    def repository(self, owner: str, name: str) -> Repository:
        """Return a repository by its names, in any case.

        Raises:
            HubError: 404 when there is none.
        """
        found = self._named(owner, name)
        if found is None:
            raise not_found()
        return found

    @locked
    def create_label(
        self, repository: Repository, name: str, *, color: str = "ededed", description: str | None = None
    ) -> Label:
        """Create a label.

        Raises:
            HubError: 422 when the name is taken, in any case.
        """
        if name.lower() in repository.labels:
            errors = [{"resource": "Label", "code": "already_exists", "field": "name"}]
            raise HubError(422, "Validation Failed", errors=errors)
        number, node = self.new_ids("LA")
        label = Label(number, node, name, color, description)
        repository.labels[name.lower()] = label
        self.nodes[node] = label
        return label

    @locked
    def write_commit(  # noqa: PLR0913 -- each is a part of one commit
        self,
        repository: Repository,
        files: Files,
        *,
        message: str,
        by: User,
        parent: str | None,
        ref: str | None = None,
        executable: frozenset[str] = frozenset(),
    ) -> str:
        """Store a commit and return its id; no event is sent.

        Args:
            repository: where.
            files: changes against the parent.
            message: of the commit.
            by: author and committer.
            parent: commit id, or None for a root commit.
            ref: branch that is set to the commit, without a check; None sets none.
            executable: paths that get the executable bit.
        """
        git = self.git(repository)
        changes = [("100755" if path in executable else "100644", path, _bytes(data)) for path, data in files.items()]
        person = Person(by.name or by.login, by.email or "noreply@github.com", self.now())
        target = f"refs/heads/{ref}" if ref is not None else None
        sha = git.import_commit(changes, message, person, parent=parent, ref=target)
        if ref is not None:
            repository.announced = git.refs()
        return sha

    def _named(self, owner: str, name: str) -> Repository | None:
        wanted = f"{owner}/{name}".lower()
        return next((r for r in self.repositories.values() if r.full_name.lower() == wanted), None)


def _bytes(content: str | bytes | None) -> bytes | None:
    return content.encode() if isinstance(content, str) else content


def read_folder(folder: Path) -> dict[str, bytes]:
    """Return the regular files below a folder by relative path, `.git` left out."""
    files: dict[str, bytes] = {}
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name != ".git")
        for name in sorted(names):
            path = Path(parent) / name
            if path.is_file() and not path.is_symlink():
                files[path.relative_to(folder).as_posix()] = path.read_bytes()
    return files
