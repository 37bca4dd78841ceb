"""Pages of repositories, accounts and Apps, and the lists of issues and pull requests."""

from __future__ import annotations

import colorsys

from starlette.requests import Request
from starlette.responses import Response

from bot.testing.hub.errors import not_found
from bot.testing.hub.git.history import Git
from bot.testing.hub.git.objects import Entry
from bot.testing.hub.pages.site import HEADERS, Site, label_classes, redirect, segment
from bot.testing.hub.records import Issue, Repository, User

README = "readme.md"
MOST_LISTED = 200
"""Issues or branches of one page."""

STATES = ("open", "closed", "all")


def home(site: Site, _: Request) -> Response:
    """List the repositories."""
    repositories = sorted(site.hub.repositories.values(), key=lambda repository: repository.full_name.lower())
    apps = [app for app in site.hub.apps.values() if app.private_key]
    return site.page("home.html", repositories=repositories, apps=apps, counts=_counts)


def _counts(repository: Repository) -> tuple[int, int]:
    """Return how many issues and pull requests are open."""
    still = [issue for issue in repository.issues.values() if issue.state == "open"]
    pulls = sum(issue.pull is not None for issue in still)
    return len(still) - pulls, pulls


def repository(site: Site, request: Request) -> Response:
    """Show a repository: its files, README, branches, open issues and pull requests."""
    if request.path_params["repo"].endswith(".git"):
        name = request.path_params["repo"].removesuffix(".git")
        return redirect(site.url(site.hub.repository(request.path_params["owner"], name)))
    found = site.repository(request)
    git, branch = site.hub.git(found), found.default_branch
    heads = {name.removeprefix("refs/heads/"): sha for name, sha in git.refs("refs/heads/").items()}
    tree = git.tree(heads[branch]) if branch in heads else []
    folder = f"{site.url(found)}/blob/{segment(branch)}/"
    readme = next((entry for entry in tree if entry.path.lower() == README and entry.type == "blob"), None)
    text = git.blob(readme.sha).decode(errors="replace") if readme else ""
    listed = listing(found, "open", pulls=None)
    return site.page(
        "repository.html",
        repository=found,
        root=site.url(found),
        counts=_counts(found),
        branches=list(heads.items())[:MOST_LISTED],
        entries=in_order(tree),
        readme=site.document(found, text, folder),
        issues=[issue for issue in listed if issue.pull is None],
        pulls=[issue for issue in listed if issue.pull is not None],
        colours=label_classes([label for issue in listed for label in issue.labels]),
        git_url=f"{site.hub.base_url}{site.url(found)}.git",
        newest=_newest(git, heads.get(branch)),
    )


def _newest(git: Git, sha: str | None) -> object:
    return git.commit(sha) if sha else None


def in_order(entries: list[Entry]) -> list[Entry]:
    """Return folders first."""
    return sorted(entries, key=lambda entry: (entry.type != "tree", entry.path))


def listing(found: Repository, state: str, *, pulls: bool | None) -> list[Issue]:
    """Return issues or pull requests (None: both) in a state, newest first."""
    chosen = (
        issue
        for issue in found.issues.values()
        if state in ("all", issue.state) and pulls in (None, issue.pull is not None)
    )
    return sorted(chosen, key=lambda issue: -issue.number)


def issues(site: Site, request: Request) -> Response:
    """List issues."""
    return _list(site, request, pulls=False)


def pulls(site: Site, request: Request) -> Response:
    """List pull requests."""
    return _list(site, request, pulls=True)


def _list(site: Site, request: Request, *, pulls: bool) -> Response:
    found = site.repository(request)
    asked = request.query_params.get("state", "open")
    state = asked if asked in STATES else "open"
    listed = listing(found, state, pulls=pulls)
    return site.page(
        "list.html",
        repository=found,
        root=site.url(found),
        counts=_counts(found),
        tab="pulls" if pulls else "issues",
        state=state,
        states=[(name, len(listing(found, name, pulls=pulls))) for name in STATES],
        listed=listed[:MOST_LISTED],
        hidden=max(0, len(listed) - MOST_LISTED),
        colours=label_classes([label for issue in listed for label in issue.labels]),
    )


def account(site: Site, request: Request) -> Response:
    """Show an account and its repositories."""
    return _account(site, site.hub.user(request.path_params["login"]))


def app(site: Site, request: Request) -> Response:
    """Show an App by its slug."""
    slug = request.path_params["slug"]
    found = next((app for app in site.hub.apps.values() if app.slug == slug), None)
    if found is None:
        raise not_found()
    return _account(site, found.bot)


def _account(site: Site, user: User) -> Response:
    owned = [found for found in site.hub.repositories.values() if found.owner is user]
    return site.page("account.html", user=user, app=site.hub.app_of(user), repositories=owned, counts=_counts)


def installation(site: Site, request: Request) -> Response:
    """Show an installation of an App."""
    found = site.hub.installations.get(request.path_params["number"])
    if found is None or found.deleted:
        raise not_found()
    covered = [one for one in site.hub.repositories.values() if site.hub.covers(found, one, always=True)]
    return site.page("installation.html", installation=found, repositories=covered)


def avatar(_: Site, request: Request) -> Response:
    """Draw the picture of an account: a colour of its own."""
    hue = request.path_params["number"] * 137 % 360 / 360
    red, green, blue = (int(255 * part) for part in colorsys.hls_to_rgb(hue, 0.55, 0.5))
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8">'
        f'<rect width="8" height="8" fill="#{red:02x}{green:02x}{blue:02x}"/>'
        '<circle cx="4" cy="3" r="1.5" fill="#fff"/><path d="M1 8a3 3 0 0 1 6 0" fill="#fff"/></svg>'
    )
    return Response(svg, headers=HEADERS, media_type="image/svg+xml")
