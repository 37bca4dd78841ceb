"""The calls the bot depends on, on our hub and on an emulator by others: what both do is no invention of ours."""

import base64
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import cast

import httpx
import pytest

from tests.contract.github.backends import Backend

WEB = "/repos/acme/web"
NUMBERS = count(1)
"""Makes branches differ, since the tests share a repository."""


def ok(answer: httpx.Response, status: int = 200) -> dict[str, object]:
    """Return the object that an answer of this status holds."""
    assert answer.status_code == status, (answer.status_code, answer.text)
    return cast("dict[str, object]", answer.json())


def items(answer: httpx.Response) -> list[dict[str, object]]:
    """Return the list that a good answer holds."""
    assert answer.status_code == 200, (answer.status_code, answer.text)
    return cast("list[dict[str, object]]", answer.json())


def inner(value: Mapping[str, object], *keys: str) -> object:
    """Return what lies below some keys."""
    found: object = value
    for key in keys:
        found = cast("Mapping[str, object]", found)[key]
    return found


def new_issue(bot: httpx.Client, title: str = "Bug") -> dict[str, object]:
    """Open an issue."""
    return ok(bot.post(f"{WEB}/issues", json={"title": title, "body": "It breaks."}), 201)


def head_sha(bot: httpx.Client, branch: str = "main") -> str:
    """Return the commit of a branch."""
    return str(inner(ok(bot.get(f"{WEB}/git/ref/heads/{branch}")), "object", "sha"))


def new_branch(bot: httpx.Client) -> tuple[str, str]:
    """Return a fresh branch and its one commit, both made by git data calls alone."""
    branch, parent = f"agent/fix-{next(NUMBERS)}", head_sha(bot)
    blob = ok(bot.post(f"{WEB}/git/blobs", json={"content": f"{branch}\n", "encoding": "utf-8"}), 201)["sha"]
    base = inner(ok(bot.get(f"{WEB}/git/commits/{parent}")), "tree", "sha")
    entry = {"path": "src/fix.txt", "mode": "100644", "type": "blob", "sha": blob}
    tree = ok(bot.post(f"{WEB}/git/trees", json={"base_tree": base, "tree": [entry]}), 201)["sha"]
    content = {"message": "Mend it", "tree": tree, "parents": [parent]}
    commit = str(ok(bot.post(f"{WEB}/git/commits", json=content), 201)["sha"])
    ref = ok(bot.post(f"{WEB}/git/refs", json={"ref": f"refs/heads/{branch}", "sha": commit}), 201)
    assert (ref["ref"], inner(ref, "object", "sha")) == (f"refs/heads/{branch}", commit)
    return branch, commit


def new_pull(bot: httpx.Client) -> tuple[dict[str, object], str]:
    """Open a pull request from a fresh branch; returns it and the branch."""
    branch, _ = new_branch(bot)
    return ok(bot.post(f"{WEB}/pulls", json={"title": "Mend it", "head": branch, "base": "main"}), 201), branch


def test_the_app_reads_itself(github: Backend) -> None:
    """`GET /app` answers to the App's own JSON web token, and to no foreign one."""
    app = ok(github.as_app().get("/app"))
    assert (app["id"], app["slug"], app["name"]) == (github.app_id, "agent-bot", "Agent Bot")
    assert github.client("not.a.token").get("/app").status_code == 401


def test_the_app_finds_the_installation_of_a_repository(github: Backend) -> None:
    """The installation names its App and account; a repository without the App has none."""
    app = github.as_app()
    installation = ok(app.get(f"{WEB}/installation"))
    assert (installation["app_id"], inner(installation, "account", "login")) == (github.app_id, "acme")
    assert installation["repository_selection"] == "selected"
    assert app.get("/repos/acme/secret/installation").status_code == 404


def test_a_token_is_scoped(github: Backend) -> None:
    """A token of one repository and few permissions says so."""
    minted = github.mint("web", issues="write", contents="read")
    assert [
        inner(repository, "full_name") for repository in cast("list[dict[str, object]]", minted["repositories"])
    ] == ["acme/web"]
    permissions = cast("dict[str, str]", minted["permissions"])
    assert (permissions["issues"], permissions["contents"]) == ("write", "read")
    assert "checks" not in permissions
    assert str(minted["token"]).startswith("ghs_")


