"""Workflow runs, jobs and their logs: who may see them, where a log is, and what others hear of it."""

import json

import httpx

from tests.hub.world import World


def fetch(url: str, **headers: str) -> httpx.Response:
    """Ask the host of the logs."""
    with httpx.Client(trust_env=False, verify=False, headers=headers) as client:
        return client.get(url)


def test_a_log_is_at_another_host_for_a_minute(world: World) -> None:
    """The API names a link, which takes no login, gives out parts, and ends."""
    sha = world.hub.commit_files(world.repository, world.owner, "fix", {"a": "b"})
    (job,) = world.hub.run_workflow(world.repository, world.owner, sha, ["test"]).jobs
    logs = f"{world.path}/actions/jobs/{job.id}/logs"
    assert world.as_bot().get(logs).status_code == 404
    world.hub.finish_job(job, "failure", "one\ntwo")
    found = world.as_bot().get(logs)
    link = found.headers["Location"]
    assert (found.status_code, httpx.URL(link).host) == (302, "localhost")
    whole = fetch(link)
    assert whole.text.startswith("\ufeff2026-11-30T12:00:00.1234567Z one\n")
    assert fetch(link, Authorization="Bearer x").status_code == 400
    part = fetch(link, Range=f"bytes={len(whole.content) - 4}-")
    assert (part.status_code, part.text) == (206, "two\n")
    assert fetch(link, Range="bytes=9999-").status_code == 416
    assert fetch(f"{link}0").status_code == 403
    world.clock.forward(minutes=1)
    assert fetch(link).status_code == 403


def test_a_log_needs_a_permission_and_may_be_deleted(world: World) -> None:
    """403 without `actions: read` in a private repository, 410 once it is deleted, 404 for a check that is no job."""
    world.repository.private = True
    sha = world.hub.commit_files(world.repository, world.owner, "fix", {"a": "b"})
    (job,) = world.hub.run_workflow(world.repository, world.owner, sha, ["test"]).jobs
    world.hub.finish_job(job, "success")
    logs = f"{world.path}/actions/jobs/{job.id}/logs"
    refused = world.as_bot(checks="read").get(logs)
    assert (refused.status_code, refused.headers["X-Accepted-GitHub-Permissions"]) == (403, "actions=read")
    world.hub.delete_log(job)
    assert world.as_bot().get(logs).status_code == 410
    check = world.hub.create_check_run(world.repository, world.app, "agent", sha)
    for path in (f"{check.id}", f"{check.id}/logs"):
        assert world.as_bot().get(f"{world.path}/actions/jobs/{path}").status_code == 404


def test_two_workflows_are_two_suites(world: World) -> None:
    """Jobs of one name in two workflows are both among the latest; one that runs again takes its own place alone."""
    sha = world.hub.commit_files(world.repository, world.owner, "fix", {"a": "b"})
    for name in ("CI", "Nightly"):
        (job,) = world.hub.run_workflow(world.repository, world.owner, sha, ["test"], name=name).jobs
        world.hub.finish_job(job, "failure" if name == "CI" else "success")
    world.hub.create_check_run(world.repository, world.app, "agent", sha)
    latest = world.hub.create_check_run(world.repository, world.app, "agent", sha)
    runs = world.as_bot().get(f"{world.path}/commits/{sha}/check-runs").json()["check_runs"]
    assert sorted((run["name"], run["conclusion"] or "") for run in runs) == [
        ("agent", ""),
        ("test", "failure"),
        ("test", "success"),
    ]
    assert latest.id in {run["id"] for run in runs}


def test_suite_and_workflow_are_over_with_their_last_job(world: World) -> None:
    """`check_run` for each job, then one `check_suite` and one `workflow_run`, with the worst of the conclusions."""
    sha = world.hub.commit_files(world.repository, world.owner, "fix", {"a": "b"})
    lint, test = world.hub.run_workflow(world.repository, world.owner, sha, ["lint", "test"]).jobs
    world.hub.finish_job(test, "failure")
    assert world.hub.deliveries("check_suite") == world.hub.deliveries("workflow_run") == []
    world.hub.finish_job(lint, "success")
    assert len(world.hub.deliveries("check_run", "completed")) == 2
    (suite,) = [json.loads(one.body)["check_suite"] for one in world.hub.deliveries("check_suite", "completed")]
    (run,) = [json.loads(one.body)["workflow_run"] for one in world.hub.deliveries("workflow_run", "completed")]
    assert (suite["conclusion"], suite["app"]["slug"], suite["head_sha"]) == ("failure", "github-actions", sha)
    assert (run["conclusion"], run["check_suite_id"], run["head_sha"]) == ("failure", suite["id"], sha)


def test_a_commit_status_is_told_with_the_branches_that_end_there(world: World) -> None:
    """As GitHub's own example has it, as far as anybody reads it."""
    sha = world.hub.commit_files(world.repository, world.owner, "fix", {"a": "b"})
    made = world.hub.set_status(world.repository, world.owner, sha, "success", context="build")
    (told,) = [json.loads(one.body) for one in world.hub.deliveries("status")]
    assert (told["id"], told["sha"], told["state"], told["context"]) == (made.id, sha, "success", "build")
    assert [(one["name"], one["commit"]["sha"]) for one in told["branches"]] == [("fix", sha)]
    assert told["name"] == world.repository.full_name
    older = world.hub.git(world.repository).resolve("main")
    world.hub.set_status(world.repository, world.owner, older or "", "pending")
    assert [one["name"] for one in json.loads(world.hub.deliveries("status")[-1].body)["branches"]] == ["main"]
