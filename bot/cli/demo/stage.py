"""The stage of the demo: a local GitHub with one repository, a person, the App, and a scripted model."""

import secrets
from contextlib import AsyncExitStack
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from bot.testing.hub.graphql.app import routes as graphql_routes
from bot.testing.hub.hub import Hub
from bot.testing.hub.pages import routes as page_routes
from bot.testing.hub.records import App, Repository, Token, User
from bot.testing.hub.server import HubServer
from bot.testing.model.load import parse_script
from bot.testing.model.server import ScriptedModel

PERSON = "maria"
OWNER = "corner-shop"
NAME = "cart"


@dataclass(frozen=True, slots=True)
class Stage:
    """What the story plays on."""

    hub: Hub
    server: HubServer
    app: App
    repository: Repository
    person: User
    token: Token
    """Of the person, so that the story acts through the API as they would."""
    secret: str
    """With which deliveries are signed."""
    model: ScriptedModel | None


async def build(stack: AsyncExitStack, folder: Path, *, webhook_url: str, port: int, dialect: str | None) -> Stage:
    """Set everything up and serve it until the stack is closed.

    Args:
        stack: closes the servers.
        folder: for the repositories.
        webhook_url: where the App's deliveries go.
        port: of the local GitHub; 0 takes a free one.
        dialect: how a scripted model calls tools; None: none is needed.
    """
    hub = Hub(folder)
    stack.callback(hub.close)
    owner = hub.create_user(OWNER, kind="Organization")
    person = hub.create_user(PERSON)
    repository = hub.create_repository(owner, NAME, files=project())
    hub.add_collaborator(repository, person, "write")
    hub.create_label(repository, "agent", color="5319e7", description="Issuewright works on it")
    secret = secrets.token_hex(20)
    app = hub.create_app(owner, "Issuewright Demo", webhook_url=webhook_url, webhook_secret=secret)
    hub.install(app, [repository.id])
    routes = [*graphql_routes(hub), *page_routes(hub)]
    server = await stack.enter_async_context(HubServer(hub, port=port, extra_routes=routes))
    model = ScriptedModel(parse_script(script(), "script.yaml"), dialect=dialect) if dialect else None
    if model is not None:
        await stack.enter_async_context(model)
    return Stage(hub, server, app, repository, person, hub.create_user_token(person), secret, model)


def project() -> dict[str, bytes]:
    """Read the files of the demo's project."""
    root = resources.files("bot.cli.demo") / "project"
    with resources.as_file(root) as folder:
        return {
            str(path.relative_to(folder)): path.read_bytes()
            for path in sorted(folder.rglob("*"))
            if path.is_file() and "__pycache__" not in path.parts
        }


def script() -> str:
    """Read what the scripted model says."""
    return (resources.files("bot.cli.demo") / "script.yaml").read_text(encoding="utf-8")
