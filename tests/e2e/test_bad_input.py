"""Repositories, issues, models and people that are not as they should be: tasks end with their reason, told plainly."""

import re
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import pytest

from bot.testing.hub.records import Issue
from bot.testing.model.reply import Call, Fault
from bot.testing.model.script import Condition, Conversation, Script, Step, Turn
from tests.e2e.door import Payload, part, payload_of, post, settled, tasks
from tests.e2e.scripts import CONFIG, FILES, FIRST, GREETING
from tests.e2e.stage import Stage, until

pytestmark = pytest.mark.e2e

MEND = Call("edit", {"path": "greet.txt", "old": "Helo", "new": "Hello"})
CHECK = Call("run", {"command": "sh check.sh"})
"""Without it the first `finish` is refused."""
FINISH = Call("finish", {"summary": "Done."})
SETTINGS = ".github/issuewright.yml"


@contextmanager
def served(
    folder: Path, conversations: Mapping[str, Sequence[Step]], *, files: Mapping[str, bytes | str] = {}, **more: str
) -> Iterator[Stage]:
    """Serve a stage whose model knows these conversations by words of the issue, and the greeting's beside them."""
    known = [Conversation(name, turns, match=name) for name, turns in conversations.items()]
    script = Script([*known, *GREETING.conversations], name="greeting")
    with Stage(folder, script, {**FILES, **files}).open() as stage, stage.serving(**more):
        yield stage
        assert stage.model.problems == []


def goes_on(stage: Stage) -> None:
    """Make sure that the server answers, and finishes another task."""
    assert stage.healthy()
    assert stage.story_ends(stage.labelled().number).startswith("**Done**")


def agents(stage: Stage) -> list[str]:
    """Return the names of the bot's branches."""
    return sorted(name for name in stage.branches() if name.startswith("agent/"))


def branch_of(stage: Stage, issue: Issue) -> str:
    """Return the branch of an issue's task."""
    return str(next(task["branch"] for task in tasks(stage) if task["number"] == issue.number))


def finished_runs(stage: Stage) -> list[Payload] | None:
    """Return the runs of all tasks as the API has them; None while one goes on."""
    runs = [cast("Payload", run) for task in tasks(stage) for run in cast("list[object]", task["runs"])]
    return runs if all(run["state"] == "finished" for run in runs) else None


# What a repository may be.


def test_an_empty_repository_is_told_what_to_do_first(folder: Path) -> None:
    """Without any commit there is nothing to stand on: the person hears it, and no model is asked."""
    with served(folder, {}) as stage:
        void = stage.hub.create_repository(stage.owner, "void")
        stage.hub.add_collaborator(void, stage.maria, "write")
        stage.hub.change_repositories(stage.installation, stage.owner, add=[void])
        issue = stage.hub.open_issue(void, stage.maria, "Begin", None)
        stage.hub.add_label(issue, stage.maria, "agent")
        said = until(
            lambda: next((c.body for c in issue.comments if "commit" in c.body), None), f"the answer; {stage.log()}"
        )
        assert re.search("no default branch|repository is empty", said), said
        assert "first commit" in said
        assert stage.model.requests == []
        goes_on(stage)


def test_settings_that_cannot_be_read_are_named_to_the_character(folder: Path) -> None:
    """A broken settings file gets file, line and column; `enabled: false` gets its own sentence; no model is asked."""
    broken = "version: 1\nchecks:\n  - names: greeting\n    run: 'true'\n"
    with served(folder, {}, files={SETTINGS: broken}) as stage:
        told = stage.story_ends(stage.labelled().number)
        assert told.startswith("**Failed**")
        assert re.search(rf"{re.escape(SETTINGS)}:3:\d+", told), told
        assert "`name`" in told
        stage.hub.commit_files(stage.repository, stage.maria, "main", {SETTINGS: "version: [1\n"})
        told = stage.story_ends(stage.labelled().number)
        assert re.search(rf"{re.escape(SETTINGS)}:\d+:\d+", told), told
        stage.hub.commit_files(stage.repository, stage.maria, "main", {SETTINGS: "version: 1\nenabled: false\n"})
        told = stage.story_ends(stage.labelled().number)
        assert told.startswith("**Failed**")
        assert "enabled: false" in told
        assert stage.model.requests == []
        assert agents(stage) == []
        stage.hub.commit_files(stage.repository, stage.maria, "main", {SETTINGS: CONFIG})
        goes_on(stage)


