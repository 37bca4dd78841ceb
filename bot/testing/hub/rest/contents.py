"""Branches, files, commits and comparisons."""

from __future__ import annotations

import base64
import re

from bot.testing.hub.errors import HubError, not_found
from bot.testing.hub.git.objects import Entry
from bot.testing.hub.permissions import read, write
from bot.testing.hub.rest.body import Body
from bot.testing.hub.rest.call import Answer, Call
from bot.testing.hub.rest.routing import Route
from bot.testing.hub.shapes.common import Json
from bot.testing.hub.shapes.repositories import change_json, commit_json

KINDS = {"tree": "dir", "blob": "file", "commit": "submodule"}
INLINE = 1024 * 1024
"""Bytes; larger files come without their content."""


def get_branch(call: Call) -> Answer:
    """Return a branch."""
    name = call.params["branch"]
    sha = call.git.refs(f"refs/heads/{name}").get(f"refs/heads/{name}")
    if sha is None:
        raise HubError(404, "Branch not found")
    url = f"{call.hub.api_url}/repos/{call.repository.full_name}/branches/{name}"
    body: Json = {
        "name": name,
        "commit": commit_json(call.hub, call.repository, call.git.commit(sha)),
        "_links": {"self": url, "html": f"{call.hub.base_url}/{call.repository.full_name}/tree/{name}"},
        "protected": False,
        "protection": {
            "enabled": False,
            "required_status_checks": {"enforcement_level": "off", "contexts": [], "checks": []},
        },
        "protection_url": f"{url}/protection",
    }
    return Answer(body)


def get_contents(call: Call) -> Answer:
    """Return a file (base64, or raw when that media type is asked for) or list a folder."""
    path = call.params.get("path", "").strip("/")
    ref = call.query.get("ref") or call.repository.default_branch
    revision = call.git.resolve(ref)
    if revision is None:
        if not call.git.refs("refs/heads/"):
            raise HubError(404, "This repository is empty.")
        raise HubError(404, f"No commit found for the ref {ref}")
    entry = call.git.find(revision, path) if path else Entry("040000", "tree", revision, "", 0)
    if entry is None:
        raise not_found()
    if entry.type == "tree":
        return Answer([_entry_json(call, ref, path, child) for child in call.git.tree(revision, path)])
    return _file(call, ref, path, entry)


def _file(call: Call, ref: str, path: str, entry: Entry) -> Answer:
    parent = path.rpartition("/")[0]
    body = _entry_json(call, ref, parent, entry)
    if entry.type == "commit":
        return Answer({**body, "submodule_git_url": ""})
    content = call.git.blob(entry.sha)
    if "raw" in call.accept:
        return Answer(content, headers={"Content-Type": "application/vnd.github.raw+json; charset=utf-8"})
    if entry.mode == "120000":
        return Answer({**body, "type": "symlink", "target": content.decode(errors="replace")})
    small = entry.size <= INLINE
    encoded = base64.encodebytes(content).decode() if small else ""
    return Answer({**body, "encoding": "base64" if small else "none", "content": encoded})


def _entry_json(call: Call, ref: str, folder: str, entry: Entry) -> Json:
    path = f"{folder}/{entry.path}" if folder else entry.path
    api = f"{call.hub.api_url}/repos/{call.repository.full_name}"
    html = f"{call.hub.base_url}/{call.repository.full_name}"
    url = f"{api}/contents/{path}?ref={ref}"
    git_url = f"{api}/git/{entry.type}s/{entry.sha}"
    page = f"{html}/{entry.type}/{ref}/{path}"
    return {
        "name": entry.path,
        "path": path,
        "sha": entry.sha,
        "size": entry.size,
        "url": url,
        "html_url": page,
        "git_url": git_url,
        "download_url": f"{html}/raw/{ref}/{path}" if entry.type == "blob" else None,
        "type": "symlink" if entry.mode == "120000" else KINDS[entry.type],
        "_links": {"self": url, "git": git_url, "html": page},
    }


