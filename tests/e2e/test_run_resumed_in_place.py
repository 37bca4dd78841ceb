"""What one call changes is changed once, in a clone and in place, and a person's checkout is never put back."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from bot.testing.model.reply import Call
from bot.testing.model.script import Conversation, Script, Turn
from tests.e2e.stage import until
from tests.e2e.terminal import Person, person_with
from tests.e2e.test_run_resumed import ALL, FURTHER, begun

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

FILES = {"greet.txt": "Helo, world\n", "log.txt": "one\n", "old.txt": "old\n"}
PATCH = """\
*** Begin Patch
*** Update File: greet.txt
-Helo, world
+Helo, world!
*** Add File: added.txt
+a
*** End Patch"""
CALLS = {
    # Done a second time it would change the file once more.
    "edit": Call("edit", {"path": "greet.txt", "old": "Helo", "new": "Helo, o"}),
    "write": Call("write", {"path": "new/file.txt", "content": "new\n"}),
    "patch": Call("apply_patch", {"patch": PATCH}),
    "delete": Call("delete", {"path": "old.txt"}),
    "move": Call("move", {"path": "old.txt", "target": "moved/here.txt"}),
    "run": Call("run", {"command": "echo two >> log.txt"}),
}
AFTER: Mapping[str, Mapping[str, str]] = {
    "edit": {**FILES, "greet.txt": "Helo, o, world\n"},
    "write": {**FILES, "new/file.txt": "new\n"},
    "patch": {**FILES, "greet.txt": "Helo, world!\n", "added.txt": "a\n"},
    "delete": {name: text for name, text in FILES.items() if name != "old.txt"},
    "move": {**{name: text for name, text in FILES.items() if name != "old.txt"}, "moved/here.txt": "old\n"},
    "run": {**FILES, "log.txt": "one\ntwo\n"},
}
FINISH = Turn(calls=[Call("finish", {"summary": "Done."})])


@contextmanager
def somebody(folder: Path, *calls: Call) -> Iterator[Person]:
    """Give a person a model that makes some calls, one a turn, and then is done."""
    turns = [Turn(calls=[call]) for call in calls]
    script = Script(
        [
            Conversation("further", [FINISH], match_last=FURTHER),
            Conversation("fix", [*turns, FINISH], match="greeting is wrong"),
        ],
        name="greeting",
    )
    with person_with(folder, script, FILES) as one:
        yield one
        assert one.model.problems == []


def tree(folder: Path) -> dict[str, str]:
    """Read a work tree."""
    return {
        path.relative_to(folder).as_posix(): path.read_text()
        for path in folder.rglob("*")
        if path.is_file() and ".git" not in path.relative_to(folder).parts
    }


def dot_git(person: Person) -> Mapping[str, bytes]:
    """All that the person's `.git` holds."""
    folder = person.repo / ".git"
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("in_place", [False, True], ids=["clone", "in place"])
def test_a_kill_between_effect_and_record_changes_nothing_twice(folder: Path, name: str, *, in_place: bool) -> None:
    """In a clone the call is made again on the tree before it; in place it is not made again, and the model is told."""
    options = [*ALL, "--in-place"] if in_place else [*ALL]
    with somebody(folder, CALLS[name]) as person:
        before = dot_git(person)
        killed = person.run(*person.begin(*options), kill_at="tool/1/0:inside")
        assert killed.code == -9, killed.err
        done = person.run("--resume", *ALL)
        assert done.code == 0, done.err
        if in_place:
            assert tree(person.repo) == AFTER[name]
            assert dot_git(person) == before
            assert "may have been carried out" in str(person.model.requests[-1].body)
        else:
            assert tree(person.repo) == FILES
            person.git("checkout", "-q", person.branch())
            assert tree(person.repo) == AFTER[name]
        assert sorted(turn - person.turns()[0][1] for _, turn in person.turns()) == ([0, 0] if in_place else [0, 1])


def changed_by_person(person: Person) -> None:
    """Work on in the checkout, also in a file that the task changed."""
    (person.repo / "greet.txt").write_text("Hello from me\n")
    (person.repo / "mine.txt").write_text("mine\n")
    (person.repo / "log.txt").unlink()
    person.own()


@pytest.mark.parametrize("end", ["kill", "ctrl-c", "ctrl-c, kill"])
def test_what_a_person_does_between_two_lives_stays(folder: Path, end: str) -> None:
    """Nothing is put back in a checkout, whatever the record says; what the command had begun is not begun again."""
    ends: dict[str, Callable[..., object]] = {
        "kill": lambda terminal: terminal.kill(),
        "ctrl-c": lambda terminal: (terminal.press(b"\x03"), terminal.ends()),
        "ctrl-c, kill": lambda terminal: (terminal.press(b"\x03"), terminal.ends()),
    }
    slow = Call("run", {"command": "echo begun >> count.txt; sleep 301"})
    with somebody(folder, CALLS["edit"], slow) as person:
        before = dot_git(person)
        deadly = "commit:before" if end == "ctrl-c, kill" else ""
        with person.running(*person.begin(*ALL, "--in-place"), kill_at=deadly) as terminal:
            until(lambda: begun(person), "the command")
            ends[end](terminal)
        changed_by_person(person)
        wanted = {**FILES, "greet.txt": "Hello from me\n", "mine.txt": "mine\n", "count.txt": "begun\n"}
        del wanted["log.txt"]
        assert tree(person.repo) == wanted
        done = person.run("--resume", *ALL)
        assert "The changes are in" in done.err
        assert tree(person.repo) == wanted
        assert dot_git(person) == before
        assert len(person.turns()) == 3


def test_a_run_that_did_not_begin_goes_on_in_place(folder: Path) -> None:
    """How a task works was said once, and holds."""
    with somebody(folder, CALLS["edit"]) as person:
        killed = person.run(*person.begin(*ALL, "--in-place"), kill_at="announce:before")
        assert killed.code == -9
        done = person.run("--resume", *ALL, "--in-place")
        assert done.code == 0, done.err
        assert tree(person.repo) == AFTER["edit"]
        assert person.git("branch", "--list", "agent/*") == ""
