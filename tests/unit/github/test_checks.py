"""Our check runs, the checks of others and logs of jobs, against the local GitHub."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from bot.errors import Conflict, Forbidden, GitHubUnavailable, NotFound
from bot.github.base import CheckRun
from bot.github.client import GitHubClient
from bot.github.job_log import HEAD_BYTES, LIMIT_BYTES, plain
from bot.testing.hub.faults import Fault
from bot.testing.hub.hub import Hub
from bot.testing.hub.records import CheckRun as Run
from bot.testing.hub.server import HubServer
from tests.unit.github.on_hub import OnHub


@dataclass
class World(OnHub):
    """A repository of Ada's with our App installed on it, and a commit that is checked."""

    sha: str

    def ended(self, log: str | bytes, conclusion: str = "failure", name: str = "test") -> Run:
        """Let a job of CI end."""
        (job,) = self.hub.run_workflow(self.repository, self.ada, self.sha, [name]).jobs
        self.hub.finish_job(job, conclusion, log)
        return job

    def check(self, **changes: object) -> CheckRun:
        """Make a check of ours."""
        known: dict[str, object] = {
            "name": "issuewright",
            "head_sha": self.sha,
            "external_id": "task-1",
            "status": "in_progress",
            "conclusion": None,
            "title": "Working",
            "summary": "On it.",
        }
        return CheckRun(**{**known, **changes})  # type: ignore[arg-type]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A local GitHub with one of each."""
    hub = Hub(tmp_path)
    ada = hub.create_user("ada")
    repository = hub.create_repository(ada, "engine", files={"README.md": "# Engine\n"}, private=True)
    app = hub.create_app(ada, "Issuewright")
    installation = hub.install(app, [repository.id])
    sha = hub.commit_files(repository, ada, "topic", {"README.md": "# Better\n"})
    with HubServer(hub) as server:
        yield World(hub, server, ada, repository, app, installation, sha)


@pytest.fixture
async def github(world: World) -> AsyncIterator[GitHubClient]:
    """Our installation's client."""
    app = world.client()
    yield app.installation(world.installation.id)
    await app.close()


async def test_a_check_is_made_once_and_then_changed(world: World, github: GitHubClient) -> None:
    """By name and external id; another external id is another check."""
    first = await github.put_check(world.ref, world.check())
    done = world.check(status="completed", conclusion="action_required", title="Waits", text="| a |")
    assert await github.put_check(world.ref, done) == first
    other = await github.put_check(world.ref, world.check(external_id="task-2"))
    assert other != first
    kept, fresh = world.repository.check_runs
    assert (kept.status, kept.conclusion, kept.title, kept.text) == ("completed", "action_required", "Waits", "| a |")
    assert (fresh.status, fresh.conclusion, fresh.external_id) == ("in_progress", None, "task-2")


async def test_a_check_that_was_made_just_before_the_end_is_found_again(world: World, github: GitHubClient) -> None:
    """The connection breaks behind it, and the next try doubles nothing; one of another App is not taken for ours."""
    rival = world.hub.create_app(world.ada, "Rival")
    world.hub.install(rival, [world.repository.id])
    world.hub.create_check_run(world.repository, rival, "issuewright", world.sha, {"external_id": "task-1"})
    world.hub.faults.add(Fault("reset_after", "POST", "*/check-runs"))
    with pytest.raises(GitHubUnavailable):
        await github.put_check(world.ref, world.check())
    made = await github.put_check(world.ref, world.check(title="Again"))
    (ours,) = [run for run in world.repository.check_runs if run.app is world.app]
    assert (ours.id, ours.title) == (made, "Again")


async def test_long_texts_of_a_check_are_cut(world: World, github: GitHubClient) -> None:
    """Before GitHub refuses them, with the open fence closed."""
    long = "```\n" + "rose\n" * 40_000
    await github.put_check(world.ref, world.check(summary=long, text=long, title="t" * 999))
    (run,) = world.repository.check_runs
    assert len(run.summary or "") < 65_535
    assert len(run.text or "") < 65_535
    assert "```\n\n*Shortened" in (run.text or "")
    assert len(run.title or "") == 250
    with pytest.raises(Conflict):
        await github.put_check(world.ref, world.check(head_sha="0" * 40))


