"""Queries over HTTP, judged by GitHub's schema: what is read, page by page, and how it is refused."""

import httpx
import pytest

from tests.hub.graphql.asker import Scene


def test_the_viewer_is_whoever_the_token_acts_for(scene: Scene) -> None:
    """An App's account carries `[bot]` here; both addresses answer."""
    query = "{ viewer { login } }"
    assert scene.data(scene.world.as_bot(), query) == {"viewer": {"login": scene.world.app.bot.login}}
    assert scene.world.app.bot.login.endswith("[bot]")
    person = scene.world.as_person(scene.world.owner)
    assert scene.data(person, query) == {"viewer": {"login": "acme"}}
    assert person.post(f"{scene.world.server.url}/graphql", json={"query": query}).json()["data"]["viewer"]


def test_the_rate_limit_is_counted(scene: Scene) -> None:
    """Each query costs one; when the hour is used up the answer is 200 with an error, and headers that say so."""
    bot = scene.world.as_bot()
    query = "{ rateLimit { limit remaining resetAt cost } }"
    first, second = (scene.data(bot, query)["rateLimit"] for _ in range(2))
    assert (first["limit"], first["cost"], first["remaining"] - second["remaining"]) == (5000, 1, 1)
    assert first["resetAt"] == "2026-11-30T13:00:00Z"
    scene.world.hub.meter.limit = 1
    answer = bot.post(scene.world.server.graphql_url, json={"query": query})
    assert answer.status_code == 200
    assert answer.json()["errors"][0]["type"] == "RATE_LIMITED"
    assert (answer.headers["x-ratelimit-remaining"], answer.headers["x-ratelimit-resource"]) == ("0", "graphql")


def test_a_repository_its_issue_and_its_pull_request(scene: Scene) -> None:
    """The same values as REST has."""
    query = """{ repository(owner: "ACME", name: "web") {
      id name nameWithOwner
      issue(number: 1) { id number title body state }
      pullRequest(number: 2) { id number title body isDraft state headRefOid headRefName baseRefName }
    } }"""
    bot = scene.world.as_bot()
    found = scene.data(bot, query)["repository"]
    rest = bot.get(f"{scene.world.path}/pulls/2").json()
    assert (found["name"], found["nameWithOwner"]) == ("web", "acme/web")
    assert found["id"] == bot.get(scene.world.path).json()["node_id"]
    assert found["issue"] == {
        "id": bot.get(f"{scene.world.path}/issues/1").json()["node_id"],
        "number": 1,
        "title": "Wrong sum",
        "body": "It subtracts.",
        "state": "OPEN",
    }
    assert found["pullRequest"] == {
        "id": rest["node_id"],
        "number": 2,
        "title": "Fix",
        "body": "Closes #1",
        "isDraft": False,
        "state": "OPEN",
        "headRefOid": rest["head"]["sha"],
        "headRefName": "agent/1",
        "baseRefName": "main",
    }
    bot.patch(f"{scene.world.path}/pulls/2", json={"state": "closed"})
    assert scene.data(bot, query)["repository"]["pullRequest"]["state"] == "CLOSED"
    scene.pull.pull.merged_at = scene.world.clock()  # type: ignore[union-attr]
    assert scene.data(bot, query)["repository"]["pullRequest"]["state"] == "MERGED"


def test_threads_with_their_comments(scene: Scene) -> None:
    """Ids are REST's; an App's account has no `[bot]` as an author; an outdated thread has no line."""
    bot = scene.world.as_bot()
    scene.world.hub.reply(scene.threads[0], scene.world.app.bot, "Because.")
    first, second = scene.page(bot, 10)["nodes"]
    rest = bot.get(f"{scene.world.path}/pulls/2/comments").json()
    assert (first["path"], first["line"], first["isResolved"], first["isOutdated"]) == ("src/app.py", 2, False, False)
    assert (second["line"], second["comments"]["totalCount"]) == (1, 1)
    comments = first["comments"]["nodes"]
    expected = [comment for comment in rest if comment["original_line"] == 2]
    assert [(c["databaseId"], c["id"], c["body"], c["createdAt"]) for c in comments] == [
        (c["id"], c["node_id"], c["body"], c["created_at"]) for c in expected
    ]
    assert [c["author"] for c in comments] == [
        {"__typename": "User", "login": "acme"},
        {"__typename": "Bot", "login": scene.world.app.slug},
    ]
    scene.world.hub.commit_files(scene.world.repository, scene.world.app.bot, "agent/1", {"src/app.py": "x = 1\n"})
    stale = scene.page(bot, 1)["nodes"][0]
    assert (stale["isOutdated"], stale["line"]) == (True, None)


