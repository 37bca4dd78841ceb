import asyncio
import shutil
import subprocess
import threading
from pathlib import Path

import pytest

from bot.errors import CloneFailed, PushRejected, RepositoryRefused
from bot.workspace.base import Credentials, Origin, Workspace
from bot.workspace.clone import GitWorkspaces
from bot.workspace.locks import locked
from bot.workspace.worktree import GitWorkspace
from tests.unit.workspace.githttp import GitServer
from tests.unit.workspace.helpers import AT, BOT, add, below, commands, git, nobody, tokens


def origin(server: GitServer, credentials: Credentials | None = None) -> Origin:
    """Name the served repository."""
    return Origin("github-1", f"{server.url}/acme/web.git", credentials or tokens("write-token"))


def bare(server: GitServer) -> Path:
    """Return the served repository's folder."""
    return server.root / "acme" / "web.git"


async def changed(workspaces: GitWorkspaces, server: GitServer, task: str = "t1") -> tuple[Workspace, str, str]:
    """Open a working copy and commit a change."""
    made = await workspaces.open(task, origin(server), "main")
    (made.workspace.root / "fix.txt").write_text(f"{task}\n")
    commit = await made.workspace.commit("Fix", BOT, AT, parent=made.base)
    assert commit is not None
    return made.workspace, made.base, commit


async def test_clone_change_push(server: GitServer, state: Path) -> None:
    """A change is fetched, committed and pushed over HTTP, and pushing it again does nothing."""
    workspaces = GitWorkspaces(state)
    made = await workspaces.open("t1", origin(server), "main")
    assert await workspaces.remote_head("t1", origin(server), "main") == made.base
    assert await workspaces.remote_head("t1", origin(server), "agent/1-a") is None
    (made.workspace.root / "fix.txt").write_text("f\n")
    commit = await made.workspace.commit("Fix", BOT, AT, parent=made.base)
    assert commit is not None
    await made.workspace.push(commit, "agent/1-a", expected=None)
    assert git(bare(server), "rev-parse", "agent/1-a") == commit
    posts = [path for path, _ in server.seen if path.endswith("git-receive-pack")]
    await made.workspace.push(commit, "agent/1-a", expected=None)
    assert [path for path, _ in server.seen if path.endswith("git-receive-pack")] == posts
    (made.workspace.root / "fix.txt").write_text("g\n")
    second = await made.workspace.commit("More", BOT, AT, parent=commit)
    assert second is not None
    await made.workspace.push(second, "agent/1-a", expected=commit)
    assert git(bare(server), "rev-parse", "agent/1-a") == second
    assert git(bare(server), "for-each-ref", "--format=%(refname)").split() == [
        "refs/heads/agent/1-a",
        "refs/heads/main",
    ]


async def test_token_is_nowhere(server: GitServer, state: Path) -> None:
    """The token is in no process's arguments or environment while git runs, and in no file afterwards."""
    secret = "ghs_123456_very-secret.token"
    server.tokens[secret] = "write"
    found: set[bytes] = set()
    looked = 0
    done = threading.Event()

    def look() -> None:
        nonlocal looked
        while not done.is_set():
            looked += 1
            found.update(text for text in commands() if secret.encode() in text)

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        workspaces = GitWorkspaces(state)
        made = await workspaces.open("t1", origin(server, tokens(secret)), "main")
        (made.workspace.root / "fix.txt").write_text("f\n")
        commit = await made.workspace.commit("Fix", BOT, AT, parent=made.base)
        assert commit is not None
        await made.workspace.push(commit, "agent/1-a", expected=None)
    finally:
        done.set()
        watcher.join()
    assert looked > 10
    assert found == set()
    assert ("/acme/web.git/git-receive-pack", secret) in server.seen
    files = [path for path in below(state) if path.is_file() and not path.is_symlink()]
    assert [path for path in files if secret.encode() in path.read_bytes()] == []
    assert [path for path in files if b"x-access-token" in path.read_bytes()] == []


async def test_refused_token_is_asked_for_again(server: GitServer, state: Path) -> None:
    """A token that ran out is replaced once by a fresh one; two refusals end the attempt."""
    made = await GitWorkspaces(state).open("t1", origin(server, tokens("stale", "write-token")), "main")
    assert made.files == 6
    before = len(server.seen)
    with pytest.raises(CloneFailed, match="credentials"):
        await GitWorkspaces(state).open("t2", origin(server, tokens("stale")), "main")
    assert [token for _, token in server.seen[before:]].count("stale") == 2


