"""Signatures, decoding, and what a body means."""

import hashlib
import hmac
import json
import os
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from bot.domain.refs import Actor, RepositoryRef, ThreadRef
from bot.domain.trigger import (
    Closed,
    Commented,
    Edited,
    Labelled,
    Pushed,
    ReviewDismissed,
    Reviewed,
    ThreadCommented,
    Trigger,
    Unlabelled,
)
from bot.github.payloads import BadPayload, parse
from bot.github.payloads import Label as LabelPayload
from bot.github.webhooks import decode, is_authentic, to_trigger

BODY = b'{"zen": "k\xc3\xa4se"}'
ROOT = Path(__file__).parents[3]


def sign(body: bytes, secret: bytes, algorithm: str = "sha256") -> bytes:
    """Sign as GitHub does."""
    return f"{algorithm}={hmac.new(secret, body, getattr(hashlib, algorithm)).hexdigest()}".encode()


# --- signature --------------------------------------------------------------------------------------------------------


def test_github_s_own_example_is_authentic() -> None:
    """Source: https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries."""
    header = b"sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    assert is_authentic(b"Hello, World!", header, [b"It's a Secret to Everybody"])


GOOD = sign(BODY, b"one")


@pytest.mark.parametrize(
    "header",
    [
        None,
        b"",
        b"sha256=",
        GOOD[:-1],
        GOOD + b"0",
        GOOD.upper(),
        b"sha256=" + GOOD[7:].upper(),
        GOOD[7:],
        b" " + GOOD,
        sign(BODY, b"two"),
        sign(BODY, b""),
        sign(BODY, b"one", "sha1"),
        b"sha1=" + GOOD[7:],
        "sha256=é".encode(),
        b"sha256=\xff\xfe",
    ],
)
def test_a_forged_signature_is_not(header: bytes | None) -> None:
    """S1, S2: and none of them raises."""
    assert not is_authentic(BODY, header, [b"one"])


def test_the_raw_bytes_count() -> None:
    """S3: one flipped bit, or the same JSON written anew."""
    assert is_authentic(BODY, GOOD, [b"one"])
    assert not is_authentic(BODY[:-1] + b"|", GOOD, [b"one"])
    assert not is_authentic(json.dumps(json.loads(BODY)).encode(), GOOD, [b"one"])


def test_secrets_are_replaced_without_a_gap() -> None:
    """S13: old and new within the window, the old one not after it; no secret means nobody."""
    assert is_authentic(BODY, GOOD, [b"new", b"one"])
    assert is_authentic(BODY, sign(BODY, b"new"), [b"new", b"one"])
    assert not is_authentic(BODY, GOOD, [b"new"])
    assert not is_authentic(BODY, GOOD, [])
    assert not is_authentic(BODY, sign(BODY, b""), [b""])


# --- decoding ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe{}",
        b"\x1f\x8b\x08\x00",
        b"[" * 100_000,
        b'{"issue":' * 100_000,
        b'{"unread":' + b"[" * 100_000,
        b'{"action": NaN}',
        b'{"action": "\\ud800"}',
        b'{"sender": "ada"}',
        b'{"issue": {"number": "1"}}',
        b'{"issue": {"number": 1e400}}',
        b'{"issue": {"number": ' + b"9" * 1_000_000 + b"}}",
        b"payload=%7B%7D",
    ],
)
def test_a_bad_body_is_a_bad_payload(body: bytes) -> None:
    """S5: an error that the receiver answers with 400, whatever is thrown at it."""
    with pytest.raises(BadPayload):
        decode(body)
    assert issubclass(BadPayload, ValueError)


def test_what_we_do_not_read_may_be_anything() -> None:
    """Unknown fields, doubled ones, and huge numbers beside what we read."""
    payload = decode(b'{"action": "a", "action": "b", "new": {"x": [1, ' + b"9" * 10_000 + b"]}}")
    assert payload.action == "b"


