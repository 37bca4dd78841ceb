"""`issuewright run --resume`: after a kill at any step, after Ctrl-C once and twice, in a clone and in place."""

import re
import sqlite3
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.store.opening import TASKS_FILE
from bot.testing.model.reply import Call
from bot.testing.model.script import Conversation, Script, Turn
from tests.e2e.scripts import FILES, GREETING
from tests.e2e.stage import until
from tests.e2e.terminal import Person, person_with

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

FURTHER = "go on with the task"
"""What the model is told at the beginning of a further run in which nobody says anything."""
ALL = ("--approve", "all")


@pytest.fixture
def person(folder: Path) -> Iterator[Person]:
    """Somebody with the greeting's repository, and with work of their own in it."""
    with person_with(folder, GREETING, FILES) as one:
        (one.repo / "stashed.txt").write_text("stashed")
        one.git("stash", "--include-untracked", "-q")
        (one.repo / "staged.txt").write_text("staged")
        one.git("add", "staged.txt")
        (one.repo / "notes.txt").write_text("mine")
        one.own()
        yield one
        assert one.model.problems == []


def task_of(shown: str) -> str:
    """Find the id that the command told."""
    return shown.split("task ", 1)[1].split(";", 1)[0]


DEATHS = (
    "announce:before",
    "prepare:inside",
    "model/1:before",
    "tool/1/0:before",
    "tool/1/0:inside",
    "model/2:inside",
    "tool/2/0:inside",
    "commit:inside",
    "push:before",
    "push:inside",
    "report:inside",
    "close:before",
)


def test_a_run_that_is_killed_again_and_again_goes_on_where_it_stopped(person: Person) -> None:
    """One commit, one branch, each turn asked once but for the lost answer; the person's own is as it was."""
    before = person.fingerprint()
    options = person.begin(*ALL)
    for life, place in enumerate(DEATHS, 1):
        killed = person.run(*options, kill_at=place, kills=life)
        assert killed.code == -9, f"{place}: {killed.err}"
        options = ["--resume", *ALL]
    done = person.run(*options)
    assert done.code == 0, done.err
    assert task_of(done.err) == task_of(killed.err)
    assert person.branch().endswith(task_of(killed.err))
    assert person.git("rev-list", "--count", f"main..{person.branch()}") == "1"
    assert person.git("diff", "--name-only", "main", person.branch()) == "greet.txt"
    assert person.git("show", f"{person.branch()}:greet.txt") == "Hello, world"
    asked = Counter(person.turns())
    assert sorted(asked.values()) == [1, 1, 2]
    assert asked[sorted(asked)[1]] == 2, "the answer that was lost is the second"
    assert person.fingerprint() == before
    assert person.run("--resume").code == 4


def test_live_lines_and_the_task(person: Person) -> None:
    """Each turn shows how full the window is and what it cost; the beginning says how to go on."""
    options = ["--task", "The greeting is wrong", "--model", "anthropic:claude-sonnet-4-5", *ALL]
    done = person.run(*options)
    assert done.code == 0, done.err
    for turn in (1, 2, 3):
        assert re.search(rf"turn {turn} · ctx [\d.]+K/200K.* · ≈ \$0\.\d{{4}}\n", done.err), done.err
    again = f"issuewright run --repo {person.repo} --state {person.folder / 'state'} --resume {task_of(done.err)}"
    assert f"`{again}` goes on after an interruption" in done.err


def test_an_unfinished_task_is_told_of(person: Person) -> None:
    """The next task in the same repository says that one is left, until it is done."""
    killed = person.run(*person.begin(*ALL), kill_at="model/2:before")
    other = person.run(*person.begin(*ALL))
    assert f"unfinished: {task_of(killed.err)} (The greeting is wrong: cut off)" in other.err
    assert person.run("--resume", task_of(killed.err)[:4], *ALL).code == 0
    assert "unfinished" not in person.run(*person.begin(*ALL)).err


