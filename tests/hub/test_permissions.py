"""Who may do what: Apps by permission, people by role, strangers not at all."""

from typing import Any

import httpx
import pytest

from bot.testing.hub.records import ROLES, Role
from tests.hub.world import World

Write = tuple[str, str, str, dict[str, Any]]

WRITES: list[Write] = [
    ("issues", "POST", "/issues", {"title": "x"}),
    ("issues", "POST", "/issues/1/comments", {"body": "x"}),
    ("issues", "POST", "/issues/1/labels", {"labels": ["bug"]}),
    ("issues", "PATCH", "/issues/1", {"title": "y"}),
    ("issues", "POST", "/issues/1/reactions", {"content": "eyes"}),
    ("pull_requests", "POST", "/pulls", {"title": "x", "head": "fix", "base": "main"}),
    ("contents", "POST", "/git/blobs", {"content": "x"}),
    ("contents", "POST", "/dispatches", {"event_type": "x"}),
    ("checks", "POST", "/check-runs", {"name": "x", "head_sha": "HEAD"}),
    ("statuses", "POST", "/statuses/HEAD", {"state": "success"}),
]


@pytest.fixture
def ready(world: World) -> World:
    """The world with an issue and a branch."""
    world.hub.open_issue(world.repository, world.owner, "Bug")
    world.hub.commit_files(world.repository, world.owner, "fix", {"a": "b"})
    return world


def send(client: httpx.Client, world: World, row: Write) -> httpx.Response:
    """Send one of the writes."""
    _, method, path, body = row
    head = world.hub.git(world.repository).refs()["refs/heads/main"]
    filled = {key: head if value == "HEAD" else value for key, value in body.items()}
    return client.request(method, world.path + path.replace("HEAD", head), json=filled)


def test_a_write_needs_its_permission(ready: World) -> None:
    """With just its permission it works; with all the others, or only to read, it is 403 and says what is accepted."""
    for row in WRITES:
        needed = row[0]
        assert send(ready.as_bot(**{needed: "write"}), ready, row).status_code in (200, 201, 204), row
        rest = {name: level for name, level in ready.installation.permissions.items() if name != needed}
        if needed == "issues":
            rest.pop("pull_requests")
        for granted in (rest, {**rest, needed: "read"}):
            answer = send(ready.as_bot(**granted), ready, row)
            assert (answer.status_code, answer.json()["message"]) == (403, "Resource not accessible by integration")
            assert f"{needed}=write" in answer.headers["X-Accepted-GitHub-Permissions"]


def test_labels_take_either_permission(ready: World) -> None:
    """Labels and comments work with `issues` or `pull_requests`, reactions only with `issues`."""
    bot = ready.as_bot(pull_requests="write")
    assert bot.post(f"{ready.path}/issues/1/labels", json=["bug"]).status_code == 200
    answer = bot.post(f"{ready.path}/issues/1/reactions", json={"content": "eyes"})
    assert answer.headers["X-Accepted-GitHub-Permissions"] == "issues=write"


def test_a_private_repository_does_not_exist_for_others(world: World) -> None:
    """404 for strangers, for nobody, and for an App that is not installed there; 403 only for lacking permission."""
    world.hub.create_repository(world.owner, "secret", files={"a": "b"}, private=True)
    stranger = world.as_person(world.person("mallory"))
    for client in (stranger, world.client(), world.as_bot()):
        answer = client.get("/repos/acme/secret/contents/a")
        assert (answer.status_code, answer.json()["message"]) == (404, "Not Found")
    secret = world.hub.repository("acme", "secret")
    world.hub.change_repositories(world.installation, world.owner, add=[secret])
    assert world.as_bot(issues="write").get("/repos/acme/secret/contents/a").status_code == 403
    assert world.as_bot(contents="read").get("/repos/acme/secret/contents/a").status_code == 200


ROLE_TABLE: list[tuple[str, str, dict[str, Any], Role]] = [
    # method, path, body, weakest role
    ("POST", "/issues", {"title": "x"}, "none"),
    ("POST", "/issues/1/comments", {"body": "x"}, "none"),
    ("POST", "/issues/1/labels", {"labels": ["bug"]}, "triage"),
    ("PATCH", "/issues/1", {"state": "closed"}, "triage"),
    ("POST", "/pulls", {"title": "x", "head": "fix-ROLE", "base": "main"}, "write"),
    ("POST", "/git/blobs", {"content": "x"}, "write"),
    ("POST", "/labels", {"name": "new-ROLE"}, "write"),
]


