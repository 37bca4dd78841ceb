"""A small world for the tests of the hub: a clock, people, a repository, an App, clients and a webhook receiver."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import jwt

from bot.testing.hub.hub import Hub
from bot.testing.hub.records import App, Installation, Repository, Token, User
from bot.testing.hub.server import HubServer
from tests.hub.oracle import RestJudge

FILES = {"README.md": "# Web\n\nA shop.\n", "src/app.py": "def add(a, b):\n    return a - b\n"}


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = datetime(2026, 11, 30, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        """Return the time."""
        return self.now

    def forward(self, **spans: float) -> None:
        """Move on by `timedelta(**spans)`."""
        self.now += timedelta(**spans)


@dataclass
class World:
    """Everything a test needs."""

    hub: Hub
    server: HubServer
    clock: Clock
    judge: RestJudge
    owner: User
    repository: Repository
    app: App
    installation: Installation
    clients: list[httpx.Client] = field(default_factory=list)

    @property
    def path(self) -> str:
        """`/repos/acme/web`."""
        return f"/repos/{self.repository.full_name}"

    def client(self, token: str | Token | None = None) -> httpx.Client:
        """Return a judged client of the REST API with a token."""
        value = token.value if isinstance(token, Token) else token
        client = httpx.Client(
            base_url=self.server.api_url,
            headers={"Authorization": f"Bearer {value}"} if value else {},
            event_hooks={"response": [self.judge.hook]},
            trust_env=False,
            verify=False,  # plain HTTP; loading certificates would take most of the test
        )
        self.clients.append(client)
        return client

    def jwt(self, **claims: object) -> str:
        """Return a token of the App; claims of None are left out."""
        now = int(self.clock().timestamp())
        content = {"iat": now - 60, "exp": now + 540, "iss": self.app.client_id, **claims}
        key = self.app.private_key
        return jwt.encode({k: v for k, v in content.items() if v is not None}, key, algorithm="RS256")

    def as_app(self) -> httpx.Client:
        """Return a client with a JSON web token."""
        return self.client(self.jwt())

    def as_bot(self, **permissions: str) -> httpx.Client:
        """Return a client with an installation token, of these permissions if any."""
        return self.client(self.hub.create_installation_token(self.installation, permissions=permissions or None))

    def as_person(self, user: User) -> httpx.Client:
        """Return a client of a person."""
        return self.client(self.hub.create_user_token(user))

    def person(self, login: str, role: str | None = None) -> User:
        """Create a person with a role in the repository."""
        user = self.hub.create_user(login)
        if role is not None:
            self.hub.add_collaborator(self.repository, user, role)  # type: ignore[arg-type]
        return user


@dataclass
class Received:
    """One delivery as the receiver saw it; header names are lower case."""

    headers: dict[str, str]
    body: bytes


class Receiver:
    """A webhook receiver whose answers a test chooses."""

    def __init__(self) -> None:
        self.received: list[Received] = []
        self.status: Callable[[], int] = lambda: 202
        self.delay_s = 0.0
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.received.append(Received({k.lower(): v for k, v in self.headers.items()}, body))
                time.sleep(receiver.delay_s)
                self.send_response(receiver.status())
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"ok")

            def log_message(self, *_: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self.thread.start()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.http.server_port}/webhook"

    def close(self) -> None:
        """Stop listening."""
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()
