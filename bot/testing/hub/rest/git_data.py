"""Refs, commits, trees and blobs."""

from __future__ import annotations

import base64
import binascii
import re
from datetime import datetime

from bot.testing.hub.errors import HubError, not_found
from bot.testing.hub.git.objects import Person
from bot.testing.hub.git.plumbing import ZERO
from bot.testing.hub.permissions import FORBIDDEN, read, write
from bot.testing.hub.rest.body import Body
from bot.testing.hub.rest.call import Answer, Call
from bot.testing.hub.rest.routing import Route
from bot.testing.hub.shapes.common import Json
from bot.testing.hub.shapes.repositories import git_commit_json
from bot.testing.hub.workflows import FOLDER, may_write_workflows

SHA = re.compile(r"[0-9a-f]{40}")
MODES = {"100644": "blob", "100755": "blob", "040000": "tree", "160000": "commit", "120000": "blob"}


def _ref_json(call: Call, ref: str, sha: str) -> Json:
    url = f"{call.hub.api_url}/repos/{call.repository.full_name}/git"
    kind = call.git.kind(sha) or "commit"
    return {
        "ref": ref,
        "node_id": f"REF_{ref}",
        "url": f"{url}/{ref}",
        "object": {"type": kind, "sha": sha, "url": f"{url}/{kind}s/{sha}"},
    }


def get_ref(call: Call) -> Answer:
    """Return a ref by its name without `refs/`."""
    ref = f"refs/{call.params['ref']}"
    sha = call.git.refs(ref).get(ref)
    if sha is None:
        raise not_found()
    return Answer(_ref_json(call, ref, sha))


def create_ref(call: Call) -> Answer:
    """Create a ref on a commit that exists."""
    body = Body(call.raw)
    ref, sha = body.text("ref"), body.text("sha")
    if not ref.startswith("refs/") or ref.count("/") < 2 or ref.startswith("refs/pull/"):  # noqa: PLR2004 -- refs/heads/x
        raise HubError(422, "Reference name must start with 'refs/' and contain at least two slashes.")
    if call.git.attempt("check-ref-format", ref).returncode != 0:
        raise HubError(422, f"{ref} is not a valid ref name.")
    _check_object(call, sha)
    if ref in call.git.refs(ref):
        raise HubError(422, "Reference already exists")
    _check_workflows(call, ZERO, sha)
    call.hub.move_ref(call.repository, call.user, ref, sha)
    return Answer(_ref_json(call, ref, sha), 201)


def _check_object(call: Call, sha: str) -> None:
    if not SHA.fullmatch(sha):
        raise HubError(422, "The sha parameter must be exactly 40 characters and contain only [0-9a-f].")
    if call.git.kind(sha) != "commit":
        raise HubError(422, "Object does not exist")


def _check_workflows(call: Call, old: str, new: str) -> None:
    if not may_write_workflows(call.caller) and call.git.paths_touched(old, new, FOLDER):
        raise HubError(403, FORBIDDEN, headers={"X-Accepted-GitHub-Permissions": "contents=write,workflows=write"})


def update_ref(call: Call) -> Answer:
    """Move a ref, forward only unless `force` is set."""
    body, ref = Body(call.raw), f"refs/{call.params['ref']}"
    sha, old = body.text("sha"), call.git.refs(ref).get(ref)
    if old is None:
        raise HubError(422, "Reference does not exist")
    _check_object(call, sha)
    _check_workflows(call, old, sha)
    call.hub.move_ref(call.repository, call.user, ref, sha, force=body.flag("force"))
    return Answer(_ref_json(call, ref, sha))


def delete_ref(call: Call) -> Answer:
    """Delete a ref."""
    call.hub.move_ref(call.repository, call.user, f"refs/{call.params['ref']}", None)
    return Answer(status=204)


def get_commit(call: Call) -> Answer:
    """Return a commit object."""
    sha = call.params["commit_sha"]
    if not SHA.fullmatch(sha):
        raise not_found()
    return Answer(git_commit_json(call.hub, call.repository, call.git.commit(sha)))


