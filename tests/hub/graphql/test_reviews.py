"""Reviews over GraphQL: begun, answered in, submitted or taken back; who sees what meanwhile."""

import json
from typing import Any

import pytest

from tests.hub.graphql.asker import Scene

REVIEWS = """
query($id: ID!, $first: Int!, $after: String, $states: [PullRequestReviewState!]) {
  node(id: $id) { ... on PullRequest { reviews(first: $first, after: $after, states: $states) {
    totalCount pageInfo { hasNextPage endCursor }
    nodes {
      id fullDatabaseId state body submittedAt viewerDidAuthor commit { oid }
      author { __typename login ... on User { databaseId } ... on Bot { databaseId } }
      comments(first: 50) { totalCount nodes { fullDatabaseId body state } }
    }
  } } }
}
"""
DETAILS = """
query($id: ID!) { node(id: $id) { ... on PullRequest { reviewThreads(first: 10) { nodes {
  line startLine originalLine diffSide isResolved resolvedBy { login }
  comments(first: 10) { nodes { body state diffHunk lastEditedAt viewerDidAuthor pullRequestReview { fullDatabaseId }
    author { login } } }
} } } } }
"""


def reviews(scene: Scene, client: Any, **more: Any) -> list[dict[str, Any]]:
    """Return the reviews that somebody sees."""
    found = scene.data(client, REVIEWS, id=scene.pull_id, first=10, **more)["node"]["reviews"]["nodes"]
    return list(found)


def begin(scene: Scene, client: Any, **more: Any) -> str:
    """Begin a review and return its node id."""
    body = scene.mutate(
        client,
        "addPullRequestReview",
        "pullRequestReview { id state submittedAt }",
        pullRequestId=scene.pull_id,
        **more,
    )
    made = body["data"]["addPullRequestReview"]["pullRequestReview"]
    assert (made["state"], made["submittedAt"]) == ("PENDING", None)
    return str(made["id"])


def answer(scene: Scene, client: Any, index: int, text: str, **more: Any) -> dict[str, Any]:
    """Answer in a thread."""
    thread = scene.threads[index].node_id
    name, payload = "addPullRequestReviewThreadReply", "comment { state pullRequestReview { id } }"
    return scene.mutate(client, name, payload, pullRequestReviewThreadId=thread, body=text, **more)


def sent(scene: Scene, event: str) -> list[dict[str, Any]]:
    """Return the bodies of an event's deliveries."""
    return [json.loads(delivery.body) for delivery in scene.world.hub.deliveries(event)]


def test_answers_of_one_review_appear_together(scene: Scene) -> None:
    """Nobody sees or hears of them before; then one review and its comments are announced."""
    world, bot = scene.world, scene.world.as_bot()
    before = len(scene.world.hub.deliveries())
    review = begin(scene, bot, body="Round one", commitOID=scene.pull.pull and scene.pull.pull.head_sha)
    for index in (0, 1):
        made = answer(scene, bot, index, f"Answer {index}", pullRequestReviewId=review)["data"]
        comment = made["addPullRequestReviewThreadReply"]["comment"]
        assert comment == {"state": "PENDING", "pullRequestReview": {"id": review}}
    assert len(world.hub.deliveries()) == before
    eve = world.as_person(world.person("eve"))
    assert [one["state"] for one in reviews(scene, eve)] == ["COMMENTED"]
    assert [node["comments"]["totalCount"] for node in scene.page(eve, 10)["nodes"]] == [1, 1]
    hidden = scene.ask(eve, "query($id: ID!) { node(id: $id) { id } }", id=review)
    assert hidden["errors"][0]["type"] == "NOT_FOUND"
    assert len(bot.get(f"{world.path}/pulls/2/comments").json()) == 2
    assert [one["state"] for one in eve.get(f"{world.path}/pulls/2/reviews").json()] == ["COMMENTED"]
    assert [node["comments"]["totalCount"] for node in scene.page(bot, 10)["nodes"]] == [2, 2]
    body = scene.mutate(
        bot, "submitPullRequestReview", "pullRequestReview { state }", pullRequestReviewId=review, event="COMMENT"
    )
    assert body["data"]["submitPullRequestReview"]["pullRequestReview"] == {"state": "COMMENTED"}
    last = reviews(scene, eve)[-1]
    assert (last["state"], last["body"], last["comments"]["totalCount"]) == ("COMMENTED", "Round one", 2)
    assert last["commit"] == {"oid": scene.pull.pull and scene.pull.pull.head_sha}
    assert last["author"] == {"__typename": "Bot", "login": world.app.slug, "databaseId": world.app.bot.id}
    assert [one["viewerDidAuthor"] for one in reviews(scene, bot)] == [False, True]
    said = [event["review"]["body"] for event in sent(scene, "pull_request_review")]
    assert said == ["Two things", "Round one"]
    lines = sent(scene, "pull_request_review_comment")[-2:]
    assert [line["comment"]["in_reply_to_id"] for line in lines] == [t.comments[0].id for t in scene.threads]
    assert [line["comment"]["pull_request_review_id"] for line in lines] == [int(last["fullDatabaseId"])] * 2


