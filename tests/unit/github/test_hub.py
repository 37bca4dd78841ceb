"""The client against the local GitHub, which judges permissions, tokens and payloads by itself."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from bot.domain.refs import Actor
from bot.domain.trigger import Closed, Commented, Labelled, Unlabelled
from bot.errors import Conflict, Forbidden, GitHubUnavailable
from bot.github.client import GitHubClient
from bot.github.webhooks import decode, to_trigger
from bot.testing.hub.faults import Fault
from bot.testing.hub.hub import Hub
from bot.testing.hub.server import HubServer
from tests.unit.github.on_hub import OnHub


@pytest.fixture
def world(tmp_path: Path) -> Iterator[OnHub]:
    """A local GitHub with one of each."""
    hub = Hub(tmp_path)
    ada = hub.create_user("ada")
    repository = hub.create_repository(ada, "engine", files={"README.md": "# Engine\n", ".github/x.yml": "a: 1\n"})
    app = hub.create_app(ada, "Issuewright", webhook_url="http://127.0.0.1:9/", webhook_secret="s")
    installation = hub.install(app, [repository.id])
    with HubServer(hub) as server:
        yield OnHub(hub, server, ada, repository, app, installation)


@pytest.fixture
async def github(world: OnHub) -> AsyncIterator[GitHubClient]:
    """Our installation's client."""
    app = world.client()
    yield app.installation(world.installation.id)
    await app.close()


async def test_a_whole_conversation(world: OnHub, github: GitHubClient) -> None:
    """Issue, reaction, comment, edit, branch, pull request, in the order of a task."""
    issue = world.hub.open_issue(world.repository, world.ada, "It breaks", "Badly.", ["agent"])
    me = await github.identity()
    assert (me.login, me.is_bot) == ("issuewright[bot]", True)
    assert (await github.repository(world.repository.id)).full_name == "ada/engine"
    assert await github.permission(world.ref, Actor(world.ada.id, "ada")) == "admin"
    assert await github.permission(world.ref, Actor(world.ada.id + 1, "ada")) == "none"
    assert await github.permission(world.ref, Actor(1, "nobody")) == "none"
    seen = await github.issue(world.ref, issue.number)
    assert (seen.title, seen.body, tuple(seen.labels), seen.is_pull) == ("It breaks", "Badly.", ("agent",), False)
    await github.react(world.ref, issue.number, None, "eyes")
    await github.react(world.ref, issue.number, None, "eyes")
    assert len(issue.reactions) == 1
    comment = await github.comment(world.ref, issue.number, "working")
    await github.react(world.ref, issue.number, comment.id, "rocket")
    await github.edit_comment(world.ref, comment.id, "done")
    assert [(c.body, c.author_id) for c in await github.comments(world.ref, issue.number)] == [("done", me.id)]
    assert await github.read_file(world.ref, ".github/x.yml", "main") == b"a: 1\n"
    assert await github.read_file(world.ref, ".github", "main") is None
    assert await github.read_file(world.ref, "missing.yml", "main") is None
    assert await github.find_pull(world.ref, "agent/1-x") is None
    world.hub.commit_files(world.repository, world.ada, "agent/1-x", {"README.md": "# Better\n"})
    pull = await github.open_pull(world.ref, head="agent/1-x", base="main", title="T", body="B", draft=True)
    assert (pull.draft, pull.head_branch, pull.head_repository_id) == (True, "agent/1-x", world.repository.id)
    edited = await github.update_pull(world.ref, pull.number, body="C")
    assert (edited.body, edited.title) == ("C", pull.title)
    assert (await github.update_pull(world.ref, pull.number, body="C", title="Another")).title == "Another"
    assert await github.find_pull(world.ref, "agent/1-x") == await github.pull(world.ref, pull.number)
    with pytest.raises(Conflict):
        await github.open_pull(world.ref, head="agent/1-x", base="main", title="T", body="B", draft=True)
    assert await github.clone_url(world.ref) == f"{world.server.url}/ada/engine.git"
    assert await github.git_token(world.ref)


async def test_faults(world: OnHub, github: GitHubClient) -> None:
    """A comment that was made before the connection broke is not made again; reads do not mind."""
    issue = world.hub.open_issue(world.repository, world.ada, "It breaks")
    faults = world.hub.faults
    faults.add(Fault("reset_after", "POST", "*/comments"))
    with pytest.raises(GitHubUnavailable):
        await github.comment(world.ref, issue.number, "once")
    assert len(issue.comments) == 1
    faults.add(Fault("truncate", "GET", "*/comments"))
    faults.add(Fault("reset", "GET", "*/comments"))
    faults.add(Fault("status", "GET", "*/comments", nth=3))
    assert len(await github.comments(world.ref, issue.number)) == 1
    faults.add(Fault("unauthorized", "POST", "*/comments"))
    await github.comment(world.ref, issue.number, "twice")
    assert len(issue.comments) == 2


async def test_a_suspended_app_says_so(world: OnHub, github: GitHubClient) -> None:
    """In GitHub's words."""
    world.hub.suspend(world.installation, world.ada)
    with pytest.raises(Forbidden, match="suspended"):
        await github.issue(world.ref, 1)


async def test_a_jobs_token(world: OnHub) -> None:
    """Acts as `github-actions[bot]`, whatever id that has here."""
    token = world.hub.create_job_token(world.repository, {"issues": "write", "contents": "read"})
    app = world.client(app_id=None, private_key=None, token=token.value)
    issue = world.hub.open_issue(world.repository, world.ada, "It breaks")
    github = app.installation(None)
    me = await github.identity()
    assert me.login == "github-actions[bot]"
    made = await github.comment(world.ref, issue.number, "hello")
    assert made.author_id == me.id
    await app.close()


async def test_what_it_delivers_becomes_triggers(world: OnHub) -> None:
    """Its payloads are valid by GitHub's own description; ours is the meaning."""
    hub, ada = world.hub, world.ada
    issue = hub.open_issue(world.repository, ada, "It breaks", None, ["agent"])
    hub.comment(issue, ada, "/agent fix")
    hub.remove_label(issue, ada, "agent")
    hub.close_issue(issue, ada)
    found = [to_trigger(each.event, decode(each.body)) for each in hub.deliveries()]
    assert [type(each) for each in found if each] == [Labelled, Commented, Unlabelled, Closed]
    assert len({each.context.event_key for each in found if each}) == 4
