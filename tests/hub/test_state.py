"""The state without HTTP: seeding, ids, the application alone, and many callers at once."""

import asyncio
import threading
from pathlib import Path

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from bot.testing.hub.errors import HubError
from bot.testing.hub.hub import Hub
from bot.testing.hub.server import HubServer, create_app
from tests.hub.world import FILES, Clock, World


def seed(hub: Hub) -> list[int]:
    """Make a few things and return their ids."""
    owner = hub.create_user("acme")
    repository = hub.create_repository(owner, "web", files=FILES)
    issue = hub.open_issue(repository, owner, "Bug", labels=["agent"])
    comment = hub.comment(issue, owner, "Hello")
    sha = hub.git(repository).resolve("main")
    return [owner.id, repository.id, issue.id, comment.id, int(str(sha), 16)]


def test_the_same_steps_give_the_same_ids(tmp_path: Path) -> None:
    """Ids and commits depend on steps and clock alone."""
    assert seed(Hub(tmp_path / "a", clock=Clock())) == seed(Hub(tmp_path / "b", clock=Clock()))


def test_a_repository_is_seeded_from_a_folder(tmp_path: Path) -> None:
    """All regular files but `.git`; odd names and bytes survive."""
    folder = tmp_path / "seed"
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "config").write_text("no")
    (folder / 'od"d dir').mkdir()
    (folder / 'od"d dir' / "ü\\.bin").write_bytes(b"\x00\xff\n")
    (folder / "link").symlink_to("/etc/passwd")
    hub = Hub(tmp_path / "hub")
    repository = hub.create_repository(hub.create_user("acme"), "web", files=folder)
    git = hub.git(repository)
    entry = git.find("main", 'od"d dir/ü\\.bin')
    assert entry is not None
    assert git.blob(entry.sha) == b"\x00\xff\n"
    assert [item.path for item in git.tree("main")] == ['od"d dir']


def test_commits_add_change_delete_and_make_executable(tmp_path: Path) -> None:
    """`commit_files` lays changes upon the branch, or upon the default branch for a new one."""
    hub = Hub(tmp_path)
    owner = hub.create_user("acme")
    repository = hub.create_repository(owner, "web", files=FILES)
    hub.commit_files(
        repository, owner, "fix", {"README.md": None, "run.sh": "#!/bin/sh\n"}, executable=frozenset({"run.sh"})
    )
    tree = {entry.path: entry.mode for entry in hub.git(repository).tree("fix")}
    assert tree == {"run.sh": "100755", "src": "040000"}
    assert len(hub.git(repository).commits("fix")) == 2
    assert hub.git(repository).refs("refs/hub") == {}


def test_names_are_taken_once(tmp_path: Path) -> None:
    """Logins, repositories and labels are unique in any case; empty titles and comments are refused."""
    hub = Hub(tmp_path)
    owner = hub.create_user("acme")
    repository = hub.create_repository(owner, "web")
    issue = hub.open_issue(repository, owner, "Bug")
    for refused in (
        lambda: hub.create_user("ACME"),
        lambda: hub.create_repository(owner, "Web"),
        lambda: hub.create_label(repository, "BUG"),
        lambda: hub.open_issue(repository, owner, " "),
        lambda: hub.comment(issue, owner, ""),
        lambda: hub.comment(issue, owner, "x" * 65_537),
        lambda: hub.react(issue, owner, "smile"),
        lambda: hub.remove_label(issue, owner, "nope"),
    ):
        with pytest.raises(HubError):
            refused()


def test_an_issue_remembers_its_history(tmp_path: Path) -> None:
    """Closing twice is once; reopening clears the closing; renaming keeps both titles."""
    clock = Clock()
    hub = Hub(tmp_path, clock=clock)
    owner = hub.create_user("acme")
    issue = hub.open_issue(hub.create_repository(owner, "web"), owner, "Bug")
    clock.forward(minutes=1)
    hub.close_issue(issue, owner, "not_planned")
    hub.close_issue(issue, owner)
    assert (issue.state_reason, issue.closed_at) == ("not_planned", clock.now)
    hub.reopen_issue(issue, owner)
    hub.edit_issue(issue, owner, title="Real bug")
    assert issue.closed_at is None
    assert [event.event for event in issue.timeline] == ["closed", "reopened", "renamed"]
    assert issue.timeline[-1].rename == ("Bug", "Real bug")


def test_records_show_no_secrets(world: World) -> None:
    """What a failing assertion prints names the record and hides its token and key."""
    token = world.hub.create_user_token(world.owner)
    assert token.value not in repr(token)
    assert "PRIVATE KEY" not in repr(world.app)
    assert len(repr(world.repository)) < 200


def test_many_callers_lose_nothing(world: World) -> None:
    """Threads that comment over HTTP and through the state get one id each, and as many events."""
    issue = world.hub.open_issue(world.repository, world.owner, "Bug")
    url = f"{world.path}/issues/{issue.number}/comments"
    clients = [world.as_bot() for _ in range(4)]

    def over_http(client: httpx.Client) -> None:
        for _ in range(5):
            assert client.post(url, json={"body": "x"}).status_code == 201

    def directly() -> None:
        for _ in range(20):
            world.hub.comment(issue, world.owner, "y")

    threads = [threading.Thread(target=over_http, args=(client,)) for client in clients]
    threads.append(threading.Thread(target=directly))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({comment.id for comment in issue.comments}) == len(issue.comments) == 40
    assert len(world.hub.deliveries("issue_comment")) == 40


async def test_the_application_works_without_a_socket(tmp_path: Path) -> None:
    """`create_app` alone serves a client in the same loop."""
    hub = Hub(tmp_path)
    hub.create_repository(hub.create_user("acme"), "web", files=FILES)
    transport = httpx.ASGITransport(create_app(hub))
    async with httpx.AsyncClient(transport=transport, base_url="http://hub") as client:
        assert (await client.get("/repos/acme/web")).json()["full_name"] == "acme/web"
        assert (await client.get("/api/v3/repos/acme/web/contents/src%2Fapp.py")).status_code == 200


async def test_two_servers_run_at_once_and_take_extra_routes(tmp_path: Path) -> None:
    """Each has its own port and state; extra routes come first."""

    async def page(_: Request) -> PlainTextResponse:
        return PlainTextResponse("a page")

    one, two = Hub(tmp_path / "1"), Hub(tmp_path / "2")
    async with HubServer(one, extra_routes=[Route("/acme/web/issues/1", page)]) as first, HubServer(two) as second:
        assert first.url != second.url
        assert first.graphql_url == f"{first.url}/api/graphql"
        one.create_user("acme")
        async with httpx.AsyncClient(trust_env=False, verify=False) as client:
            answers = await asyncio.gather(
                client.get(f"{first.url}/acme/web/issues/1"),
                client.get(f"{first.api_url}/users/acme"),
                client.get(f"{second.api_url}/users/acme"),
            )
        assert [answer.status_code for answer in answers] == [200, 200, 404]
        assert answers[0].text == "a page"
