"""What the tests of working copies share."""

import os
import subprocess
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from bot.workspace.base import Credentials, Identity, Origin
from bot.workspace.clone import GitWorkspaces
from bot.workspace.worktree import GitWorkspace

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
BOT = Identity("issuewright[bot]", "1+issuewright[bot]@users.noreply.github.com")
_ENV = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z",
    "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z",
}


def git(cwd: Path, *args: str, stdin: bytes | None = None) -> str:
    """Run git as a person would and return what it printed."""
    options = ("-c", "user.name=Ann", "-c", "user.email=ann@example.com", "-c", "safe.directory=*")
    done = subprocess.run(["git", *options, *args], cwd=cwd, env=_ENV, input=stdin, capture_output=True, check=False)
    if done.returncode:
        raise AssertionError(f"git {args}: {done.stderr.decode(errors='replace')}")
    return done.stdout.decode(errors="surrogateescape").strip()


def seed(folder: Path, files: dict[str, str | bytes]) -> str:
    """Make a repository with one commit and return its id."""
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet", "--initial-branch=main")
    return add(folder, files)


def add(folder: Path, files: dict[str, str | bytes]) -> str:
    """Commit files and return the commit's id."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", "--message=change")
    return git(folder, "rev-parse", "HEAD")


def publish(source: Path, bare: Path) -> None:
    """Make a bare copy that can be pushed to over HTTP."""
    git(source, "clone", "--quiet", "--bare", str(source), str(bare))
    git(bare, "config", "http.receivepack", "true")


async def nobody() -> str | None:
    """Give no token."""
    return None


def tokens(*given: str) -> Credentials:
    """Give one token after the other, the last one for ever."""
    left = list(given)

    async def credentials() -> str | None:
        return left.pop(0) if len(left) > 1 else left[0]

    return credentials


def local(path: Path) -> Origin:
    """Name a repository of this machine."""
    return Origin("local-1", str(path), nobody)


async def opened(state: Path, source: Path, task: str = "t1") -> tuple[GitWorkspace, str]:
    """Open a task's working copy of a local repository."""
    made = await GitWorkspaces(state).open(task, local(source), "main")
    assert isinstance(made.workspace, GitWorkspace)
    return made.workspace, made.base


def entries(git_dir: Path, commit: str) -> dict[str, str]:
    """List a commit's files with their modes, by git itself."""
    text = git(git_dir, "ls-tree", "-r", "-z", commit)
    return {row.partition("\t")[2]: row.split()[0] for row in text.split("\0") if row}


def below(folder: Path) -> Sequence[Path]:
    """List everything below a folder."""
    return sorted(folder.rglob("*"))


def marks(folder: Path) -> Sequence[str]:
    """List the marker files that attack code would have left."""
    return sorted(path.name for path in folder.iterdir())


def commands() -> Iterable[bytes]:
    """Yield every process's arguments and environment."""
    for process in Path("/proc").glob("[0-9]*"):
        for part in ("cmdline", "environ"):
            try:
                yield (process / part).read_bytes()
            except OSError:
                continue
