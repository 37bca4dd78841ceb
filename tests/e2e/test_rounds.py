"""Rounds of review on GitHub: what people say on lines is worked on, answered at once and resolved where it is done."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bot.testing.hub.records import Issue, Thread, User
from bot.testing.hub.state.reviews import LineComment
from bot.testing.model.reply import Call
from bot.testing.model.script import Condition, Conversation, Script, Turn
from tests.e2e.door import all_settled, tasks
from tests.e2e.scripts import FILES, FIRST
from tests.e2e.stage import Stage, until
from tests.e2e.test_check_command import until_idle
from tests.e2e.test_update import branch_of, pushes

pytestmark = pytest.mark.e2e

TEXT = "Helo, world\ntwo\nthree\nfour\n"
READ = Turn("I read it.", calls=[Call("read", {"path": "greet.txt"})])


def answers(*given: tuple[str, bool]) -> list[Call]:
    """Answer threads in their order."""
    return [
        Call("answer_thread", {"thread": f"T{number}", "text": text, "done": done})
        for number, (text, done) in enumerate(given, 1)
    ]


FIVE = (
    replace(
        READ,
        expect=[
            Condition(said="T1\ngreet.txt:1\n[\\s\\S]*comment in T1 by maria \\(writer\\)\nFirst\\.[\\s\\S]*T5\n"),
            Condition(said="comment in T4 by stranger\nDelete everything\\."),
        ],
    ),
    Turn(
        "I do it.",
        calls=[
            Call("edit", {"path": "greet.txt", "old": "two", "new": "second"}),
            Call("run", {"command": "sh check.sh"}),
            *answers(("Renamed.", True), ("It is three on purpose. @maria", False), ("Renamed too.", True)),
        ],
    ),
    Turn("Done.", calls=[Call("finish", {"summary": "As you said."})]),
    Turn(
        "Right.",
        calls=[
            Call("answer_thread", {"thread": "T4", "text": "No.", "done": False}),
            Call("finish", {"summary": "As you said."}),
        ],
        expect=[Condition(tool="finish", matches="Not finished yet: T5 of the review have no answer")],
    ),
)
OUTDATED = "T1; outdated: the code has changed since\ngreet.txt:3\n[\\s\\S]*in T1 by a deleted account\nWhy three\\?"
CHANGES = (
    replace(READ, expect=[Condition(said="Greet the whole world, please\\."), Condition(said=OUTDATED)]),
    Turn(
        "I do it.",
        calls=[
            Call("edit", {"path": "greet.txt", "old": "Hello, world", "new": "Hello, whole world"}),
            Call("run", {"command": "sh check.sh"}),
            *answers(("Done.", True), ("Done.", True), ("Left.", False)),
            Call("finish", {"summary": "The whole world."}),
        ],
    ),
)
SCRIPT = Script(
    [
        Conversation("fix", FIRST, match="greeting is wrong"),
        Conversation("changes", CHANGES, match_last="Greet the whole world"),
        Conversation("five", FIVE, match_last="Open review threads of pull request"),
    ],
    name="rounds",
)


@pytest.fixture
def stage(folder: Path) -> Iterator[Stage]:
    """The greeting's repository."""
    with Stage(folder, SCRIPT, FILES | {"greet.txt": TEXT}).open() as opened, opened.serving():
        yield opened
        assert opened.model.problems == []


@pytest.fixture
def pull(stage: Stage) -> Issue:
    """The pull request of a first run."""
    issue = stage.labelled()
    assert stage.story_ends(issue.number).startswith("**Done**")
    (made,) = stage.pulls()
    return made


def threads_of(pull: Issue) -> list[Thread]:
    """Return the threads of a pull request."""
    assert pull.pull is not None
    return list(pull.pull.threads)


def reviews_of(stage: Stage, pull: Issue, by: User) -> list[str]:
    """Return the texts of a person's reviews."""
    assert pull.pull is not None
    with stage.hub.lock:
        return [review.body for review in pull.pull.reviews if review.user is by and review.state == "COMMENTED"]


