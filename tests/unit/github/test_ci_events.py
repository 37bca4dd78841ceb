"""What webhooks say of checks that came to an end."""

import json
from typing import Any

import pytest

from bot.domain.refs import RepositoryRef, ThreadRef
from bot.domain.trigger import CiFinished
from bot.github.webhooks import decode, to_trigger
from tests.unit.github.test_webhooks import examples

HEAD = "a" * 40
HOME: dict[str, Any] = {"id": 5, "full_name": "ada/engine", "default_branch": "main", "private": False}


def heard(event: str, *, own_app_id: int | None = 900, **more: Any) -> CiFinished | None:
    """Send a body through."""
    body = {"repository": HOME, "installation": {"id": 77}, "sender": {"id": 1, "login": "ada", "type": "User"}, **more}
    trigger = to_trigger(event, decode(json.dumps(body).encode()), own_app_id=own_app_id, own_user_ids=(1,))
    assert trigger is None or isinstance(trigger, CiFinished)
    return trigger


def ended(**more: Any) -> dict[str, Any]:
    """Make a suite of checks, or a run of a workflow."""
    pulls = [{"number": 8, "base": {"ref": "main", "repo": {"id": 5}}}]
    made = {"id": 44, "head_branch": "agent/7-aaaaaaaa", "head_sha": HEAD, "updated_at": "2026-11-30T12:00:00Z"}
    return {**made, "pull_requests": pulls, "app": {"id": 15368, "slug": "github-actions"}, **more}


def test_a_suite_names_commit_branch_and_pull_requests() -> None:
    """Everything by which a task is found; that we are the sender, since we pushed the commit, is no matter."""
    made = heard("check_suite", action="completed", check_suite=ended())
    assert made is not None
    assert (made.head_sha, made.pulls, made.branches) == (HEAD, [8], ["agent/7-aaaaaaaa"])
    assert made.context.thread == ThreadRef(RepositoryRef(5, "ada/engine", "main"), 0, "pull")
    assert made.context.installation_id == 77
    assert made.context.event_key == f"suite:5:{HEAD}:44:2026-11-30T12:00:00Z"


def test_our_own_suites_are_not_what_others_say() -> None:
    """By the number of the App; a suite whose App is gone is somebody's."""
    assert heard("check_suite", action="completed", check_suite=ended(app={"id": 900, "slug": "us"})) is None
    assert heard("check_suite", action="completed", check_suite=ended(app=None)) is not None
    assert heard("check_suite", own_app_id=None, action="completed", check_suite=ended()) is not None


@pytest.mark.parametrize("action", ["requested", "rerequested", "in_progress", None])
def test_what_only_begins_is_no_end(action: str | None) -> None:
    """Of suites and workflows alike."""
    assert heard("check_suite", action=action, check_suite=ended()) is None
    assert heard("workflow_run", action=action, workflow_run=ended()) is None


def test_a_workflow_that_is_run_again_ends_again() -> None:
    """It keeps its id; each attempt is a happening of its own, and its redelivery is not."""
    keys = [
        heard("workflow_run", action="completed", workflow_run=ended(run_attempt=attempt)).context.event_key  # type: ignore[union-attr]  # each is one
        for attempt in (1, 2, 2)
    ]
    assert len(set(keys)) == 2
    first = heard("check_suite", action="completed", check_suite=ended())
    again = heard("check_suite", action="completed", check_suite=ended(updated_at="2026-11-30T12:09:00Z"))
    assert first is not None
    assert again is not None
    assert first.context.event_key != again.context.event_key


def test_a_pull_request_of_another_repository_is_not_named() -> None:
    """GitHub lists those that go into a fork's parent as well; where it does not say where one goes, it counts."""
    pulls = [
        {"number": 1, "base": {"repo": {"id": 6}}},
        {"number": 2, "base": {"repo": None}},
        {"number": None},
        {"number": 3},
    ]
    made = heard("workflow_run", action="completed", workflow_run=ended(pull_requests=pulls, head_branch=None))
    assert made is not None
    assert (made.pulls, made.branches) == ([2, 3], [])
    assert heard("workflow_run", action="completed", workflow_run=ended(pull_requests=None)) is not None


@pytest.mark.parametrize("state", ["success", "failure", "error", "pending", "unheard-of", None])
def test_a_status_counts_when_it_is_an_end(state: str | None) -> None:
    """Pending is none; each one has a number of its own."""
    made = heard("status", id=3, sha=HEAD, state=state, branches=[{"name": "agent/7-aaaaaaaa"}, {"name": None}])
    if state not in {"success", "failure", "error"}:
        assert made is None
        return
    assert made is not None
    assert (made.head_sha, made.pulls, made.branches) == (HEAD, (), ["agent/7-aaaaaaaa"])
    assert made.context.event_key == f"status:5:{HEAD}:3"


def test_what_names_no_commit_is_nothing() -> None:
    """Nor what names no repository, nor what has no id."""
    assert heard("status", id=3, sha=None, state="success") is None
    assert heard("status", sha=HEAD, state="success") is None
    assert heard("check_suite", action="completed", check_suite=ended(head_sha=None)) is None
    assert heard("check_suite", action="completed", check_suite=ended(id=None)) is None
    assert heard("check_suite", action="completed") is None
    assert heard("check_suite", action="completed", check_suite=ended(), repository=None) is None


def test_github_s_own_examples_say_what_they_say() -> None:
    """Commit, branches and pull requests of each; one of three workflows has a pull request of another repository."""
    seen = []
    for event, example in examples():
        made = to_trigger(event, decode(json.dumps(example).encode()))
        if not isinstance(made, CiFinished):
            continue
        said = example.get("check_suite") or example.get("workflow_run") or example
        assert made.head_sha == said.get("head_sha", said.get("sha"))
        expected = [said["head_branch"]] if "head_branch" in said else [one["name"] for one in said["branches"]]
        assert made.branches == expected
        seen.append((event, list(made.pulls)))
    assert sorted(seen) == [
        *[("check_suite", []), ("check_suite", [2]), ("check_suite", [2]), ("check_suite", [2])],
        *[("status", [])] * 4,
        *[("workflow_run", [])] * 3,
    ]
