"""Deaths beside the steps of a first run: in further runs, in a row, in a push, in a command, by a polite signal."""

import concurrent.futures
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bot.testing.hub.faults import Fault
from bot.testing.model.reply import Call
from bot.testing.model.script import Conversation, Script, Turn
from tests.e2e.door import settled, tasks
from tests.e2e.scripts import FILES, GREETING
from tests.e2e.stage import Stage, until
from tests.e2e.test_bad_input import helpers, sleepers
from tests.e2e.test_killed_worker import one_of_everything

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(300)]

AT_ONCE = 2
FURTHER = ("tool/2/0", "push", "pull", "report")
"""Steps of the second run at which a worker dies."""


@contextmanager
def living(stage: Stage, **more: str) -> Iterator["subprocess.Popen[str]"]:
    """Start a server that may die by itself; killed at the end where it did not."""
    process = stage.spawn(**more)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def death(stage: Stage, process: "subprocess.Popen[str]") -> None:
    """Wait until a server has died as it was told to."""
    until(process.poll, f"the death; the server said: {stage.log()}")
    assert process.returncode == -signal.SIGKILL, stage.log()


def finished(folder: Path) -> None:
    """Wait until the last step is made, and let the server end."""
    until(lambda: True if "close" in (folder / "steps").read_text().split() else None, "the last step", 10)


def asked(stage: Stage) -> Counter[tuple[str, int]]:
    """Count the model's requests by conversation and turn."""
    with_turn = [request for request in stage.model.requests if request.path == "/v1/messages"]
    return Counter((request.conversation, request.turn) for request in with_turn)


def further_story(folder: Path, kill_at: str) -> None:
    """Play the main story, then a further run in which a worker dies; look at what is there."""
    folder.mkdir(mode=0o711)
    deadly = {"KILL_AT": kill_at, "KILLED": str(folder / "killed"), "KILL_RUN": "2"}
    with Stage(folder, GREETING, FILES).open() as stage:
        with living(stage, **deadly) as first:
            stage.labelled()
            stage.story_ends(1)
            (pull,) = stage.pulls()
            comment = stage.hub.comment(pull, stage.maria, "/agent fix Greet the whole world, please.")
            death(stage, first)
        with stage.serving(**deadly):
            told = stage.story_ends(pull.number)
            until(lambda: True if len(comment.reactions) == 2 else None, "the reactions", 10)
        assert told.startswith("**Done**: [#2]"), told
        assert pull.pull is not None
        branch = pull.pull.head_ref
        assert stage.pulls() == [pull]
        assert [len(stage.bot_comments(number)) for number in (1, pull.number)] == [1, 1]
        assert sorted(stage.branches()) == sorted(["main", branch])
        assert stage.git("rev-list", "--count", f"main..{branch}") == "2"
        assert stage.git("show", f"{branch}:greet.txt") == "Hello, whole world"
        assert sorted(reaction.content for reaction in comment.reactions) == ["eyes", "rocket"]
        assert (pull.body or "").count("issuewright:v1:") == 1
        assert "The whole world is greeted." in (pull.body or "")
        # None of the deaths is inside a model's step.
        assert set(asked(stage).values()) == {1}
        assert stage.model.problems == []
        stage.git("fsck", "--strict")


def test_a_worker_killed_in_a_further_run_leaves_one_of_everything(folder: Path) -> None:
    """A comment on the pull request adds one commit and one answer, wherever the worker dies."""
    begun = time.monotonic()
    deaths = [f"{step}:{moment}" for step in FURTHER for moment in ("before", "inside")]
    failed: dict[str, str] = {}
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        stories = {
            pool.submit(further_story, folder / kill_at.replace("/", "-").replace(":", "-"), kill_at): kill_at
            for kill_at in deaths
        }
        for done in concurrent.futures.as_completed(stories):
            if (error := done.exception()) is not None:
                failed[stories[done]] = repr(error)[:1500]
    print(f"{len(deaths)} deaths in {time.monotonic() - begun:.0f} s")  # noqa: T201 - the budget is to be seen
    assert failed == {}


