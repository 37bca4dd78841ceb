"""The client against a small GitHub that fails on demand."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from email.utils import format_datetime
from pathlib import Path

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from bot.domain.refs import Actor, RepositoryRef
from bot.errors import (
    Conflict,
    Forbidden,
    GitHubError,
    GitHubUnavailable,
    NotFound,
    OperatorError,
    RateLimited,
)
from bot.github.auth import InstallationCredentials, Scope, Tokens
from bot.github.base import GitHub, GitHubApp
from bot.github.client import GitHubAppClient, GitHubClient
from bot.github.payloads import AccessToken
from bot.github.retry import Timing
from bot.github.transport import web_url
from tests.unit.github.fake import INSTALLATION_ID, FakeGitHub, Time, Truncated, fail, pull

REPOSITORY = RepositoryRef(5, "ada/engine", "main", private=True)
ADA = Actor(1, "ada")
ISSUE = "/repos/ada/engine/issues/1"
COMMENTS = "/repos/ada/engine/issues/1/comments"
MINT = "/app/installations/*/access_tokens"


def always(status: int, message: str = "no", **headers: str) -> Callable[[Request], Response]:
    """Answer with this refusal."""
    return lambda _: fail(status, message, **headers)


def test_it_is_what_the_seam_says(app: GitHubAppClient, github: GitHubClient) -> None:
    """Both classes fit their protocols, for the type checker too."""
    seam: GitHubApp = app
    client: GitHub = github
    assert seam.installation(INSTALLATION_ID) is client


# --- tokens -----------------------------------------------------------------------------------------------------------


async def test_twenty_first_calls_mint_one_token(hub: FakeGitHub, github: GitHubClient) -> None:
    """Those who wait for a token share one minting."""
    hub.mint_delay_s = 0.05
    await asyncio.gather(*(github.issue(REPOSITORY, 1) for _ in range(20)))
    assert len(hub.calls("POST", MINT)) == 1


async def test_a_token_is_for_one_repository_and_no_more_than_needed(hub: FakeGitHub, github: GitHubClient) -> None:
    """S106: one repository id, a minimal map of permissions, and for git another token than for the API."""
    await github.issue(REPOSITORY, 1)
    await github.git_token(REPOSITORY)
    api, git = hub.calls("POST", MINT)
    assert api.body["repository_ids"] == git.body["repository_ids"] == [5]
    assert git.body["permissions"] == {"contents": "write", "metadata": "read"}
    assert api.body["permissions"]["contents"] == "read"
    assert "workflows" not in api.body["permissions"] | git.body["permissions"]


async def test_two_hosts_share_no_tokens(
    hub: FakeGitHub, other_hub: FakeGitHub, make_app: Callable[..., GitHubAppClient]
) -> None:
    """The same App and installation ids on two hosts are two worlds."""
    for fake in (hub, other_hub):
        client = make_app(fake.url)
        await client.installation(INSTALLATION_ID).issue(REPOSITORY, 1)
        await client.close()
        assert len(fake.calls("POST", MINT)) == 1


async def test_the_cache_of_tokens_tells_hosts_apart(time: Time) -> None:
    """Also where one is shared: the host is part of the key."""
    minted: list[str] = []

    async def mint(scope: Scope) -> AccessToken:
        minted.append(scope.base_url)
        return AccessToken("ghs_x", "2026-11-30T13:00:00Z")

    timing = Timing(time.clock, lambda: 0.5, time.sleep, time.monotonic)
    tokens = Tokens(mint, timing)
    for url in ("https://one.example/", "https://two.example/", "https://one.example/"):
        await InstallationCredentials(httpx.URL(url), "1", 1, tokens, timing).git_token(5)
    assert minted == ["https://one.example/", "https://two.example/"]


async def test_a_token_is_replaced_five_minutes_before_it_ends(github: GitHubClient, time: Time) -> None:
    """A token for git lives for at least five more minutes."""
    first = await github.git_token(REPOSITORY)
    time.pass_(54 * 60)
    assert await github.git_token(REPOSITORY) == first
    time.pass_(61)
    assert await github.git_token(REPOSITORY) != first


@pytest.mark.parametrize("form", ["%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%M:%S.000Z", "%Y-%m-%dT%H:%M:%S+00:00"])
async def test_an_expiry_may_have_milliseconds(hub: FakeGitHub, github: GitHubClient, form: str) -> None:
    """The library reads one form only."""
    hub.expires_format = form
    await github.issue(REPOSITORY, 1)
    await github.issue(REPOSITORY, 1)
    assert len(hub.calls("POST", MINT)) == 1


async def test_an_expiry_that_is_no_date_is_our_error(hub: FakeGitHub, github: GitHubClient) -> None:
    """No bare ValueError crosses the room."""
    hub.expires_format = "soon"
    with pytest.raises(GitHubError):
        await github.git_token(REPOSITORY)


async def test_a_revoked_token_is_replaced_once(hub: FakeGitHub, github: GitHubClient, time: Time) -> None:
    """A 401 with an old token mints another; the call goes through."""
    await github.issue(REPOSITORY, 1)
    time.pass_(60)
    hub.tokens.clear()
    await github.comment(REPOSITORY, 1, "hello")
    assert len(hub.calls("POST", MINT)) == 2
    assert len(hub.comments) == 1


async def test_a_401_that_stays_is_told(hub: FakeGitHub, github: GitHubClient, time: Time) -> None:
    """After one new token and a few seconds the caller hears of it."""
    hub.plan("GET", ISSUE, *[always(401, "Bad credentials")] * 20)
    with pytest.raises(Forbidden, match=r"GET .*/issues/1 answered 401: Bad credentials"):
        await github.issue(REPOSITORY, 1)
    assert len(hub.calls("GET", ISSUE)) <= 6
    assert sum(time.slept) <= 5


async def test_a_fresh_token_may_take_seconds_to_spread(hub: FakeGitHub, github: GitHubClient, time: Time) -> None:
    """A 401 right after minting is waited out with the same token."""
    hub.plan("POST", COMMENTS, always(401), always(401))
    await github.comment(REPOSITORY, 1, "hello")
    assert len(hub.calls("POST", MINT)) == 1
    assert len(hub.comments) == 1
    assert 1 <= sum(time.slept) <= 5


async def test_a_clock_that_runs_wrong_is_corrected(hub: FakeGitHub, github: GitHubClient) -> None:
    """GitHub's `Date` sets the signature's times; one more call, then none."""
    hub.skew = timedelta(hours=-2)
    await github.issue(REPOSITORY, 1)
    assert [seen.path for seen in hub.seen].count(f"/app/installations/{INSTALLATION_ID}/access_tokens") == 2


async def test_minting_that_fails_says_so_and_is_tried_again(hub: FakeGitHub, github: GitHubClient) -> None:
    """A 502 while minting is nobody's business; a 404 names itself."""
    hub.plan("POST", MINT, always(502), always(502))
    await github.issue(REPOSITORY, 1)
    hub.plan("POST", MINT, always(403, "This installation has been suspended"))
    with pytest.raises(Forbidden, match="access_tokens answered 403: This installation has been suspended"):
        await github.git_token(REPOSITORY)
    await github.git_token(REPOSITORY)