def test_pages_follow_their_cursors(scene: Scene) -> None:
    """The pages are disjoint and complete; the cursor of the last is the end."""
    bot = scene.world.as_bot()
    one = scene.page(bot, 1)
    two = scene.page(bot, 1, one["pageInfo"]["endCursor"])
    end = scene.page(bot, 1, two["pageInfo"]["endCursor"])
    assert [page["pageInfo"]["hasNextPage"] for page in (one, two, end)] == [True, False, False]
    assert [node["id"] for page in (one, two) for node in page["nodes"]] == [t.node_id for t in scene.threads]
    assert (end["nodes"], end["pageInfo"]["endCursor"]) == ([], None)
    assert {page["totalCount"] for page in (one, two, end)} == {2}
    assert scene.page(bot, 0)["pageInfo"] == {"hasNextPage": True, "endCursor": None}
    del scene.threads[0]
    assert scene.page(bot, 1, one["pageInfo"]["endCursor"]) == {**two, "totalCount": 1}


@pytest.mark.parametrize(
    ("args", "kind", "said"),
    [
        ("", "MISSING_PAGINATION_BOUNDARIES", "You must provide a `first` or `last` value"),
        ("(first: 101)", "EXCESSIVE_PAGINATION", "Requesting 101 records on the `reviewThreads` connection"),
        ("(first: -1)", "ARGUMENT_LIMIT", "cannot be less than zero"),
        ('(first: 1, after: "nope")', "INVALID_CURSOR_ARGUMENTS", "`nope` does not appear to be a valid cursor."),
        ('(first: 1, after: "Y3Vyc29y")', "INVALID_CURSOR_ARGUMENTS", "does not appear to be a valid cursor."),
    ],
)
def test_pages_that_cannot_be(scene: Scene, args: str, kind: str, said: str) -> None:
    """Each is refused with its own type, where it was asked."""
    query = f"""{{ repository(owner: "acme", name: "web") {{
      pullRequest(number: 2) {{ reviewThreads{args} {{ totalCount }} }} }} }}"""
    body = scene.ask(scene.world.as_bot(), query)
    [error] = body["errors"]
    assert (error["type"], error["path"]) == (kind, ["repository", "pullRequest", "reviewThreads"])
    assert said in error["message"]
    assert body["data"] == {"repository": {"pullRequest": None}}


def test_every_node_is_found_by_its_id(scene: Scene) -> None:
    """With its own type."""
    hub, bot = scene.world.hub, scene.world.as_bot()
    comment = hub.comment(scene.issue, scene.world.owner, "Hello")
    nodes = {
        "Repository": scene.world.repository.node_id,
        "Issue": scene.issue.node_id,
        "IssueComment": comment.node_id,
        "PullRequest": scene.pull_id,
        "PullRequestReview": scene.threads[0].comments[0].review.node_id,
        "PullRequestReviewThread": scene.threads[0].node_id,
        "PullRequestReviewComment": scene.threads[0].comments[0].node_id,
        "User": scene.world.owner.node_id,
        "Bot": scene.world.app.bot.node_id,
    }
    for kind, node in nodes.items():
        query = "query($id: ID!) { node(id: $id) { __typename id } }"
        assert scene.data(bot, query, id=node)["node"] == {"__typename": kind, "id": node}