def test_more_than_was_granted_is_refused(github: Backend) -> None:
    """A permission that the installation does not have gives no token."""
    app = github.as_app()
    number = ok(app.get(f"{WEB}/installation"))["id"]
    answer = app.post(f"/app/installations/{number}/access_tokens", json={"permissions": {"workflows": "write"}})
    assert answer.status_code == 422


def test_a_reader_may_not_write(github: Backend) -> None:
    """A read-only token reads issues; each write is 403."""
    issue = new_issue(github.as_bot())
    reader = github.as_bot("web", issues="read", contents="read", pull_requests="read", checks="read")
    assert ok(reader.get(f"{WEB}/issues/{issue['number']}"))["title"] == "Bug"
    writes: list[tuple[str, dict[str, object]]] = [
        (f"{WEB}/issues", {"title": "No"}),
        (f"{WEB}/issues/{issue['number']}/comments", {"body": "No"}),
        (f"{WEB}/issues/{issue['number']}/labels", {"labels": ["bug"]}),
        (f"{WEB}/git/refs", {"ref": "refs/heads/no", "sha": head_sha(reader)}),
        (f"{WEB}/check-runs", {"name": "no", "head_sha": head_sha(reader)}),
        (f"{WEB}/pulls", {"title": "No", "head": "no", "base": "main"}),
    ]
    refused = [(path, reader.post(path, json=body).status_code) for path, body in writes]
    assert refused == [(path, 403) for path, _ in writes]


def test_a_token_of_another_repository_is_refused(github: Backend) -> None:
    """A token of `other` writes there and not in `web`."""
    other = github.as_bot("other")
    ok(other.post("/repos/acme/other/issues", json={"title": "Here"}), 201)
    assert other.post(f"{WEB}/issues", json={"title": "There"}).status_code == 403


def test_an_issue_is_labelled_and_commented(github: Backend) -> None:
    """Issue, label, comment and its edit, all by the App's account."""
    bot = github.as_bot()
    issue = new_issue(bot)
    number = issue["number"]
    assert (issue["state"], inner(issue, "user", "login")) == ("open", "agent-bot[bot]")
    labels = items(bot.post(f"{WEB}/issues/{number}/labels", json={"labels": ["bug"]}))
    assert [label["name"] for label in labels] == ["bug"]
    comment = ok(bot.post(f"{WEB}/issues/{number}/comments", json={"body": "On it"}), 201)
    path = f"{WEB}/issues/comments/{comment['id']}"
    assert ok(bot.patch(path, json={"body": "Done"}))["body"] == "Done"
    assert [c["body"] for c in items(bot.get(f"{WEB}/issues/{number}/comments"))] == ["Done"]
    again = ok(bot.get(f"{WEB}/issues/{number}"))
    assert again["comments"] == 1
    assert [label["name"] for label in cast("list[dict[str, object]]", again["labels"])] == ["bug"]


def test_git_data_makes_a_branch_and_contents_show_it(github: Backend) -> None:
    """Blob, tree, commit and ref; the file is in the branch and not in the default one."""
    bot = github.as_bot()
    branch, commit = new_branch(bot)
    assert head_sha(bot, branch) == commit
    content = ok(bot.get(f"{WEB}/contents/src/fix.txt", params={"ref": branch}))
    assert (content["type"], content["encoding"]) == ("file", "base64")
    assert base64.b64decode(str(content["content"])) == f"{branch}\n".encode()
    assert bot.get(f"{WEB}/contents/src/fix.txt").status_code == 404
    assert bot.get(f"{WEB}/contents/README.md", params={"ref": branch}).status_code == 200


def test_a_blob_has_gits_own_id(github: Backend) -> None:
    """The id of a blob is that of git for these bytes."""
    blob = ok(github.as_bot().post(f"{WEB}/git/blobs", json={"content": "hello\n", "encoding": "utf-8"}), 201)
    assert blob["sha"] == "ce013625030ba8dba906f756967f9e9ca394464a"


def test_a_pull_request_is_opened_listed_and_changed(github: Backend) -> None:
    """The list finds it by its head; title, body and state change."""
    bot = github.as_bot()
    pull, branch = new_pull(bot)
    number = pull["number"]
    assert (inner(pull, "head", "ref"), inner(pull, "base", "ref"), pull["state"]) == (branch, "main", "open")
    assert inner(pull, "head", "sha") == head_sha(bot, branch)
    found = items(bot.get(f"{WEB}/pulls", params={"head": f"acme:{branch}", "state": "all"}))
    assert [p["number"] for p in found] == [number]
    assert items(bot.get(f"{WEB}/pulls", params={"head": "acme:nowhere"})) == []
    changed = ok(bot.patch(f"{WEB}/pulls/{number}", json={"title": "Mended", "body": "Closes it", "state": "closed"}))
    assert (changed["title"], changed["body"], changed["state"]) == ("Mended", "Closes it", "closed")


