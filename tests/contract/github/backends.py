"""The two GitHubs of the contract, our hub and an independent emulator, with the same people, App and repositories."""

import hashlib
import hmac
import json
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NoReturn

import httpx
import jwt
import pytest

from bot.testing.hub.hub import Hub
from bot.testing.hub.server import HubServer

PACKAGE = "emulate@0.11.2"
"""The last version for Node 20; the name without a version gives another project."""

NODE_MIN = 20
INSTALL_S = 80.0
START_S = 20.0
STOP_S = 5.0
HEARD_S = 10.0

SECRET = "s3cret"
PERMISSIONS = {
    "metadata": "read",
    "contents": "write",
    "issues": "write",
    "pull_requests": "write",
    "checks": "write",
    "statuses": "write",
}
EVENTS = ["issues", "issue_comment", "pull_request", "check_run", "push"]
FILES = {"README.md": "# web\n"}


@dataclass(frozen=True)
class Heard:
    """One delivery as it arrived; header names are lower case."""

    headers: dict[str, str]
    body: bytes

    @property
    def payload(self) -> dict[str, object]:
        """The body, read."""
        payload: dict[str, object] = json.loads(self.body)
        return payload

    @property
    def signed(self) -> bool:
        """Whether the signature is that of these bytes under the App's secret."""
        digest = hmac.new(SECRET.encode(), self.body, hashlib.sha256).hexdigest()
        return hmac.compare_digest(self.headers.get("x-hub-signature-256", ""), f"sha256={digest}")


class Receiver:
    """An HTTP server that keeps what webhooks bring."""

    def __init__(self) -> None:
        self.heard: list[Heard] = []
        self._changed = threading.Condition()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                with receiver._changed:
                    receiver.heard.append(Heard({k.lower(): v for k, v in self.headers.items()}, body))
                    receiver._changed.notify_all()
                self.send_response(202)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._http.server_port}/webhook"

    def wait(self, event: str, wanted: Callable[[dict[str, object]], bool]) -> Heard:
        """Return the first delivery of an event whose payload is the wanted one.

        Raises:
            AssertionError: when none comes in time.
        """

        def find() -> Heard | None:
            return next((h for h in self.heard if h.headers.get("x-github-event") == event and wanted(h.payload)), None)

        with self._changed:
            found = self._changed.wait_for(find, HEARD_S)
        assert found is not None, [(h.headers.get("x-github-event"), h.payload.get("action")) for h in self.heard]
        return found

    def close(self) -> None:
        """Stop listening."""
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


@dataclass
class Backend:
    """A running GitHub: `acme/web` and `acme/other` are in the App's installation, the private `acme/secret` is not."""

    name: str
    api_url: str
    git_url: str
    app_id: int
    client_id: str
    private_key: str
    receiver: Receiver
    clients: list[httpx.Client] = field(default_factory=list)

    def client(self, token: str) -> httpx.Client:
        """Return a client of the REST API with a token."""
        client = httpx.Client(
            base_url=self.api_url,
            headers={"Authorization": f"Bearer {token}", "Accept": "application/vnd.github+json"},
            trust_env=False,
            verify=False,  # plain HTTP; loading certificates would take most of the test
        )
        self.clients.append(client)
        return client

    def jwt(self, **claims: object) -> str:
        """Return the App's own token."""
        now = int(time.time())
        content = {"iat": now - 60, "exp": now + 540, "iss": str(self.app_id), **claims}
        return jwt.encode(content, self.private_key, algorithm="RS256")

    def as_app(self) -> httpx.Client:
        """Return a client of the App itself."""
        return self.client(self.jwt())

    def mint(self, *repositories: str, **permissions: str) -> dict[str, object]:
        """Return the answer that holds a token of the installation, narrowed to repositories and permissions if any."""
        app = self.as_app()
        installation = app.get("/repos/acme/web/installation").json()["id"]
        wanted: dict[str, object] = {}
        if repositories:
            wanted["repositories"] = list(repositories)
        if permissions:
            wanted["permissions"] = permissions
        answer = app.post(f"/app/installations/{installation}/access_tokens", json=wanted)
        assert answer.status_code == 201, answer.text
        minted: dict[str, object] = answer.json()
        return minted

    def as_bot(self, *repositories: str, **permissions: str) -> httpx.Client:
        """Return a client with a token of the installation."""
        return self.client(str(self.mint(*(repositories or ("web",)), **permissions)["token"]))

    def close(self) -> None:
        """Close the clients."""
        for client in self.clients:
            client.close()


