"""`issuewright hub`: the local GitHub alone, with an App, a person and a repository in it."""

import asyncio
import os
import secrets
import shlex
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import typer

from bot.cli.demo.stage import NAME, OWNER, PERSON, project
from bot.errors import OperatorError
from bot.testing.hub.graphql.app import routes as graphql_routes
from bot.testing.hub.hub import Hub
from bot.testing.hub.pages import routes as page_routes
from bot.testing.hub.records import App, Repository, Token
from bot.testing.hub.server import HubServer

LABEL = "agent"


@dataclass(frozen=True, slots=True)
class Furniture:
    """What stands in a fresh hub."""

    app: App
    secret: str
    """With which deliveries are signed."""
    repository: Repository
    token: Token
    """Of the person."""


def start(*, port: int, data: Path | None, webhook: str | None) -> int:
    """Serve the local GitHub until it is interrupted; returns the exit code.

    People's text goes to standard error; standard output has `export` lines alone, so that a shell can take them in.

    Raises:
        OperatorError: when the port is taken, or the folder holds the repositories of an earlier hub.
    """
    with ExitStack() as stack:
        folder = data or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="issuewright-hub-")))
        root = folder / "repositories"
        if root.exists() and any(root.iterdir()):
            raise OperatorError(f"{root} holds the repositories of an earlier hub: name another folder or empty it")
        folder.mkdir(parents=True, exist_ok=True)
        hub = Hub(root)
        stack.callback(hub.close)
        # First the server, then the furniture: webhooks link to the server's address.
        stack.enter_context(_serving(hub, port))
        placed = furnish(hub, webhook)
        key = write_key(folder / "app.pem", placed.app.private_key)
        for line in introduction(hub, placed, webhook):
            typer.echo(line, err=True)
        for name, value in settings(hub, placed, key):
            sys.stdout.write(f"export {name}={shlex.quote(value)}\n")
        sys.stdout.flush()
        try:
            asyncio.run(_forever())
        except KeyboardInterrupt:
            return 130
    return 0


@contextmanager
def _serving(hub: Hub, port: int) -> Iterator[None]:
    server = HubServer(hub, port=port, extra_routes=[*graphql_routes(hub), *page_routes(hub)])
    try:
        server.start()
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        raise OperatorError(f"port {port} cannot be listened on ({reason}): name another with --port") from None
    try:
        yield
    finally:
        server.stop()


def furnish(hub: Hub, webhook: str | None) -> Furniture:
    """Put the App, the person and the repository into a fresh hub."""
    owner, person = hub.create_user(OWNER, kind="Organization"), hub.create_user(PERSON)
    repository = hub.create_repository(owner, NAME, files=project())
    hub.add_collaborator(repository, person, "write")
    hub.create_label(repository, LABEL, color="5319e7", description="Issuewright works on it")
    secret = secrets.token_hex(20)
    app = hub.create_app(owner, "Issuewright Local", webhook_url=webhook, webhook_secret=secret)
    hub.install(app, [repository.id])
    return Furniture(app, secret, repository, hub.create_user_token(person))


def write_key(path: Path, key: str) -> Path:
    """Write the App's private key for its owner's eyes only, and return where it is."""
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(key)
    return path.resolve()


def introduction(hub: Hub, placed: Furniture, webhook: str | None) -> list[str]:
    """Tell people what stands where and what they may do first."""
    name, token = placed.repository.full_name, placed.token.value
    hook = webhook or "nobody; --webhook names a receiver"
    issue = f'{{"title": "Discount is ignored", "labels": ["{LABEL}"]}}'
    return [
        f"The local GitHub is on {hub.base_url}. Ctrl-C ends it; only the repositories' files are kept.",
        f"Repository: {hub.base_url}/{name}",
        f"API: {hub.api_url}, GraphQL: {hub.base_url}/api/graphql",
        f"App: {placed.app.name}, id {placed.app.id}, deliveries go to {hook}",
        f"{placed.token.user.login} may write to {name}, with the token {token}",
        f"The label `{LABEL}` on an issue starts work. To open such an issue:",
        f"  curl -H 'Authorization: Bearer {token}' {hub.api_url}/repos/{name}/issues -d '{issue}'",
    ]


def settings(hub: Hub, placed: Furniture, key: Path) -> list[tuple[str, str]]:
    """Return the environment with which `issuewright serve` works here."""
    return [
        ("ISSUEWRIGHT_GITHUB__API_URL", hub.api_url),
        ("ISSUEWRIGHT_GITHUB__WEB_URL", hub.base_url),
        ("ISSUEWRIGHT_GITHUB__APP_ID", str(placed.app.id)),
        ("ISSUEWRIGHT_GITHUB__PRIVATE_KEY_FILE", str(key)),
        ("ISSUEWRIGHT_GITHUB__WEBHOOK_SECRET", placed.secret),
    ]


async def _forever() -> None:
    await asyncio.Event().wait()
