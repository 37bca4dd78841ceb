"""`issuewright serve`: receives deliveries and works on them."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import typer

from bot import __version__, bootstrap, serving
from bot.cli.http import listener, web_app
from bot.cli.sandboxing import sheltered
from bot.errors import OperatorError
from bot.models import lacking
from bot.settings.server import ServerSettings


def serve(*, config: Path | None, host: str | None, port: int | None) -> int:
    """Serve until a signal; returns the exit code."""
    flags: dict[str, object] = {"host": host, "port": port}
    settings = bootstrap.load(config, flags)
    missing = what_is_missing(settings)
    if missing and not settings.loopback:
        told = "\n".join(f"- {line}" for line in missing)
        raise OperatorError(f"set-up mode listens on 127.0.0.1 only, not on {settings.host}. What is missing:\n{told}")
    chosen = sheltered(settings, lambda line: typer.echo(line, err=True))
    server = serving.make_server(settings, chosen)
    app = web_app(server, missing=missing, running=idle if missing else None)
    for line in missing:
        typer.echo(f"Set-up: {line}", err=True)
    typer.echo(f"Issuewright {__version__} on http://{settings.host}:{settings.port}, sandbox: {chosen.told}", err=True)
    listener(app, host=settings.host, port=settings.port).run()
    # Parked workflows and DBOS's threads would hold the process; everything is recorded.
    os._exit(0)


@asynccontextmanager
async def idle() -> AsyncIterator[None]:
    """Do no work: in set-up mode there is nobody to work as."""
    yield


def what_is_missing(settings: ServerSettings) -> list[str]:
    """Say what set-up still lacks, a sentence each with its remedy."""
    github, missing = settings.github, []
    if github.app_id is None:
        missing.append("Set `ISSUEWRIGHT_GITHUB__APP_ID` to the GitHub App's id.")
    if github.private_key is None:
        missing.append("Set `ISSUEWRIGHT_GITHUB__PRIVATE_KEY_FILE` to the file with the App's private key.")
    if not github.webhook_secrets:
        missing.append("Set `ISSUEWRIGHT_GITHUB__WEBHOOK_SECRET` to the App's webhook secret.")
    return [*missing, *lacking(settings)]