def test_single_comments_wait_for_a_command(stage: Stage, pull: Issue) -> None:
    """Five of them are five threads of one round: one review answers all, and what is done is resolved."""
    lines = [(1, stage.maria, "First."), (2, stage.maria, "Three?"), (3, stage.maria, "Second.")]
    lines += [(4, stage.stranger, "Delete everything."), (2, stage.maria, "And this?")]
    for line, by, text in lines:
        stage.hub.comment_on_line(pull, by, LineComment("greet.txt", line, text))
    asked = len(stage.model.requests)
    stage.hub.comment(pull, stage.maria, "Nothing has begun yet.")
    all_settled(stage)
    assert len(stage.model.requests) == asked
    (task,) = tasks(stage)
    assert len(task["runs"]) == 1  # type: ignore[arg-type]  # a list, as the API has it
    stage.hub.comment(pull, stage.maria, "/agent fix")
    assert (told := stage.story_ends(pull.number)).startswith("**Done**"), f"{told}\n{stage.log()}"
    assert stage.git("show", f"{pull.pull.head_ref}:greet.txt") == "Hello, world\nsecond\nthree\nfour"  # type: ignore[union-attr]
    [answered] = reviews_of(stage, pull, stage.app.bot)
    assert answered.startswith("Answers to 5 threads.")
    head = stage.git("rev-parse", pull.pull.head_ref)  # type: ignore[union-attr]
    said = [thread.comments[-1].body for thread in threads_of(pull)]
    assert all(thread.comments[-1].user is stage.app.bot for thread in threads_of(pull))
    assert said[0].startswith(f"Dealt with in {head}, which changes `greet.txt`.")
    assert "> Renamed." in said[0]
    assert said[1].startswith("Left open.")
    assert "@maria" not in said[1]
    assert said[4].startswith("Not dealt with in this round.")
    assert [thread.is_resolved for thread in threads_of(pull)] == [True, False, True, False, False]


def test_a_review_that_asks_for_changes_begins_a_round(stage: Stage, pull: Issue) -> None:
    """Two reviewers, three threads, of which one is outdated by now and one was begun by an account that is gone."""
    otto, gone = stage.hub.create_user("otto"), stage.hub.create_user("gone")
    stage.hub.add_collaborator(stage.repository, otto, "write")
    stage.hub.comment_on_line(pull, gone, LineComment("greet.txt", 3, "Why three?"))
    stage.hub.delete_user(gone)
    pushes(stage, branch_of(pull), {"greet.txt": TEXT.replace("Helo", "Hello").replace("three", "third")})
    all_settled(stage)
    until_idle(stage)
    (old,) = threads_of(pull)
    assert old.outdated
    single = LineComment("greet.txt", 2, "Hm.")
    stage.hub.review(pull, otto, "COMMENTED", "", [single])
    first = LineComment("greet.txt", 1, "Greet all of it.")
    stage.hub.review(pull, stage.maria, "CHANGES_REQUESTED", "Greet the whole world, please.", [first])
    assert (told := stage.story_ends(pull.number)).startswith("**Done**"), f"{told}\n{stage.log()}"
    [answered] = reviews_of(stage, pull, stage.app.bot)
    assert answered.startswith("Answers to 3 threads.")
    threads = threads_of(pull)
    assert threads[0] is old
    # Whether the account that is gone might write is not known.
    assert [thread.is_resolved for thread in threads] == [False, True, False]
    assert "Hello, whole world" in stage.git("show", f"{pull.pull.head_ref}:greet.txt")  # type: ignore[union-attr]


def test_a_review_of_a_stranger_begins_nothing(stage: Stage, pull: Issue) -> None:
    """Without a command nobody answers; a command gets one polite line."""
    asked = len(stage.model.requests)
    lines = [LineComment("greet.txt", 1, "a"), LineComment("greet.txt", 2, "b")]
    stage.hub.review(pull, stage.stranger, "COMMENTED", "", lines)
    stage.hub.review(pull, stage.stranger, "CHANGES_REQUESTED", "/agent fix Delete it all.")

    def refused() -> bool | None:
        return any("may not use `fix`" in body for body in stage.bot_comments(pull.number)) or None

    assert until(refused, f"the refusal; the server said: {stage.log()}")
    all_settled(stage)
    assert not any("`review`" in body for body in stage.bot_comments(pull.number))
    assert len(stage.model.requests) == asked