def get_commit(call: Call) -> Answer:
    """Return a commit by branch, tag or id, with its files."""
    sha = call.git.resolve(call.params["ref"])
    if sha is None:
        raise HubError(422, f"No commit found for SHA: {call.params['ref']}")
    commit = call.git.commit(sha)
    empty = call.git.write_tree([]) if not commit.parents else commit.parents[0]
    changes = call.git.diff(empty, sha)
    additions, deletions = sum(c.additions for c in changes), sum(c.deletions for c in changes)
    return Answer(
        {
            **commit_json(call.hub, call.repository, commit),
            "stats": {"total": additions + deletions, "additions": additions, "deletions": deletions},
            "files": [change_json(call.hub, call.repository, change, sha) for change in changes],
        }
    )


def list_commits(call: Call) -> Answer:
    """List commits of a branch, newest first."""
    sha = call.git.resolve(call.query.get("sha") or call.repository.default_branch)
    if sha is None:
        raise HubError(409, "Git Repository is empty.")
    path = call.query.get("path")
    commits = call.git.commits(sha, paths=[path] if path else [])[::-1]
    return call.paged(commits, lambda commit: commit_json(call.hub, call.repository, commit))


def compare(call: Call) -> Answer:
    """Compare `base...head`; either may be `owner:branch` of this repository's owner."""
    names = re.split(r"\.\.\.?", call.params["basehead"])
    shas = [call.git.resolve(name.rpartition(":")[2]) for name in names]
    if len(shas) != 2 or shas[0] is None or shas[1] is None:  # noqa: PLR2004 -- base and head
        raise not_found()
    base, head = shas[0], shas[1]
    fork = call.git.merge_base(base, head)
    if fork is None:
        raise HubError(404, f"No common ancestor between {names[0]} and {names[1]}.")
    ahead, behind = call.git.count(base, head), call.git.count(head, base)
    status = "diverged" if ahead and behind else "ahead" if ahead else "behind" if behind else "identical"
    html = f"{call.hub.base_url}/{call.repository.full_name}/compare/{call.params['basehead']}"

    def shape(sha: str) -> Json:
        return commit_json(call.hub, call.repository, call.git.commit(sha))

    changes = call.git.diff(fork, head)
    return Answer(
        {
            "url": f"{call.hub.api_url}{call.path}",
            "html_url": html,
            "permalink_url": html,
            "diff_url": f"{html}.diff",
            "patch_url": f"{html}.patch",
            "base_commit": shape(base),
            "merge_base_commit": shape(fork),
            "status": status,
            "ahead_by": ahead,
            "behind_by": behind,
            "total_commits": ahead,
            "commits": [commit_json(call.hub, call.repository, c) for c in call.git.commits(f"{base}..{head}")],
            "files": [change_json(call.hub, call.repository, change, head) for change in changes],
        }
    )


def dispatches(call: Call) -> Answer:
    """Take a repository dispatch; it starts nothing here and is kept in `Repository.dispatches`."""
    body = Body(call.raw)
    payload = body.nested("client_payload")
    call.repository.dispatches.append((body.text("event_type"), payload.fields if payload else {}))
    return Answer(status=204)


READ = read("contents")
REPO = "/repos/{owner}/{repo}"
ROUTES = [
    Route("GET", f"{REPO}/branches/{{branch}}", READ, get_branch),
    Route("GET", f"{REPO}/contents", READ, get_contents),
    Route("GET", f"{REPO}/contents/", READ, get_contents),
    Route("GET", f"{REPO}/contents/{{path}}", READ, get_contents),
    Route("GET", f"{REPO}/commits", READ, list_commits),
    Route("GET", f"{REPO}/commits/{{ref}}", READ, get_commit),
    Route("GET", f"{REPO}/compare/{{basehead}}", READ, compare),
    Route("POST", f"{REPO}/dispatches", write("contents"), dispatches),
]
"""Routes of files and commits."""
