"""Pull requests and reviews: refusals, forks, threads, heads, merging."""

import pytest

from bot.testing.hub.errors import HubError
from bot.testing.hub.records import Issue
from tests.hub.world import World


@pytest.fixture
def pull(world: World) -> Issue:
    """An open pull request of the bot that changes one line."""
    world.hub.commit_files(
        world.repository, world.app.bot, "agent/1", {"src/app.py": "def add(a, b):\n    return a + b\n"}
    )
    return world.hub.open_pull(world.repository, world.app.bot, "Fix", head="agent/1", body="Closes #1")


def test_a_second_pull_request_for_a_branch_is_refused(world: World, pull: Issue) -> None:
    """422 in GitHub's words; after closing the first it works."""
    bot, asked = world.as_bot(), {"title": "x", "head": "agent/1", "base": "main"}
    answer = bot.post(f"{world.path}/pulls", json=asked)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["message"] == "A pull request already exists for acme:agent/1."
    bot.patch(f"{world.path}/pulls/{pull.number}", json={"state": "closed"})
    assert bot.post(f"{world.path}/pulls", json=asked).status_code == 201
    assert bot.patch(f"{world.path}/pulls/{pull.number}", json={"state": "weird"}).status_code == 422


def test_a_repository_may_have_no_drafts(world: World) -> None:
    """422 in GitHub's words, and nothing is opened; without the wish for a draft it works."""
    bot, asked = world.as_bot(), {"title": "x", "head": "agent/1", "base": "main", "draft": True}
    world.hub.commit_files(world.repository, world.app.bot, "agent/1", {"a": "b"})
    world.repository.drafts = False
    answer = bot.post(f"{world.path}/pulls", json=asked)
    assert (answer.status_code, answer.json()["message"]) == (
        422,
        "Draft pull requests are not supported in this repository.",
    )
    assert bot.get(f"{world.path}/pulls").json() == []
    assert bot.post(f"{world.path}/pulls", json=asked | {"draft": False}).status_code == 201


def test_a_pull_request_needs_commits_and_branches(world: World) -> None:
    """422 for no commits and for unknown branches."""
    bot = world.as_bot()
    world.hub.move_ref(
        world.repository, world.owner, "refs/heads/same", world.hub.git(world.repository).resolve("main")
    )
    same = bot.post(f"{world.path}/pulls", json={"title": "x", "head": "same", "base": "main"}).json()
    assert same["errors"][0]["message"] == "No commits between main and same"
    for head, base, field in (("nope", "main", "head"), ("same", "nope", "base"), ("bob:x", "main", "head")):
        answer = bot.post(f"{world.path}/pulls", json={"title": "x", "head": head, "base": base})
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, field)


def test_pull_requests_are_found_by_head_base_and_state(world: World, pull: Issue) -> None:
    """`head` needs its owner; without one it filters nothing, as on GitHub."""
    bot, url = world.as_bot(), f"{world.path}/pulls"

    def numbers(**query: str) -> list[int]:
        return [item["number"] for item in bot.get(url, params=query).json()]

    assert numbers(head="acme:agent/1") == [pull.number]
    assert numbers(head="acme:other") == []
    assert numbers(head="other") == [pull.number]
    assert numbers(base="other") == []
    assert numbers(state="closed") == []


def test_a_fork_s_pull_request_shows_its_own_head(world: World) -> None:
    """`owner:branch` of a fork; its commits can be read from the base repository; its pushes synchronise."""
    bob = world.person("bob")
    fork = world.hub.fork(world.repository, bob)
    world.hub.commit_files(fork, bob, "idea", {"x": "1"})
    client = world.as_person(bob)
    answer = client.post(f"{world.path}/pulls", json={"title": "Idea", "head": "bob:idea", "base": "main"})
    assert answer.status_code == 201
    assert answer.json()["head"]["repo"]["full_name"] == "bob/web"
    assert answer.json()["head"]["label"] == "bob:idea"
    sha = world.hub.commit_files(fork, bob, "idea", {"x": "2"})
    number = answer.json()["number"]
    assert client.get(f"{world.path}/pulls/{number}").json()["head"]["sha"] == sha
    assert client.get(f"{world.path}/commits/{sha}").status_code == 200
    assert client.get(f"{world.path}/pulls/{number}/files").json()[0]["filename"] == "x"
    assert client.post(f"{world.path}/pulls", json={"title": "x", "head": "main", "base": "main"}).status_code == 403


