"""Pages of files, folders, commits and comparisons."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from bot.testing.hub.errors import not_found
from bot.testing.hub.git.history import Git
from bot.testing.hub.git.objects import Entry
from bot.testing.hub.pages.diff import diff_of
from bot.testing.hub.pages.highlight import lines_of
from bot.testing.hub.pages.site import HEADERS, Site, redirect, segment
from bot.testing.hub.pages.threads import checks_of
from bot.testing.hub.pages.views import in_order
from bot.testing.hub.records import Repository

LARGEST = 1024 * 1024
"""Bytes; larger files are only named."""

PICTURES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
}
"""What is sent as a picture; SVG is not, for it may hold scripts."""


def tree(site: Site, request: Request) -> Response:
    """Show a folder."""
    found = site.repository(request)
    git = site.hub.git(found)
    ref, sha, path = _split(git, request.path_params["rest"])
    entry = _at(git, sha, path)
    if entry.type == "blob":
        return redirect(_link(site, found, "blob", ref, path))
    entries = in_order(git.tree(sha, path))
    return site.page("tree.html", **_frame(site, found, ref, path), entries=entries)


def blob(site: Site, request: Request) -> Response:
    """Show a file."""
    found = site.repository(request)
    git = site.hub.git(found)
    ref, sha, path = _split(git, request.path_params["rest"])
    entry = _at(git, sha, path)
    if entry.type == "tree":
        return redirect(_link(site, found, "tree", ref, path))
    data = git.blob(entry.sha) if entry.type == "blob" and entry.size <= LARGEST else b"\0"
    text = None if b"\0" in data else data.decode(errors="replace")
    folder = _link(site, found, "blob", ref, path.rpartition("/")[0]).rstrip("/") + "/"
    prose = text is not None and path.lower().endswith((".md", ".markdown"))
    return site.page(
        "blob.html",
        **_frame(site, found, ref, path),
        entry=entry,
        raw=_link(site, found, "raw", ref, path),
        lines=lines_of(text, path) if text is not None else None,
        document=site.document(found, text, folder) if prose and text is not None else None,
    )


def raw(site: Site, request: Request) -> Response:
    """Return the bytes of a file, never as a page."""
    git = site.hub.git(site.repository(request))
    _, sha, path = _split(git, request.path_params["rest"])
    entry = _at(git, sha, path)
    if entry.type != "blob":
        raise not_found()
    kind = next((kind for end, kind in PICTURES.items() if path.lower().endswith(end)), "text/plain; charset=utf-8")
    headers = {**HEADERS, "Content-Security-Policy": "default-src 'none'; sandbox"}
    return Response(git.blob(entry.sha), headers=headers, media_type=kind)


def commit(site: Site, request: Request) -> Response:
    """Show a commit."""
    found = site.repository(request)
    git = site.hub.git(found)
    sha = _resolved(git, request.path_params["sha"])
    known = git.commit(sha)
    base = known.parents[0] if known.parents else git.write_tree([])
    return site.page(
        "commit.html",
        repository=found,
        root=site.url(found),
        commit=known,
        diff=diff_of(git.diff(base, sha)),
        checks=checks_of(site, found, sha),
    )


def compare(site: Site, request: Request) -> Response:
    """Show what a commit or branch has that another has not."""
    found = site.repository(request)
    git = site.hub.git(found)
    one, dots, other = request.path_params["rest"].partition("...")
    if not dots:
        raise not_found()
    base, head = _resolved(git, one), _resolved(git, other)
    return site.page(
        "compare.html",
        repository=found,
        root=site.url(found),
        names=(one, other),
        commits=git.commits(f"{base}..{head}"),
        diff=diff_of(git.diff(git.merge_base(base, head) or base, head)),
    )


def _frame(site: Site, found: Repository, ref: str, path: str) -> dict[str, object]:
    parts = path.split("/") if path else []
    crumbs = [("/".join(parts[: at + 1]), part) for at, part in enumerate(parts)]
    return {"repository": found, "root": site.url(found), "ref": ref, "path": path, "crumbs": crumbs}


def _link(site: Site, found: Repository, kind: str, ref: str, path: str) -> str:
    return f"{site.url(found)}/{kind}/{segment(ref)}/{segment(path)}"


def _split(git: Git, rest: str) -> tuple[str, str, str]:
    """Return ref, commit and path of an address, whose ref may hold slashes; the longest that is a ref wins."""
    parts = rest.strip("/").split("/")
    heads = git.refs("refs/heads/")
    for end in range(len(parts), 0, -1):
        name = "/".join(parts[:end])
        if f"refs/heads/{name}" in heads:
            return name, heads[f"refs/heads/{name}"], "/".join(parts[end:])
    return parts[0], _resolved(git, parts[0]), "/".join(parts[1:])


def _resolved(git: Git, name: str) -> str:
    sha = None if "\0" in name else git.resolve(name)
    if sha is None:
        raise not_found()
    return sha


def _at(git: Git, sha: str, path: str) -> Entry:
    if "\0" in path:
        raise not_found()
    entry = git.find(sha, path) if path else Entry("040000", "tree", sha, "", 0)
    if entry is None:
        raise not_found()
    return entry