@pytest.mark.parametrize(
    ("query", "path", "said"),
    [
        (
            '{ repository(owner: "acme", name: "nope") { id } }',
            ["repository"],
            "Could not resolve to a Repository with the name 'acme/nope'.",
        ),
        (
            '{ repository(owner: "acme", name: "web") { issue(number: 99) { id } } }',
            ["repository", "issue"],
            "Could not resolve to an Issue with the number of 99.",
        ),
        (
            '{ repository(owner: "acme", name: "web") { issue(number: 2) { id } } }',
            ["repository", "issue"],
            "Could not resolve to an Issue with the number of 2.",
        ),
        (
            '{ repository(owner: "acme", name: "web") { pullRequest(number: 1) { id } } }',
            ["repository", "pullRequest"],
            "Could not resolve to a PullRequest with the number of 1.",
        ),
        ('{ node(id: "PR_x") { id } }', ["node"], "Could not resolve to a node with the global id of 'PR_x'."),
    ],
)
def test_what_is_not_there(scene: Scene, query: str, path: list[str], said: str) -> None:
    """NOT_FOUND in GitHub's words, where it was asked."""
    body = scene.ask(scene.world.as_bot(), query)
    [error] = body["errors"]
    assert (error["type"], error["path"], error["message"]) == ("NOT_FOUND", path, said)
    assert error["locations"][0]["line"] == 1


def test_without_a_good_token_nothing_is_said(scene: Scene) -> None:
    """401 for none, an unknown one, a revoked one and an App's JSON web token; 403 for a suspended installation."""
    world = scene.world
    token = world.hub.create_installation_token(world.installation)
    bot = world.client(token)
    assert scene.data(bot, "{ viewer { login } }")
    token.revoked = True

    def refused(client: httpx.Client) -> tuple[int, str]:
        answer = client.post(world.server.graphql_url, json={"query": "{ viewer { login } }"})
        return answer.status_code, answer.json()["message"]

    for client in (world.client(), world.client("ghs_unknown"), bot, world.as_app()):
        assert refused(client) == (401, "Bad credentials")
    late = world.as_bot()
    world.hub.suspend(world.installation, world.owner)
    assert refused(late) == (403, "This installation has been suspended")


def test_what_cannot_be_executed(scene: Scene) -> None:
    """Bad JSON is 400, as in REST; everything else is 200 with errors and no data."""
    bot, url = scene.world.as_bot(), scene.world.server.graphql_url
    broken = bot.post(url, content=b"{")
    assert (broken.status_code, broken.json()["message"]) == (400, "Problems parsing JSON")
    wrong: list[object] = [{}, {"query": None}, {"query": 1}, []]
    for body in wrong:
        answer = bot.post(url, json=body)
        said = "A query attribute must be specified and must be a string."
        assert (answer.status_code, answer.json()) == (200, {"errors": [{"message": said}]})
    assert "errors" in bot.post(url, json={"query": "{ viewer { login } }", "variables": [1]}).json()
    syntax = scene.post(bot, "{ viewer { login }")
    assert list(syntax) == ["errors"]
    assert syntax["errors"][0]["locations"] == [{"line": 1, "column": 19}]
    absent = scene.post(bot, "query($id: ID!) { node(id: $id) { id } }")
    assert list(absent) == ["errors"]
    assert "$id" in absent["errors"][0]["message"]
    unnamed = bot.post(url, json={"query": "query A { viewer { login } }", "operationName": "B"}).json()
    assert list(unnamed) == ["errors"]


def test_errors_of_validation_are_worded_as_github_s(scene: Scene) -> None:
    """With code and path."""
    bot = scene.world.as_bot()
    query = "query Me($a: Int) { me: viewer { ...F login(size: $a) } } fragment F on User { nope }"
    body = scene.post(bot, query)
    assert list(body) == ["errors"]
    field, argument = sorted(body["errors"], key=lambda error: str(error["extensions"]["code"]), reverse=True)
    assert field == {
        "path": ["fragment F", "nope"],
        "extensions": {"code": "undefinedField", "typeName": "User", "fieldName": "nope"},
        "locations": [{"line": 1, "column": 80}],
        "message": "Field 'nope' doesn't exist on type 'User'",
    }
    assert argument["path"] == ["query Me", "me", "login"]
    assert argument["message"] == "Field 'login' doesn't accept argument 'size'"
    inline = scene.post(bot, '{ node(id: "x") { ... on User { nope } } }')
    assert inline["errors"][0]["path"] == ["query", "node", "... on User", "nope"]
    leaf = scene.post(bot, "{ viewer }")
    assert leaf["errors"][0]["path"] == ["query", "viewer"]


def test_introspection_tells_the_schema(scene: Scene) -> None:
    """As clients look up what a server can do."""
    query = '{ __type(name: "PullRequest") { fields { name } } }'
    names = {field["name"] for field in scene.data(scene.world.as_bot(), query)["__type"]["fields"]}
    assert "reviewThreads" in names