def test_there_is_one_pending_review_for_each_person(scene: Scene) -> None:
    """A second one is refused, over REST too; an answer without its name goes into it; deleted, it is gone."""
    bot, world = scene.world.as_bot(), scene.world
    review = begin(scene, bot)
    again = scene.mutate(bot, "addPullRequestReview", "__typename", pullRequestId=scene.pull_id)
    assert again["errors"][0]["message"] == "User can only have one pending review per pull request"
    first = scene.threads[0].comments[0].id
    refused = bot.post(f"{world.path}/pulls/2/comments/{first}/replies", json={"body": "Hm"})
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["message"] == "user_id can only have one pending review per pull request"
    taken = answer(scene, bot, 0, "Absorbed")["data"]["addPullRequestReviewThreadReply"]["comment"]
    assert taken == {"state": "PENDING", "pullRequestReview": {"id": review}}
    owner = world.as_person(world.owner)
    assert "errors" in scene.mutate(owner, "deletePullRequestReview", "__typename", pullRequestReviewId=review)
    assert "errors" not in scene.mutate(bot, "deletePullRequestReview", "__typename", pullRequestReviewId=review)
    assert [len(thread.comments) for thread in scene.threads] == [1, 1]
    assert [one["state"] for one in reviews(scene, bot)] == ["COMMENTED"]
    gone = scene.mutate(bot, "deletePullRequestReview", "__typename", pullRequestReviewId=review)
    assert gone["errors"][0]["type"] == "NOT_FOUND"


def test_a_review_is_submitted_once(scene: Scene) -> None:
    """By the pull request's id too; a second time, or without words, it is refused, and so is one's own approval."""
    bot = scene.world.as_bot()
    review = begin(scene, bot)
    for event, said in (
        ("COMMENT", "Review body can not be blank"),
        ("APPROVE", "Review Can not approve your own pull request"),
        ("REQUEST_CHANGES", "Review Can not request changes on your own pull request"),
        ("DISMISS", "Can not dismiss a pending pull request review"),
    ):
        body = scene.mutate(bot, "submitPullRequestReview", "__typename", pullRequestReviewId=review, event=event)
        assert (body["errors"][0]["type"], body["errors"][0]["message"]) == ("UNPROCESSABLE", said)
    mine = {"pullRequestId": scene.pull_id, "event": "COMMENT", "body": "Seen"}
    assert "errors" not in scene.mutate(bot, "submitPullRequestReview", "__typename", **mine)
    assert "errors" in scene.mutate(bot, "submitPullRequestReview", "__typename", **mine)
    again = {"pullRequestReviewId": review, "event": "COMMENT", "body": "Seen"}
    body = scene.mutate(bot, "submitPullRequestReview", "__typename", **again)
    assert body["errors"][0]["message"] == "Review has already been submitted."
    late = answer(scene, bot, 0, "Late", pullRequestReviewId=review)
    assert late["errors"][0]["message"] == "Review has already been submitted."


def test_a_review_is_of_a_commit_of_the_pull_request(scene: Scene) -> None:
    """Another commit is refused."""
    for commit in ("f" * 40, "main"):
        body = scene.mutate(
            scene.world.as_bot(), "addPullRequestReview", "__typename", pullRequestId=scene.pull_id, commitOID=commit
        )
        assert body["errors"][0]["message"] == "commit_id is not part of the pull request"


