"""A local GitHub, a scripted model and the bot's server as a process: what the stories of `tests/e2e` play on."""

import contextlib
import itertools
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import httpx

from bot.testing.hub.graphql.app import routes
from bot.testing.hub.hub import Hub
from bot.testing.hub.records import App, Issue, Repository, User
from bot.testing.hub.server import HubServer
from bot.testing.model.script import Script
from bot.testing.model.server import ScriptedModel

T = TypeVar("T")
ROOT = Path(__file__).parents[2]
PATIENCE_S = 60.0


_WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % 2
_ports = itertools.count(20_000 + _WORKER * 6_000 + os.getpid() % 200 * 20)
"""Apart from those of a worker beside this one: a port names the user ids of a stage too."""


def free_port() -> int:
    """Return a port that nobody listens on and nobody is given by chance: below those that the kernel hands out."""
    while True:
        port = next(_ports)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def until(what: Callable[[], T | None], name: str, patience_s: float = PATIENCE_S) -> T:
    """Wait until something is there."""
    end = time.monotonic() + patience_s
    while time.monotonic() < end:
        if (found := what()) is not None:
            return found
        time.sleep(0.05)
    raise AssertionError(f"{name}: not within {patience_s:.0f} s")


class Stage:
    """Everything that one story needs."""

    def __init__(self, folder: Path, script: Script, files: Mapping[str, bytes | str], *, webhook: bool = True) -> None:
        self.folder = folder
        folder.chmod(0o711)
        self.port = free_port()
        # Stages that run side by side on one machine must not end each other's processes by their uid.
        self.first_uid = 100_000 + 64 * self.port
        self.hub = Hub(folder / "hub")
        self.secret = secrets.token_hex(16)
        self.owner = self.hub.create_user("acme", kind="Organization")
        self.maria = self.hub.create_user("maria")
        self.stranger = self.hub.create_user("stranger")
        self.repository: Repository = self.hub.create_repository(self.owner, "shop", files=dict(files))
        self.hub.add_collaborator(self.repository, self.maria, "write")
        url = f"http://127.0.0.1:{self.port}/webhook" if webhook else None
        self.app: App = self.hub.create_app(self.owner, "Wright", webhook_url=url, webhook_secret=self.secret)
        self.installation = self.hub.install(self.app, [self.repository.id])
        self.github = HubServer(self.hub, extra_routes=routes(self.hub))
        self.model = ScriptedModel(script)

    @contextmanager
    def open(self) -> Iterator["Stage"]:
        """Serve the local GitHub and the model."""
        with self.github:
            self.model.start()
            try:
                yield self
            finally:
                self.model.stop()
                self.hub.close()

    def environment(self, **more: str) -> dict[str, str]:
        """The environment of the bot's processes: nothing of ours but what they need."""
        key = self.folder / "app.pem"
        key.write_text(self.app.private_key)
        key.chmod(0o600)
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "VIRTUAL_ENV") if name in os.environ}
        return kept | {
            "PYTHONPATH": str(ROOT),
            "ISSUEWRIGHT_STATE_DIR": str(self.folder / "state"),
            "ISSUEWRIGHT_PORT": str(self.port),
            "ISSUEWRIGHT_GITHUB__APP_ID": str(self.app.id),
            "ISSUEWRIGHT_GITHUB__PRIVATE_KEY_FILE": str(key),
            "ISSUEWRIGHT_GITHUB__WEBHOOK_SECRET": self.secret,
            "ISSUEWRIGHT_GITHUB__API_URL": self.hub.api_url,
            "ISSUEWRIGHT_GITHUB__WEB_URL": self.hub.base_url,
            "ISSUEWRIGHT_GITHUB__CONTENT_INTERVAL_S": "0",
            "ISSUEWRIGHT_ANTHROPIC__BASE_URL": self.model.url,
            "ISSUEWRIGHT_MODELS__ACT": f"anthropic:{self.model.model_id}",
            "ISSUEWRIGHT_MODE": "act",
            "ISSUEWRIGHT_PROGRESS__INTERVAL_S": "1",
            "ISSUEWRIGHT_PULL__SETTLE_S": "0",
            "ISSUEWRIGHT_WORKSPACE__FIRST_UID": str(self.first_uid),
            "ANTHROPIC_API_KEY": "scripted-key-that-is-long-enough",
            **more,
        }

    def spawn(self, **more: str) -> "subprocess.Popen[str]":
        """Start the bot's server as a process; when this returns it answers, or is dead already."""
        with (self.folder / "server.log").open("a") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.e2e.worker"],
                cwd=ROOT,
                env=self.environment(**more),
                stdout=log,
                stderr=log,
                text=True,
            )
        try:
            until(lambda: True if self.healthy() or process.poll() is not None else None, "the server's start")
        except BaseException:
            process.kill()
            process.wait()
            raise
        return process

    @contextmanager
    def serving(self, **more: str) -> Iterator["subprocess.Popen[str]"]:
        """Run the bot's server as a process; ended with SIGTERM, and it has to end by itself where it still lives."""
        process = self.spawn(**more)
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                raise

    def healthy(self) -> bool:
        """Whether the bot's server answers."""
        try:
            return httpx.get(f"http://127.0.0.1:{self.port}/healthz", timeout=2).is_success
        except httpx.TransportError:
            return False

    def labelled(self, title: str = "The greeting is wrong", body: str = "It says Helo.") -> Issue:
        """Let Maria open an issue and label it."""
        issue = self.hub.open_issue(self.repository, self.maria, title, body)
        self.hub.add_label(issue, self.maria, "agent")
        return issue

    def write(self, repository: Repository, greeting: str, by: User) -> None:
        """Commit another greeting on the branch `topic`."""
        main = self.hub.git(repository).refs("refs/heads/main")["refs/heads/main"]
        self.hub.write_commit(repository, {"greet.txt": greeting}, message="Greet", by=by, parent=main, ref="topic")

    def bot_comments(self, number: int) -> list[str]:
        """The bot's comments on a thread."""
        with self.hub.lock:
            comments = self.repository.issues[number].comments
            return [comment.body for comment in comments if comment.user is self.app.bot]

    def pulls(self) -> list[Issue]:
        """All pull requests, oldest first."""
        with self.hub.lock:
            return [issue for _, issue in sorted(self.repository.issues.items()) if issue.pull is not None]

    def git(self, *args: str) -> str:
        """Ask the hub's bare repository."""
        command = ["git", "--git-dir", str(self.repository.path), *args]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def branches(self) -> dict[str, str]:
        """Branch name to commit."""
        lines = self.git("for-each-ref", "--format=%(refname:short) %(objectname)", "refs/heads").splitlines()
        return dict(line.split() for line in lines)

    def story_ends(self, number: int, count: int = 1) -> str:
        """Wait until the last progress comment of a thread shows an end, and return it."""

        def ended() -> str | None:
            told = [body for body in self.bot_comments(number) if ":progress." in body]
            done = [body for body in told if body.startswith(("**Done", "**Failed", "**Stopped", "**Budget"))]
            return done[-1] if len(done) >= count else None

        return until(ended, f"the end of #{number}; the server said: {self.log()}")

    def log(self) -> str:
        """The end of the server's log."""
        file = self.folder / "server.log"
        return file.read_text()[-4000:] if file.exists() else ""

    def whole_log(self) -> str:
        """All that the server said."""
        file = self.folder / "server.log"
        return file.read_text() if file.exists() else ""

    def client(self, user: User) -> httpx.Client:
        """Act through the API as a person."""
        token = self.hub.create_user_token(user).value
        return httpx.Client(base_url=self.hub.api_url, headers={"Authorization": f"Bearer {token}"}, timeout=10)
