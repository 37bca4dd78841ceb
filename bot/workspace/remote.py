"""Talks to where a repository comes from: fetches into the cache, asks for branches, pushes."""

import re
from contextlib import suppress
from pathlib import Path

from bot.errors import BranchMoved, CloneFailed, PushRejected, RepositoryRefused
from bot.workspace.base import Origin
from bot.workspace.git import Git, Outcome, protocol_of

_UNREACHABLE = re.compile(
    r"Could not resolve host|Connection (refused|reset|timed out)|Failed to connect|Operation too slow|early EOF"
    r"|The requested URL returned error: 5\d\d|unexpected disconnect|remote end hung up|RPC failed"
)
_FULL_ID = re.compile(r"[0-9a-f]{40}")


async def fetch(git: Git, cache: Path, origin: Origin, branch: str) -> str:
    """Bring a branch's new commits into the cache and return its tip.

    Raises:
        CloneFailed: the remote could not be read.
        RepositoryRefused: it is empty or lacks the branch.
    """
    ref = f"refs/remotes/origin/{branch}"
    await check_branch(git, cache, branch)
    outcome = await _fetch(git, cache, origin, f"+refs/heads/{branch}:{ref}")
    if outcome.code and "cannot lock ref" in outcome.stderr:
        # A branch `a` that is gone stands in the way of `a/b`.
        outcome = await _fetch(git, cache, origin, "+refs/heads/*:refs/remotes/origin/*", "--prune")
    if outcome.code and "couldn't find remote ref" in outcome.stderr:
        raise RepositoryRefused(await _without(git, cache, origin, branch))
    if outcome.code:
        raise _failed(outcome)
    return (await git.check(cache, "rev-parse", "--verify", "--end-of-options", f"{ref}^{{commit}}")).decode().strip()


async def fetch_commit(git: Git, cache: Path, origin: Origin, commit: str) -> None:
    """Bring one commit into the cache, as one that no branch holds any more."""
    outcome = await _fetch(git, cache, origin, commit)
    if outcome.code:
        raise CloneFailed(f"commit {commit[:12]} is neither on this machine nor on the remote: {_message(outcome)}")


async def heads(git: Git, git_dir: Path, origin: Origin, *branches: str) -> tuple[str | None, dict[str, str]]:
    """Ask the remote for its default branch and where the named branches stand."""
    refs = [f"refs/heads/{branch}" for branch in branches]
    outcome = await git.remote(git_dir, origin, "ls-remote", "--symref", "--", origin.url, "HEAD", *refs)
    if outcome.code:
        raise _failed(outcome)
    default: str | None = None
    found: dict[str, str] = {}
    for line in outcome.stdout.decode(errors="surrogateescape").splitlines():
        value, _, name = line.partition("\t")
        if name == "HEAD" and value.startswith("ref: refs/heads/"):
            default = value.removeprefix("ref: refs/heads/")
        elif name in refs:
            found[name.removeprefix("refs/heads/")] = value
    return default, found


async def push(git: Git, git_dir: Path, origin: Origin, commit: str, branch: str, *, expected: str | None) -> None:
    """Put a commit on a branch, as `Workspace.push` says."""
    if not _FULL_ID.fullmatch(commit) or (expected is not None and not _FULL_ID.fullmatch(expected)):
        raise PushRejected("a push needs full commit ids")
    try:
        await check_branch(git, git_dir, branch)
        default, found = await heads(git, git_dir, origin, branch)
    except RepositoryRefused as error:
        raise PushRejected(str(error)) from error
    except CloneFailed as error:
        raise _retryable(f"the remote could not be asked where `{branch}` stands: {error}") from error
    if branch == default:
        raise PushRejected(f"`{branch}` is the default branch; it is never pushed to")
    stands = found.get(branch)
    if stands == commit:
        return
    if stands != expected:
        raise BranchMoved(_moved(branch, stands, expected))
    lease = f"--force-with-lease=refs/heads/{branch}:{expected or ''}"
    outcome = await git.remote(
        git_dir, origin, "push", "--porcelain", "--no-verify", lease, "--", origin.url, f"{commit}:refs/heads/{branch}"
    )
    if outcome.code:
        raise _rejected(outcome, branch)


