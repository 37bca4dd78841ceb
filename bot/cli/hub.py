"""`issuewright hub`: the local GitHub alone, with an App, a person and a repository in it."""

import asyncio
import secrets
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import typer

from bot.cli.demo.stage import NAME, OWNER, PERSON, project
from bot.testing.hub.hub import Hub
from bot.testing.hub.pages import routes
from bot.testing.hub.records import App
from bot.testing.hub.server import HubServer


def start(*, port: int, data: Path | None, webhook: str | None) -> int:
    """Serve the local GitHub until it is interrupted; returns the exit code."""
    with ExitStack() as stack:
        folder = data or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="issuewright-hub-")))
        folder.mkdir(parents=True, exist_ok=True)
        hub = Hub(folder / "repositories")
        stack.callback(hub.close)
        app, secret = _furnish(hub, webhook)
        key = folder / "app.pem"
        key.touch(mode=0o600)
        key.write_text(app.private_key)
        stack.enter_context(HubServer(hub, port=port, extra_routes=routes(hub)))
        typer.echo(
            f"The local GitHub is on {hub.base_url}. Ctrl-C ends it; only repositories' files are kept.", err=True
        )
        for name, value in _settings(hub, app, key, secret):
            # On standard output alone, so that a shell can take it in.
            sys.stdout.write(f"export {name}={value}\n")
        sys.stdout.flush()
        try:
            asyncio.run(_forever())
        except KeyboardInterrupt:
            return 130
    return 0


def _furnish(hub: Hub, webhook: str | None) -> tuple[App, str]:
    owner, person = hub.create_user(OWNER, kind="Organization"), hub.create_user(PERSON)
    repository = hub.create_repository(owner, NAME, files=project())
    hub.add_collaborator(repository, person, "write")
    hub.create_label(repository, "agent", color="5319e7", description="Issuewright works on it")
    secret = secrets.token_hex(20)
    app = hub.create_app(owner, "Issuewright Local", webhook_url=webhook, webhook_secret=secret)
    hub.install(app, [repository.id])
    typer.echo(f"{PERSON} may write to {OWNER}/{NAME}, with the token {hub.create_user_token(person).value}", err=True)
    return app, secret


def _settings(hub: Hub, app: App, key: Path, secret: str) -> list[tuple[str, str]]:
    return [
        ("ISSUEWRIGHT_GITHUB__API_URL", hub.api_url),
        ("ISSUEWRIGHT_GITHUB__WEB_URL", hub.base_url),
        ("ISSUEWRIGHT_GITHUB__APP_ID", str(app.id)),
        ("ISSUEWRIGHT_GITHUB__PRIVATE_KEY_FILE", str(key.resolve())),
        ("ISSUEWRIGHT_GITHUB__WEBHOOK_SECRET", secret),
    ]


async def _forever() -> None:
    await asyncio.Event().wait()
