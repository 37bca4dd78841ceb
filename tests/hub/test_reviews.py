"""Reviews over REST: pending ones, single comments, edits and deletions; each payload is judged by the fixture."""

import json
from typing import Any

import pytest

from bot.testing.hub.records import Issue, Review
from bot.testing.hub.state.reviews import LineComment
from tests.hub.world import World


@pytest.fixture
def pull(world: World) -> Issue:
    """A pull request of the bot that changes one line."""
    world.hub.commit_files(
        world.repository, world.app.bot, "agent/1", {"src/app.py": "def add(a, b):\n    return a + b\n"}
    )
    return world.hub.open_pull(world.repository, world.app.bot, "Fix", head="agent/1")


def sent(world: World, event: str) -> list[tuple[str | None, dict[str, Any]]]:
    """Return action and body of an event's deliveries."""
    return [(delivery.action, json.loads(delivery.body)) for delivery in world.hub.deliveries(event)]


def review(world: World, pull: Issue, **more: Any) -> Review:
    """Let a writer look at the changed line."""
    bob = world.hub.users.get("bob") or world.person("bob", "write")
    return world.hub.review(pull, bob, "COMMENTED", "Hm", [LineComment("src/app.py", 2, "Why?")], **more)


def test_a_single_comment_and_a_single_answer_are_reviews_of_their_own(world: World, pull: Issue) -> None:
    """GitHub sends a review without words beside each."""
    bob, url = world.as_person(world.person("bob", "write")), f"{world.path}/pulls/{pull.number}/comments"
    head = pull.pull and pull.pull.head_sha
    asked = {"path": "src/app.py", "line": 2, "side": "LEFT", "body": "Why not?", "commit_id": head}
    made = bob.post(url, json=asked)
    assert made.status_code == 201
    assert (made.json()["side"], made.json()["diff_hunk"].splitlines()[-1]) == ("LEFT", "-    return a - b")
    world.as_bot().post(f"{url}/{made.json()['id']}/replies", json={"body": "Because"})
    reviews = [(body["review"]["state"], body["review"]["body"]) for _, body in sent(world, "pull_request_review")]
    assert reviews == [("commented", None), ("commented", None)]
    lines = [body["comment"] for _, body in sent(world, "pull_request_review_comment")]
    assert [line.get("in_reply_to_id") for line in lines] == [None, made.json()["id"]]
    assert len({line["pull_request_review_id"] for line in lines}) == 2


@pytest.mark.parametrize(
    "wrong", [{"line": 9}, {"path": "nothing"}, {"side": "UP"}, {"commit_id": "f" * 40}, {"body": " "}]
)
def test_a_comment_needs_a_line_of_the_diff(world: World, pull: Issue, wrong: dict[str, Any]) -> None:
    """Anything else is 422, and leaves nothing behind."""
    good = {"path": "src/app.py", "line": 2, "body": "x", "commit_id": pull.pull and pull.pull.head_sha}
    answer = world.as_bot().post(f"{world.path}/pulls/{pull.number}/comments", json={**good, **wrong})
    assert answer.status_code == 422
    assert pull.pull is not None
    assert (pull.pull.threads, pull.pull.reviews) == ([], [])


def test_what_becomes_of_reviews_is_told(world: World, pull: Issue) -> None:
    """Edited and dismissed reviews, edited and deleted comments, with what stood there before."""
    hub, owner = world.hub, world.owner
    looked = review(world, pull)
    hub.edit_review(looked, looked.user, "Hm!")
    blocked = hub.review(pull, owner, "CHANGES_REQUESTED", "No")
    hub.dismiss_review(blocked, owner)
    assert pull.pull is not None
    comment = pull.pull.threads[0].comments[0]
    hub.edit_review_comment(comment, owner, "Why, please?")
    hub.edit_review_comment(comment, owner, "Why, please?")
    hub.delete_review_comment(comment, owner)
    assert pull.pull.threads == []
    reviews, lines = sent(world, "pull_request_review"), sent(world, "pull_request_review_comment")
    assert [action for action, _ in reviews] == ["submitted", "edited", "submitted", "dismissed"]
    assert reviews[1][1]["changes"] == {"body": {"from": "Hm"}}
    assert reviews[3][1]["review"]["state"] == "dismissed"
    assert [action for action, _ in lines] == ["created", "edited", "deleted"]
    assert lines[1][1]["changes"] == {"body": {"from": "Why?"}}
    assert lines[1][1]["sender"]["login"] == owner.login


def test_people_change_their_own_words_and_writers_those_of_others(world: World, pull: Issue) -> None:
    """As for comments of a conversation."""
    review(world, pull)
    assert pull.pull is not None
    url = f"{world.path}/pulls/comments/{pull.pull.threads[0].comments[0].id}"
    reader = world.as_person(world.person("rita", "read"))
    assert reader.patch(url, json={"body": "x"}).status_code == 403
    assert reader.delete(url).status_code == 403
    assert world.as_person(world.hub.user("bob")).patch(url, json={"body": "x"}).status_code == 200
    assert world.as_person(world.person("wendy", "write")).delete(url).status_code == 204


def test_a_comment_on_an_older_commit_is_outdated_from_the_start(world: World, pull: Issue) -> None:
    """Where the file was changed since."""
    assert pull.pull is not None
    first = pull.pull.head_sha
    world.hub.commit_files(world.repository, world.app.bot, "agent/1", {"src/app.py": "x = 1\n"})
    assert review(world, pull, commit=first).commit_id == first
    assert [thread.outdated for thread in pull.pull.threads] == [True]
    assert pull.pull.threads[0].comments[0].diff_hunk.splitlines()[-1] == "+    return a + b"