@pytest.mark.parametrize("status", [404, 422])
async def test_an_app_that_may_not_act_is_no_missing_file(hub: FakeGitHub, github: GitHubClient, status: int) -> None:
    """Uninstalled, or without the permission: neither a person without a role nor a repository without settings."""
    hub.plan("POST", MINT, always(status), always(status))
    with pytest.raises(Forbidden, match="the App may not act there"):
        await github.read_file(REPOSITORY, ".github/issuewright.yml", "main")
    with pytest.raises(Forbidden):
        await github.permission(REPOSITORY, ADA)


async def test_minting_that_is_limited_says_how_long(hub: FakeGitHub, github: GitHubClient) -> None:
    """The wait survives the way through the authentication."""
    hub.plan("POST", MINT, always(403, "You have exceeded a secondary rate limit", retry_after="300"))
    with pytest.raises(RateLimited) as caught:
        await github.issue(REPOSITORY, 1)
    assert caught.value.retry_after_s == 300


async def test_one_who_gives_up_does_not_stop_the_minting(hub: FakeGitHub, github: GitHubClient) -> None:
    """A cancelled call leaves the token to the others."""
    hub.mint_delay_s = 0.1
    first = asyncio.create_task(github.git_token(REPOSITORY))
    second = asyncio.create_task(github.git_token(REPOSITORY))
    await asyncio.sleep(0.03)
    first.cancel()
    assert await second == "ghs_1"
    assert len(hub.calls("POST", MINT)) == 1