def _person(body: Body | None, default: Person) -> Person:
    if body is None:
        return default
    date = body.optional_text("date")
    try:
        when = datetime.fromisoformat(date) if date else default.date
    except ValueError:
        raise HubError(422, "Invalid request.\n\nThe date is not an ISO 8601 timestamp.") from None
    return Person(body.text("name"), body.text("email"), when)


def create_commit(call: Call) -> Answer:
    """Store a commit."""
    body = Body(call.raw)
    tree, parents = body.text("tree"), body.texts("parents")
    if call.git.kind(tree) != "tree":
        raise HubError(422, "Tree SHA does not exist")
    if any(call.git.kind(parent) != "commit" for parent in parents):
        raise HubError(422, "Parent SHA does not exist or is not a commit object")
    user = call.user
    default = Person(user.name or user.login, user.email or "", call.hub.now())
    author = _person(body.nested("author"), default)
    committer = _person(body.nested("committer"), author)
    sha = call.git.write_commit(tree, parents, body.text("message"), author, committer)
    return Answer(git_commit_json(call.hub, call.repository, call.git.commit(sha)), 201)


def create_tree(call: Call) -> Answer:
    """Store a tree: entries by id or content, on top of `base_tree`; a null `sha` deletes."""
    body = Body(call.raw)
    base = body.optional_text("base_tree")
    if base is not None and call.git.kind(base) not in ("tree", "commit"):
        raise HubError(422, "base_tree is not a valid tree oid")
    changes = [_tree_entry(call, entry) for entry in body.objects("tree")]
    if not changes:
        raise HubError(422, "Invalid tree info")
    sha = call.git.write_tree(changes, base)
    url = f"{call.hub.api_url}/repos/{call.repository.full_name}/git"
    entries = [
        {
            "path": entry.path,
            "mode": entry.mode,
            "type": entry.type,
            "sha": entry.sha,
            "url": f"{url}/{entry.type}s/{entry.sha}",
            **({"size": entry.size} if entry.type == "blob" else {}),
        }
        for entry in call.git.tree(sha)
    ]
    return Answer({"sha": sha, "url": f"{url}/trees/{sha}", "tree": entries, "truncated": False}, 201)


def _tree_entry(call: Call, entry: Body) -> tuple[str, str | None, str]:
    path, mode = entry.text("path"), entry.text("mode", "100644")
    unsafe = path.startswith("/") or any(part in ("", ".", "..", ".git") for part in path.split("/"))
    if mode not in MODES or unsafe:
        raise HubError(422, "tree.path contains a malformed path component" if unsafe else "Invalid tree info")
    if "content" in entry:
        return mode, call.git.write_blob(entry.text("content").encode()), path
    sha = entry.optional_text("sha")
    if sha is not None and mode != "160000" and call.git.kind(sha) != MODES[mode]:
        raise HubError(422, f"tree.sha {sha} is not a valid {MODES[mode]}")
    return mode, sha, path


def create_blob(call: Call) -> Answer:
    """Store a blob given as utf-8 or base64."""
    body = Body(call.raw)
    content = body.text("content")
    if body.text("encoding", "utf-8") == "base64":
        try:
            data = base64.b64decode(content, validate=False)
        except binascii.Error:
            raise HubError(422, "content is not valid Base64") from None
    else:
        data = content.encode()
    sha = call.git.write_blob(data)
    return Answer({"sha": sha, "url": f"{call.hub.api_url}/repos/{call.repository.full_name}/git/blobs/{sha}"}, 201)


GIT = "/repos/{owner}/{repo}/git"
WRITE = write("contents")
READ = read("contents")
ROUTES = [
    Route("GET", f"{GIT}/ref/{{ref}}", READ, get_ref),
    Route("POST", f"{GIT}/refs", WRITE, create_ref),
    Route("PATCH", f"{GIT}/refs/{{ref}}", WRITE, update_ref),
    Route("DELETE", f"{GIT}/refs/{{ref}}", WRITE, delete_ref),
    Route("GET", f"{GIT}/commits/{{commit_sha}}", READ, get_commit),
    Route("POST", f"{GIT}/commits", WRITE, create_commit),
    Route("POST", f"{GIT}/trees", WRITE, create_tree),
    Route("POST", f"{GIT}/blobs", WRITE, create_blob),
]
"""Routes of git objects."""