def examples() -> list[tuple[str, dict[str, Any]]]:
    """Read GitHub's own example payloads."""
    shared = Path(os.environ.get("SHARED_DIR", str(ROOT.parent / "shared")))
    path = shared / "data/webhooks/api.github.com.json"
    if not path.is_file():
        if os.environ.get("REQUIRE_SHARED") == "1":
            pytest.fail(f"REQUIRE_SHARED=1, and there is no {path}")
        pytest.skip(f"the example payloads are not there: {path} (set SHARED_DIR)")
    return [(event["name"], example) for event in json.loads(path.read_bytes()) for example in event["examples"]]


def test_all_of_github_s_example_payloads_decode() -> None:
    """329 of them, of 58 events; those that start or end something become triggers."""
    payloads = examples()
    assert len(payloads) == 329
    found: list[str] = []
    for event, example in payloads:
        trigger = to_trigger(event, decode(json.dumps(example).encode()))
        if trigger is not None:
            found.append(f"{event}.{example.get('action')} {type(trigger).__name__}")
            assert trigger.context.thread.repository.full_name == example["repository"]["full_name"]
    assert {line: found.count(line) for line in found} == {
        "check_suite.completed CiFinished": 4,
        "issue_comment.created Commented": 5,
        "issue_comment.edited Edited": 2,
        "issues.labeled Labelled": 2,
        "issues.unlabeled Unlabelled": 2,
        "pull_request.closed Closed": 2,
        "pull_request.labeled Labelled": 2,
        "pull_request.synchronize Pushed": 1,
        "pull_request.unlabeled Unlabelled": 2,
        "pull_request_review.dismissed ReviewDismissed": 1,
        "pull_request_review.submitted Reviewed": 3,
        "pull_request_review_comment.created ThreadCommented": 3,
        "pull_request_review_comment.edited Edited": 1,
        "status.None CiFinished": 4,
        "workflow_run.completed CiFinished": 3,
    }


def test_every_example_of_a_review_becomes_its_trigger() -> None:
    """All that is in the body is there, of each review, comment on a line and edit that GitHub itself gives."""
    seen: list[type] = []
    for event, example in examples():
        kind = (event, example.get("action"))
        made = to_trigger(event, decode(json.dumps(example).encode()))
        if kind == ("pull_request_review", "submitted"):
            review = example["review"]
            assert isinstance(made, Reviewed)
            assert (made.review_id, made.state, made.commit) == (review["id"], "COMMENTED", review["commit_id"])
            assert made.text == (review["body"] or "")
            assert made.at == datetime.fromisoformat(review["submitted_at"])
            assert made.context.event_key == f"review:{example['repository']['id']}:{review['id']}"
        elif kind == ("pull_request_review_comment", "created"):
            said = example["comment"]
            assert isinstance(made, ThreadCommented)
            assert (made.comment_id, made.thread_root_id, made.text) == (said["id"], said["id"], said["body"])
            assert (made.review_id, made.path) == (said["pull_request_review_id"], said["path"])
            assert (made.line, made.via_app) == (said.get("line"), False)
            assert made.at == datetime.fromisoformat(said["updated_at"])
        elif kind[1] == "edited" and event in ("issue_comment", "pull_request_review_comment"):
            assert isinstance(made, Edited)
            assert (made.comment_id, made.text) == (example["comment"]["id"], example["comment"]["body"])
            assert made.before == example["changes"]["body"]["from"]
            assert made.on_line is (event == "pull_request_review_comment")
        else:
            assert not isinstance(made, Reviewed | ThreadCommented | Edited)
            continue
        seen.append(type(made))
        subject = example.get("pull_request") or example["issue"]
        thread = made.context.thread
        assert (thread.number, thread.repository.id) == (subject["number"], example["repository"]["id"])
        assert made.context.actor == Actor(example["sender"]["id"], example["sender"]["login"])
    assert {kind: seen.count(kind) for kind in seen} == {Reviewed: 3, ThreadCommented: 3, Edited: 3}


