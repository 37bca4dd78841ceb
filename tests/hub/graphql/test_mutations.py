"""Mutations over HTTP: what they change, seen through REST and webhooks, and who may."""

from typing import Any

import pytest

from tests.hub.graphql.asker import Scene

FORBIDDEN = "Resource not accessible by integration"


def thread_states(scene: Scene) -> list[bool]:
    """Return `isResolved` of each thread."""
    return [node["isResolved"] for node in scene.page(scene.world.as_person(scene.world.owner), 10)["nodes"]]


def given(scene: Scene, name: str) -> dict[str, Any]:
    """Return the input of a mutation on the scene."""
    thread, comment = scene.threads[0].node_id, scene.threads[0].comments[0].node_id
    return {
        "resolveReviewThread": {"threadId": thread},
        "unresolveReviewThread": {"threadId": thread},
        "addPullRequestReviewThreadReply": {"pullRequestReviewThreadId": thread, "body": "Done."},
        "minimizeComment": {"subjectId": comment, "classifier": "OUTDATED"},
        "convertPullRequestToDraft": {"pullRequestId": scene.pull_id},
        "markPullRequestReadyForReview": {"pullRequestId": scene.pull_id},
        "addPullRequestReview": {"pullRequestId": scene.pull_id, "body": "Looked at it.", "event": "COMMENT"},
    }[name]


NEEDED: dict[str, tuple[str, ...]] = {
    "resolveReviewThread": ("contents", "pull_requests"),
    "unresolveReviewThread": ("contents", "pull_requests"),
    "addPullRequestReviewThreadReply": ("pull_requests",),
    "minimizeComment": ("pull_requests",),
    "convertPullRequestToDraft": ("contents", "pull_requests"),
    "markPullRequestReadyForReview": ("contents", "pull_requests"),
    "addPullRequestReview": ("pull_requests",),
}
"""What an App needs to write for each."""


def test_a_thread_is_resolved_and_opened_again(scene: Scene) -> None:
    """The events name who did it; doing it twice sends nothing more."""
    bot, thread = scene.world.as_bot(), scene.threads[1].node_id
    for _ in range(2):
        body = scene.mutate(bot, "resolveReviewThread", "thread { id isResolved }", threadId=thread)
        payload = body["data"]["resolveReviewThread"]
        assert payload == {"clientMutationId": "m1", "thread": {"id": thread, "isResolved": True}}
    assert thread_states(scene) == [False, True]
    body = scene.mutate(bot, "unresolveReviewThread", "thread { isResolved }", threadId=thread)
    assert body["data"]["unresolveReviewThread"]["thread"] == {"isResolved": False}
    assert thread_states(scene) == [False, False]
    events = scene.world.hub.deliveries("pull_request_review_thread")
    assert [event.action for event in events] == ["resolved", "unresolved"]


def test_a_reply_is_a_comment_of_rest(scene: Scene) -> None:
    """In the thread of its first comment."""
    bot = scene.world.as_bot()
    body = scene.mutate(
        bot,
        "addPullRequestReviewThreadReply",
        "comment { databaseId body author { login } }",
        **given(scene, "addPullRequestReviewThreadReply"),
    )
    comment = body["data"]["addPullRequestReviewThreadReply"]["comment"]
    assert (comment["body"], comment["author"]) == ("Done.", {"login": scene.world.app.slug})
    rest = bot.get(f"{scene.world.path}/pulls/comments/{comment['databaseId']}").json()
    assert (rest["body"], rest["in_reply_to_id"]) == ("Done.", scene.threads[0].comments[0].id)
    assert rest["user"]["login"] == scene.world.app.bot.login


def test_a_reply_needs_words(scene: Scene) -> None:
    """A blank one is refused and nothing is added."""
    body = scene.mutate(
        scene.world.as_bot(),
        "addPullRequestReviewThreadReply",
        "comment { id }",
        pullRequestReviewThreadId=scene.threads[0].node_id,
        body=" ",
    )
    [error] = body["errors"]
    assert (error["type"], error["message"]) == ("UNPROCESSABLE", "body can't be blank")
    assert len(scene.threads[0].comments) == 1


