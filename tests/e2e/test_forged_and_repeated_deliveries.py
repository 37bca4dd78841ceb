"""Deliveries that are forged, repeated, late, or about what nobody may start: at most one task, and never a crash."""

import http.client
import json
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import httpx
import jwt
import pytest

from bot.testing.hub.faults import Fault
from bot.testing.hub.records import Comment
from tests.e2e.door import all_settled, kept, minted, part, payload_of, post, settled, sign, tasks
from tests.e2e.stage import Stage, until

pytestmark = pytest.mark.e2e
MOST = 25 * 1024 * 1024


def held_back(stage: Stage, title: str = "The greeting is wrong") -> bytes:
    """Return the body of a labelling whose delivery was lost."""
    stage.hub.hooks.modes.drop = True
    stage.labelled(title)
    assert stage.hub.hooks.wait_idle(10)
    stage.hub.hooks.modes.drop = False
    return stage.hub.deliveries("issues", "labeled")[-1].body


def announced(stage: Stage, length: int) -> int:
    """Announce a body of some length, send none of it, and return the answer's status."""
    connection = http.client.HTTPConnection("127.0.0.1", stage.port, timeout=30)
    connection.putrequest("POST", "/webhook")
    for name, value in {
        "Content-Type": "application/json",
        "X-GitHub-Event": "issues",
        "X-GitHub-Delivery": str(uuid.uuid4()),
        "X-Hub-Signature-256": "sha256=" + "0" * 64,
        "Content-Length": str(length),
    }.items():
        connection.putheader(name, value)
    connection.endheaders()
    status = connection.getresponse().status
    connection.close()
    return status


def in_pieces(stage: Stage, size: int) -> int:
    """Send a body of some size without saying how long it will be; return the answer's status."""

    def pieces() -> Iterator[bytes]:
        left = size
        while left > 0:
            yield b" " * min(left, 1 << 16)
            left -= 1 << 16

    headers = {
        "Content-Type": "application/json",
        "X-GitHub-Event": "issues",
        "X-GitHub-Delivery": str(uuid.uuid4()),
        "X-Hub-Signature-256": "sha256=" + "0" * 64,
    }
    url = f"http://127.0.0.1:{stage.port}/webhook"
    return httpx.post(url, content=pieces(), headers=headers, timeout=30).status_code


def test_what_github_did_not_sign_is_refused_and_leaves_nothing(stage: Stage) -> None:
    """Each forgery gets its 4xx, keeps no row and starts nothing; the true delivery behind them is taken."""
    body = held_back(stage)
    with stage.serving():
        signature = "X-Hub-Signature-256"
        other = Stage.__name__.encode()
        forgeries: list[tuple[bytes, dict[str, str | bytes]]] = [
            (body, {signature: ""}),
            (body, {signature: "sha256=" + "0" * 64}),
            (body, {signature: sign(stage, body + other)}),
            (body, {signature: sign(stage, body).upper()}),
            (body, {signature: sign(stage, body)[:-1]}),
            (body, {signature: "sha256=é".encode()}),
            (body, {signature: "", "X-Hub-Signature": "sha1=" + "0" * 40}),
            (body.replace(b"maria", b"marla"), {signature: sign(stage, body)}),
            (json.dumps(json.loads(body), indent=1).encode(), {signature: sign(stage, body)}),
        ]
        for forged, headers in forgeries:
            answer = post(stage, "issues", forged, headers=headers)
            assert (answer.status_code, answer.json()["error"]) == (401, "bad_signature"), headers
        assert announced(stage, MOST + 1) == 413
        assert in_pieces(stage, MOST + 1) == 413
        bad = b'{"action": "labeled"'
        assert post(stage, "issues", bad).status_code == 400
        assert post(stage, "issues", body, headers={"X-GitHub-Delivery": "a b"}).status_code == 400
        assert post(stage, "issues", body, headers={"Content-Type": "text/plain"}).status_code == 415
        assert kept(stage) == {}
        assert stage.healthy()
        assert minted(stage) == 0
        assert post(stage, "issues", body).status_code == 202
        assert stage.story_ends(1).startswith("**Done**")


def test_one_happening_is_one_task_however_often_it_comes(stage: Stage) -> None:
    """The same delivery twenty times at once, and the same body under new ids: one task with one run."""
    body = held_back(stage)
    with stage.serving():
        guid = str(uuid.uuid4())
        with ThreadPoolExecutor(20) as pool:
            answers = list(pool.map(lambda _: post(stage, "issues", body, guid=guid), range(20)))
        assert {answer.status_code for answer in answers} == {202}
        assert sorted(answer.json()["status"] for answer in answers) == ["accepted", *["duplicate"] * 19]
        again = [post(stage, "issues", body) for _ in range(5)]
        assert [(answer.status_code, answer.json()["status"]) for answer in again] == [(202, "duplicate")] * 5
        stage.story_ends(1)
        assert post(stage, "issues", body).json()["status"] == "duplicate"
        assert [kept_as for kept_as, (state, _) in kept(stage).items() if state == "done"] == [guid]
        (task,) = tasks(stage)
        assert len(task["runs"]) == 1  # type: ignore[arg-type]  # a list, as the API has it
        assert len(stage.pulls()) == 1
        assert len(stage.bot_comments(1)) == 1