@pytest.mark.parametrize("places", ["tool/1/0:inside,push:inside", "model/2:inside,model/2:inside"])
def test_a_worker_killed_twice_in_a_row_leaves_one_of_everything(stage: Stage, folder: Path, places: str) -> None:
    """The second life dies as well, elsewhere or at the same step; the third one ends the story."""
    deadly = {"KILL_AT": places, "KILLED": str(folder / "killed"), "KILLS": "2", "STEPS": str(folder / "steps")}
    for life in range(2):
        with living(stage, **deadly) as process:
            if life == 0:
                stage.labelled()
            death(stage, process)
    with stage.serving(**deadly):
        stage.story_ends(1)
        finished(folder)
    counted = asked(stage)
    repeated = {turn: count for turn, count in counted.items() if count > 1}
    assert repeated in ({}, {("fix", 1): 3}), counted
    if not repeated:
        one_of_everything(stage, "")


@pytest.mark.parametrize("kind", ["delay", "timeout_after"])
def test_a_worker_killed_during_its_push_leaves_one_commit(stage: Stage, folder: Path, kind: str) -> None:
    """Git dies, or lives on, with the push half way or done; the next worker finds out and pushes what is missing."""
    stage.hub.faults.add(Fault(kind, "POST", "*/git-receive-pack", seconds=2))  # type: ignore[arg-type]  # one of the kinds
    with living(stage) as process:
        stage.labelled()
        until(lambda: stage.hub.faults.hits or None, "the push")
        process.kill()
        process.wait()
    with stage.serving(STEPS=str(folder / "steps")):
        stage.story_ends(1)
        finished(folder)
    assert set(asked(stage).values()) == {1}
    one_of_everything(stage, "")


def test_a_delivery_that_was_answered_is_not_lost(stage: Stage, folder: Path) -> None:
    """The worker dies in the moment after its 2xx: the next one starts the task without any redelivery."""
    deadly = {"KILL_AT": "delivery:after", "KILLED": str(folder / "killed")}
    with living(stage, **deadly) as process:
        issue = stage.hub.open_issue(stage.repository, stage.maria, "The greeting is wrong", "x")
        death(stage, process)
    stage.hub.hooks.modes.drop = True
    with living(stage, **{**deadly, "KILLED": str(folder / "killed again")}) as process:
        stage.hub.hooks.modes.drop = False
        stage.hub.add_label(issue, stage.maria, "agent")
        death(stage, process)
    (delivery,) = stage.hub.deliveries("issues", "labeled")
    assert delivery.status_code == 202
    with stage.serving(STEPS=str(folder / "steps")):
        stage.story_ends(1)
        finished(folder)
        assert settled(stage, delivery.guid)[0] == "done"
    one_of_everything(stage, "")


def script(name: str, *turns: Turn) -> Script:
    """The greeting's script with one more conversation, for issues that are called so."""
    return Script([Conversation(name, turns, match=name), *GREETING.conversations], name="greeting")


CHECK = Call("run", {"command": "sh check.sh"})
MEND = Turn(calls=[Call("edit", {"path": "greet.txt", "old": "Helo", "new": "Hello"}), CHECK])
FINISH = Turn(calls=[Call("finish", {"summary": "Done."})])


def command(text: str) -> Turn:
    """A turn that runs a command."""
    return Turn(calls=[Call("run", {"command": text})])


def test_a_command_dies_with_its_worker_and_leaves_no_trace(folder: Path) -> None:
    """SIGKILL during a command: soon nothing of it runs, and the next worker runs it on the tree before it."""
    # What decides lies outside, where commands may only look.
    sign = folder / "sign"
    sign.mkdir(mode=0o755)
    shown = {"ISSUEWRIGHT_SANDBOX__PATHS": str(sign)}
    first = sign / "first"
    first.touch()
    told = script(
        "slowly",
        MEND,
        command(f"echo half > half.txt; if [ -e {first} ]; then sleep 301; else ls; fi"),
        Turn(calls=[Call("run", {"command": "rm half.txt"})]),
        FINISH,
    )
    with Stage(folder, told, FILES).open() as stage:
        with living(stage, **shown) as process:
            stage.labelled("Do it slowly")
            until(lambda: sleepers(stage) or None, f"the command; {stage.log()}")
            process.kill()
            process.wait()
            until(lambda: True if not helpers(stage) else None, "the end of the command", 10)
        first.unlink()
        with stage.serving(**shown):
            assert stage.story_ends(1).startswith("**Done**")
        (pull,) = stage.pulls()
        assert pull.pull is not None
        assert stage.git("diff", "--name-only", "main", pull.pull.head_ref) == "greet.txt"
        assert set(asked(stage).values()) == {1}
        assert stage.model.problems == []


