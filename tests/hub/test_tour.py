"""One walk over every route that the hub serves, judged by the shared subset and by GitHub's whole description."""

import base64
from pathlib import Path
from typing import Any

import httpx
import pytest

from bot.testing.hub.rest.table import ROUTES
from tests.hub.octokit import describe
from tests.hub.oracle import ROOT_FOLDER, RestJudge, material, operations
from tests.hub.world import World

SERVED = {(route.method, ROOT_FOLDER.get(route.template, route.template)) for route in ROUTES}
"""(method, template) of all routes, as GitHub describes them."""

LEFT_OUT = {
    ("GET", "/orgs/{org}/memberships/{username}"),  # the hub has no organisations with members
}
"""Operations without a good answer: the hub says 404 to each, which is judged too."""


@pytest.fixture(scope="module")
def octokit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """GitHub's whole description, cut to what the hub serves."""
    return describe(tmp_path_factory.mktemp("octokit"), SERVED)


@pytest.fixture(params=["subset", pytest.param("octokit", marks=pytest.mark.e2e)])
def description(request: pytest.FixtureRequest) -> Path | None:
    """What to judge by; None is the shared subset where it is there."""
    chosen: Path | None = request.getfixturevalue("octokit") if request.param == "octokit" else None
    return chosen


@pytest.fixture
def judge(description: Path | None) -> RestJudge:
    """Who judges the answers of this module."""
    return RestJudge(description)


def good(response: httpx.Response, status: int) -> Any:
    """Return the JSON of an answer that must have a status."""
    assert response.status_code == status, response.text
    return response.json() if response.content else {}


def walk_app(world: World) -> None:
    """Routes of the App itself."""
    app, path = world.as_app(), world.path
    assert good(app.get("/app"), 200)["slug"] == "agent-bot"
    good(app.get("/app/hook/config"), 200)
    good(app.patch("/app/hook/config", json={"secret": "s3cret"}), 200)
    assert world.hub.hooks.wait_idle(10)
    deliveries = app.get("/app/hook/deliveries").json()
    assert [item["event"] for item in deliveries][-1] == "ping"
    one = good(app.get(f"/app/hook/deliveries/{deliveries[0]['id']}"), 200)
    assert one["request"]["headers"]["X-GitHub-Delivery"] == one["guid"]
    good(app.post(f"/app/hook/deliveries/{deliveries[0]['id']}/attempts"), 202)
    number = app.get("/app/installations").json()[0]["id"]
    good(app.get(f"/app/installations/{number}"), 200)
    assert good(app.get(f"{path}/installation"), 200)["id"] == number
    asked = {"repositories": ["web"], "permissions": {"contents": "read"}}
    token = good(app.post(f"/app/installations/{number}/access_tokens", json=asked), 201)
    bot = world.client(token["token"])
    assert good(bot.get("/installation/repositories"), 200)["total_count"] == 1
    good(bot.delete("/installation/token"), 204)
    assert bot.get(path).status_code == 401
    code = world.hub.create_manifest_code(world.app)
    pem = good(world.client().post(f"/app-manifests/{code}/conversions"), 201)["pem"]
    assert pem.startswith("-----BEGIN RSA PRIVATE KEY-----")
    good(bot.get("/rate_limit", headers={"Authorization": ""}), 200)
    good(world.client().get("/meta"), 200)
    assert good(world.as_person(world.owner).get("/user"), 200)["login"] == "acme"
    good(world.client().get("/user"), 401)
    good(world.as_bot().get("/user"), 403)