def test_drafts_and_back(scene: Scene) -> None:
    """REST and the events say the same."""
    bot, url = scene.world.as_bot(), f"{scene.world.path}/pulls/{scene.pull.number}"
    for name, draft in (("convertPullRequestToDraft", True), ("markPullRequestReadyForReview", False)):
        body = scene.mutate(bot, name, "pullRequest { id isDraft }", **given(scene, name))
        assert body["data"][name]["pullRequest"] == {"id": scene.pull_id, "isDraft": draft}
        assert bot.get(url).json()["draft"] is draft
    actions = [event.action for event in scene.world.hub.deliveries("pull_request")]
    assert actions[-2:] == ["converted_to_draft", "ready_for_review"]


@pytest.mark.parametrize("where", ["line", "conversation"])
def test_a_comment_is_minimised(scene: Scene, where: str) -> None:
    """Its reason is the classifier, lower case; the text stays in REST."""
    world, bot = scene.world, scene.world.as_bot()
    spoken = world.hub.comment(scene.issue, world.owner, "Progress")
    comment = scene.threads[0].comments[0] if where == "line" else spoken
    body = scene.mutate(
        bot,
        "minimizeComment",
        "minimizedComment { __typename isMinimized minimizedReason }",
        subjectId=comment.node_id,
        classifier="OFF_TOPIC",
    )
    shown = body["data"]["minimizeComment"]["minimizedComment"]
    assert (shown["isMinimized"], shown["minimizedReason"]) == (True, "off-topic")
    assert shown["__typename"] == ("PullRequestReviewComment" if where == "line" else "IssueComment")
    query = "query($id: ID!) { node(id: $id) { ... on Minimizable { isMinimized minimizedReason } } }"
    assert scene.data(bot, query, id=comment.node_id)["node"] == {"isMinimized": True, "minimizedReason": "off-topic"}
    place = f"pulls/comments/{comment.id}" if where == "line" else f"issues/comments/{comment.id}"
    assert bot.get(f"{world.path}/{place}").json()["body"] == comment.body


@pytest.mark.parametrize("name", NEEDED)
def test_an_app_needs_each_of_its_permissions(scene: Scene, name: str) -> None:
    """With just them it works; with one missing or only to read it is FORBIDDEN, and nothing changes."""
    world = scene.world
    if name == "unresolveReviewThread":
        world.hub.resolve_thread(scene.threads[0], world.owner)
    before = thread_states(scene)
    everything = dict(world.installation.permissions)
    for missing in NEEDED[name]:
        rest = {key: level for key, level in everything.items() if key != missing}
        for granted in (rest, {**rest, missing: "read"}):
            body = scene.mutate(world.as_bot(**granted), name, "__typename", **given(scene, name))
            assert body["data"] == {name: None}
            [error] = body["errors"]
            assert (error["type"], error["path"], error["message"]) == ("FORBIDDEN", [name], FORBIDDEN)
    assert thread_states(scene) == before
    assert len(scene.threads[0].comments) == 1
    assert scene.threads[0].comments[0].minimized_reason is None
    enough = world.as_bot(**dict.fromkeys(NEEDED[name], "write"))
    assert "errors" not in scene.mutate(enough, name, "__typename", **given(scene, name))


@pytest.mark.parametrize("name", NEEDED)
def test_people_need_a_role(scene: Scene, name: str) -> None:
    """Writers may; readers may only answer and comment."""
    writer, reader = scene.world.person("wendy", "write"), scene.world.person("rita", "read")
    refused = scene.mutate(scene.world.as_person(reader), name, "__typename", **given(scene, name))
    if name in ("addPullRequestReviewThreadReply", "addPullRequestReview"):
        assert "errors" not in refused
    else:
        [error] = refused["errors"]
        action = name[0].upper() + name[1:]
        said = f"rita does not have the correct permissions to execute `{action}`"
        assert (error["type"], error["message"]) == ("FORBIDDEN", said)
    assert "errors" not in scene.mutate(scene.world.as_person(writer), name, "__typename", **given(scene, name))