async def is_branch(git: Git, git_dir: Path, branch: str) -> bool:
    """Tell whether git takes a name for a branch."""
    outcome = await git.run(git_dir, "check-ref-format", f"refs/heads/{branch}")
    return outcome.code == 0 and not branch.startswith("-")


async def check_branch(git: Git, git_dir: Path, branch: str) -> None:
    """Refuse a name that git does not take for a branch."""
    if not await is_branch(git, git_dir, branch):
        raise RepositoryRefused(f"`{_clean(branch)[:100]}` is no valid branch name")


def sweep(cache: Path) -> None:
    """Remove what a killed git left in a cache; the caller holds its lock."""
    for pattern in ("*.lock", "refs/**/*.lock", "objects/pack/tmp_*", "objects/??/tmp_obj_*"):
        for path in cache.glob(pattern):
            with suppress(FileNotFoundError):
                path.unlink()


async def _fetch(git: Git, cache: Path, origin: Origin, refspec: str, *options: str) -> Outcome:
    flags = ("--no-tags", "--no-recurse-submodules", "--no-write-fetch-head", "--no-auto-maintenance", "--quiet")
    return await git.remote(cache, origin, "fetch", *flags, *options, "--", origin.url, refspec)


async def _without(git: Git, cache: Path, origin: Origin, branch: str) -> str:
    outcome = await git.remote(cache, origin, "ls-remote", "--heads", "--", origin.url)
    if outcome.code == 0 and not outcome.text:
        return "the repository is empty; push a first commit, then ask again"
    return f"the repository has no branch `{branch}`; name one that exists"


def _failed(outcome: Outcome) -> CloneFailed:
    error = CloneFailed(f"the repository could not be read: {_message(outcome)}")
    if outcome.unauthorised:
        error = CloneFailed(f"the remote did not take our credentials: {_message(outcome)}")
    return error


def _rejected(outcome: Outcome, branch: str) -> PushRejected:
    said = outcome.stderr + outcome.stdout.decode(errors="replace")
    message = _message(outcome)
    if "workflow" in said and "refusing to allow" in said:
        return PushRejected(
            "the change touches `.github/workflows`, which needs the permission `workflows: write`; nothing was "
            f"pushed. Grant the App that permission and ask again, or have these files left alone ({message})"
        )
    if outcome.unauthorised or re.search(r"Permission to .* denied|error: 403|Write access", said):
        return PushRejected(f"the remote did not take our credentials for writing: {message}")
    if re.search(r"protected branch|GH006|GH013|repository rule violations", said, re.IGNORECASE):
        return PushRejected(f"`{branch}` is protected; exempt the App's branches from the rule: {message}")
    if re.search(r"stale info|fetch first|non-fast-forward|cannot lock ref|incorrect old value", said):
        return BranchMoved(f"`{branch}` was moved by somebody else while we worked: {message}")
    if _UNREACHABLE.search(said):
        return _retryable(f"the remote could not be reached: {message}")
    return PushRejected(f"the remote refused the push: {message}")


def _retryable(text: str) -> PushRejected:
    error = PushRejected(text)
    error.retryable = True
    return error


def _moved(branch: str, stands: str | None, expected: str | None) -> str:
    if stands is None:
        return f"`{branch}` was deleted while we worked; it stood at {(expected or '')[:12]}"
    if expected is None:
        return f"`{branch}` exists already, at {stands[:12]}"
    return f"`{branch}` was moved by somebody else while we worked: it stands at {stands[:12]}, not at {expected[:12]}"


def _message(outcome: Outcome) -> str:
    """Return git's and the remote's own words without their decoration."""
    lines = [_clean(line) for line in outcome.stderr.splitlines()]
    lines = [line.removeprefix("remote: ").removeprefix("fatal: ").removeprefix("error: ").strip() for line in lines]
    for line in outcome.stdout.decode(errors="replace").splitlines():
        refused = re.match(r"!\t[^\t]*\t(.*)", line)
        if refused:
            lines.append(_clean(refused[1]))
    kept = [
        line for line in dict.fromkeys(lines) if line and line != "remote:" and not line.startswith("failed to push")
    ]
    return "; ".join(kept)[:1_000] or f"exit code {outcome.code}"


def _clean(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x1f\x7f-\x9f]", "", text)


def is_local(origin: Origin) -> bool:
    """Tell whether the origin is a folder of this machine."""
    return protocol_of(origin.url) == "file"