async def test_no_token(server: GitServer, state: Path) -> None:
    """A remote that wants a token where there is none is reported at once, without a question to the terminal."""
    with pytest.raises(CloneFailed, match="credentials"):
        await GitWorkspaces(state).open("t1", origin(server, nobody), "main")


async def test_push_over_a_moved_branch(server: GitServer, state: Path, source: Path) -> None:
    """A branch that stands elsewhere than expected is left alone, and the text says where it stands."""
    workspaces = GitWorkspaces(state)
    workspace, base, commit = await changed(workspaces, server)
    other = add(source, {"theirs": "t"})
    git(source, "push", "--quiet", str(bare(server)), f"{other}:refs/heads/agent/1-a")
    with pytest.raises(PushRejected, match="exists already"):
        await workspace.push(commit, "agent/1-a", expected=None)
    with pytest.raises(PushRejected, match="moved by somebody else"):
        await workspace.push(commit, "agent/1-a", expected=base)
    with pytest.raises(PushRejected, match="was deleted"):
        await workspace.push(commit, "agent/1-b", expected=base)
    assert git(bare(server), "rev-parse", "agent/1-a") == other


async def test_branch_that_moves_during_the_push(server: GitServer, state: Path, source: Path) -> None:
    """A branch that somebody creates between our look and our push is not overwritten."""
    theirs = add(source, {"theirs": "t"})
    asked = 0

    async def credentials() -> str:
        nonlocal asked
        asked += 1
        if asked == 3:
            git(source, "push", "--quiet", str(bare(server)), f"{theirs}:refs/heads/agent/1-a")
        return "write-token"

    made = await GitWorkspaces(state).open("t1", origin(server, credentials), "main")
    (made.workspace.root / "fix.txt").write_text("f\n")
    commit = await made.workspace.commit("Fix", BOT, AT, parent=made.base)
    assert commit is not None
    with pytest.raises(PushRejected, match="moved by somebody else"):
        await made.workspace.push(commit, "agent/1-a", expected=None)
    assert asked == 3
    assert git(bare(server), "rev-parse", "agent/1-a") == theirs


@pytest.mark.parametrize(
    ("hook", "said"),
    [
        ("echo 'GH006: Protected branch update failed for refs/heads/agent/1-a.' >&2; exit 1", "is protected"),
        (
            (
                "echo 'refusing to allow a GitHub App to create or update workflow `.github/workflows/a.yml` "
                "without `workflows` permission' >&2; exit 1"
            ),
            "permission `workflows: write`",
        ),
        ("printf 'no \\033[31mway\\n' >&2; exit 1", "refused the push: no way"),
    ],
)
async def test_remote_refusals(server: GitServer, state: Path, hook: str, said: str) -> None:
    """The remote's own words come through, cleaned, after what they mean."""
    script = bare(server) / "hooks" / "pre-receive"
    script.parent.mkdir(exist_ok=True)
    script.write_text(f"#!/bin/sh\n{hook}\n")
    script.chmod(0o755)
    workspace, _, commit = await changed(GitWorkspaces(state), server)
    with pytest.raises(PushRejected, match=said) as caught:
        await workspace.push(commit, "agent/1-a", expected=None)
    assert "\x1b" not in str(caught.value)
    assert not caught.value.retryable


async def test_read_only_token(server: GitServer, state: Path) -> None:
    """A token that may only read is named as the reason."""
    made = await GitWorkspaces(state).open("t1", origin(server, tokens("read-token")), "main")
    (made.workspace.root / "fix.txt").write_text("f\n")
    commit = await made.workspace.commit("Fix", BOT, AT, parent=made.base)
    assert commit is not None
    with pytest.raises(PushRejected, match="credentials for writing"):
        await made.workspace.push(commit, "agent/1-a", expected=None)


@pytest.mark.parametrize(
    "branch", ["main", "--upload-pack=x", "a..b", "x.lock", "@{-1}", "a b", "a\nb", "", "refs/heads/../x", "a~1"]
)
async def test_branches_that_are_never_pushed(server: GitServer, state: Path, branch: str) -> None:
    """The default branch, and what is no branch name, is refused before anything is sent."""
    workspace, base, commit = await changed(GitWorkspaces(state), server)
    with pytest.raises(PushRejected):
        await workspace.push(commit, branch, expected=base)
    assert not [path for path, _ in server.seen if "receive-pack" in path]


