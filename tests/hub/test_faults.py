"""Failure switches: each kind happens on the call it is planned for, and leaves the state it says."""

import time

import httpx
import pytest

from bot.testing.hub.faults import Fault
from tests.hub.world import World


@pytest.fixture
def issue(world: World) -> str:
    """Return the path of an issue's comments."""
    return f"{world.path}/issues/{world.hub.open_issue(world.repository, world.owner, 'Bug').number}/comments"


def comments(world: World) -> int:
    """Return how many comments there are."""
    return len(world.repository.issues[1].comments)


def test_a_status_before_does_nothing_on_the_nth_call(world: World, issue: str) -> None:
    """Only the second matching call fails, and makes no comment."""
    world.hub.faults.add(Fault("status", "POST", "/repos/*/issues/*/comments", nth=2, status=503))
    bot = world.as_bot()
    statuses = [bot.post(issue, json={"body": "x"}).status_code for _ in range(3)]
    assert (statuses, comments(world)) == ([201, 503, 201], 2)
    assert world.hub.faults.hits == [("POST", issue, "status")]


def test_a_status_after_has_done_the_work(world: World, issue: str) -> None:
    """502 although the comment is there: what a retry must look up."""
    world.hub.faults.add(Fault("status_after", "POST", "*/comments", status=502))
    assert world.as_bot().post(issue, json={"body": "x"}).status_code == 502
    assert comments(world) == 1


@pytest.mark.parametrize(("kind", "made"), [("reset", 0), ("reset_after", 1), ("timeout_after", 1), ("truncate", 1)])
def test_connections_break(world: World, issue: str, kind: str, made: int) -> None:
    """Before or after the work, or in the middle of the answer; the next call is fine."""
    world.hub.faults.add(Fault(kind, "POST", "*/comments", seconds=0.05))  # type: ignore[arg-type]
    bot = world.as_bot()
    with pytest.raises(httpx.TransportError):
        bot.post(issue, json={"body": "x"})
    assert comments(world) == made
    assert bot.post(issue, json={"body": "y"}).status_code == 201


def test_a_silent_answer_runs_into_the_client_s_timeout(world: World, issue: str) -> None:
    """The work is done, the answer does not come."""
    world.hub.faults.add(Fault("timeout_after", "POST", "*/comments", seconds=1))
    with pytest.raises(httpx.ReadTimeout):
        world.as_bot().post(issue, json={"body": "x"}, timeout=0.3)
    assert comments(world) == 1


def test_a_delay_delays(world: World, issue: str) -> None:
    """The answer is right and late."""
    world.hub.faults.add(Fault("delay", "GET", "*/comments", seconds=0.2))
    begun = time.monotonic()
    assert world.as_bot().get(issue).status_code == 200
    assert time.monotonic() - begun >= 0.2


def test_a_fresh_token_may_be_refused_for_a_while(world: World, issue: str) -> None:
    """401 for the first two calls, as before a token has reached all replicas."""
    world.hub.faults.add(Fault("unauthorized", route="/repos/*", times=2))
    bot = world.as_bot()
    assert [bot.get(issue).status_code for _ in range(3)] == [401, 401, 200]


@pytest.mark.parametrize(("status", "retry"), [(403, None), (403, "1"), (429, "Mon, 30 Nov 2026 12:01:00 GMT")])
def test_the_secondary_limit_comes_with_and_without_retry_after(
    world: World, issue: str, status: int, retry: str | None
) -> None:
    """Remaining is not 0: only the words and perhaps `retry-after` tell."""
    world.hub.faults.add(Fault("secondary", "POST", "*/comments", status=status, retry_after=retry))
    answer = world.as_bot().post(issue, json={"body": "x"})
    assert (answer.status_code, answer.headers.get("retry-after")) == (status, retry)
    assert "secondary rate limit" in answer.json()["message"]
    assert answer.headers["x-ratelimit-remaining"] != "0"
    assert comments(world) == 0


def test_a_cleared_plan_fails_nothing(world: World) -> None:
    """Git paths can be planned for too; clearing forgets all."""
    world.hub.faults.add(Fault("status", route="*/info/refs", times=5))
    url = f"{world.server.url}/acme/web.git/info/refs?service=git-upload-pack"
    assert httpx.get(url, trust_env=False).status_code == 502
    world.hub.faults.clear()
    assert httpx.get(url, trust_env=False).status_code == 200