def redeliver(stage: Stage, number: int) -> None:
    """Ask GitHub, as the App, to send a delivery once more."""
    now = int(stage.hub.now().timestamp())
    claims = {"iss": str(stage.app.id), "iat": now - 30, "exp": now + 300}
    token = jwt.encode(claims, stage.app.private_key, algorithm="RS256")
    url = f"{stage.hub.api_url}/app/hook/deliveries/{number}/attempts"
    assert httpx.post(url, headers={"Authorization": f"Bearer {token}"}).status_code == 202
    assert stage.hub.hooks.wait_idle(10)


def test_what_came_while_the_server_was_down_is_one_task_when_it_is_sent_again(stage: Stage) -> None:
    """A delivery that met nobody starts its task when GitHub sends it again; a further time it changes nothing."""
    stage.labelled()
    assert stage.hub.hooks.wait_idle(20)
    (lost,) = stage.hub.deliveries("issues", "labeled")
    assert lost.status_code == 502
    with stage.serving():
        redeliver(stage, lost.id)
        stage.story_ends(1)
        redeliver(stage, lost.id)
        sent = stage.hub.deliveries("issues", "labeled")
        assert [delivery.status_code for delivery in sent] == [502, 202, 202]
        assert json.loads(sent[-1].response_body) == {"status": "duplicate"}
        all_settled(stage)
        (task,) = tasks(stage)
        assert len(task["runs"]) == 1  # type: ignore[arg-type]  # a list, as the API has it
        assert len(stage.pulls()) == 1


def test_what_concerns_us_not_is_kept_and_ignored(stage: Stage) -> None:
    """Unknown events, and a labelling without installation: 202, a note for the operator, and not one token."""
    body = held_back(stage)
    with stage.serving():
        answer = post(stage, "star", {"action": "created"})
        assert (answer.status_code, answer.json()["status"]) == (202, "ignored")
        whole = json.loads(body)
        del whole["installation"]
        guid = str(uuid.uuid4())
        assert post(stage, "issues", whole, guid=guid).status_code == 202
        state, note = settled(stage, guid)
        assert (state, "names no installation" in note) == ("ignored", True)
        assert post(stage, "issue_comment", body, guid="crossed").json()["status"] == "ignored"
        assert minted(stage) == 0
        assert tasks(stage) == []
        assert stage.healthy()


def test_a_repository_that_the_operator_does_not_serve_gets_nothing(stage: Stage) -> None:
    """Outside `repositories` no token is made, nothing is asked of GitHub, and nobody reacts."""
    with stage.serving(ISSUEWRIGHT_REPOSITORIES="other/*,acme/shed"):
        issue = stage.labelled()
        comment = stage.hub.comment(issue, stage.maria, "/agent fix")
        assert {state for state, _ in all_settled(stage)} == {"ignored"}
        assert minted(stage) == 0
        assert tasks(stage) == []
        assert (issue.reactions, comment.reactions, stage.bot_comments(1)) == ([], [], [])


def test_bots_start_nothing(stage: Stage) -> None:
    """Our own words, another bot's and another App's on a person's behalf are no commands, whatever they may write."""
    other = stage.hub.create_user("helper[bot]", kind="Bot")
    stage.hub.add_collaborator(stage.repository, other, "write")
    with stage.serving():
        issue = stage.hub.open_issue(stage.repository, stage.maria, "The greeting is wrong", "x")
        for text in ("/agent fix", "Say this:\n\n/agent fix", "/agent help"):
            stage.hub.comment(issue, stage.app.bot, text)
            stage.hub.comment(issue, other, text)
        stage.hub.add_label(issue, other, "agent")
        through = payload_of(stage, "issue_comment", "created")
        comment = part(through, "comment")
        comment["id"], comment["user"] = 990_001, {"id": stage.maria.id, "login": "maria", "type": "User"}
        comment["performed_via_github_app"] = {"id": 4711, "slug": "helper"}
        through["sender"] = comment["user"]
        comment["body"] = "/agent fix"
        assert post(stage, "issue_comment", through).status_code == 202
        assert {state for state, _ in all_settled(stage)} == {"ignored"}
        assert tasks(stage) == []
        assert len(stage.bot_comments(1)) == 3
        assert issue.reactions == []