def test_a_check_run_is_made_and_finished(github: Backend) -> None:
    """It begins in progress and ends with a conclusion and a summary."""
    bot = github.as_bot()
    sha = head_sha(bot)
    run = ok(bot.post(f"{WEB}/check-runs", json={"name": "agent", "head_sha": sha, "status": "in_progress"}), 201)
    assert (run["status"], run["conclusion"], run["head_sha"]) == ("in_progress", None, sha)
    end = {"status": "completed", "conclusion": "success", "output": {"title": "Done", "summary": "All passed"}}
    done = ok(bot.patch(f"{WEB}/check-runs/{run['id']}", json=end))
    assert (done["status"], done["conclusion"], inner(done, "output", "summary")) == (
        "completed",
        "success",
        "All passed",
    )


def test_the_permission_of_a_person(github: Backend) -> None:
    """The owner is an admin; nobody is nowhere."""
    bot = github.as_bot()
    assert ok(bot.get(f"{WEB}/collaborators/acme/permission"))["permission"] == "admin"
    assert bot.get(f"{WEB}/collaborators/nobody/permission").status_code == 404


def test_pages_are_linked(github: Backend) -> None:
    """`Link` leads from page to page; the last has no next."""
    bot = github.as_bot()
    number = new_issue(bot)["number"]
    path = f"{WEB}/issues/{number}/comments"
    for index in range(5):
        ok(bot.post(path, json={"body": str(index)}), 201)
    answer = bot.get(path, params={"per_page": 2})
    assert set(answer.links) == {"next", "last"}
    bodies = [c["body"] for c in items(answer)]
    while "next" in answer.links:
        answer = bot.get(answer.links["next"]["url"])
        bodies += [c["body"] for c in items(answer)]
    assert bodies == ["0", "1", "2", "3", "4"]
    assert set(answer.links) == {"first", "prev"}


@pytest.mark.parametrize(("event", "action"), [("issues", "labeled"), ("issue_comment", "created")])
def test_a_webhook_is_signed(github: Backend, event: str, action: str) -> None:
    """The delivery names its event and installation, and its signature is that of the bytes received."""
    bot = github.as_bot()
    number = new_issue(bot)["number"]
    bot.post(f"{WEB}/issues/{number}/labels", json={"labels": ["bug"]}).raise_for_status()
    bot.post(f"{WEB}/issues/{number}/comments", json={"body": "Grüße"}).raise_for_status()
    heard = github.receiver.wait(event, lambda p: p["action"] == action and inner(p, "issue", "number") == number)
    assert heard.signed
    payload = heard.payload
    assert inner(payload, "repository", "full_name") == "acme/web"
    assert inner(payload, "sender", "login") == "agent-bot[bot]"
    assert inner(payload, "installation", "id") == ok(github.as_app().get(f"{WEB}/installation"))["id"]
    if event == "issues":
        assert inner(payload, "label", "name") == "bug"
    else:
        assert inner(payload, "comment", "body") == "Grüße"


def _expiry(github: Backend) -> str:
    return re.sub(r"\d", "0", str(github.mint()["expires_at"]))


def _stranger(github: Backend) -> tuple[int, object]:
    answer = github.as_bot().get(f"{WEB}/collaborators/visitor/permission")
    return answer.status_code, answer.json().get("permission")


def _react(github: Backend) -> int:
    bot = github.as_bot()
    path = f"{WEB}/issues/{new_issue(bot)['number']}/reactions"
    return bot.post(path, json={"content": "eyes"}).status_code


def _pull_twice(github: Backend) -> int:
    bot = github.as_bot()
    _, branch = new_pull(bot)
    return bot.post(f"{WEB}/pulls", json={"title": "Again", "head": branch, "base": "main"}).status_code


def _hidden(github: Backend) -> int:
    return github.as_bot().get("/repos/acme/secret").status_code


def _long_lived(github: Backend) -> int:
    return github.client(github.jwt(exp=int(time.time()) + 3600)).get("/app").status_code