async def test_an_app_without_the_permission_says_what_it_needs(world: World, github: GitHubClient) -> None:
    """And everything else goes on working."""
    for name in ("checks", "actions", "statuses"):
        del world.installation.permissions[name]
    issue = world.hub.open_issue(world.repository, world.ada, "It breaks")
    with pytest.raises(Forbidden, match=r"no check can be shown here: .*`checks: write`"):
        await github.put_check(world.ref, world.check())
    with pytest.raises(Forbidden, match=r"needs the permissions `actions: read`, `checks: read`, `statuses: read`"):
        await github.ci_status(world.ref, world.sha)
    with pytest.raises(Forbidden, match=r"logs of jobs cannot be read here"):
        await github.ci_log(world.ref, 1)
    await github.comment(world.ref, issue.number, "hello")


async def test_a_job_s_token_without_the_permission_says_so_too(world: World) -> None:
    """There GitHub's answer is a 403 of the call itself."""
    token = world.hub.create_job_token(world.repository, {"contents": "read"})
    app = world.client(app_id=None, private_key=None, token=token.value)
    with pytest.raises(Forbidden, match=r"`checks: write`.*not accessible by integration"):
        await app.installation(None).put_check(world.ref, world.check())
    await app.close()


async def test_everything_that_is_said_of_a_commit_is_one_list(world: World, github: GitHubClient) -> None:
    """Check runs and statuses, over all pages; ours are marked, jobs have an id, and a branch may name the commit."""
    hub, repository, sha = world.hub, world.repository, world.sha
    await github.put_check(world.ref, world.check())
    job = world.ended("red")
    lint = hub.create_app(world.ada, "Lint Co")
    hub.create_check_run(repository, lint, "style", sha, {"conclusion": "timed_out", "title": "3 findings"})
    hub.create_check_run(repository, lint, "old", sha, {"status": "queued"})
    hub.create_check_run(repository, lint, "lost", sha, {"conclusion": "stale"})
    for state in ("pending", "error"):
        hub.set_status(
            repository, world.ada, sha, state, context="deploy", description="No room", target_url="https://d"
        )
    for number in range(120):
        hub.set_status(repository, world.ada, sha, "success", context=f"z{number:03}")
        hub.create_check_run(repository, lint, f"y{number:03}", sha, {"conclusion": "neutral"})
    found = await github.ci_status(world.ref, sha)
    assert len(found) == 246
    shown = [(c.name, c.app, c.state, c.note, c.job_id, c.ours) for c in found if c.name[0] not in "yz"]
    assert shown == [
        ("deploy", "", "failure", "No room", None, False),
        ("issuewright", "issuewright", "in_progress", "Working", None, True),
        ("lost", "lint-co", "cancelled", "", None, False),
        ("old", "lint-co", "queued", "", None, False),
        ("style", "lint-co", "timed_out", "3 findings", None, False),
        ("test", "github-actions", "failure", "", job.id, False),
    ]
    assert [check.name for check in found if check.is_red] == ["deploy", "lost", "style", "test"]
    assert [check.name for check in found if check.has_failed] == ["deploy", "style", "test"]
    assert await github.ci_status(world.ref, "topic") == found
    assert await github.ci_status(world.ref, "main") == []


async def test_a_red_job_is_not_hidden_by_a_green_one_of_its_name(world: World, github: GitHubClient) -> None:
    """Two workflows have a job `test`; a check that was made again counts once, as it is now."""
    world.ended("red")
    world.ended("fine", "success")
    for conclusion in ("failure", "success"):
        world.hub.create_check_run(
            world.repository, world.app, "again", world.sha, {"conclusion": conclusion, "external_id": conclusion}
        )
    found = await github.ci_status(world.ref, world.sha)
    assert [(check.name, check.state) for check in found] == [
        ("again", "success"),
        ("test", "failure"),
        ("test", "success"),
    ]


