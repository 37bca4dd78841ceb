"""What GitHub's command line asks of a pull request, without the program: GitHub's schema judges each query."""

from tests.hub.graphql.asker import Scene

PULL = """query { repository(owner: "acme", name: "web") { pullRequest(number: 2) {
  url createdAt mergeable additions deletions isCrossRepository maintainerCanModify
  author { __typename login } commits { totalCount } headRepository { name } headRepositoryOwner { login }
  reviewRequests(first: 9) { nodes { requestedReviewer { __typename ... on User { login } } } }
  assignees(first: 9) { totalCount nodes { login name } } labels(first: 9) { nodes { name color } }
  projectCards(first: 9) { totalCount } milestone { title } reactionGroups { content users { totalCount } }
  comments(first: 9) { nodes { author { login } authorAssociation url includesCreatedEdit viewerDidAuthor
    reactionGroups { content users { totalCount } } } } } } }"""
CHECKS = """query { repository(owner: "acme", name: "web") { pullRequest(number: 2) {
  commits(last: 1) { nodes { commit { oid statusCheckRollup { contexts(first: 9) { totalCount nodes { __typename
    ... on CheckRun { name status conclusion checkSuite { workflowRun { workflow { name } } } }
    ... on StatusContext { context state } } } } } } } } } }"""


def test_a_pull_request_is_told_as_rest_tells_it(scene: Scene) -> None:
    """Numbers and names are the same; what nobody gave is listed with nought."""
    hub, world, pull = scene.world.hub, scene.world, scene.pull
    hub.add_label(pull, world.owner, "bug")
    comment = hub.comment(pull, world.owner, "Well")
    client = world.as_person(world.owner)
    assert client.post(f"{world.path}/issues/comments/{comment.id}/reactions", json={"content": "+1"}).is_success
    assert client.post(f"{world.path}/pulls/2/requested_reviewers", json={"reviewers": ["acme"]}).is_success
    rest = client.get(f"{world.path}/pulls/2").json()
    found = scene.data(client, PULL)["repository"]["pullRequest"]
    assert {name: found[name] for name in ("url", "createdAt", "additions", "deletions", "isCrossRepository")} == {
        "url": rest["html_url"],
        "createdAt": rest["created_at"],
        "additions": rest["additions"],
        "deletions": rest["deletions"],
        "isCrossRepository": False,
    }
    assert (found["mergeable"], found["commits"]) == ("MERGEABLE", {"totalCount": rest["commits"]})
    assert found["author"] == {"__typename": "Bot", "login": world.app.bot.login.removesuffix("[bot]")}
    assert (found["headRepository"], found["headRepositoryOwner"]) == ({"name": "web"}, {"login": "acme"})
    assert found["reviewRequests"]["nodes"] == [{"requestedReviewer": {"__typename": "User", "login": "acme"}}]
    assert [label["name"] for label in found["labels"]["nodes"]] == ["bug"]
    assert (found["assignees"]["totalCount"], found["projectCards"]["totalCount"], found["milestone"]) == (0, 0, None)
    assert {group["users"]["totalCount"] for group in found["reactionGroups"]} == {0}
    [said] = found["comments"]["nodes"]
    counts = {group["content"]: group["users"]["totalCount"] for group in said.pop("reactionGroups")}
    assert (len(counts), counts["THUMBS_UP"], counts["EYES"]) == (8, 1, 0)
    url = client.get(f"{world.path}/issues/comments/{comment.id}").json()["html_url"]
    assert said == {
        "author": {"login": "acme"},
        "authorAssociation": "OWNER",
        "url": url,
        "includesCreatedEdit": False,
        "viewerDidAuthor": True,
    }


def test_a_conflict_is_told(scene: Scene) -> None:
    """The base branch changed the same lines."""
    hub, world = scene.world.hub, scene.world
    hub.commit_files(world.repository, world.owner, "main", {"src/app.py": "def add(a, b):\n    return b - a\n"})
    client = world.as_person(world.owner)
    assert scene.data(client, PULL)["repository"]["pullRequest"]["mergeable"] == "CONFLICTING"


def test_the_checks_of_the_head_are_listed(scene: Scene) -> None:
    """Of a name the newest; without any there is no rollup, and an App needs its permissions where not all may read."""
    hub, world = scene.world.hub, scene.world
    assert scene.pull.pull is not None
    sha = scene.pull.pull.head_sha
    client = world.as_person(world.owner)
    [node] = scene.data(client, CHECKS)["repository"]["pullRequest"]["commits"]["nodes"]
    assert node["commit"] == {"oid": sha, "statusCheckRollup": None}
    (job,) = hub.run_workflow(world.repository, world.owner, sha, ["test"]).jobs
    for conclusion in ("failure", "success"):
        hub.create_check_run(world.repository, world.app, "style", sha, {"conclusion": conclusion})
    hub.set_status(world.repository, world.owner, sha, "error", context="deploy")
    [node] = scene.data(client, CHECKS)["repository"]["pullRequest"]["commits"]["nodes"]
    contexts = node["commit"]["statusCheckRollup"]["contexts"]
    assert contexts["totalCount"] == 3
    ours = {"status": "COMPLETED", "conclusion": "SUCCESS", "checkSuite": {"workflowRun": None}}
    theirs = {"status": "IN_PROGRESS", "conclusion": None, "checkSuite": {"workflowRun": {"workflow": {"name": "CI"}}}}
    assert contexts["nodes"] == [
        {"__typename": "CheckRun", "name": job.name, **theirs},
        {"__typename": "CheckRun", "name": "style", **ours},
        {"__typename": "StatusContext", "context": "deploy", "state": "ERROR"},
    ]
    world.repository.private = True
    refused = scene.ask(world.as_bot(pull_requests="read", checks="read"), CHECKS)
    assert refused["errors"][0]["type"] == "FORBIDDEN"