async def test_unreachable_remote(state: Path) -> None:
    """A remote that is down gives an error that may be tried again."""
    away = Origin("github-1", "http://127.0.0.1:9/acme/web.git", nobody)
    with pytest.raises(CloneFailed) as caught:
        await GitWorkspaces(state).open("t1", away, "main")
    assert caught.value.retryable


@pytest.mark.parametrize(
    "url",
    [
        "ext::sh -c id",
        "http://example.com/a/b.git",
        "git://127.0.0.1/x",
        "ssh://x@127.0.0.1/x",
        "https://user:secret@github.com/a/b.git",
        "file:///tmp",
        "--upload-pack=x",
        "relative/path",
    ],
)
async def test_other_transports(state: Path, url: str) -> None:
    """Only https, http on this machine, and absolute paths are taken."""
    with pytest.raises(RepositoryRefused):
        await GitWorkspaces(state).open("t1", Origin("github-1", url, nobody), "main")


async def test_missing_branch_and_empty_repository(server: GitServer, state: Path, tmp_path: Path) -> None:
    """Both are refused with what to do about it, over HTTP and from a path."""
    workspaces = GitWorkspaces(state)
    git(tmp_path, "init", "--quiet", "--bare", str(server.root / "empty.git"))
    empty = Origin("github-2", f"{server.url}/empty.git", tokens("write-token"))
    for task, place, text in [
        ("a", origin(server), "no branch `nope`"),
        ("b", empty, "push a first commit"),
        ("c", Origin("local-1", str(server.root / "empty.git"), nobody), "make a first commit"),
        ("d", Origin("local-2", str(bare(server)), nobody), "no branch `nope`"),
        ("e", Origin("local-3", str(tmp_path), nobody), "not the top folder"),
    ]:
        with pytest.raises(RepositoryRefused, match=text):
            await workspaces.open(task, place, "nope")


async def test_tasks_at_once(server: GitServer, state: Path) -> None:
    """Tasks that fetch one repository at the same time, in two processes' worth of objects, all get their trees."""
    many = [GitWorkspaces(state), GitWorkspaces(state)]
    opened = await asyncio.gather(*(many[n % 2].open(f"t{n}", origin(server), "main") for n in range(8)))
    assert len({made.base for made in opened}) == 1
    assert all((made.workspace.root / "src" / "app.py").exists() for made in opened)
    assert len({made.owner_uid for made in opened}) in {1, 8}


async def test_one_fetch_at_a_time(server: GitServer, state: Path) -> None:
    """While another process holds a cache's lock, a task waits, and goes on when it is free."""
    async with locked(state / "repositories" / "github-1.lock"):
        task = asyncio.create_task(GitWorkspaces(state).open("t1", origin(server), "main"))
        await asyncio.sleep(0.3)
        assert not task.done()
        assert server.seen == []
    assert (await task).files == 6


async def test_pruning_keeps_tasks(server: GitServer, state: Path, source: Path) -> None:
    """When branches vanish and the cache is pruned, a task that stands on one goes on."""
    tip = add(source, {"side": "s"})
    git(source, "push", "--quiet", str(bare(server)), f"{tip}:refs/heads/side")
    workspaces = GitWorkspaces(state)
    made = await workspaces.open("t1", origin(server), "side")
    (made.workspace.root / "x").write_text("x")
    checkpoint = await made.workspace.checkpoint(None, "m", AT)
    git(bare(server), "branch", "-D", "side")
    cache = state / "repositories" / "github-1.git"
    git(cache, "fetch", "--quiet", "--prune", str(bare(server)), "+refs/heads/*:refs/remotes/origin/*")
    assert git(cache, "for-each-ref", "--format=%(refname)") == "refs/remotes/origin/main"
    await made.workspace.restore(tip)
    await made.workspace.restore(checkpoint)
    assert (made.workspace.root / "x").exists()
    assert isinstance(made.workspace, GitWorkspace)
    git(made.workspace.git_dir, "fsck", "--strict")
    again = await workspaces.open("t1", origin(server), "side", commit=checkpoint)
    assert again.base == checkpoint