def test_people_act_within_their_role(ready: World) -> None:
    """A reader of a public repository comments but does not label; a triager labels but does not push."""
    for rank, role in enumerate(ROLES):
        client = ready.as_person(ready.person(f"bob-{role}", role))
        ready.hub.commit_files(ready.repository, ready.owner, f"fix-{role}", {"a": role})
        for method, path, body, weakest in ROLE_TABLE:
            filled = {
                key: value.replace("ROLE", role) if isinstance(value, str) else value for key, value in body.items()
            }
            status = client.request(method, ready.path + path, json=filled).status_code
            assert (status < 300) is (rank >= ROLES.index(weakest)), (role, path, status)
        assert client.post(f"{ready.path}/check-runs", json={}).status_code == 403


def test_a_role_shows_as_old_permission_and_role_name(world: World) -> None:
    """`role_name` tells maintain and triage apart, `permission` does not."""
    world.person("bob")
    old: dict[Role, str] = {"admin": "admin", "maintain": "write", "write": "write", "triage": "read", "read": "read"}
    for role, permission in old.items():
        world.hub.add_collaborator(world.repository, world.hub.user("bob"), role)
        answer = world.as_bot().get(f"{world.path}/collaborators/bob/permission").json()
        assert (answer["permission"], answer["role_name"]) == (permission, role)


def test_strangers_have_read_on_a_public_repository_and_none_on_a_private_one(world: World) -> None:
    """As the collaborators' route tells."""
    world.person("bob")
    private = world.hub.create_repository(world.owner, "secret", private=True)
    world.hub.change_repositories(world.installation, world.owner, add=[private])
    bot = world.as_bot()
    assert bot.get(f"{world.path}/collaborators/bob/permission").json()["role_name"] == "read"
    assert bot.get("/repos/acme/secret/collaborators/bob/permission").json()["role_name"] == "none"
    assert bot.get(f"{world.path}/collaborators/nobody/permission").status_code == 404


def test_people_change_only_their_own_words(ready: World) -> None:
    """A reader edits their own comment and issue, not those of others."""
    bob = ready.person("bob", "read")
    client = ready.as_person(bob)
    mine = client.post(f"{ready.path}/issues/1/comments", json={"body": "mine"}).json()["id"]
    theirs = ready.hub.comment(ready.repository.issues[1], ready.owner, "theirs").id
    assert client.patch(f"{ready.path}/issues/comments/{mine}", json={"body": "new"}).status_code == 200
    assert client.patch(f"{ready.path}/issues/comments/{theirs}", json={"body": "new"}).status_code == 403
    assert client.delete(f"{ready.path}/issues/comments/{theirs}").status_code == 403
    own = client.post(f"{ready.path}/issues", json={"title": "own", "labels": ["bug"]}).json()
    assert own["labels"] == []
    assert client.patch(f"{ready.path}/issues/{own['number']}", json={"state": "closed"}).json()["state"] == "closed"


def test_writes_need_credentials_and_bad_ones_fail_even_reads(ready: World) -> None:
    """Nobody reads what is public; a bad token is refused everywhere."""
    assert ready.client().get(f"{ready.path}/issues").status_code == 200
    answer = ready.client().post(f"{ready.path}/issues", json={"title": "x"})
    assert (answer.status_code, answer.json()["message"]) == (401, "Requires authentication")
    bad = ready.client("ghs_wrong").get(f"{ready.path}/issues")
    assert (bad.status_code, bad.json()["message"]) == (401, "Bad credentials")


def test_a_repository_is_found_in_any_case_and_by_id(world: World) -> None:
    """Names ignore case; `/repositories/{id}` reaches the same routes."""
    bot = world.as_bot()
    assert bot.get("/repos/ACME/Web").json()["id"] == world.repository.id
    assert bot.get(f"/repositories/{world.repository.id}").json()["full_name"] == "acme/web"
    assert bot.get(f"/repositories/{world.repository.id}/issues").json() == []
    assert bot.get("/repositories/1").status_code == 404