def walk_issues(world: World, bot: httpx.Client) -> None:
    """Routes of issues, comments, labels and reactions."""
    path = world.path
    good(bot.get(path), 200)
    good(bot.get(f"{path}/collaborators/acme/permission"), 200)
    good(bot.get("/users/acme"), 200)
    number = good(bot.post(f"{path}/issues", json={"title": "Bug", "body": "It fails"}), 201)["number"]
    issue = f"{path}/issues/{number}"
    good(bot.get(f"{path}/issues"), 200)
    good(bot.get(issue), 200)
    good(bot.patch(issue, json={"title": "Real bug"}), 200)
    comment = good(bot.post(f"{issue}/comments", json={"body": "Hello"}), 201)["id"]
    good(bot.get(f"{issue}/comments"), 200)
    good(bot.get(f"{path}/issues/comments/{comment}"), 200)
    good(bot.patch(f"{path}/issues/comments/{comment}", json={"body": "Hello again"}), 200)
    good(bot.post(f"{path}/labels", json={"name": "agent", "color": "ff0000"}), 201)
    good(bot.get(f"{path}/labels/agent"), 200)
    spaced = good(bot.post(f"{path}/labels", json={"name": "kind: small bug"}), 201)
    assert spaced["url"].endswith("/labels/kind:%20small%20bug")
    good(bot.get(spaced["url"]), 200)
    good(bot.post(f"{issue}/labels", json={"labels": ["agent", "bug"]}), 200)
    assert [label["name"] for label in good(bot.get(f"{issue}/labels"), 200)] == ["agent", "bug"]
    assert {"agent", "bug"} <= {label["name"] for label in good(bot.get(f"{path}/labels"), 200)}
    good(bot.delete(f"{issue}/labels/bug"), 200)
    reacted = good(bot.post(f"{issue}/reactions", json={"content": "eyes"}), 201)["id"]
    assert [reaction["id"] for reaction in good(bot.get(f"{issue}/reactions"), 200)] == [reacted]
    good(bot.delete(f"{issue}/reactions/{reacted}"), 204)
    assert good(bot.get(f"{issue}/reactions"), 200) == []
    good(bot.delete(f"{issue}/reactions/{reacted}"), 404)
    on_comment = f"{path}/issues/comments/{comment}/reactions"
    reaction = good(bot.post(on_comment, json={"content": "+1"}), 201)["id"]
    good(bot.post(on_comment, json={"content": "+1"}), 200)
    good(bot.get(on_comment), 200)
    good(bot.delete(f"{on_comment}/{reaction}"), 204)
    events = [event["event"] for event in good(bot.get(f"{issue}/timeline"), 200)]
    assert events == ["renamed", "commented", "labeled", "labeled", "unlabeled"]
    good(bot.delete(f"{path}/issues/comments/{comment}"), 204)


def walk_git(world: World, bot: httpx.Client) -> str:
    """Commit on a branch with a slash through git's objects, and return the commit."""
    path = world.path
    head = good(bot.get(f"{path}/git/ref/heads/main"), 200)["object"]["sha"]
    tree = good(bot.get(f"{path}/git/commits/{head}"), 200)["tree"]["sha"]
    content = base64.b64encode(b"def add(a, b):\n    return a + b\n").decode()
    blob = good(bot.post(f"{path}/git/blobs", json={"content": content, "encoding": "base64"}), 201)["sha"]
    entry = {"path": "src/app.py", "mode": "100644", "type": "blob", "sha": blob}
    new = good(bot.post(f"{path}/git/trees", json={"base_tree": tree, "tree": [entry]}), 201)["sha"]
    made = good(bot.post(f"{path}/git/commits", json={"message": "Fix", "tree": new, "parents": [head]}), 201)["sha"]
    good(bot.post(f"{path}/git/refs", json={"ref": "refs/heads/agent/1-fix", "sha": head}), 201)
    good(bot.patch(f"{path}/git/refs/heads/agent/1-fix", json={"sha": made}), 200)
    good(bot.post(f"{path}/git/refs", json={"ref": "refs/heads/tmp/x", "sha": made}), 201)
    good(bot.delete(f"{path}/git/refs/heads/tmp/x"), 204)
    assert good(bot.get(f"{path}/branches/agent/1-fix"), 200)["commit"]["sha"] == made
    file = good(bot.get(f"{path}/contents/src/app.py", params={"ref": "agent/1-fix"}), 200)
    assert base64.b64decode(file["content"]).endswith(b"return a + b\n")
    for root in ("contents", "contents/"):
        assert {item["name"] for item in good(bot.get(f"{path}/{root}"), 200)} == {"README.md", "src"}
    commits = good(bot.get(f"{path}/commits", params={"sha": "agent/1-fix"}), 200)
    assert [commit["sha"] for commit in commits] == [made, head]
    good(bot.get(f"{path}/commits", params={"path": "README.md"}), 200)
    compared = good(bot.get(f"{path}/compare/main...agent/1-fix"), 200)
    assert (compared["status"], compared["ahead_by"], len(compared["files"])) == ("ahead", 1, 1)
    good(bot.get(f"{path}/commits/agent/1-fix"), 200)
    good(bot.post(f"{path}/dispatches", json={"event_type": "go"}), 204)
    return str(made)