async def test_the_apps_signature_never_goes_to_a_repository(hub: FakeGitHub, github: GitHubClient) -> None:
    """Also not where a path ends like one of the App's routes."""
    hub.files["docs/installation"] = b"x"
    await github.read_file(REPOSITORY, "docs/installation", "agent/installation")
    [seen] = hub.calls("GET", "/repos/*")
    assert seen.headers["authorization"] == "Bearer ghs_1"


def test_a_key_that_cannot_be_read_is_the_operators(make_app: Callable[..., GitHubAppClient]) -> None:
    """And the message does not quote it."""
    app = make_app("http://127.0.0.1:9/", private_key="-----BEGIN secret")

    async def ask() -> None:
        await app.installation(1).git_token(REPOSITORY)

    with pytest.raises(OperatorError) as caught:
        asyncio.run(ask())
    assert "secret" not in str(caught.value)


async def test_what_is_not_configured_is_the_operators(make_app: Callable[..., GitHubAppClient]) -> None:
    """No token, no App id, no key: each is said before anything is sent."""
    with pytest.raises(OperatorError):
        make_app("http://127.0.0.1:9/").installation(None)
    with pytest.raises(OperatorError):
        make_app("http://127.0.0.1:9/", app_id=None).installation(1)
    with pytest.raises(OperatorError):
        await make_app("http://127.0.0.1:9/", private_key=None).installation(1).git_token(REPOSITORY)


# --- trying again -----------------------------------------------------------------------------------------------------


async def test_a_read_is_tried_again(hub: FakeGitHub, github: GitHubClient, time: Time) -> None:
    """A 5xx and a dropped connection, each time a little later."""
    hub.plan("GET", ISSUE, always(502), lambda _: Truncated(), always(503))
    assert (await github.issue(REPOSITORY, 1)).number == 1
    assert len(time.slept) == 3
    assert time.slept == sorted(time.slept)
    assert sum(time.slept) < 20


async def test_a_read_that_never_works_ends(hub: FakeGitHub, github: GitHubClient) -> None:
    """Five attempts, then the caller decides."""
    hub.plan("GET", ISSUE, *[always(502, "Bad Gateway")] * 20)
    with pytest.raises(GitHubUnavailable, match="502: Bad Gateway") as caught:
        await github.issue(REPOSITORY, 1)
    assert caught.value.status == 502
    assert caught.value.retryable
    assert len(hub.calls("GET", ISSUE)) == 5


@pytest.mark.parametrize("answer", [always(502), always(500), lambda _: Truncated()])
async def test_a_comment_is_never_made_twice(
    hub: FakeGitHub, github: GitHubClient, answer: Callable[[Request], Response]
) -> None:
    """Nobody knows whether it was made, so it is not tried again."""
    hub.plan("POST", COMMENTS, answer)
    with pytest.raises(GitHubUnavailable):
        await github.comment(REPOSITORY, 1, "hello")
    assert len(hub.calls("POST", COMMENTS)) == 1