# --- meaning ----------------------------------------------------------------------------------------------------------

USER: dict[str, Any] = {"id": 1, "login": "ada", "type": "User"}


def body(action: str, **more: Any) -> dict[str, Any]:
    """Make a body about issue 7 of ada/engine; a pull request takes the issue's place where given."""
    made: dict[str, Any] = {
        "action": action,
        "sender": USER,
        "repository": {"id": 5, "full_name": "ada/engine", "default_branch": "main", "private": False},
        "installation": {"id": 77},
        "issue": {
            "id": 70,
            "number": 7,
            "title": "It breaks",
            "body": "When I press it.",
            "user": {"id": 2, "login": "grace", "type": "User"},
            "updated_at": "2026-11-30T12:00:00Z",
        },
        "label": {"id": 9, "name": "agent"},
    }
    return {key: value for key, value in {**made, **more}.items() if value is not ...}


def trigger(event: str, body: dict[str, Any], **more: Any) -> Trigger | None:
    """Send a body through."""
    return to_trigger(event, decode(json.dumps(body).encode()), **more)


def comment(**more: Any) -> dict[str, Any]:
    """Make the body of a new comment."""
    return body("created", label=..., comment={"id": 33, "body": "/agent fix", "user": USER, **more})


def test_a_label_tells_all_that_a_task_needs() -> None:
    """Who, where, which label, and the thread's own words as of then."""
    made = trigger("issues", body("labeled"))
    assert isinstance(made, Labelled)
    assert made.label == "agent"
    context = made.context
    assert context.actor == Actor(1, "ada")
    assert context.author == Actor(2, "grace")
    assert context.installation_id == 77
    assert context.thread == ThreadRef(RepositoryRef(5, "ada/engine", "main"), 7, "issue")
    assert (context.title, context.body) == ("It breaks", "When I press it.")


def test_a_comment_on_a_pull_request_knows_it() -> None:
    """GitHub sends both kinds as `issue_comment`."""
    made = trigger("issue_comment", comment())
    assert isinstance(made, Commented)
    assert (made.comment_id, made.text, made.via_app, made.context.thread.kind) == (33, "/agent fix", False, "issue")
    payload = comment()
    payload["issue"]["pull_request"] = {"url": "x"}
    made = trigger("issue_comment", payload)
    assert made is not None
    assert made.context.thread.kind == "pull"


def test_endings() -> None:
    """A label taken away and a closed thread, of issues and pull requests."""
    pull = {"number": 8, "title": "P", "head": {"ref": "b", "sha": "s", "repo": None}, "user": None}
    assert isinstance(trigger("issues", body("unlabeled")), Unlabelled)
    assert isinstance(trigger("issues", body("closed")), Closed)
    for action, made in (("labeled", Labelled), ("unlabeled", Unlabelled), ("closed", Closed)):
        found = trigger("pull_request", body(action, issue=..., pull_request=pull))
        assert isinstance(found, made)
        assert (found.context.thread.number, found.context.thread.kind, found.context.author) == (8, "pull", None)


@pytest.mark.parametrize(
    ("event", "payload"),
    [
        ("issue_comment", {**comment(), "action": "deleted"}),
        ("issues", body("opened")),
        ("issues", body("reopened")),
        ("issues", body("transferred")),
        ("issues", body("labeled", label=...)),
        ("issues", body("labeled", label={"id": 1})),
        ("issues", body("labeled", issue=...)),
        ("issues", body("labeled", issue={"title": "no number"})),
        ("issues", body("labeled", repository=...)),
        ("issues", body("labeled", repository={"id": 5})),
        ("issue_comment", body("created", comment=...)),
        ("issue_comment", comment(id=None)),
        ("pull_request", body("labeled")),
        ("issues", comment()),
        ("issue_comment", body("labeled")),
        ("pull_request_review_comment", comment()),
        ("ping", {"zen": "Keep it logically awesome."}),
        ("made_up", body("labeled")),
        ("", {}),
    ],
)
def test_everything_else_starts_nothing(event: str, payload: dict[str, Any]) -> None:
    """S10, S11, S23: other events and actions, missing parts, a body under another event's name."""
    assert trigger(event, payload) is None