def test_a_repository_that_is_too_large_is_refused_with_the_limit(folder: Path) -> None:
    """More files than the operator allows: the comment names the limit, and no model is asked."""
    with served(folder, {}, files={"more.txt": ""}, ISSUEWRIGHT_WORKSPACE__MAX_FILES="3") as stage:
        told = stage.story_ends(stage.labelled().number)
        assert told.startswith("**Failed**")
        assert "too large: more than 3 files" in told
        assert stage.model.requests == []
        assert stage.healthy()
        stage.hub.commit_files(stage.repository, stage.maria, "main", {SETTINGS: None, "check.sh": None})
        told = stage.story_ends(stage.labelled("The greeting is wrong, and nothing checks it").number)
        assert told.startswith("**Done**"), told


# What an issue may be.


def test_issues_may_be_empty_emoji_or_as_long_as_github_takes_them(folder: Path) -> None:
    """A null body, a title of emoji alone, and 65,536 characters in issue and comment each become a pull request."""
    with served(folder, {"\N{PARTY POPPER}": FIRST, "very long": FIRST}, ISSUEWRIGHT_WORKER__TASKS="3") as stage:
        bare = stage.hub.open_issue(stage.repository, stage.maria, "The greeting is wrong", None)
        stage.hub.add_label(bare, stage.maria, "agent")
        emoji = stage.labelled("\N{PARTY POPPER}\N{SPARKLES}\N{PARTY POPPER}", "")
        long = stage.hub.open_issue(stage.repository, stage.maria, "This is very long", "\N{SNOWMAN}x" * 32_768)
        stage.hub.comment(long, stage.maria, ("/agent fix " + "very much " * 7_000)[:65_536])
        for issue in (bare, emoji, long):
            told = stage.story_ends(issue.number)
            assert told.startswith("**Done**"), told
        pulls = stage.pulls()
        assert len(pulls) == 3
        assert all(pull.title.strip() and len(pull.title) <= 256 for pull in pulls)
        assert all(len(pull.body or "") <= 65_536 for pull in pulls)
        goes_on(stage)


def test_accounts_that_are_gone_ask_for_nothing_and_break_nothing(folder: Path) -> None:
    """GitHub sends null for a deleted account: as an issue's author it is no matter, as who asks it starts nothing."""
    with served(folder, {}) as stage:
        stage.hub.hooks.modes.drop = True
        issue = stage.labelled()
        stage.hub.comment(issue, stage.maria, "/agent fix")
        assert stage.hub.hooks.wait_idle(10)
        stage.hub.hooks.modes.drop = False
        labelled, commented = payload_of(stage, "issues", "labeled"), payload_of(stage, "issue_comment", "created")
        nobody: list[tuple[str, Payload]] = [("issues", labelled | {"sender": None})]
        part(commented, "comment")["user"] = None
        nobody.append(("issue_comment", commented | {"sender": None}))
        for event, payload in nobody:
            guid = str(uuid.uuid4())
            assert post(stage, event, payload, guid=guid).status_code == 202
            assert settled(stage, guid) == ("ignored", "no command")
        part(labelled, "issue")["user"] = None
        part(labelled, "issue")["updated_at"] = "2026-11-30T12:00:00Z"
        assert post(stage, "issues", labelled).status_code == 202
        assert stage.story_ends(issue.number).startswith("**Done**")


# What a model may do.