async def test_a_pull_request_is_never_opened_twice(hub: FakeGitHub, github: GitHubClient) -> None:
    """As a comment."""
    hub.plan("POST", "/repos/ada/engine/pulls", always(504))
    with pytest.raises(GitHubUnavailable):
        await github.open_pull(REPOSITORY, head="agent/1-x", base="main", title="T", body="B", draft=True)
    assert len(hub.calls("POST", "/repos/ada/engine/pulls")) == 1


async def test_edits_and_reactions_are_tried_again(hub: FakeGitHub, github: GitHubClient) -> None:
    """Doing them twice is the same as once."""
    hub.comments.append({"id": 1, "body": "old"})
    hub.plan("PATCH", "*", always(502), always(502))
    hub.plan("POST", "*/reactions", always(502))
    assert (await github.edit_comment(REPOSITORY, 1, "new")).body == "new"
    assert (await github.update_pull(REPOSITORY, 10, body="new")).body == "new"
    await github.react(REPOSITORY, 1, None, "eyes")
    await github.react(REPOSITORY, 1, 7, "+1")
    assert hub.reactions == {("1", "eyes"), ("comments/7", "+1")}


async def test_a_silent_github_is_left(hub: FakeGitHub, make_app: Callable[..., GitHubAppClient]) -> None:
    """Each attempt has an end."""
    hub.mint_delay_s = 0.5
    client = make_app(hub.url, timeout_s=0.1)
    with pytest.raises(GitHubUnavailable, match="ReadTimeout"):
        await client.installation(INSTALLATION_ID).git_token(REPOSITORY)
    await client.close()


async def test_a_post_that_found_no_server_is_sent_again(make_app: Callable[..., GitHubAppClient], time: Time) -> None:
    """A refused connection had no effect."""
    client = make_app("http://127.0.0.1:9/", token="t")
    with pytest.raises(GitHubUnavailable, match="ConnectError"):
        await client.installation(None).comment(REPOSITORY, 1, "hello")
    assert len(time.slept) == 4
    await client.close()


# --- rate limits ------------------------------------------------------------------------------------------------------


async def test_a_short_wait_is_waited_out_even_for_a_comment(hub: FakeGitHub, github: GitHubClient, time: Time) -> None:
    """A limit is a refusal before any effect."""
    hub.plan("POST", COMMENTS, always(429, "slow down", retry_after="7"))
    await github.comment(REPOSITORY, 1, "hello")
    assert time.slept == [7]
    assert len(hub.comments) == 1


async def test_a_wait_may_be_a_date(hub: FakeGitHub, github: GitHubClient, time: Time) -> None:
    """The library raises a bare ValueError over it."""
    when = format_datetime(time.now + timedelta(seconds=9), usegmt=True)
    hub.plan("GET", ISSUE, always(403, "secondary rate limit", retry_after=when))
    await github.issue(REPOSITORY, 1)
    assert time.slept == [9]
    later = format_datetime(time.now + timedelta(seconds=90), usegmt=True)
    hub.plan("GET", ISSUE, always(403, "secondary rate limit", retry_after=later))
    with pytest.raises(RateLimited) as caught:
        await github.issue(REPOSITORY, 1)
    assert caught.value.retry_after_s == 90
    assert caught.value.status == 403