def test_a_polite_signal_lets_the_step_in_flight_end(folder: Path) -> None:
    """SIGTERM during a command, and during an answer of the model: exit 0 within the grace, and neither is repeated."""
    slow = Turn(calls=[Call("read", {"path": "greet.txt"})], delay_s=2.0)
    told = script("slowly", MEND, command("echo x >> count.txt; sleep 2"), slow, FINISH)
    with Stage(folder, told, FILES).open() as stage:
        moments = (
            lambda: True if sleepers(stage) else None,
            lambda: True if len(stage.model.requests) == 3 else None,
        )
        for number, moment in enumerate(moments):
            with living(stage) as process:
                if number == 0:
                    stage.labelled("Do it slowly")
                until(moment, f"moment {number}; {stage.log()}")
                begun = time.monotonic()
                process.send_signal(signal.SIGTERM)
                assert process.wait(35) == 0, stage.log()
                assert time.monotonic() - begun < 15
                assert stage.pulls() == []
        with stage.serving():
            assert stage.story_ends(1).startswith("**Done**")
        (pull,) = stage.pulls()
        assert pull.pull is not None
        assert stage.git("show", f"{pull.pull.head_ref}:count.txt") == "x"
        assert set(asked(stage).values()) == {1}
        assert stage.model.problems == []


def test_a_run_that_kills_every_worker_is_given_up(stage: Stage, folder: Path) -> None:
    """Six deaths at one step with no step in between end the run with its reason; the worker goes on with others."""
    deadly = {"KILL_AT": "model/2:before", "KILLED": str(folder / "killed"), "KILLS": "6"}
    for life in range(6):
        with living(stage, **deadly) as process:
            if life == 0:
                stage.labelled()
            death(stage, process)
    with stage.serving(**deadly, KILL_RUN="99"):
        told = stage.story_ends(1)
        assert told.startswith("**Failed**"), told
        assert "died 5 times at the same step" in told
        assert stage.story_ends(stage.labelled().number).startswith("**Done**")
        assert len(stage.bot_comments(1)) == 1
        assert [len(task["runs"]) for task in tasks(stage)] == [1, 1]  # type: ignore[arg-type]  # lists, as the API has it
        assert stage.healthy()


def test_a_run_that_is_given_up_does_not_come_back_with_its_neighbour(folder: Path) -> None:
    """A run that makes progress beside one that kills every worker is finished, and the other one stays ended."""
    busy = (*(command(f"sleep 0.2; echo {number}") for number in range(40)), MEND, FINISH)
    calls = [Call("run", {"command": text}) for text in ("true", "sleep 1")]
    conversations = [
        Conversation("busy", busy, match="busy"),
        Conversation("deadly", [Turn(calls=calls)], match="deadly"),
    ]
    places = {"KILL_AT": "tool/1/1:inside", "KILLED": str(folder / "killed"), "KILLS": "99"}
    with Stage(folder, Script([*conversations, *GREETING.conversations], name="greeting"), FILES).open() as stage:
        for life in range(6):
            with living(stage, **places) as process:
                if life == 0:
                    for name in ("deadly", "busy"):
                        stage.labelled(name)
                death(stage, process)
        with living(stage, **places) as process:
            assert stage.story_ends(1).startswith("**Failed**")
            told = stage.story_ends(2)
            assert told.startswith("**Done**"), told
            assert stage.story_ends(stage.labelled().number).startswith("**Done**")
            assert process.poll() is None
        assert len((folder / "killed").read_text().splitlines()) == 6
        # A death may meet the neighbour while it waits for an answer, which is then asked for again.
        assert asked(stage).total() - len(asked(stage)) <= 6