async def test_branch_in_the_place_of_another(server: GitServer, state: Path, source: Path) -> None:
    """A branch `a/b` is fetched although the cache still knows a branch `a` that is gone."""
    tip = add(source, {"side": "s"})
    git(source, "push", "--quiet", str(bare(server)), f"{tip}:refs/heads/a")
    workspaces = GitWorkspaces(state)
    await workspaces.open("t1", origin(server), "a")
    git(bare(server), "branch", "-D", "a")
    git(source, "push", "--quiet", str(bare(server)), f"{tip}:refs/heads/a/b")
    assert (await workspaces.open("t2", origin(server), "a/b")).base == tip


async def test_left_behind_locks(server: GitServer, state: Path, source: Path) -> None:
    """What a killed git left in the cache stops nobody."""
    workspaces = GitWorkspaces(state)
    await workspaces.open("t1", origin(server), "main")
    cache = state / "repositories" / "github-1.git"
    lock = cache / "refs" / "remotes" / "origin" / "main.lock"
    lock.write_text("")
    (cache / "objects" / "pack" / "tmp_pack_x").write_text("half")
    tip = add(source, {"later": "l"})
    git(source, "push", "--quiet", str(bare(server)), f"{tip}:main")
    assert (await workspaces.open("t2", origin(server), "main")).base == tip
    assert not (cache / "objects" / "pack" / "tmp_pack_x").exists()


async def test_commit_that_only_the_remote_has(server: GitServer, state: Path, source: Path) -> None:
    """An exact commit that no fetched branch holds is fetched by its id."""
    side = add(source, {"side": "s"})
    git(source, "push", "--quiet", str(bare(server)), f"{side}:refs/heads/side")
    git(bare(server), "config", "uploadpack.allowAnySHA1InWant", "true")
    made = await GitWorkspaces(state).open("t1", origin(server), "main", commit=side)
    assert made.base == side
    assert (made.workspace.root / "side").exists()
    with pytest.raises(CloneFailed, match="neither on this machine"):
        await GitWorkspaces(state).open("t2", origin(server), "main", commit="1" * 40)


async def test_cancelled_fetch_leaves_nothing_running(server: GitServer, state: Path) -> None:
    """A cancelled task kills its git, gives the lock back, and the next one works."""
    held = asyncio.Event()

    async def never() -> str | None:
        held.set()
        await asyncio.sleep(60)
        return None

    workspaces = GitWorkspaces(state)
    task = asyncio.create_task(workspaces.open("t1", origin(server, never), "main"))
    await held.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not [text for text in commands() if text.startswith(b"git\0") and str(state).encode() in text]
    assert (await workspaces.open("t1", origin(server), "main")).files == 6


async def test_forget(server: GitServer, state: Path) -> None:
    """Forgetting removes everything of a task, twice is no error, and the cache stays."""
    workspaces = GitWorkspaces(state)
    made = await workspaces.open("t1", origin(server), "main")
    await workspaces.forget("t1")
    await workspaces.forget("t1")
    assert not made.workspace.root.parent.exists()
    assert (state / "repositories" / "github-1.git").exists()


async def test_forget_but_commits(server: GitServer, state: Path) -> None:
    """Work that waits for a person holds no uid and no work tree; a further run goes on from its commit."""
    workspaces = GitWorkspaces(state, uids=[54_321])
    made = await workspaces.open("t1", origin(server), "main")
    (made.workspace.root / "new").write_text("new\n")
    kept = await made.workspace.commit("Wait", BOT, AT, parent=made.base)
    assert kept is not None
    await workspaces.forget("t1", but_commits=True)
    assert [path.name for path in (state / "tasks" / "t1").iterdir()] == ["repository.git"]
    other = await workspaces.open("t2", origin(server), "main")
    assert other.owner_uid == made.owner_uid
    await workspaces.forget("t2")
    again = await workspaces.open("t1", origin(server), "main", commit=made.base)
    await again.workspace.restore(kept)
    assert (again.workspace.root / "new").read_text() == "new\n"


def test_git_is_there() -> None:
    """These tests need git's HTTP server."""
    assert shutil.which("git")
    assert subprocess.run(["git", "http-backend"], capture_output=True, check=False).returncode == 0


async def test_other_name_of_this_machine(server: GitServer, state: Path) -> None:
    """The name under which the origin was given is the one that is answered."""
    other = Origin("github-9", server.url.replace("127.0.0.1", "localhost") + "/acme/web.git", tokens("write-token"))
    made = await GitWorkspaces(state).open("t1", other, "main")
    assert made.files == 6
