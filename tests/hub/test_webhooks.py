"""Webhooks: signatures, headers, deliveries, redelivery and unreliable modes."""

import hashlib
import hmac
import json

import httpx

from tests.hub.world import Receiver, World


async def test_a_delivery_is_signed_and_names_itself(world: World, receiver: Receiver) -> None:
    """HMAC of the raw bytes with SHA-256 and SHA-1, event, GUID, hook and target."""
    world.hub.open_issue(world.repository, world.owner, "Füße")
    await world.hub.settled()
    last = receiver.received[-1]
    assert last.headers["x-github-event"] == "issues"
    digest = hmac.new(b"s3cret", last.body, hashlib.sha256).hexdigest()
    assert last.headers["x-hub-signature-256"] == f"sha256={digest}"
    assert last.headers["x-hub-signature"] == "sha1=" + hmac.new(b"s3cret", last.body, hashlib.sha1).hexdigest()
    assert last.headers["x-github-hook-installation-target-id"] == str(world.app.id)
    assert last.headers["x-github-hook-installation-target-type"] == "integration"
    assert last.headers["user-agent"].startswith("GitHub-Hookshot/")
    assert len(last.headers["x-github-delivery"]) == 36
    payload = json.loads(last.body)
    assert payload["issue"]["title"] == "Füße"
    assert payload["installation"]["id"] == world.installation.id
    assert (payload["repository"]["full_name"], payload["sender"]["login"]) == ("acme/web", "acme")


async def test_deliveries_come_in_order(world: World, receiver: Receiver) -> None:
    """First the ping of a fresh App, then the installation, then what happens."""
    issue = world.hub.open_issue(world.repository, world.owner, "Bug", labels=["agent"])
    world.hub.comment(issue, world.owner, "Hello")
    await world.hub.settled()
    events = [(r.headers["x-github-event"], json.loads(r.body).get("action")) for r in receiver.received]
    assert events == [
        ("ping", None),
        ("installation", "created"),
        ("issues", "opened"),
        ("issues", "labeled"),
        ("issue_comment", "created"),
    ]


async def test_a_rest_call_does_not_wait_for_the_receiver(world: World) -> None:
    """The answer comes before a slow receiver has been reached."""
    await world.hub.settled()
    world.hub.hooks.modes.delay_s = 0.3
    assert world.as_bot().post(f"{world.path}/issues", json={"title": "Bug"}).status_code == 201
    assert world.hub.deliveries("issues")[0].status == "pending"
    await world.hub.settled()
    assert world.hub.deliveries("issues")[0].status == "OK"


async def test_a_failed_delivery_is_listed_and_sent_again_only_on_request(world: World, receiver: Receiver) -> None:
    """No retry by itself; a redelivery has the old GUID and bytes and a new id."""
    receiver.status = lambda: 500
    world.hub.open_issue(world.repository, world.owner, "Bug")
    await world.hub.settled()
    app = world.as_app()
    failed = app.get("/app/hook/deliveries", params={"status": "failure"}).json()[0]
    assert (failed["status_code"], failed["event"], failed["redelivery"]) == (500, "issues", False)
    assert len([r for r in receiver.received if r.headers["x-github-event"] == "issues"]) == 1
    receiver.status = lambda: 202
    assert app.post(f"/app/hook/deliveries/{failed['id']}/attempts").status_code == 202
    await world.hub.settled()
    again = app.get("/app/hook/deliveries").json()[0]
    assert (again["guid"], again["redelivery"], again["status"]) == (failed["guid"], True, "OK")
    assert again["id"] != failed["id"]
    first, second = [r for r in receiver.received if r.headers["x-github-event"] == "issues"]
    assert first.body == second.body
    assert first.headers["x-github-delivery"] == second.headers["x-github-delivery"]
    detail = app.get(f"/app/hook/deliveries/{again['id']}").json()
    assert (detail["response"]["payload"], detail["request"]["payload"]["action"]) == ("ok", "opened")


async def test_the_delivery_list_is_newest_first_by_cursor(world: World) -> None:
    """Each page links to the next; the last one does not."""
    for index in range(4):
        world.hub.open_issue(world.repository, world.owner, f"Issue {index}")
    await world.hub.settled()
    app, seen = world.as_app(), []
    answer = app.get("/app/hook/deliveries", params={"per_page": 2})
    while True:
        seen += [item["id"] for item in answer.json()]
        if "next" not in answer.links:
            break
        answer = app.get(answer.links["next"]["url"])
    assert seen == sorted((d.id for d in world.hub.deliveries()), reverse=True)
    assert app.get("/app/hook/deliveries", params={"cursor": "?"}).status_code == 400
    assert app.get("/app/hook/deliveries/1").status_code == 404
    world.clock.forward(days=4)
    old = world.as_app().post(f"/app/hook/deliveries/{seen[0]}/attempts")
    assert old.status_code == 422


