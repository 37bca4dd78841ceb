"""A worker that is killed between any two steps, or inside one, is taken over, and there is one of everything."""

import concurrent.futures
import signal
import time
from pathlib import Path

import pytest

from bot.tasks.steps import REGISTRY
from tests.e2e.scripts import FILES, GREETING
from tests.e2e.stage import Stage, until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]
AT_ONCE = 2
"""Stories side by side; the machines that run this have two cores."""
ELSEWHERE = {
    "answer",
    "answers",
    "approved",
    "check/base",
    "check/head",
    "check/stale",
    "gate",
    "plan",
    "protected",
    "question",
    "update",
}
"""Kinds of steps that the main story has not; tests in `tests/unit/tasks` die at each of a story that does:
`test_planning.py`, `test_orders.py` (answers to people), `test_rounds.py`, `test_gates.py`, `test_protection.py`,
`test_evidence.py`, `test_checking.py` and `test_updating.py`.
"""


def kind(step: str) -> str:
    """The registry's kind of a step's name."""
    return next((known for known in sorted(REGISTRY, key=len, reverse=True) if step.startswith(known)), step)


def story(folder: Path, *, kill_at: str = "", seconds: float = 90.0) -> list[str]:
    """Play the main story with one death; return the names of the steps that were made."""
    folder.mkdir(mode=0o711)
    steps = folder / "steps"
    with Stage(folder, GREETING, FILES).open() as stage:
        environment = {"STEPS": str(steps), "KILL_AT": kill_at, "KILLED": str(folder / "killed")}
        with stage.serving(**environment) as first:
            issue = stage.labelled()
            if kill_at:
                until(first.poll, f"death at {kill_at}; {stage.log()}", seconds)
                assert first.returncode == -signal.SIGKILL, stage.log()
            else:
                stage.story_ends(issue.number)
                until(lambda: True if "close" in steps.read_text().split() else None, "the last step", 10)
        if kill_at:
            with stage.serving(**environment):
                stage.story_ends(issue.number)
                until(lambda: True if "close" in steps.read_text().split() else None, "the last step", 20)
        one_of_everything(stage, kill_at)
    return steps.read_text().split()


def one_of_everything(stage: Stage, kill_at: str) -> None:
    """What people see after the story, whatever happened to the workers."""
    (told,) = stage.bot_comments(1)
    assert told.startswith("**Done**: [#2]"), f"{kill_at}: {told}"
    (pull,) = stage.pulls()
    assert pull.pull is not None
    assert "| greeting | `sh check.sh` | 1 | 0 |" in (pull.body or "")
    branch = pull.pull.head_ref
    assert sorted(stage.branches()) == sorted(["main", branch])
    assert stage.git("rev-list", "--count", f"main..{branch}") == "1"
    assert stage.git("show", f"{branch}:greet.txt") == "Hello, world"
    assert stage.git("diff", "--name-only", "main", branch) == "greet.txt"
    with stage.hub.lock:
        issue = stage.repository.issues[1]
        ours = sorted(reaction.content for reaction in issue.reactions if reaction.user is stage.app.bot)
        assert set(ours) <= {"eyes", "rocket"}
        assert len(ours) == len(set(ours))
    asked = [request for request in stage.model.requests if request.path == "/v1/messages"]
    # A death inside a step repeats that one step; a reply that was recorded is not paid for again.
    assert len(asked) <= 3 + (1 if kill_at.endswith("inside") and kill_at.startswith("model/") else 0), kill_at
    assert stage.model.problems == []
    stage.git("fsck", "--strict")


def test_a_worker_killed_at_any_step_leaves_one_of_everything(folder: Path) -> None:
    """Every step of the main story, before it begins and inside it: the next worker goes on, nothing is made twice."""
    begun = time.monotonic()
    names = list(dict.fromkeys(story(folder / "whole")))
    assert {kind(name) for name in names} == set(REGISTRY) - ELSEWHERE
    deaths = [f"{name}:{moment}" for name in names for moment in ("before", "inside")]
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        stories = {
            pool.submit(story, folder / death.replace("/", "-").replace(":", "-"), kill_at=death): death
            for death in deaths
        }
        failed = {}
        for done in concurrent.futures.as_completed(stories):
            if (error := done.exception()) is not None:
                failed[stories[done]] = repr(error)[:1500]
    print(f"{len(deaths)} deaths in {time.monotonic() - begun:.0f} s")  # noqa: T201 - the budget is to be seen
    assert failed == {}


def test_a_worker_that_is_told_to_end_drains(folder: Path) -> None:
    """SIGTERM during a run ends the process by itself; the next one finishes, and no step is made twice."""
    place = folder / "drained"
    place.mkdir(mode=0o711)
    steps = place / "steps"
    with Stage(place, GREETING, FILES).open() as stage:
        with stage.serving(STEPS=str(steps)) as process:
            stage.labelled()
            until(lambda: True if steps.exists() and "model/1" in steps.read_text() else None, "the first turn")
            process.send_signal(signal.SIGTERM)
            assert process.wait(35) == 0
        with stage.serving(STEPS=str(steps)):
            stage.story_ends(1)
        one_of_everything(stage, "")


def test_a_delivery_that_was_taken_is_handled_by_the_next_worker(folder: Path) -> None:
    """A worker that dies right after its 2xx loses nothing: the delivery is stored, and the next one handles it."""
    place = folder / "taken"
    place.mkdir(mode=0o711)
    with Stage(place, GREETING, FILES).open() as stage:
        with stage.serving() as process:
            stage.labelled()
            until(
                lambda: next((d for d in stage.hub.deliveries("issues", "labeled") if d.status_code), None), "the 2xx"
            )
            process.send_signal(signal.SIGKILL)
            process.wait(10)
        (delivery,) = stage.hub.deliveries("issues", "labeled")
        assert delivery.status_code == 202
        with stage.serving():
            stage.story_ends(1)
        one_of_everything(stage, "")