PULL: dict[str, Any] = {"number": 8, "title": "P", "body": "B", "user": {"id": 2, "login": "grace", "type": "User"}}


def on_pull(action: str, **more: Any) -> dict[str, Any]:
    """Make a body about pull request 8."""
    return body(action, issue=..., label=..., pull_request=PULL, **more)


def review(**more: Any) -> dict[str, Any]:
    """Make the body of a new review."""
    made = {"id": 44, "state": "changes_requested", "body": "No", "commit_id": "c0ffee", "user": USER, **more}
    return on_pull("submitted", review=made)


def line(action: str = "created", **more: Any) -> dict[str, Any]:
    """Make the body of a comment on a line."""
    made = {"id": 33, "body": "Why?", "user": USER, "path": "a.py", "line": 3, "pull_request_review_id": 44, **more}
    return on_pull(action, comment=made)


def edited(event: str = "issue_comment", **more: Any) -> tuple[str, dict[str, Any]]:
    """Make the body of an edit of a comment, in the conversation or on a line."""
    before = {"changes": {"body": {"from": "Wy?"}}}
    made = line("edited", **more) if event.startswith("pull") else {**comment(**more), "action": "edited"}
    return event, {**made, **before}


@pytest.mark.parametrize("state", ["approved", "changes_requested", "commented"])
def test_a_review_tells_its_state_and_commit(state: str) -> None:
    """As the API writes states; a review without words has an empty text."""
    made = trigger("pull_request_review", review(state=state, body=None))
    assert isinstance(made, Reviewed)
    assert (made.review_id, made.state, made.text, made.commit) == (44, state.upper(), "", "c0ffee")
    assert made.via_app is False
    thread = made.context.thread
    assert (thread.number, thread.kind, made.context.title, made.context.body) == (8, "pull", "P", "B")
    assert made.context.author == Actor(2, "grace")


def test_a_comment_on_a_line_tells_its_thread_and_place() -> None:
    """An answer names the first comment; without a line it is about a whole file, or outdated."""
    made = trigger("pull_request_review_comment", line())
    assert isinstance(made, ThreadCommented)
    assert (made.comment_id, made.thread_root_id, made.review_id) == (33, 33, 44)
    assert (made.text, made.path, made.line, made.via_app) == ("Why?", "a.py", 3, False)
    made = trigger("pull_request_review_comment", line(in_reply_to_id=11, line=None, pull_request_review_id=None))
    assert isinstance(made, ThreadCommented)
    assert (made.comment_id, made.thread_root_id, made.review_id, made.line) == (33, 11, None, None)


def test_an_edit_tells_what_was_there() -> None:
    """Of the conversation and on lines, which are counted apart."""
    for event, on_line in (("issue_comment", False), ("pull_request_review_comment", True)):
        made = trigger(*edited(event))
        assert isinstance(made, Edited)
        text = "Why?" if on_line else "/agent fix"
        assert (made.comment_id, made.on_line, made.text, made.before) == (33, on_line, text, "Wy?")
    made = trigger("issue_comment", {**comment(), "action": "edited", "changes": {}})
    assert isinstance(made, Edited)
    assert made.before is None


def test_a_dismissed_review_is_another_happening_than_its_submission() -> None:
    """Else it would pass for a delivery that came before."""
    given = trigger("pull_request_review", review())
    gone = trigger("pull_request_review", {**review(state="dismissed"), "action": "dismissed"})
    assert isinstance(given, Reviewed)
    assert isinstance(gone, ReviewDismissed)
    assert gone.review_id == given.review_id
    assert gone.context.event_key == f"{given.context.event_key}:dismissed"