@pytest.mark.parametrize("value", ["soon", "-5", "²", "9" * 30, "Mon, 99 Foo 2026 00:00:00 GMT"])
async def test_nonsense_in_headers_breaks_nothing(hub: FakeGitHub, github: GitHubClient, value: str) -> None:
    """Neither as a wait nor as a reset."""
    headers = {"retry-after": value.encode("utf-8").decode("latin-1"), "x-ratelimit-remaining": "0"}
    headers["x-ratelimit-reset"] = headers["retry-after"]

    def answer(_: Request) -> Response:
        return Response('{"message": "You have exceeded a secondary rate limit"}', 403, headers)

    hub.plan("GET", ISSUE, answer)
    with pytest.raises(RateLimited) as caught:
        await github.issue(REPOSITORY, 1)
    assert 60 <= caught.value.retry_after_s <= 86_400


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (403, "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."),
        (429, "Too many requests"),
    ],
)
async def test_a_secondary_limit_without_a_time_means_a_minute(
    hub: FakeGitHub, github: GitHubClient, time: Time, status: int, message: str
) -> None:
    """And until then nothing is sent, whoever asks: going on may get the App banned."""
    hub.plan("POST", COMMENTS, always(status, message, x_ratelimit_remaining="4000"))
    with pytest.raises(RateLimited) as caught:
        await github.comment(REPOSITORY, 1, "hello")
    assert caught.value.retry_after_s == 60
    before = len(hub.seen)
    time.pass_(30)
    with pytest.raises(RateLimited) as early:
        await github.issue(REPOSITORY, 1)
    assert early.value.retry_after_s == 30
    assert len(hub.seen) == before
    time.pass_(30)
    await github.issue(REPOSITORY, 1)


async def test_an_exhausted_primary_limit_names_its_reset(hub: FakeGitHub, github: GitHubClient) -> None:
    """By GitHub's clock, not by ours."""
    hub.skew = timedelta(hours=-3)
    await github.git_token(REPOSITORY)
    reset = str(int((hub.now + timedelta(minutes=20)).timestamp()))
    hub.plan("GET", ISSUE, always(403, "API rate limit exceeded", x_ratelimit_remaining="0", x_ratelimit_reset=reset))
    with pytest.raises(RateLimited) as caught:
        await github.issue(REPOSITORY, 1)
    assert caught.value.retry_after_s == pytest.approx(1200, abs=2)


# --- refusals ---------------------------------------------------------------------------------------------------------


async def test_a_refusal_names_the_missing_permission(hub: FakeGitHub, github: GitHubClient) -> None:
    """Method, path, status, GitHub's words and what the App lacks."""
    hub.plan(
        "POST",
        COMMENTS,
        always(403, "Resource not accessible by integration", x_accepted_github_permissions="issues=write"),
    )
    with pytest.raises(Forbidden) as caught:
        await github.comment(REPOSITORY, 1, "hello")
    assert str(caught.value) == (
        "POST /api/v3/repos/ada/engine/issues/1/comments answered 403:"
        " Resource not accessible by integration (the App needs: issues=write)"
    )
    assert len(hub.calls("POST", COMMENTS)) == 1


@pytest.mark.parametrize(
    ("status", "made"),
    [(400, GitHubError), (404, NotFound), (410, NotFound), (409, Conflict), (422, Conflict), (451, Forbidden)],
)
async def test_each_status_is_our_error(
    hub: FakeGitHub, github: GitHubClient, status: int, made: type[GitHubError]
) -> None:
    """No error of the library leaves the room, and none of these is tried again."""
    hub.plan("GET", ISSUE, always(status))
    with pytest.raises(GitHubError) as caught:
        await github.issue(REPOSITORY, 1)
    assert type(caught.value) is made
    assert caught.value.status == status
    assert len(hub.calls("GET", ISSUE)) == 1


async def test_a_pull_request_that_exists_is_a_conflict(hub: FakeGitHub, github: GitHubClient) -> None:
    """With GitHub's reason."""
    hub.pulls.append(pull(10, "agent/1-x"))
    with pytest.raises(Conflict, match="already exists for ada:agent/1-x"):
        await github.open_pull(REPOSITORY, head="agent/1-x", base="main", title="T", body="B", draft=True)