def walk_pulls(world: World, bot: httpx.Client) -> None:
    """Routes of pull requests and reviews."""
    path = world.path
    asked = {"title": "Fix", "head": "agent/1-fix", "base": "main", "body": "Closes #1"}
    number = good(bot.post(f"{path}/pulls", json=asked), 201)["number"]
    pull = f"{path}/pulls/{number}"
    assert len(good(bot.get(f"{path}/pulls", params={"head": "acme:agent/1-fix", "base": "main"}), 200)) == 1
    shown = good(bot.get(pull), 200)
    assert (shown["additions"], shown["deletions"], shown["mergeable"]) == (1, 1, True)
    good(bot.patch(pull, json={"body": "Closes #1."}), 200)
    assert good(bot.get(f"{pull}/files"), 200)[0]["patch"].startswith("@@")
    good(bot.get(f"{pull}/commits"), 200)
    world.person("carol", "write")
    good(bot.post(f"{pull}/requested_reviewers", json={"reviewers": ["carol"]}), 201)
    comment = {"path": "src/app.py", "line": 2, "body": "Why?"}
    review = {"event": "COMMENT", "body": "Look", "comments": [comment]}
    made = good(bot.post(f"{pull}/reviews", json=review), 200)["id"]
    good(bot.get(f"{pull}/reviews"), 200)
    line = good(bot.get(f"{pull}/reviews/{made}/comments"), 200)[0]["id"]
    good(bot.post(f"{pull}/comments/{line}/replies", json={"body": "Because"}), 201)
    assert len(good(bot.get(f"{pull}/comments"), 200)) == 2
    good(bot.get(f"{path}/pulls/comments/{line}"), 200)
    on_line = f"{path}/pulls/comments/{line}/reactions"
    reacted = good(bot.post(on_line, json={"content": "rocket"}), 201)["id"]
    assert [reaction["id"] for reaction in good(bot.get(on_line), 200)] == [reacted]
    good(bot.delete(f"{on_line}/{reacted}"), 204)
    good(bot.get(f"{path}/pulls/comments/{line + 99}/reactions"), 404)
    good(bot.get(f"{path}/issues/{number}/timeline"), 200)


def walk_reviews(world: World, bot: httpx.Client) -> None:
    """A review begun, changed, submitted and dismissed, another one taken back, and a comment on a line."""
    path, pull = world.path, f"{world.path}/pulls/{max(world.repository.issues)}"
    head = good(bot.get(pull), 200)["head"]["sha"]
    carol = world.as_person(world.hub.user("carol"))
    begun = good(carol.post(f"{pull}/reviews", json={"body": "Hm"}), 200)
    assert (begun["state"], "submitted_at" in begun) == ("PENDING", False)
    review = f"{pull}/reviews/{begun['id']}"
    good(bot.get(review), 404)
    good(carol.put(review, json={"body": "No."}), 200)
    assert good(carol.post(f"{review}/events", json={"event": "REQUEST_CHANGES"}), 200)["body"] == "No."
    good(carol.delete(review), 422)
    assert good(carol.put(f"{review}/dismissals", json={"message": "Fine after all"}), 200)["state"] == "DISMISSED"
    assert good(bot.get(review), 200)["state"] == "DISMISSED"
    again = good(carol.post(f"{pull}/reviews", json={}), 200)["id"]
    good(carol.delete(f"{pull}/reviews/{again}"), 200)
    asked = {"path": "src/app.py", "line": 2, "side": "RIGHT", "body": "May I?", "commit_id": head}
    line = f"{path}/pulls/comments/{good(bot.post(f'{pull}/comments', json=asked), 201)['id']}"
    assert good(bot.patch(line, json={"body": "May I, please?"}), 200)["body"] == "May I, please?"
    good(bot.delete(line), 204)
    good(bot.get(line), 404)


