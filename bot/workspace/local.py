"""A person's own repository on this machine: read, and given one finished branch, never changed otherwise."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bot.errors import BranchMoved, RepositoryRefused, WorkspaceError
from bot.workspace.base import Identity
from bot.workspace.git import Git


@dataclass(frozen=True, slots=True)
class Checkout:
    """Where a repository keeps what."""

    git_dir: Path
    """HEAD and index; of a linked work tree its own."""
    common_dir: Path
    """Objects and branches."""

    @property
    def objects(self) -> Path:
        """The object folder."""
        return self.common_dir / "objects"


@dataclass(frozen=True, slots=True)
class Place:
    """A person's checkout as a task of the terminal needs it."""

    root: Path
    branch: str
    """What is checked out; `HEAD` where that is no branch."""
    author: Identity
    """Whom git knows here."""


async def place_of(git: Git, path: Path) -> Place:
    """Look at a person's checkout.

    Raises:
        RepositoryRefused: it is none, or it has no commit.
    """
    checkout = locate(path)
    if await tip(git, checkout, "HEAD") is None:
        raise RepositoryRefused("the repository is empty; make a first commit, then ask again")
    head = await git.run(checkout.git_dir, "symbolic-ref", "--quiet", "--short", "HEAD", trusted=True)
    name = await _configured(git, checkout, "user.name")
    email = await _configured(git, checkout, "user.email")
    return Place(path, head.text or "HEAD", Identity(name or "issuewright", email or "noreply@issuewright.invalid"))


async def _configured(git: Git, checkout: Checkout, key: str) -> str:
    """Read a setting of the repository, else of the person; our git reads no person's file by itself."""
    own = await git.run(checkout.git_dir, "config", key, trusted=True)
    if own.text:
        return own.text
    for file in (Path.home() / ".gitconfig", Path.home() / ".config/git/config"):
        kept = await git.run(checkout.git_dir, "config", f"--file={file}", "--includes", key, trusted=True)
        if kept.text:
            return kept.text
    return ""


def locate(path: Path) -> Checkout:
    """Find a repository by the top folder of its work tree, or by a bare repository's folder.

    Raises:
        RepositoryRefused: there is none.
    """
    git_dir = path / ".git"
    if git_dir.is_file():
        git_dir = path / git_dir.read_text().removeprefix("gitdir:").strip()
    elif not git_dir.is_dir() and (path / "objects").is_dir() and (path / "HEAD").is_file():
        git_dir = path
    if not (git_dir / "HEAD").is_file():
        raise RepositoryRefused(f"{path} is not the top folder of a git repository; name one that is")
    common = git_dir / "commondir"
    common_dir = git_dir / common.read_text().strip() if common.is_file() else git_dir
    return Checkout(git_dir.resolve(), common_dir.resolve())


async def tip(git: Git, checkout: Checkout, name: str) -> str | None:
    """Return the commit that a ref or `HEAD` stands for; None where there is none."""
    outcome = await git.run(
        checkout.git_dir, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}", trusted=True
    )
    return None if outcome.code else outcome.text


async def branch_tip(git: Git, checkout: Checkout, branch: str) -> str:
    """Return the commit that a branch stands at.

    Raises:
        RepositoryRefused: the repository is empty or lacks the branch.
    """
    found = await tip(git, checkout, f"refs/heads/{branch}")
    if found is None and not (await git.run(checkout.git_dir, "for-each-ref", "--count=1", trusted=True)).text:
        raise RepositoryRefused("the repository is empty; make a first commit, then ask again")
    if found is None:
        raise RepositoryRefused(f"the repository has no branch `{branch}`; name one that exists")
    return found


async def fetch_back(
    git: Git, path: Path, source: Path, commit: str, branch: str, *, expected: str | None = None
) -> None:
    """Bring a commit into a person's repository as a branch; nothing that is checked out moves.

    Args:
        git: the runner.
        path: the person's checkout.
        source: the git directory that holds the commit.
        commit: its full id.
        branch: a branch that stands at `commit` already is left alone.
        expected: where the branch has to stand; None where it must not exist.

    Raises:
        WorkspaceError: the branch has no valid name, or is new and checked out.
        BranchMoved: the branch stands elsewhere, or somebody works on it.
    """
    checkout = locate(path)
    ref = f"refs/heads/{branch}"
    if branch.startswith("-") or (await git.run(checkout.git_dir, "check-ref-format", ref, trusted=True)).code:
        raise WorkspaceError(f"`{branch}` is no valid branch name")
    stands = await tip(git, checkout, ref)
    if stands == commit:
        return
    if stands != expected:
        if expected is None:
            raise BranchMoved(f"{path} has a branch `{branch}` already, at {str(stands)[:12]}; rename or delete it")
        raise BranchMoved(f"`{branch}` of {path} does not stand at {expected[:12]} any more")
    head = await git.run(checkout.git_dir, "symbolic-ref", "--quiet", "HEAD", trusted=True)
    if head.text == ref and stands is None:
        raise WorkspaceError(f"`{branch}` is checked out in {path}; check out another branch first")
    used = await git.run(checkout.git_dir, "for-each-ref", "--format=%(worktreepath)", ref, trusted=True)
    if used.text:
        raise BranchMoved(f"`{branch}` is checked out in {used.text}")
    flags = ("--no-tags", "--no-recurse-submodules", "--no-write-fetch-head", "--no-auto-maintenance", "--quiet")
    await git.check(checkout.git_dir, "fetch", *flags, "--", str(source), commit, trusted=True)
    # With the old value, of zeros where the branch is new, git moves no other branch, whatever happened meanwhile.
    await git.check(checkout.git_dir, "update-ref", ref, commit, expected or "0" * 40, trusted=True)


async def uncommitted(git: Git, path: Path) -> Sequence[str]:
    """List what a person has changed and not committed, sorted; a new folder stands for what is in it."""
    checkout = locate(path)
    options = ("--porcelain", "-z", "--no-renames", "--untracked-files=normal", "--ignore-submodules=all")
    raw = await git.check(checkout.git_dir, f"--work-tree={path}", "status", *options, trusted=True)
    return sorted(os.fsdecode(entry[3:]) for entry in raw.split(b"\0") if entry)