def test_a_triager_s_label_is_refused_by_name(stage: Stage) -> None:
    """Somebody who may label and not write is told so once, by name; nothing is cloned and no model is asked."""
    tom = stage.hub.create_user("tom")
    stage.hub.add_collaborator(stage.repository, tom, "triage")
    with stage.serving():
        issue = stage.hub.open_issue(stage.repository, tom, "The greeting is wrong", "x")
        stage.hub.add_label(issue, tom, "agent")
        (said,) = until(lambda: stage.bot_comments(1) or None, "the refusal")
        all_settled(stage)
        assert "tom" in said
        assert "needs write access" in said
        assert "`triage`" in said
        assert (tasks(stage), issue.reactions, stage.model.requests) == ([], [], [])


def test_only_the_permission_that_github_tells_counts(stage: Stage) -> None:
    """A payload that calls a reader OWNER is refused; one that calls a writer NONE is obeyed."""
    with stage.serving():
        issue = stage.hub.open_issue(stage.repository, stage.maria, "The greeting is wrong", "x")
        stage.hub.hooks.modes.drop = True
        for who, claimed in ((stage.stranger, "OWNER"), (stage.maria, "NONE")):
            stage.hub.comment(issue, who, "/agent fix")
            assert stage.hub.hooks.wait_idle(10)
            lie = payload_of(stage, "issue_comment", "created")
            part(lie, "comment")["author_association"] = claimed
            part(lie, "issue")["author_association"] = claimed
            guid = str(uuid.uuid4())
            assert post(stage, "issue_comment", lie, guid=guid).status_code == 202
            _, note = settled(stage, guid)
            assert note.startswith("NotAllowed" if claimed == "OWNER" else "new:"), note
        stage.hub.hooks.modes.drop = False
        assert stage.story_ends(1).startswith("**Done**")
        (refusal,) = [body for body in stage.bot_comments(1) if "needs write access" in body]
        assert "stranger" in refusal
        (task,) = tasks(stage)
        assert task["requester"] == "maria"


def test_a_permission_that_github_cannot_tell_is_asked_for_again(stage: Stage) -> None:
    """While the question fails nothing starts and nobody is refused; when GitHub is back, the task starts."""
    stage.hub.faults.add(Fault("status", "GET", "*/collaborators/*/permission", times=6, status=502))
    with stage.serving():
        issue = stage.labelled()
        until(lambda: True if len(stage.hub.faults.hits) >= 5 else None, "five failures")
        assert issue.reactions == []
        assert tasks(stage) == []
        assert stage.healthy()
        assert stage.story_ends(1).startswith("**Done**")
        assert "delivery.again" in stage.whole_log()
        assert len(stage.hub.faults.hits) == 6
        assert len(stage.bot_comments(1)) == 1


def effects(stage: Stage, comment: Comment | None) -> list[object] | None:
    """Return the reactions to a comment, or without one the bot's comments; None where there are none."""
    with stage.hub.lock:
        return list(comment.reactions if comment else stage.bot_comments(1)) or None


def test_an_answer_that_got_lost_is_not_given_twice(stage: Stage) -> None:
    """A worker that dies after GitHub took its reply, and before it knew: the next one finds the reply and the eyes."""
    lost = [("POST", "*/issues/*/comments"), ("POST", "*/issues/comments/*/reactions")]
    issue = stage.hub.open_issue(stage.repository, stage.maria, "The greeting is wrong", "x")
    for number, (method, route) in enumerate(lost):
        stage.hub.faults.clear()
        stage.hub.faults.hits.clear()
        stage.hub.faults.add(Fault("timeout_after", method, route, seconds=1))
        process = stage.spawn()
        try:
            text = "/agent help" if number == 0 else "/agent fix it"
            comment = stage.hub.comment(issue, stage.maria, text)
            until(lambda: stage.hub.faults.hits or None, "the loss")
            until(partial(effects, stage, comment if number else None), "the effect", 10)
        finally:
            process.kill()
            process.wait()
    with stage.serving():
        assert stage.story_ends(1).startswith("**Done**")
        all_settled(stage)
        assert sum("| Comment | What happens |" in body for body in stage.bot_comments(1)) == 1
        until(lambda: True if len(comment.reactions) >= 2 else None, "the rocket", 10)
        assert sorted(reaction.content for reaction in comment.reactions) == ["eyes", "rocket"]
        assert len(stage.pulls()) == 1


def test_the_door_answers_while_work_goes_on(stage: Stage) -> None:
    """GitHub that is slow in answering us does not make us slow in answering GitHub."""
    stage.hub.faults.add(Fault("delay", "GET", "*/collaborators/*/permission", times=1, seconds=8))
    with stage.serving():
        stage.labelled()
        until(lambda: stage.hub.faults.hits or None, "the slow question")
        begun = time.monotonic()
        assert post(stage, "star", {"action": "created"}).status_code == 202
        assert stage.healthy()
        assert time.monotonic() - begun < 6
        assert stage.story_ends(1).startswith("**Done**")