@pytest.mark.parametrize(
    ("event", "payload"),
    [
        ("pull_request_review", review(state="dismissed")),
        ("pull_request_review", review(state="pending")),
        ("pull_request_review", review(state="made_up")),
        ("pull_request_review", review(state=None)),
        ("pull_request_review", review(id=None)),
        ("pull_request_review", {**review(), "action": "edited"}),
        ("pull_request_review", on_pull("submitted")),
        ("pull_request_review", {**review(), "pull_request": None}),
        ("pull_request_review", line()),
        ("pull_request_review_comment", review()),
        ("pull_request_review_comment", line(id=None)),
        ("pull_request_review_comment", line("deleted")),
        ("pull_request_review_comment", on_pull("created")),
        ("pull_request_review_comment", on_pull("edited")),
        ("pull_request_review_thread", on_pull("resolved", thread={"node_id": "x", "comments": []})),
        ("issue_comment", line()),
        ("issue_comment", line("edited")),
        ("pull_request", review()),
    ],
)
def test_other_reviews_start_nothing(event: str, payload: dict[str, Any]) -> None:
    """Other actions and states, missing parts, and one event's body under another's name."""
    assert trigger(event, payload) is None


def pushed(sha: str | None = "c0ffee", **more: Any) -> dict[str, Any]:
    """Make the body that tells of new commits."""
    head = {"ref": "b", "sha": sha, "repo": None}
    return body("synchronize", **{"issue": ..., "label": ..., "pull_request": PULL | {"head": head}, **more})


def test_a_push_to_a_pull_request_tells_where_it_stands() -> None:
    """The same one delivered twice is one happening; another one is another, also where it moves the branch back."""
    made = trigger("pull_request", pushed(before="beef", after="c0ffee"))
    assert isinstance(made, Pushed)
    assert (made.head_sha, made.before, made.context.event_key) == ("c0ffee", "beef", "push:5:8::c0ffee")
    assert (made.context.thread.number, made.context.thread.kind) == (8, "pull")
    later = trigger("pull_request", pushed("decaf", pull_request=PULL | {"head": {"sha": "decaf"}, "updated_at": "2"}))
    assert isinstance(later, Pushed)
    assert (later.before, later.context.event_key) == ("", "push:5:8:2:decaf")


def test_a_push_without_a_head_or_of_ours_is_no_trigger() -> None:
    """Nothing can be checked where no commit is named; and one event's body under another's name is nothing."""
    assert trigger("pull_request", pushed(None)) is None
    assert trigger("pull_request", pushed(pull_request={"number": 8})) is None
    assert trigger("pull_request_review", pushed()) is None
    assert trigger("issues", pushed()) is None
    us = {"id": 900, "login": "issuewright[bot]", "type": "Bot"}
    assert trigger("pull_request", pushed(sender=us), own_user_ids={900}) is None


def test_our_own_reviews_and_answers_are_no_triggers() -> None:
    """As our own comments are none; an edit of ours by somebody else is one, since it is no longer what we said."""
    us, app = {"id": 900, "login": "issuewright[bot]", "type": "Bot"}, {"id": 4821}
    for event, made in (("pull_request_review", review), ("pull_request_review_comment", line)):
        assert trigger(event, made(user=us), own_user_ids={900}) is None
        assert trigger(event, made(performed_via_github_app=app), own_app_id=4821) is None
        assert trigger(event, {**made(), "sender": us}, own_user_ids={900}) is None
        other = trigger(event, made(performed_via_github_app={"id": 1}), own_app_id=4821)
        assert isinstance(other, Reviewed | ThreadCommented)
        assert other.via_app
    event, payload = edited(user=us, performed_via_github_app=app)
    assert trigger(event, {**payload, "sender": us}, own_app_id=4821) is None
    assert trigger(event, {**payload, "sender": us}, own_user_ids={900}) is None
    for known in ({"own_app_id": 4821}, {"own_user_ids": {900}}):
        assert isinstance(trigger(event, payload, **known), Edited)