def test_reviews_come_in_pages_and_by_state(scene: Scene) -> None:
    """As GitHub lists them."""
    bot, world = scene.world.as_bot(), scene.world
    world.hub.review(scene.pull, world.person("wendy", "write"), "APPROVED")
    page = scene.data(bot, REVIEWS, id=scene.pull_id, first=1)["node"]["reviews"]
    assert (page["totalCount"], page["pageInfo"]["hasNextPage"]) == (2, True)
    rest = scene.data(bot, REVIEWS, id=scene.pull_id, first=1, after=page["pageInfo"]["endCursor"])["node"]["reviews"]
    assert [one["state"] for one in (*page["nodes"], *rest["nodes"])] == ["COMMENTED", "APPROVED"]
    assert [one["state"] for one in reviews(scene, bot, states=["APPROVED", "DISMISSED"])] == ["APPROVED"]


def test_a_thread_tells_where_it_stands(scene: Scene) -> None:
    """Its lines, its side, who resolved it; of a comment whether it was edited, and whose it is."""
    world, hub = scene.world, scene.world.hub
    world.clock.forward(minutes=1)
    hub.edit_review_comment(scene.threads[0].comments[0], world.owner, "Why plus, though?")
    hub.resolve_thread(scene.threads[1], world.owner)
    hub.commit_files(
        world.repository, world.app.bot, "agent/1", {"src/app.py": "def add(*all):\n    return sum(all)\n"}
    )
    nodes = scene.data(world.as_person(world.owner), DETAILS, id=scene.pull_id)["node"]["reviewThreads"]["nodes"]
    first, second = nodes
    assert (first["line"], first["startLine"], first["originalLine"], first["diffSide"]) == (None, None, 2, "RIGHT")
    assert (first["resolvedBy"], second["resolvedBy"]) == (None, {"login": "acme"})
    comment = first["comments"]["nodes"][0]
    assert (comment["body"], comment["lastEditedAt"]) == ("Why plus, though?", "2026-11-30T12:01:00Z")
    assert comment["diffHunk"].startswith("@@ -1,2 +1,2 @@")
    assert (comment["viewerDidAuthor"], comment["state"]) == (True, "SUBMITTED")
    assert second["comments"]["nodes"][0]["lastEditedAt"] is None


def test_a_deleted_account_has_no_name_in_graphql(scene: Scene) -> None:
    """REST calls it `ghost`, and leaves the user of a review out."""
    world, hub = scene.world, scene.world.hub
    gone = world.person("gone", "write")
    hub.review(scene.pull, gone, "COMMENTED", "Farewell")
    hub.reply(scene.threads[0], gone, "And thanks")
    hub.delete_user(gone)
    bot = world.as_bot()
    assert [one["author"] and one["author"]["login"] for one in reviews(scene, bot)] == ["acme", None, None]
    threads = scene.data(bot, DETAILS, id=scene.pull_id)["node"]["reviewThreads"]["nodes"]
    assert [comment["author"] for comment in threads[0]["comments"]["nodes"]] == [{"login": "acme"}, None]
    listed = bot.get(f"{world.path}/pulls/2/reviews").json()
    assert [one["user"] and one["user"]["login"] for one in listed] == ["acme", None, None]
    spoken = bot.get(f"{world.path}/pulls/2/comments").json()
    assert [(one["user"]["login"], one["user"]["id"]) for one in spoken][-1] == ("ghost", 10137)


@pytest.mark.parametrize("name", ["submitPullRequestReview", "deletePullRequestReview"])
def test_a_pending_review_is_its_author_s_alone(scene: Scene, name: str) -> None:
    """Nobody else, not even an administrator, can find it."""
    review = begin(scene, scene.world.as_bot(), body="Mine")
    given = {"pullRequestReviewId": review, **({"event": "COMMENT"} if name.startswith("submit") else {})}
    body = scene.mutate(scene.world.as_person(scene.world.owner), name, "__typename", **given)
    assert body["errors"][0]["type"] == "NOT_FOUND"
