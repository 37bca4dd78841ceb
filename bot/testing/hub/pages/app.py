"""The routes of the pages."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.convertors import Convertor, register_url_convertor
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from bot.testing.hub.errors import not_found
from bot.testing.hub.hub import Hub
from bot.testing.hub.pages import code, threads, views
from bot.testing.hub.pages.site import Site, style_sheet
from bot.testing.hub.rest.table import ROUTES

TAKEN = sorted({route.template.split("/")[1] for route in ROUTES} | {"api", "graphql", "repositories"})
"""First parts of the REST API's paths, which is served at the root too; no account of the pages has such a name."""

ONE = "/{owner:account}/{repo}"


class _Account(Convertor[str]):
    """An account's name: anything that the REST API does not take."""

    regex = f"(?!(?:{'|'.join(TAKEN)})(?:/|$))[^/]+"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


class _Page(_Account):
    """Whatever is left for a page that does not exist: neither the REST API nor git."""

    regex = f"{_Account.regex}(?!.*/(?:info/refs|git-upload-pack|git-receive-pack)$)(?:/.*)?"


register_url_convertor("account", _Account())
register_url_convertor("page", _Page())


def routes(hub: Hub) -> Sequence[BaseRoute]:
    """Return the routes of all pages of a hub, to be tried before its others.

    Private repositories are shown as well: this is a look into one's own machine.
    """
    site = Site(hub)
    table = {
        "/": views.home,
        "/apps/{slug}": views.app,
        "/avatars/u/{number:int}": views.avatar,
        "/settings/installations/{number:int}": views.installation,
        "/{login:account}": views.account,
        ONE: views.repository,
        f"{ONE}/issues": views.issues,
        f"{ONE}/pulls": views.pulls,
        f"{ONE}/issues/{{number:int}}": threads.issue,
        f"{ONE}/pull/{{number:int}}": threads.pull,
        f"{ONE}/pull/{{number:int}}/commits": threads.pull_commits,
        f"{ONE}/pull/{{number:int}}/files": threads.pull_files,
        f"{ONE}/pull/{{number:int}}.diff": threads.pull_text,
        f"{ONE}/pull/{{number:int}}.patch": threads.pull_text,
        f"{ONE}/runs/{{number:int}}": threads.run,
        f"{ONE}/actions/runs/{{workflow:int}}/job/{{number:int}}": threads.run,
        f"{ONE}/commit/{{sha}}": code.commit,
        f"{ONE}/compare/{{rest:path}}": code.compare,
        f"{ONE}/tree/{{rest:path}}": code.tree,
        f"{ONE}/blob/{{rest:path}}": code.blob,
        f"{ONE}/raw/{{rest:path}}": code.raw,
        "/{nothing:page}": _nothing,
    }
    pages = [Route(path, site.endpoint(view), methods=["GET"]) for path, view in table.items()]
    own = [Route("/-/hub.css", style_sheet, methods=["GET"]), Route("/favicon.ico", no_icon, methods=["GET"])]
    return [*own, *pages]


async def no_icon(_request: Request) -> Response:
    """Answer browsers, which ask for an icon by themselves, that there is none."""
    return Response(status_code=204)


def _nothing(_: Site, _request: Request) -> Response:
    raise not_found()