@contextmanager
def hub(folder: Path, private_key: str) -> Iterator[Backend]:
    """Serve our hub."""
    receiver, github = Receiver(), Hub(folder)
    with HubServer(github) as server:
        owner = github.create_user("acme")
        github.create_user("visitor")
        web, other = (github.create_repository(owner, name, files=FILES) for name in ("web", "other"))
        github.create_repository(owner, "secret", files=FILES, private=True)
        app = github.create_app(
            owner,
            "Agent Bot",
            permissions=PERMISSIONS,
            events=EVENTS,
            webhook_url=receiver.url,
            webhook_secret=SECRET,
            private_key=private_key,
        )
        github.install(app, [web.id, other.id])
        backend = Backend("hub", server.api_url, server.url, app.id, app.client_id, private_key, receiver)
        yield backend
        backend.close()
    receiver.close()


@contextmanager
def emulator(folder: Path, private_key: str) -> Iterator[Backend]:
    """Install the emulator, run it as a process on a free port and end it."""
    program, receiver, port = install(folder), Receiver(), free_port()
    seed = folder / "seed.json"
    seed.write_text(json.dumps(_seed(private_key, receiver.url)))
    log = (folder / "log").open("w")
    process = subprocess.Popen(
        [*program, "start", "--service", "github", "--port", str(port), "--seed", str(seed)],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    url = f"http://localhost:{port}"
    backend = Backend("emulator", url, url, 12345, "Iv23li00000000012345", private_key, receiver)
    try:
        _await(backend, process, folder / "log")
        yield backend
    finally:
        backend.close()
        _end(process)
        log.close()
        receiver.close()


def install(folder: Path) -> list[str]:
    """Return the command of the freshly installed emulator; skips where it cannot be had, see `unavailable`."""
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        unavailable("there is no npm or no Node here")
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    if int(version.removeprefix("v").split(".")[0]) < NODE_MIN:
        unavailable(f"the emulator needs Node {NODE_MIN}, and this is {version}")
    command = [npm, "install", "--prefix", str(folder), "--no-audit", "--no-fund", "--ignore-scripts", PACKAGE]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=INSTALL_S)
    except subprocess.TimeoutExpired:
        unavailable(f"npm did not bring {PACKAGE} in {INSTALL_S:.0f} s")
    if done.returncode != 0:
        unavailable(f"npm could not install {PACKAGE}: {done.stderr.strip()[-300:]}")
    return [node, str(folder / "node_modules" / "emulate" / "dist" / "index.js")]


def unavailable(reason: str) -> NoReturn:
    """Skip, or fail under REQUIRE_EMULATE=1."""
    if os.environ.get("REQUIRE_EMULATE") == "1":
        pytest.fail(f"{reason}, and REQUIRE_EMULATE=1")
    pytest.skip(reason)


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def _seed(private_key: str, webhook_url: str) -> dict[str, object]:
    return {
        "github": {
            "users": [{"login": login, "name": login} for login in ("acme", "visitor")],
            "repos": [
                {"owner": "acme", "name": name, "auto_init": True, "private": name == "secret"}
                for name in ("web", "other", "secret")
            ],
            "apps": [
                {
                    "app_id": 12345,
                    "slug": "agent-bot",
                    "name": "Agent Bot",
                    "private_key": private_key,
                    "permissions": PERMISSIONS,
                    "events": EVENTS,
                    "webhook_url": webhook_url,
                    "webhook_secret": SECRET,
                    "installations": [
                        {
                            "installation_id": 100,
                            "account": "acme",
                            "repository_selection": "selected",
                            "repositories": ["acme/web", "acme/other"],
                        }
                    ],
                }
            ],
        }
    }


def _await(backend: Backend, process: subprocess.Popen[bytes], log: Path) -> None:
    client, deadline = backend.as_app(), time.monotonic() + START_S
    while True:
        try:
            client.get("/app").raise_for_status()
        except httpx.HTTPError as error:
            if process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"the emulator did not start: {log.read_text()[-2000:]}") from error
            time.sleep(0.05)
        else:
            return


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the process and whatever it started: they are one process group."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(STOP_S)