async def test_a_dead_receiver_leaves_a_failed_delivery(world: World) -> None:
    """Refused connections are a 502 in the list, slow receivers a 504."""
    world.app.webhook_url = "http://127.0.0.1:1/webhook"
    world.hub.open_issue(world.repository, world.owner, "Bug")
    await world.hub.settled()
    assert [(d.status_code, d.status) for d in world.hub.deliveries("issues")] == [(502, "failed to connect to host")]


async def test_a_slow_receiver_has_failed(world: World, receiver: Receiver) -> None:
    """After the timeout (ten seconds, here less) the delivery is a 504, although the receiver got it."""
    await world.hub.settled()
    assert world.hub.hooks.modes.timeout_s == 10
    receiver.delay_s, world.hub.hooks.modes.timeout_s = 0.5, 0.1
    world.hub.open_issue(world.repository, world.owner, "Bug")
    await world.hub.settled()
    assert [(d.status_code, d.status) for d in world.hub.deliveries("issues")] == [(504, "timed out")]
    assert receiver.received[-1].headers["x-github-event"] == "issues"


async def test_unreliable_modes_copy_hold_back_and_lose(world: World, receiver: Receiver) -> None:
    """Duplicates keep the GUID, held deliveries come newest first, lost ones are listed as failed."""
    await world.hub.settled()
    modes, hub = world.hub.hooks.modes, world.hub
    modes.copies = 2
    hub.open_issue(world.repository, world.owner, "Twice")
    await hub.settled()
    first, second = receiver.received[-2:]
    assert first.headers["x-github-delivery"] == second.headers["x-github-delivery"]
    modes.copies, modes.hold = 1, 3
    issue = hub.open_issue(world.repository, world.owner, "Held")
    hub.comment(issue, world.owner, "one")
    before = len(receiver.received)
    await hub.settled()
    assert len(receiver.received) == before
    hub.comment(issue, world.owner, "two")
    await hub.settled()
    texts = [json.loads(r.body).get("comment", {}).get("body", "opened") for r in receiver.received[before:]]
    assert texts == ["two", "one", "opened"]
    modes.hold, modes.drop = 0, True
    hub.open_issue(world.repository, world.owner, "Lost")
    await hub.settled()
    assert (len(receiver.received), hub.deliveries()[-1].status_code) == (before + 3, 502)


async def test_an_app_hears_only_what_it_may(world: World) -> None:
    """Nothing from other repositories, nothing unsubscribed, nothing while suspended."""
    other = world.hub.create_repository(world.owner, "other", files={"a": "b"})
    world.hub.open_issue(other, world.owner, "Elsewhere")
    assert world.hub.deliveries("issues") == []
    world.app.events.remove("issues")
    world.hub.open_issue(world.repository, world.owner, "Unheard")
    assert world.hub.deliveries("issues") == []
    world.app.events.append("issues")
    world.hub.suspend(world.installation, world.owner)
    world.hub.open_issue(world.repository, world.owner, "Suspended")
    assert world.hub.deliveries("issues") == []
    world.hub.unsuspend(world.installation, world.owner)
    world.hub.uninstall(world.installation, world.owner)
    actions = [d.action for d in world.hub.deliveries("installation")]
    assert actions == ["created", "suspend", "unsuspend", "deleted"]


async def test_installed_repositories_come_and_go_with_events(world: World) -> None:
    """`installation_repositories` added and removed."""
    other = world.hub.create_repository(world.owner, "other", files={"a": "b"})
    world.hub.change_repositories(world.installation, world.owner, add=[other])
    world.hub.change_repositories(world.installation, world.owner, remove=[world.repository])
    events = [json.loads(d.body) for d in world.hub.deliveries("installation_repositories")]
    assert [e["repositories_added"] and e["repositories_added"][0]["name"] for e in events] == ["other", []]
    assert [e["repositories_removed"] and e["repositories_removed"][0]["name"] for e in events] == [[], "web"]