def test_what_cannot_go_on_is_told(person: Person) -> None:
    """Each wrong call is one line that says what there is, and changes nothing."""
    nothing = person.run("--resume")
    assert (nothing.code, nothing.err.count("\n")) == (4, 1)
    assert "no task of it is unfinished" in nothing.err
    killed = person.run(*person.begin(*ALL), kill_at="model/2:before")
    task = task_of(killed.err)
    for options, said in [
        (["--resume", "0000"], f"has no task `0000`: there is {task} (The greeting is wrong: cut off)"),
        (["--resume", task, "--in-place"], "works in a clone"),
    ]:
        wrong = person.run(*options)
        assert (wrong.code, wrong.err.count("\n")) == (4, 1), wrong.err
        assert said in wrong.err
    assert person.run("--resume", task, *ALL).code == 0
    over = person.run("--resume", task)
    assert over.code == 4
    assert "is done: say with `--task TEXT`" in over.err


def test_a_task_that_is_done_takes_more_words(person: Person) -> None:
    """What is asked then is one more commit on the same branch."""
    first = person.run(*person.begin(*ALL))
    done = person.run("--resume", task_of(first.err), "--task", "Greet the whole world", *ALL)
    assert done.code == 0, done.err
    assert person.git("rev-list", "--count", f"main..{person.branch()}") == "2"
    assert person.git("show", f"{person.branch()}:greet.txt") == "Hello, whole world"


SLEEP = Turn(calls=[Call("run", {"command": "echo begun >> count.txt; sleep 301"})])
SLOW = Script(
    [
        Conversation(
            "more",
            [Turn(calls=[Call("write", {"path": "more.txt", "content": "more\n"})]), SLEEP],
            match_last="do more",
        ),
        Conversation("further", [Turn(calls=[Call("finish", {"summary": "Done."})])], match_last=FURTHER),
        Conversation(
            "fix",
            [
                Turn(calls=[Call("edit", {"path": "greet.txt", "old": "Helo", "new": "Hello"})]),
                SLEEP,
            ],
            match="greeting is wrong",
        ),
    ],
    name="greeting",
)


@pytest.fixture
def slow(folder: Path) -> Iterator[Person]:
    """Somebody whose model runs a command without an end."""
    with person_with(folder, SLOW, FILES) as one:
        yield one
        assert one.model.problems == []


def begun(person: Person, times: int = 1) -> bool | None:
    """Whether the command runs, for the so-manieth time in one tree."""
    found = [path.read_text() for path in person.folder.glob("**/count.txt")]
    return True if "begun\n" * times in found else None


def test_ctrl_c_keeps_what_was_done(slow: Person) -> None:
    """The first one ends the run with its branch; what goes on is a further run on the same branch and transcript."""
    before = slow.fingerprint()
    with slow.running(*slow.begin(*ALL)) as terminal:
        until(lambda: begun(slow), "the command")
        terminal.press(b"\x03")
        assert terminal.ends() == 130
        shown = terminal.shows("stopped")
    assert "goes on with it" in shown
    assert slow.git("show", f"{slow.branch()}:greet.txt") == "Hello, world"
    assert slow.fingerprint() == before
    assert len(slow.turns()) == 2
    done = slow.run("--resume", *ALL)
    assert done.code == 0, done.err
    assert len(slow.turns()) == 3
    assert slow.branch().endswith(task_of(shown))
    told = str(slow.model.requests[-1].body)
    assert "No result: the run ended" in told
    assert "The greeting is wrong" in told
    assert slow.fingerprint() == before


def test_ctrl_c_again_keeps_all_on_one_branch(slow: Person) -> None:
    """What a further run did until it was stopped is a further commit, and the next one goes on from there."""
    for times, options in enumerate([slow.begin(*ALL), ["--resume", "--task", "Now do more", *ALL]], 1):
        with slow.running(*options) as terminal:
            until(lambda: begun(slow, times), "the command")  # noqa: B023 - asked in this very round
            terminal.press(b"\x03")
            assert terminal.ends() == 130
    assert slow.git("rev-list", "--count", f"main..{slow.branch()}") == "2"
    assert slow.git("diff", "--name-only", "main", slow.branch()).split() == ["count.txt", "greet.txt", "more.txt"]
    assert slow.run("--resume", *ALL).code == 0
    assert slow.git("rev-list", "--count", f"main..{slow.branch()}") == "2"