@pytest.mark.parametrize("body", [b"<html>", b"[]", b'{"number": "one"}', b"[" * 100_000, b"{}"])
async def test_an_answer_of_another_shape_is_our_error(hub: FakeGitHub, github: GitHubClient, body: bytes) -> None:
    """As from a proxy's page."""
    hub.plan("GET", ISSUE, lambda _: Response(body))
    with pytest.raises(GitHubError):
        await github.issue(REPOSITORY, 1)


# --- manners and the way there ----------------------------------------------------------------------------------------


async def test_ten_at_a_time(hub: FakeGitHub, make_app: Callable[..., GitHubAppClient]) -> None:
    """For all installations together."""
    app = make_app(hub.url)
    hub.delay_s = 0.02
    await asyncio.gather(*(app.installation(n).issue(REPOSITORY, 1) for n in range(3) for _ in range(15)))
    assert hub.most_at_once == 10
    await app.close()


async def test_writes_go_one_by_one_and_a_second_apart(
    hub: FakeGitHub, make_app: Callable[..., GitHubAppClient], time: Time
) -> None:
    """Reads do not wait for them."""
    app = make_app(hub.url, write_interval_s=1.0)
    github = app.installation(INSTALLATION_ID)
    await github.git_token(REPOSITORY)
    await asyncio.gather(*(github.comment(REPOSITORY, 1, str(n)) for n in range(4)))
    assert time.slept == [1.0, 1.0, 1.0]
    await github.issue(REPOSITORY, 1)
    assert len(time.slept) == 3
    await app.close()


async def test_a_redirect_to_another_host_gets_no_token(
    hub: FakeGitHub, other_hub: FakeGitHub, github: GitHubClient
) -> None:
    """Followed, but as a stranger."""
    target = other_hub.url + ISSUE
    hub.plan("GET", ISSUE, lambda _: RedirectResponse(target, 301))
    with pytest.raises(Forbidden):
        await github.issue(REPOSITORY, 1)
    assert other_hub.seen
    assert all("authorization" not in seen.headers for seen in other_hub.seen)


async def test_a_renamed_repository_is_followed(hub: FakeGitHub, github: GitHubClient) -> None:
    """On the same host the token goes along."""
    old = RepositoryRef(5, "ada/old")
    hub.plan("GET", "/repos/ada/old/issues/1", lambda _: RedirectResponse(hub.url + ISSUE, 301))
    assert (await github.issue(old, 1)).number == 1


async def test_pages_are_counted_not_followed(hub: FakeGitHub, github: GitHubClient) -> None:
    """S101: the marker on page 3 is found; a link to elsewhere leads nobody there."""
    hub.comments = [{"id": n, "body": f"c{n}", "user": None} for n in range(1, 251)]
    found = await github.comments(REPOSITORY, 1)
    assert [comment.id for comment in found] == list(range(1, 251))
    assert found[0].author_id is None
    assert len(hub.calls("GET", COMMENTS)) == 3


async def test_one_pool_serves_all_calls_and_tasks(hub: FakeGitHub, github: GitHubClient) -> None:
    """A task of its own does not mean a client of its own."""
    ports: set[object] = set()

    def note(request: Request) -> None:
        ports.add(request.client.port if request.client else None)

    hub.plan("*", "*", *[note] * 50)
    for _ in range(5):
        await asyncio.create_task(github.issue(REPOSITORY, 1))
    assert len(ports) == 1


@pytest.mark.parametrize(
    ("api", "web"),
    [
        ("https://api.github.com", "https://github.com"),
        ("https://api.github.com/", "https://github.com"),
        ("https://git.example.org/api/v3", "https://git.example.org"),
        ("https://git.example.org:8443/git/api/v3/", "https://git.example.org:8443/git"),
        ("https://api.octo.ghe.com", "https://octo.ghe.com"),
        ("http://127.0.0.1:4000", "http://127.0.0.1:4000"),
        ("http://127.0.0.1:4000/api/v3", "http://127.0.0.1:4000"),
    ],
)
def test_where_git_goes_follows_from_the_api(api: str, web: str) -> None:
    """On github.com, an enterprise server, one of the cloud's own domains, and a local one."""
    assert web_url(api) == web