def walk_checks(world: World, bot: httpx.Client, sha: str) -> None:
    """Routes of checks and statuses."""
    path = world.path
    note = {"path": "src/app.py", "start_line": 1, "end_line": 1, "annotation_level": "notice", "message": "Here"}
    output = {"title": "Working", "summary": "One", "annotations": [note]}
    run = good(bot.post(f"{path}/check-runs", json={"name": "agent", "head_sha": sha, "output": output}), 201)["id"]
    assert good(bot.get(f"{path}/check-runs/{run}"), 200)["conclusion"] is None
    done = good(bot.patch(f"{path}/check-runs/{run}", json={"conclusion": "success"}), 200)
    assert (done["status"], done["output"]["annotations_count"]) == ("completed", 1)
    assert good(bot.get(f"{path}/check-runs/{run}"), 200) == done
    good(bot.get(f"{path}/check-runs/{run + 99}"), 404)
    assert good(bot.get(f"{path}/check-runs/{run}/annotations"), 200)[0]["message"] == "Here"
    assert good(bot.get(f"{path}/commits/{sha}/check-runs"), 200)["total_count"] == 1
    good(bot.post(f"{path}/statuses/{sha}", json={"state": "success", "context": "ci"}), 201)
    assert good(bot.get(f"{path}/commits/{sha}/status"), 200)["state"] == "success"
    sha = world.hub.commit_files(world.repository, world.owner, "checked", {"a": "b"})
    job = world.hub.run_workflow(world.repository, world.owner, sha, ["test"]).jobs[0]
    (ran,) = good(bot.get(f"{path}/actions/runs", params={"head_sha": sha}), 200)["workflow_runs"]
    assert good(bot.get(f"{path}/actions/runs/{ran['id']}"), 200)["status"] == "in_progress"
    assert good(bot.get(f"{path}/actions/runs/{ran['id']}/jobs"), 200)["jobs"][0]["name"] == "test"
    good(bot.get(f"{path}/actions/jobs/{job.id}/logs"), 404)
    world.hub.finish_job(job, "failure", "red")
    assert good(bot.get(f"{path}/actions/runs/{ran['id']}"), 200)["conclusion"] == "failure"
    assert good(bot.get(f"{path}/actions/jobs/{job.id}"), 200)["conclusion"] == "failure"
    good(bot.get(f"{path}/actions/jobs/{job.id}/logs"), 302)


def walk_refusals(world: World, bot: httpx.Client) -> None:
    """What is never there, and the commits of a repository without any."""
    names = {"owner": "acme", "repo": "web", "org": "acme", "username": "acme"}
    for method, template in LEFT_OUT:
        good(bot.request(method, template.format(**names)), 404)
    empty = world.hub.create_repository(world.owner, "empty")
    good(world.as_person(world.owner).get(f"/repos/{empty.full_name}/commits"), 409)


def test_every_route_answers_as_github_describes(world: World, description: Path | None) -> None:
    """Each operation of the description that the hub serves gave at least one valid good answer."""
    bot = world.as_bot()
    walk_app(world)
    walk_issues(world, bot)
    sha = walk_git(world, bot)
    walk_pulls(world, bot)
    walk_reviews(world, bot)
    walk_checks(world, bot, sha)
    walk_refusals(world, bot)
    described = {(method, t) for method, t, _ in operations(description or material("openapi-subset.json"))}
    assert described <= SERVED if description is None else described == SERVED
    assert world.judge.seen == described - LEFT_OUT
    assert len(world.judge.seen) == (73 if description is None else 91)