def test_draft_is_not_changed_by_rest(world: World, pull: Issue) -> None:
    """The state API changes it, PATCH ignores it."""
    bot = world.as_bot()
    assert bot.patch(f"{world.path}/pulls/{pull.number}", json={"draft": True}).json()["draft"] is False
    world.hub.set_draft(pull, world.owner, draft=True)
    assert bot.get(f"{world.path}/pulls/{pull.number}").json()["draft"] is True


def test_a_pull_request_is_an_issue_but_not_the_other_way(world: World, pull: Issue) -> None:
    """`/issues/N` shows the pull request with its links; `/pulls/N` of an issue is 404."""
    bot = world.as_bot()
    assert "pull_request" in bot.get(f"{world.path}/issues/{pull.number}").json()
    issue = world.hub.open_issue(world.repository, world.owner, "Bug")
    assert bot.get(f"{world.path}/pulls/{issue.number}").status_code == 404
    diff = bot.get(f"{world.path}/pulls/{pull.number}", headers={"Accept": "application/vnd.github.diff"})
    assert "+    return a + b" in diff.text


def test_a_comment_must_stand_on_the_diff(world: World, pull: Issue) -> None:
    """422 for a line outside of it and for an unknown file; the hunk ends at the line."""
    client = world.as_person(world.person("bob", "write"))
    url = f"{world.path}/pulls/{pull.number}/reviews"
    for comment in ({"path": "src/app.py", "line": 9}, {"path": "nothing", "line": 1}):
        answer = client.post(url, json={"event": "COMMENT", "comments": [{**comment, "body": "x"}]})
        assert answer.status_code == 422
    body = {"event": "COMMENT", "comments": [{"path": "src/app.py", "line": 2, "side": "LEFT", "body": "x"}]}
    assert client.post(url, json=body).status_code == 200
    made = client.get(f"{world.path}/pulls/{pull.number}/comments").json()[0]
    assert made["diff_hunk"].splitlines()[-1] == "-    return a - b"
    assert (made["line"], made["side"], made["position"]) == (2, "LEFT", 2)


def test_nobody_approves_their_own_pull_request(world: World, pull: Issue) -> None:
    """422 for approving or refusing; commenting is fine; an empty comment is not."""
    bot, url = world.as_bot(), f"{world.path}/pulls/{pull.number}/reviews"
    assert bot.post(url, json={"event": "APPROVE"}).status_code == 422
    assert bot.post(url, json={"event": "REQUEST_CHANGES", "body": "x"}).status_code == 422
    assert bot.post(url, json={"event": "COMMENT", "body": "x"}).status_code == 200
    assert bot.post(url, json={"event": "COMMENT"}).status_code == 422
    assert bot.post(url, json={"event": "WEIRD"}).status_code == 422