def test_a_model_that_talks_nonsense_harms_nothing(folder: Path) -> None:
    """No calls, unknown tools, broken JSON, a call that was cut off: nothing of it runs, and people hear the end."""
    cut = Turn(calls=[Call("run", {"command": "echo it ran > trace.txt"})], faults=[Fault("cut", times=1)])
    mended = (
        cut,
        Turn(calls=[MEND, CHECK], expect=[Condition(tool="run", matches="Not executed", is_error=True)]),
        Turn(calls=[FINISH]),
    )
    nonsense: dict[str, Sequence[Step]] = {
        "say nothing": [Turn("Let me think.", repeat=9)],
        "unknown tools": [Turn(calls=[Call("teleport", {"to": str(n)}, unknown=True)]) for n in range(3)],
        "broken JSON": [Turn(calls=[Call("edit", json='{"path": "greet.txt", "old": ' + "[" * n)]) for n in range(3)],
        "cut off": mended,
    }
    with served(folder, nonsense, ISSUEWRIGHT_WORKER__TASKS="4", ISSUEWRIGHT_WORKER__PER_INSTALLATION="4") as stage:
        issues = {name: stage.labelled(name) for name in nonsense}
        told = {name: stage.story_ends(issue.number) for name, issue in issues.items()}
        assert told["say nothing"].startswith("**Failed**")
        assert "No file was changed" in told["say nothing"]
        for name in ("unknown tools", "broken JSON"):
            assert told[name].startswith("**Budget reached**"), told[name]
            assert "3" in told[name].splitlines()[0]
        assert told["cut off"].startswith("**Done**"), told["cut off"]
        (branch,) = agents(stage)
        assert stage.git("diff", "--name-only", "main", branch) == "greet.txt"
        goes_on(stage)


def test_a_provider_that_fails_is_told_as_it_is(folder: Path) -> None:
    """A bad key says what to set, an overflow and a lasting overload end the run, a passing overload is only noted."""
    overflow = Fault(status=400, error="invalid_request_error", message="prompt is too long: 9 tokens > 8 maximum")
    failing: dict[str, Sequence[Step]] = {
        "bad key": [Turn(faults=[Fault(status=401, message="invalid x-api-key")])],
        "too long": [Turn(faults=[overflow])],
        "overloaded for long": [Turn(faults=[Fault(status=529, retry_after_s=900)])],
        "overloaded for good": [Turn(faults=[Fault(status=529, retry_after_s=0.1)])],
        "overloaded for a while": [
            Turn(calls=[MEND, CHECK], faults=[Fault(status=529, times=2)]),
            Turn(calls=[FINISH], faults=[Fault("garbage", times=1)]),
        ],
    }
    with served(folder, failing, ISSUEWRIGHT_WORKER__TASKS="5", ISSUEWRIGHT_WORKER__PER_INSTALLATION="5") as stage:
        issues = {name: stage.labelled(name) for name in failing}
        told = {name: stage.story_ends(issue.number) for name, issue in issues.items()}
        for name, said in (
            ("bad key", "ANTHROPIC_API_KEY"),
            ("too long", "prompt is too long"),
            ("overloaded for long", "529"),
            ("overloaded for good", "529"),
        ):
            assert told[name].startswith("**Failed**"), told[name]
            assert said in told[name].splitlines()[0], told[name]
        assert told["overloaded for a while"].startswith("**Done**"), told["overloaded for a while"]
        assert told["overloaded for a while"].count("asked again after") >= 2
        assert "scripted-key" not in "".join(told.values()) + stage.whole_log()
        assert len(agents(stage)) == 1
        goes_on(stage)


def test_a_limit_keeps_the_work_and_gives_the_numbers(folder: Path) -> None:
    """After two turns of two the work is on its branch, in a draft, and the comment says how far it got."""
    files = {SETTINGS: CONFIG + "limits:\n  turns: 2\n"}
    with served(folder, {}, files=files) as stage:
        issue = stage.labelled()
        told = stage.story_ends(issue.number)
        assert told.startswith("**Budget reached**"), told
        assert "turn 2 of 2" in told
        (branch,) = agents(stage)
        assert stage.git("show", f"{branch}:greet.txt") == "Hello, world"
        (pull,) = stage.pulls()
        assert pull.pull is not None
        assert (pull.pull.head_ref, pull.pull.draft) == (branch, True)
        assert f"#{pull.number}" in told
        (run,) = until(lambda: finished_runs(stage), "the end of the run", 10)
        assert (run["outcome"], "turns" in str(run["reason"])) == ("budget", True)
        stage.hub.commit_files(stage.repository, stage.maria, "main", {SETTINGS: CONFIG})
        goes_on(stage)