def _from_the_future(github: Backend) -> int:
    return github.client(github.jwt(iat=int(time.time()) + 300)).get("/app").status_code


def _by_client_id(github: Backend) -> int:
    return github.client(github.jwt(iss=github.client_id)).get("/app").status_code


def _hook_config(github: Backend) -> int:
    return github.as_app().get("/app/hook/config").status_code


def _deliveries(github: Backend) -> int:
    return github.as_app().get("/app/hook/deliveries").status_code


def _own_repositories(github: Backend) -> int:
    return github.as_bot().get("/installation/repositories").status_code


def _revoke(github: Backend) -> int:
    return github.as_bot().delete("/installation/token").status_code


def _status(github: Backend) -> int:
    bot = github.as_bot()
    return bot.post(f"{WEB}/statuses/{head_sha(bot)}", json={"state": "success", "context": "ci"}).status_code


def _conditional(github: Backend) -> int:
    bot = github.as_bot()
    path = f"{WEB}/issues/{new_issue(bot)['number']}"
    etag = bot.get(path).headers.get("ETag", '"none"')
    return bot.get(path, headers={"If-None-Match": etag}).status_code


def _clone(github: Backend) -> int:
    url = f"{github.git_url}/acme/web.git/info/refs"
    return github.as_bot().get(url, params={"service": "git-upload-pack"}).status_code


def _line_comment(github: Backend) -> int:
    bot = github.as_bot()
    pull, _ = new_pull(bot)
    comment = {"path": "src/fix.txt", "line": 1, "side": "RIGHT", "body": "Why?"}
    path = f"{WEB}/pulls/{pull['number']}/reviews"
    return bot.post(path, json={"event": "COMMENT", "body": "Look", "comments": [comment]}).status_code


def _delivery_headers(github: Backend) -> tuple[bool, bool]:
    number = new_issue(github.as_bot())["number"]
    heard = github.receiver.wait("issues", lambda p: inner(p, "issue", "number") == number)
    guid = len(heard.headers["x-github-delivery"]) == 36
    return guid, "x-github-hook-installation-target-id" in heard.headers


@dataclass(frozen=True)
class Difference:
    """Where the emulator is not GitHub: what a probe sees there, as GitHub documents it and as the emulator has it."""

    name: str
    probe: Callable[[Backend], object]
    github: object
    emulator: object
    reason: str


DIFFERENCES = [
    Difference(
        "expiry", _expiry, "0000-00-00T00:00:00Z", "0000-00-00T00:00:00.000Z", "GitHub's times have no fraction"
    ),
    Difference("stranger", _stranger, (200, "read"), (404, None), "everybody reads a public repository"),
    Difference("reaction", _react, 201, 404, "it has no reactions"),
    Difference("same-pull-twice", _pull_twice, 422, 201, "one open pull request for a head and base"),
    Difference("hidden-repository", _hidden, 404, 403, "GitHub does not tell that a private repository exists"),
    Difference("long-lived-jwt", _long_lived, 401, 200, "a JSON web token lives ten minutes at most"),
    Difference("future-jwt", _from_the_future, 401, 200, "a token may not be issued in the future"),
    Difference("client-id", _by_client_id, 200, 401, "the issuer may be the client id; it knows App ids only"),
    Difference("hook-config", _hook_config, 200, 404, "it has no settings of the App's webhook"),
    Difference("deliveries", _deliveries, 200, 404, "it keeps no list of deliveries"),
    Difference("own-repositories", _own_repositories, 200, 404, "it does not list an installation's repositories"),
    Difference("revoke-token", _revoke, 204, 404, "its tokens cannot be revoked"),
    Difference("commit-status", _status, 201, 404, "it has no commit statuses"),
    Difference("conditional", _conditional, 304, 200, "it sends no ETag"),
    Difference("clone", _clone, 200, 404, "it does not speak git"),
    Difference("line-comment", _line_comment, 200, 422, "its reviews take no line comments"),
    Difference(
        "delivery-headers", _delivery_headers, (True, True), (False, False), "deliveries are numbered, no target"
    ),
]


@pytest.mark.parametrize("difference", [pytest.param(row, id=row.name) for row in DIFFERENCES])
def test_a_known_difference(github: Backend, difference: Difference) -> None:
    """The hub does as GitHub does; the emulator's defect is still there, else its row can go."""
    expected = difference.github if github.name == "hub" else difference.emulator
    assert difference.probe(github) == expected, difference.reason