def test_an_author_may_resolve_threads_of_their_own_pull_request(scene: Scene) -> None:
    """Without write access, as with a fork's."""
    scene.pull.user = scene.world.person("ada")
    ada = scene.world.as_person(scene.pull.user)
    body = scene.mutate(ada, "resolveReviewThread", "thread { isResolved }", threadId=scene.threads[0].node_id)
    assert body["data"]["resolveReviewThread"]["thread"] == {"isResolved": True}


@pytest.mark.parametrize("name", NEEDED)
def test_a_private_repository_does_not_exist_for_strangers(scene: Scene, name: str) -> None:
    """NOT_FOUND by name and by node id, for strangers and for an App installed elsewhere."""
    world = scene.world
    world.repository.private = True
    elsewhere = world.hub.create_repository(world.owner, "other")
    app = world.hub.create_app(world.owner, "Other Bot", private_key=world.app.private_key)
    token = world.hub.create_installation_token(world.hub.install(app, [elsewhere.id]))
    for client in (world.as_person(world.person("eve")), world.client(token)):
        body = scene.mutate(client, name, "__typename", **given(scene, name))
        [error] = body["errors"]
        assert error["type"] == "NOT_FOUND"
        assert error["message"].startswith("Could not resolve to a node with the global id of '")
        hidden = scene.ask(client, '{ repository(owner: "acme", name: "web") { id } }')
        assert (hidden["data"], hidden["errors"][0]["type"]) == ({"repository": None}, "NOT_FOUND")


def test_reading_a_private_repository_needs_permissions(scene: Scene) -> None:
    """`issues` for issues, `pull_requests` for pull requests; the rest of the answer is there."""
    scene.world.repository.private = True
    query = """{ repository(owner: "acme", name: "web") {
      name issue(number: 1) { number } pullRequest(number: 2) { number } } }"""
    body = scene.ask(scene.world.as_bot(metadata="read", issues="read"), query)
    assert body["data"]["repository"] == {"name": "web", "issue": {"number": 1}, "pullRequest": None}
    [error] = body["errors"]
    assert (error["type"], error["path"]) == ("FORBIDDEN", ["repository", "pullRequest"])
    assert error["message"] == FORBIDDEN
    by_id = scene.ask(
        scene.world.as_bot(metadata="read"), "query($id: ID!) { node(id: $id) { id } }", id=scene.threads[0].node_id
    )
    assert by_id["errors"][0]["type"] == "FORBIDDEN"


@pytest.mark.parametrize(
    ("name", "field", "kind"),
    [
        ("resolveReviewThread", "threadId", "PullRequestReviewThread"),
        ("minimizeComment", "subjectId", "Minimizable"),
        ("convertPullRequestToDraft", "pullRequestId", "PullRequest"),
    ],
)
def test_an_id_of_another_type_is_not_found(scene: Scene, name: str, field: str, kind: str) -> None:
    """An issue is no thread, no comment and no pull request."""
    asked = {**given(scene, name), field: scene.issue.node_id}
    [error] = scene.mutate(scene.world.as_bot(), name, "__typename", **asked)["errors"]
    said = f"Could not resolve to {kind} node with the global id of '{scene.issue.node_id}'."
    assert (error["type"], error["message"]) == ("NOT_FOUND", said)


def test_one_refusal_does_not_undo_the_others(scene: Scene) -> None:
    """Mutations of one request are done in their order, each for itself."""
    query = """mutation($a: ID!, $b: ID!) {
      first: resolveReviewThread(input: {threadId: "nope"}) { thread { id } }
      second: resolveReviewThread(input: {threadId: $a}) { thread { isResolved } }
      third: unresolveReviewThread(input: {threadId: $b}) { thread { isResolved } }
    }"""
    thread = scene.threads[0].node_id
    body = scene.ask(scene.world.as_bot(), query, a=thread, b=thread)
    assert body["data"] == {
        "first": None,
        "second": {"thread": {"isResolved": True}},
        "third": {"thread": {"isResolved": False}},
    }
    assert [error["path"] for error in body["errors"]] == [["first"]]