def test_missing_people_and_words_are_tolerated() -> None:
    """Deleted accounts are null, and a comment or issue may have no text; Actions has no installation."""
    payload = comment(body=None, user=None)
    payload["issue"] |= {"body": None, "title": None, "user": None}
    made = trigger("issue_comment", {**payload, "sender": None, "installation": None})
    assert isinstance(made, Commented)
    assert made.text == made.context.title == made.context.body == ""
    assert (made.context.actor, made.context.author, made.context.installation_id) == (None, None, None)


def test_a_bot_is_one_by_type_alone() -> None:
    """S18: people may call themselves what they like."""
    for login, kind, is_bot in (("dependabot", "User", False), ("x[bot]", "User", False), ("x[bot]", "Bot", True)):
        made = trigger("issues", body("labeled", sender={"id": 4, "login": login, "type": kind}))
        assert made is not None
        assert made.context.actor == Actor(4, login, is_bot=is_bot)


def test_our_own_acts_are_no_triggers() -> None:
    """S22: by numeric id, whether as the bot or through the App on somebody's behalf."""
    app = {"id": 4821, "slug": "issuewright"}
    assert trigger("issue_comment", comment(performed_via_github_app=app), own_app_id=4821) is None
    assert trigger("issue_comment", comment(user={"id": 900, "login": "b"}), own_user_ids={900}) is None
    mine = {"id": 900, "login": "issuewright[bot]", "type": "Bot"}
    for event, payload in (("issues", body("labeled")), ("issues", body("closed")), ("issue_comment", comment())):
        assert trigger(event, {**payload, "sender": mine}, own_user_ids={900}) is None
        assert trigger(event, payload, own_app_id=4821, own_user_ids={900}) is not None
    other = trigger("issue_comment", comment(performed_via_github_app={"id": 1}), own_app_id=4821)
    assert isinstance(other, Commented)
    assert other.via_app


def key(event: str, payload: dict[str, Any]) -> str:
    """Name the happening."""
    made = trigger(event, payload)
    assert made is not None
    return made.context.event_key


def test_the_key_names_the_happening() -> None:
    """S7: the same body gives the same key; the label added again later, another one."""
    assert key("issue_comment", comment()) == "comment:5:33"
    first = key("issues", body("labeled"))
    assert first == key("issues", body("labeled")) == "label:5:7:labeled:2026-11-30T12:00:00Z:9"
    later = body("labeled")
    later["issue"]["updated_at"] = "2026-11-30T12:00:05Z"
    keys = {
        first,
        key("issues", later),
        key("issues", body("unlabeled")),
        key("issues", body("closed")),
        key("issues", body("labeled", label={"id": 10, "name": "agent"})),
        key("issues", body("labeled", label={"name": "agent"})),
        key("issues", body("labeled", repository={"id": 6, "full_name": "ada/engine"})),
        key("issue_comment", comment()),
    }
    assert len(keys) == 8


def test_reviews_comments_and_edits_have_keys_of_their_own() -> None:
    """A comment on a line may have the number of one in the conversation; a text edited twice is two happenings."""
    later = edited(updated_at="2026-11-30T12:00:05Z")
    keys = [
        key("issue_comment", comment()),
        key("pull_request_review", review()),
        key("pull_request_review_comment", line()),
        key(*edited()),
        key(*edited(body="x")),
        key(*later),
        key(*edited("pull_request_review_comment")),
    ]
    assert keys[1:3] == ["review:5:44", "line:5:33"]
    assert len(set(keys)) == len(keys)
    assert key(*later) == key(*edited(updated_at="2026-11-30T12:00:05Z"))


def test_a_repository_is_private_until_it_is_said_to_be_public() -> None:
    """What is not said cannot leak."""
    made = trigger("issues", body("labeled", repository={"id": 5, "full_name": "ada/engine"}))
    assert made is not None
    assert made.context.thread.repository.private
    assert parse(b'{"name": "x", "id": null}', LabelPayload).name == "x"