def test_checks_that_fail_are_fed_back_and_told_honestly(folder: Path) -> None:
    """The model sees what fails after `finish` and may mend it; what still fails stands in the pull request."""
    wrong = Call("edit", {"path": "greet.txt", "old": "Helo", "new": "Hallo"})
    right = Call("edit", {"path": "greet.txt", "old": "Hallo", "new": "Hello"})
    fed = Condition(said="The harness ran the checks after `finish`")
    stories: dict[str, Sequence[Step]] = {
        "mended at last": [
            Turn(calls=[wrong, CHECK]),
            Turn(calls=[FINISH]),
            Turn(calls=[right, CHECK], expect=[fed]),
            Turn(calls=[FINISH]),
        ],
        "never mended": [
            Turn(calls=[wrong, CHECK]),
            Turn(calls=[FINISH]),
            Turn(calls=[FINISH], expect=[fed]),
            Turn(calls=[FINISH], expect=[fed]),
        ],
    }
    with served(folder, stories) as stage:
        issues = [stage.labelled(name) for name in stories]
        mended, never = [stage.story_ends(issue.number) for issue in issues]
        assert mended.startswith("**Done**")
        assert "still fails" not in mended
        assert never.startswith("**Done**")
        assert "`greeting` still fails" in never.splitlines()[0]
        bodies = {part_of(pull.body, "mended"): pull.body or "" for pull in stage.pulls()}
        assert "| greeting | `sh check.sh` | 1 | 0 |" in bodies[True]
        assert "| greeting | `sh check.sh` | 1 | 1 |" in bodies[False]
        assert "still fails" in bodies[False]


def part_of(body: str | None, word: str) -> bool:
    """Tell whether a pull request's text is of the story that was mended."""
    return f"{word} at last" in (body or "")


# What people may do meanwhile.


@pytest.fixture
def gate(folder: Path) -> Path:
    """A file for which a scripted command waits until the test makes it; it has to be readable in the sandbox."""
    place = folder / "gate"
    place.mkdir(mode=0o755)
    return place / "open"


def waiting(gate: Path) -> Turn:
    """A turn whose command ends when the gate is open."""
    return Turn(calls=[Call("run", {"command": f"until [ -e {gate} ]; do sleep 0.05; done; echo through"})])