async def test_a_log_comes_from_another_host_without_our_token(world: World, github: GitHubClient) -> None:
    """That host refuses whoever shows a login; times, colours and what was written over are gone."""
    log = "##[group]Run pytest\n\x1b[31mE  boom\x1b[0m\n10%\r100%\n\n\x1b]0;title\x07##[error]Process completed\n"
    job = world.ended(log)
    assert await github.ci_log(world.ref, job.id) == (
        "##[group]Run pytest\nE  boom\n100%\n\n##[error]Process completed"
    )


async def test_a_log_that_is_not_there_is_said_to_be_gone(world: World, github: GitHubClient) -> None:
    """Deleted; of a job that goes on; of none that is ours; deleted between the link and the download."""
    job = world.ended("red")
    world.hub.faults.add(Fault("status", "GET", "/actions-logs/*", status=404))
    with pytest.raises(NotFound, match=f"no log of job {job.id}"):
        await github.ci_log(world.ref, job.id)
    world.hub.delete_log(job)
    with pytest.raises(NotFound, match="GitHub has deleted it"):
        await github.ci_log(world.ref, job.id)
    (running,) = world.hub.run_workflow(world.repository, world.ada, world.sha, ["slow"]).jobs
    for number in (running.id, 4):
        with pytest.raises(NotFound, match="has not ended, is none of this repository"):
            await github.ci_log(world.ref, number)


async def test_a_broken_download_gives_no_key_away(world: World, github: GitHubClient) -> None:
    """The link holds one, so the error names the host alone."""
    job = world.ended("red")
    for kind in ("reset", "status", "truncate"):
        world.hub.faults.add(Fault(kind, "GET", "/actions-logs/*"))
        with pytest.raises(GitHubUnavailable) as told:
            await github.ci_log(world.ref, job.id)
        assert "actions-logs" not in str(told.value)


async def test_of_a_log_of_100_mb_both_ends_are_read(world: World, github: GitHubClient) -> None:
    """Whole lines of them, with a note of what is missing, and no more than the limit."""
    line = b"2026-11-30T12:00:00.1234567Z " + b"x" * 70 + b"\n"
    middle = line * (100_000_000 // len(line))
    job = world.ended(b"first\n" + middle + b"##[error]last\n")
    log = await github.ci_log(world.ref, job.id)
    lines = log.split("\n")
    assert (lines[0], lines[-1]) == ("first", "##[error]last")
    (note,) = [number for number, line in enumerate(lines) if "bytes left out" in line]
    assert {*lines[1:note], *lines[note + 1 : -1]} == {"x" * 70}
    assert HEAD_BYTES < len(log) * len(line) / 71 <= LIMIT_BYTES + 200


async def test_hostile_logs_end_as_text(world: World, github: GitHubClient) -> None:
    """Binary, without any newline, with open escapes and with direction marks."""
    hostile = bytes(range(256)) * 4 + "\u202egnp.exe\u2066".encode() + b"\x1b]8;;never closed\nnext\x1b[0m"
    told = await github.ci_log(world.ref, world.ended(hostile).id)
    assert told.replace("\n", "").replace("\t", "").isprintable()
    assert not {"\x00", "\x1b", "\u202e", "\u2066", "\r"} & {*told}
    assert told.endswith("\nnext")
    endless = await github.ci_log(world.ref, world.ended(b"y" * (LIMIT_BYTES + 5_000)).id)
    assert "\n[… 5000 bytes left out …]\n" in endless


def test_only_times_at_the_beginning_of_a_line_are_cut() -> None:
    """What a program printed itself stays; a byte order mark goes."""
    log = "\ufeff2026-11-30T12:00:00.1234567Z 2026-11-30T12:00:00Z started\n2026-11-30T12:00:00Z\nplain é\n"
    assert plain(log.encode()) == "2026-11-30T12:00:00Z started\n\nplain é"