def test_threads_have_nodes_and_grow_old(world: World, pull: Issue) -> None:
    """A thread is found by node id, keeps its replies, and is outdated when its file changes."""
    bob = world.person("bob", "write")
    body = {"event": "COMMENT", "comments": [{"path": "src/app.py", "line": 2, "body": "why"}]}
    world.as_person(bob).post(f"{world.path}/pulls/{pull.number}/reviews", json=body)
    assert pull.pull is not None
    thread = pull.pull.threads[0]
    assert world.hub.node(thread.node_id) is thread
    with pytest.raises(HubError):
        world.hub.node("PRRT_nothing")
    first = thread.comments[0]
    reply = world.as_bot().post(
        f"{world.path}/pulls/{pull.number}/comments/{first.id}/replies", json={"body": "because"}
    )
    assert reply.json()["in_reply_to_id"] == first.id
    world.hub.minimize(first, "outdated")
    assert first.minimized_reason == "outdated"
    world.hub.commit_files(world.repository, world.app.bot, "agent/1", {"src/app.py": "new\n"})
    assert thread.outdated
    assert world.as_bot().get(f"{world.path}/pulls/comments/{first.id}").json()["line"] is None


def test_a_merge_closes_and_makes_a_commit_of_two(world: World, pull: Issue) -> None:
    """The base branch holds both parents; a merged pull request cannot be opened again."""
    issue = world.hub.open_issue(world.repository, world.owner, "Bug")
    world.hub.edit_issue(pull, world.owner, body=f"Fixes #{issue.number}, see #{pull.number}")
    sha = world.hub.merge_pull(pull, world.owner)
    assert (issue.state, issue.state_reason) == ("closed", "completed")
    shown = world.as_bot().get(f"{world.path}/pulls/{pull.number}").json()
    assert (shown["merged"], shown["state"], shown["merge_commit_sha"]) == (True, "closed", sha)
    commit = world.as_bot().get(f"{world.path}/git/commits/{sha}").json()
    assert len(commit["parents"]) == 2
    assert world.as_bot().get(f"{world.path}/git/ref/heads/main").json()["object"]["sha"] == sha
    assert world.as_bot().patch(f"{world.path}/pulls/{pull.number}", json={"state": "open"}).status_code == 422


def test_a_conflict_is_not_mergeable(world: World, pull: Issue) -> None:
    """`mergeable` comes from git."""
    world.hub.commit_files(world.repository, world.owner, "main", {"src/app.py": "other\n"})
    shown = world.as_bot().get(f"{world.path}/pulls/{pull.number}").json()
    assert (shown["mergeable"], shown["mergeable_state"]) == (False, "dirty")
    with pytest.raises(HubError):
        world.hub.merge_pull(pull, world.owner)


def test_reviewers_are_asked_once_and_never_the_author(world: World, pull: Issue) -> None:
    """422 for the author and for people without a role."""
    world.person("bob", "write")
    world.person("stranger")
    url = f"{world.path}/pulls/{pull.number}/requested_reviewers"
    bot = world.as_bot()
    asked = bot.post(url, json={"reviewers": ["bob"]}).json()
    assert [user["login"] for user in asked["requested_reviewers"]] == ["bob"]
    assert bot.post(url, json={"reviewers": ["stranger"]}).status_code == 422
    assert bot.post(url, json={"reviewers": ["agent-bot[bot]"]}).status_code == 422
    assert bot.post(url, json={}).status_code == 422


def test_refs_move_forward_unless_forced(world: World) -> None:
    """Not a fast-forward, unknown objects, bad names and existing refs are 422."""
    bot, hub = world.as_bot(), world.hub
    old = str(hub.git(world.repository).resolve("main"))
    new = hub.commit_files(world.repository, world.owner, "main", {"a": "b"})
    url = f"{world.path}/git/refs"
    assert bot.patch(f"{url}/heads/main", json={"sha": old}).json()["message"] == "Update is not a fast forward"
    assert bot.patch(f"{url}/heads/main", json={"sha": old, "force": True}).status_code == 200
    assert bot.patch(f"{url}/heads/nope", json={"sha": new}).status_code == 422
    assert bot.delete(f"{url}/heads/nope").status_code == 422
    for ref, sha in (("heads/x", new), ("refs/heads/a..b", new), ("refs/heads/x", "0" * 40), ("refs/heads/main", new)):
        assert bot.post(url, json={"ref": ref, "sha": sha}).status_code == 422, ref