def helpers(stage: Stage) -> list[str]:
    """Return the command lines of all processes that belong to the stage's work trees."""
    found: list[str] = []
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            uid = int(re.search(r"^Uid:\t(\d+)", status.read_text(), re.MULTILINE)[1])  # type: ignore[index]  # it is there
            if stage.first_uid <= uid < stage.first_uid + 64:
                found.append(status.with_name("cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def sleepers(stage: Stage) -> list[str]:
    """Return the sleeping commands among them."""
    return [line for line in helpers(stage) if line.startswith("sleep ")]


def test_a_stop_ends_a_long_command_and_keeps_the_work(folder: Path) -> None:
    """`/agent stop`, taking the label away and closing the issue each end the run in seconds, with all it started."""
    long = Turn(calls=[Call("run", {"command": "setsid sleep 301 & sleep 302 & sleep 303"})])
    again: Sequence[Step] = [
        Turn(calls=[Call("read", {"path": "greet.txt"})]),
        Turn(calls=[Call("run", {"command": "cat greet.txt"})], expect=[Condition(tool="read", matches="Hello")]),
        Turn(calls=[FINISH]),
    ]
    stories: dict[str, Sequence[Step]] = {
        name: [Turn(calls=[MEND]), long] for name in ("by word", "by label", "by close")
    }
    conversations = [Conversation(name, turns, match=name) for name, turns in stories.items()]
    more = Conversation("again", again, match_last="go on with the task")
    script = Script([more, *conversations, *GREETING.conversations], name="greeting")
    slots = {"ISSUEWRIGHT_WORKER__TASKS": "3", "ISSUEWRIGHT_WORKER__PER_INSTALLATION": "3"}
    with Stage(folder, script, FILES).open() as stage, stage.serving(**slots):
        issues = {name: stage.labelled(name) for name in stories}
        until(lambda: True if len(sleepers(stage)) == 9 else None, f"nine sleepers; {stage.log()}")
        begun = time.monotonic()
        stage.hub.comment(issues["by word"], stage.maria, "/agent stop")
        stage.hub.remove_label(issues["by label"], stage.maria, "agent")
        stage.hub.close_issue(issues["by close"], stage.maria)
        told = {name: stage.story_ends(issue.number) for name, issue in issues.items()}
        assert time.monotonic() - begun < 15
        until(lambda: True if not helpers(stage) else None, "the end of all processes", 5)
        for name, text in told.items():
            assert text.startswith("**Stopped**"), text
            branch = branch_of(stage, issues[name])
            assert branch in text
            assert stage.git("show", f"{branch}:greet.txt") == "Hello, world"
        assert stage.pulls() == []

        stage.hub.add_label(issues["by label"], stage.maria, "agent")
        retried = stage.story_ends(issues["by label"].number, 2)
        assert retried.startswith("**Done**"), retried
        (pull,) = stage.pulls()
        assert pull.pull is not None
        assert pull.pull.head_ref == branch_of(stage, issues["by label"])
        assert len(agents(stage)) == 3
        assert stage.model.problems == []
        goes_on(stage)


def test_words_that_come_during_a_run_reach_the_model(folder: Path, gate: Path) -> None:
    """A second `/agent fix` joins the run that goes on: the model hears it at its next turn, and there is one run."""
    turns: Sequence[Step] = [
        waiting(gate),
        Turn(calls=[MEND, CHECK], expect=[Condition(said="mind the comma, please")]),
        Turn(calls=[FINISH]),
    ]
    with served(folder, {"slowly": turns}, ISSUEWRIGHT_SANDBOX__PATHS=str(gate.parent)) as stage:
        issue = stage.labelled("Do it slowly")
        until(lambda: sleepers(stage) or None, "the command")
        comment = stage.hub.comment(issue, stage.maria, "/agent fix mind the comma, please")
        until(lambda: [one for one in comment.reactions if one.content == "eyes"] or None, "the eyes")
        gate.touch()
        told = stage.story_ends(issue.number)
        assert told.startswith("**Done**"), told
        assert "mind the comma, please" in told
        (task,) = tasks(stage)
        assert len(task["runs"]) == 1  # type: ignore[arg-type]  # a list, as the API has it
        assert len(stage.pulls()) == 1


def test_a_branch_that_somebody_moved_is_left_alone_and_the_work_is_beside_it(folder: Path, gate: Path) -> None:
    """A person's commit on the task's branch stays; the work gets a branch of its own, and people are told."""
    script = {"slowly": [Turn(calls=[MEND, CHECK]), waiting(gate), Turn(calls=[FINISH])]}
    with served(folder, script, ISSUEWRIGHT_SANDBOX__PATHS=str(gate.parent)) as stage:
        issue = stage.labelled("Do it slowly")
        until(lambda: sleepers(stage) or None, "the command")
        branch = branch_of(stage, issue)
        theirs = stage.hub.commit_files(stage.repository, stage.maria, branch, {"mine.txt": "Mine.\n"})
        gate.touch()
        told = stage.story_ends(issue.number)
        assert told.startswith("**Done**"), told
        assert stage.branches()[branch] == theirs
        (aside,) = [name for name in agents(stage) if name != branch]
        assert aside in told
        assert f"`{branch}`" in told
        assert stage.git("show", f"{aside}:greet.txt") == "Hello, world"
        assert stage.git("diff", "--name-only", "main", aside) == "greet.txt"
        (pull,) = stage.pulls()
        assert pull.pull is not None
        assert pull.pull.head_ref == aside


def test_two_issues_at_once_both_finish(stage: Stage) -> None:
    """Two tasks of one repository run side by side, each with its branch and pull request."""
    with stage.serving():
        issues = [stage.labelled(), stage.labelled()]
        for issue in issues:
            assert stage.story_ends(issue.number).startswith("**Done**")
        heads = sorted(pull.pull.head_ref for pull in stage.pulls() if pull.pull is not None)
        assert heads == agents(stage)
        assert [head.split("-")[0] for head in heads] == ["agent/1", "agent/2"]