# --- operations -------------------------------------------------------------------------------------------------------


async def test_the_app_knows_its_account(hub: FakeGitHub, app: GitHubAppClient) -> None:
    """Asked once for all installations."""
    assert await app.installation(1).identity() == Actor(900, "issuewright[bot]", is_bot=True)
    assert await app.installation(2).identity() == Actor(900, "issuewright[bot]", is_bot=True)
    assert len(hub.calls("GET", "/app")) == 1


async def test_a_jobs_token_may_not_ask_who_it_is(hub: FakeGitHub, make_app: Callable[..., GitHubAppClient]) -> None:
    """Then it is the account that such tokens have; a person's token knows itself."""
    app = make_app(hub.url, app_id=None, private_key=None, token="ghs_job")
    github = app.installation(None)
    assert await github.identity() == Actor(41898282, "github-actions[bot]", is_bot=True)
    hub.plan("GET", "/user", lambda _: Response('{"id": 3, "login": "ada", "type": "User"}'))
    assert await github.identity() == Actor(3, "ada")
    assert await github.git_token(REPOSITORY) == "ghs_job"
    assert hub.seen[0].headers["authorization"] == "Bearer ghs_job"
    await app.close()


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({"permission": "write", "role_name": "maintain", "user": {"id": 1}}, "maintain"),
        ({"permission": "read", "role_name": "triage", "user": {"id": 1}}, "triage"),
        ({"permission": "write", "role_name": "Release crew", "user": {"id": 1}}, "write"),
        ({"permission": "admin", "user": {"id": 1}}, "admin"),
        ({"permission": "none", "role_name": "none", "user": {"id": 1}}, "none"),
        ({"permission": "admin", "role_name": "admin", "user": {"id": 2}}, "none"),
        ({"permission": "admin", "role_name": "admin", "user": None}, "none"),
        ({"permission": "owner", "role_name": "king", "user": {"id": 1}}, "none"),
        (None, "none"),
    ],
)
async def test_permission_is_by_role_and_numeric_id(
    hub: FakeGitHub, github: GitHubClient, answer: object, expected: str
) -> None:
    """S15, S19: the role's own name counts, and a login that somebody else has by now counts for nothing."""
    hub.roles["ada"] = answer
    assert await github.permission(REPOSITORY, ADA) == expected


@pytest.mark.parametrize("status", [403, 422])
async def test_a_permission_that_is_not_known_is_an_error(hub: FakeGitHub, github: GitHubClient, status: int) -> None:
    """S17: the caller has to fail closed, so it has to hear of it."""
    hub.plan("GET", "*/permission", always(status))
    with pytest.raises(GitHubError):
        await github.permission(REPOSITORY, ADA)


async def test_a_pull_request_is_found_by_its_branch(hub: FakeGitHub, github: GitHubClient) -> None:
    """The newest, open first, of our own repository; a fork's branch of the same name is another's."""
    assert await github.find_pull(REPOSITORY, "agent/1-x") is None
    hub.pulls = [
        pull(13, "agent/1-x", repository=6),
        pull(12, "agent/1-x", state="closed", merged_at="2026-01-01T00:00:00Z"),
        pull(11, "agent/1-x"),
        pull(10, "agent/1-x"),
        pull(14, "agent/1-y"),
        pull(15, "agent/1-x", repository=None),
    ]
    found = await github.find_pull(REPOSITORY, "agent/1-x")
    assert found is not None
    assert (found.number, found.state, found.head_repository_id) == (11, "open", 5)
    hub.pulls = hub.pulls[:2]
    found = await github.find_pull(REPOSITORY, "agent/1-x")
    assert found is not None
    assert (found.number, found.merged) == (12, True)