def test_ctrl_c_twice_leaves_at_once(slow: Person) -> None:
    """Although the first one cannot be obeyed yet; it is as a kill, and the run goes on."""
    before = slow.fingerprint()
    with slow.running(*slow.begin(*ALL)) as terminal:
        until(lambda: begun(slow), "the command")
        database = sqlite3.connect(slow.folder / "state/terminal" / TASKS_FILE, isolation_level=None)
        database.execute("begin immediate")
        terminal.press(b"\x03")
        terminal.shows("Stopping")
        terminal.press(b"\x03")
        assert terminal.ends() == 130
        assert "goes on" in terminal.shows("Left")
        database.close()
    slow.own()
    with slow.running("--resume", *ALL) as terminal:
        terminal.shows("goes on after")
        terminal.press(b"\x03")
        assert terminal.ends() == 130
    assert len(slow.turns()) == 2
    assert slow.git("show", f"{slow.branch()}:greet.txt") == "Hello, world"
    assert slow.fingerprint() == before


def test_a_stop_before_a_kill_is_no_reason_to_stop_again(slow: Person) -> None:
    """What goes on ends the run that was to stop, with its work, and begins a further one."""
    with slow.running(*slow.begin(*ALL), kill_at="commit:before") as terminal:
        until(lambda: begun(slow), "the command")
        terminal.press(b"\x03")
        assert terminal.ends() == -9
    done = slow.run("--resume", *ALL)
    assert done.code == 0, done.err
    assert len(slow.turns()) == 3
    assert slow.git("show", f"{slow.branch()}:greet.txt") == "Hello, world"


def test_a_kill_in_a_command_leaves_no_trace_of_it(slow: Person) -> None:
    """In a clone the tree is put back to before the command, which is then run again."""
    before = slow.fingerprint()
    with slow.running(*slow.begin(*ALL)) as terminal:
        until(lambda: begun(slow), "the command")
        terminal.kill()
    (left,) = slow.folder.glob("**/count.txt")
    # As long as it has this name too, a new file is another one.
    held = slow.folder / "held"
    held.hardlink_to(left)

    def anew() -> bool | None:
        return True if left.exists() and not left.samefile(held) else None

    with slow.running("--resume", *ALL) as terminal:
        until(anew, "the command, once more")
        assert left.read_text() == "begun\n"
        terminal.press(b"\x03")
        assert terminal.ends() == 130
    assert len(slow.turns()) == 2
    assert slow.fingerprint() == before


def test_a_question_does_not_keep_from_the_end(slow: Person) -> None:
    """Ctrl-C where a question stands ends the run; the call is not made."""
    with slow.running(*slow.begin("--approve", "never")) as terminal:
        terminal.shows("Allow?")
        terminal.press(b"\x03")
        assert terminal.ends() == 130
    assert slow.git("branch", "--list", "agent/*") == ""


def test_a_person_at_the_terminal_is_asked(person: Person) -> None:
    """Yes lets the command run; the question shows it."""
    with person.running(*person.begin()) as terminal:
        assert "sh check.sh; cat greet.txt" in terminal.shows("Allow?")
        terminal.press(b"y\n")
        assert terminal.ends() == 0
    assert person.git("show", f"{person.branch()}:greet.txt") == "Hello, world"


def test_a_task_that_another_process_works_on_is_left_alone(slow: Person) -> None:
    """It is told, and the other one goes on."""
    with slow.running(*slow.begin(*ALL)) as terminal:
        until(lambda: begun(slow), "the command")
        task = task_of(terminal.shows("goes on after"))
        for options in (["--resume", task], ["--resume"]):
            other = slow.run(*options)
            assert other.code == 4
            assert "another process" in other.err
        assert terminal.process.poll() is None
        terminal.press(b"\x03")
        assert terminal.ends() == 130