async def test_every_event_the_bot_lives_from_is_sent_and_valid(world: World) -> None:
    """All actions of the description that the hub promises; the fixture judges each payload."""
    hub, repository, owner = world.hub, world.repository, world.owner
    bob = world.person("bob", "write")
    issue = hub.open_issue(repository, owner, "Bug", "text", ["agent"])
    hub.edit_issue(issue, owner, title="Bug!", body="new")
    hub.remove_label(issue, owner, "agent")
    hub.close_issue(issue, owner, "not_planned")
    hub.reopen_issue(issue, owner)
    comment = hub.comment(issue, world.app.bot, "Hi")
    hub.edit_comment(comment, world.app.bot, "Hi!")
    hub.delete_comment(comment, world.app.bot)
    hub.commit_files(repository, owner, "fix", {"src/app.py": "x = 1\n"})
    pull = hub.open_pull(repository, world.app.bot, "Fix", head="fix", draft=True)
    hub.add_label(pull, owner, "bug")
    hub.remove_label(pull, owner, "bug")
    hub.set_draft(pull, owner, draft=False)
    hub.set_draft(pull, owner, draft=True)
    hub.set_draft(pull, owner, draft=False)
    hub.edit_issue(pull, owner, body="More")
    hub.comment(pull, bob, "/agent fix")
    walk_review(world, pull, bob)
    sha = hub.commit_files(repository, owner, "fix", {"src/app.py": "x = 2\n"})
    run = hub.create_check_run(repository, world.app, "agent", sha)
    hub.update_check_run(run, {"status": "in_progress", "title": "t", "summary": "s"})
    hub.update_check_run(run, {"conclusion": "success"})
    hub.rerequest_check(run, bob)
    hub.finish_job(hub.run_workflow(repository, bob, sha, ["test"]).jobs[0], "failure", "red")
    hub.close_issue(pull, owner)
    hub.reopen_issue(pull, owner)
    hub.merge_pull(pull, owner)
    hub.move_ref(repository, owner, "refs/heads/fix", None)
    sent = {f"{d.event}.{d.action}" if d.action else d.event for d in hub.deliveries()}
    assert sent == EVENTS


def walk_review(world: World, pull: object, bob: object) -> None:
    """Review, answer, resolve and unresolve."""
    from bot.testing.hub.records import Issue, User  # noqa: PLC0415 -- only for the narrowing below

    assert isinstance(pull, Issue)
    assert isinstance(bob, User)
    hub = world.hub
    client = world.as_person(bob)
    body = {"event": "REQUEST_CHANGES", "body": "No", "comments": [{"path": "src/app.py", "line": 1, "body": "why"}]}
    assert client.post(f"{world.path}/pulls/{pull.number}/reviews", json=body).status_code == 200
    assert pull.pull is not None
    thread = pull.pull.threads[0]
    hub.reply(thread, world.app.bot, "Because")
    hub.resolve_thread(thread, bob)
    hub.resolve_thread(thread, bob)
    hub.unresolve_thread(thread, bob)


EVENTS = {
    "ping",
    "installation.created",
    "issues.opened",
    "issues.edited",
    "issues.labeled",
    "issues.unlabeled",
    "issues.closed",
    "issues.reopened",
    "issue_comment.created",
    "issue_comment.edited",
    "issue_comment.deleted",
    "pull_request.opened",
    "pull_request.edited",
    "pull_request.labeled",
    "pull_request.unlabeled",
    "pull_request.ready_for_review",
    "pull_request.converted_to_draft",
    "pull_request.synchronize",
    "pull_request.closed",
    "pull_request.reopened",
    "pull_request_review.submitted",
    "pull_request_review_comment.created",
    "pull_request_review_thread.resolved",
    "pull_request_review_thread.unresolved",
    "push",
    "check_run.created",
    "check_run.completed",
    "check_run.rerequested",
    "check_suite.completed",
    "workflow_run.completed",
}


async def test_a_change_of_the_webhook_counts_at_once(world: World, receiver: Receiver) -> None:
    """A new secret signs the next delivery; the old one is never shown."""
    app = world.as_app()
    assert app.get("/app/hook/config").json()["secret"] == "********"
    app.patch("/app/hook/config", json={"secret": "other"})
    world.hub.open_issue(world.repository, world.owner, "Bug")
    await world.hub.settled()
    last = receiver.received[-1]
    assert last.headers["x-hub-signature-256"] == "sha256=" + hmac.new(b"other", last.body, hashlib.sha256).hexdigest()
    assert isinstance(app, httpx.Client)