async def test_a_pull_request_is_opened_and_read(hub: FakeGitHub, github: GitHubClient) -> None:
    """As a draft where asked."""
    made = await github.open_pull(REPOSITORY, head="agent/1-x", base="main", title="T", body="B", draft=True)
    assert (made.number, made.head_branch, made.base_branch, made.body) == (10, "agent/1-x", "main", "B")
    [seen] = hub.calls("POST", "/repos/ada/engine/pulls")
    assert seen.body == {"head": "agent/1-x", "base": "main", "title": "T", "body": "B", "draft": True}
    assert (await github.pull(REPOSITORY, 3)).author == ADA


async def test_a_file_is_read_or_is_not_there(hub: FakeGitHub, github: GitHubClient) -> None:
    """Bytes, also beyond ASCII; a folder, a submodule and a path that leaves are no files."""
    hub.files = {
        ".github/issuewright.yml": "käse\n".encode() * 50,
        "folder": [{"type": "file"}],
        "module": {"type": "submodule"},
        "large": {"type": "file", "encoding": "none", "content": ""},
        "empty": b"",
    }
    assert await github.read_file(REPOSITORY, ".github/issuewright.yml", "main") == "käse\n".encode() * 50
    assert await github.read_file(REPOSITORY, "empty", "main") == b""
    for path in ("missing", "folder", "module"):
        assert await github.read_file(REPOSITORY, path, "main") is None
    with pytest.raises(GitHubError, match="1 MB"):
        await github.read_file(REPOSITORY, "large", "main")
    before = len(hub.seen)
    for path in ("../../../user", "a//b", "/etc", "a/./b", ""):
        assert await github.read_file(REPOSITORY, path, "main") is None
    assert len(hub.seen) == before


async def test_an_issue_and_a_repository_in_our_types(hub: FakeGitHub, github: GitHubClient) -> None:
    """Null where GitHub has null; labels may be bare words."""
    body = b'{"number": 3, "title": null, "labels": ["a", {"name": "b"}, {"name": null}], "pull_request": {}}'
    hub.plan("GET", ISSUE, lambda _: Response(body))
    issue = await github.issue(REPOSITORY, 1)
    assert (issue.number, issue.labels, issue.is_pull, issue.author) == (3, ("a", "b"), True, None)
    assert await github.repository(5) == REPOSITORY
    assert await github.clone_url(REPOSITORY) == httpx.URL(hub.url).join("/ada/engine.git")


async def test_names_cannot_lead_to_another_route(hub: FakeGitHub, github: GitHubClient) -> None:
    """A login or repository with slashes stays one part of the path."""
    await github.permission(REPOSITORY, Actor(1, "../../../user"))
    assert hub.calls("GET", "/user") == []
    assert hub.seen[-1].raw_path == b"/api/v3/repos/ada/engine/collaborators/..%2F..%2F..%2Fuser/permission"


async def test_certificates_that_cannot_be_read_are_the_operators(
    make_app: Callable[..., GitHubAppClient], tmp_path: Path
) -> None:
    """Said at start, with the file's name."""
    broken = tmp_path / "ca.pem"
    broken.write_text("nothing", encoding="utf-8")
    for path in (broken, tmp_path / "missing.pem"):
        with pytest.raises(OperatorError, match=path.name):
            make_app("https://git.example.org/api/v3", ca_bundle=str(path))


async def test_a_proxy_carries_all_calls(hub: FakeGitHub, make_app: Callable[..., GitHubAppClient]) -> None:
    """Named by the operator; the environment is not asked."""
    proxy = hub.url.removesuffix("/api/v3")
    app = make_app("http://github.invalid/api/v3", proxy=proxy)
    assert (await app.installation(INSTALLATION_ID).issue(REPOSITORY, 1)).number == 1
    assert hub.seen[-1].headers["host"] == "github.invalid"
    await app.close()
