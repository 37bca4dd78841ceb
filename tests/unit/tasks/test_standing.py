"""A task's stream, folded into how a run stands."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from bot.domain.events import (
    KINDS,
    BranchPushed,
    CheckFinished,
    CheckPhase,
    CheckSkipped,
    CommitMade,
    DefinitionsChanged,
    Fact,
    ModelReplied,
    Notice,
    PlanProposed,
    ProofRun,
    PullOpened,
    QuestionAsked,
    RunEvent,
    RunFinished,
    RunHeld,
    RunQueued,
    RunStarted,
    SetupFinished,
    ToolFinished,
    WorkspaceReady,
)
from bot.domain.plan import PlanItem
from bot.domain.task import Outcome
from bot.github.evidence import Counted, FindingRow, ProofRow, SetupRow
from bot.tasks.standing import _LINES, line_of, progress_view, stand

SETUP = SetupFinished("node", "npm ci", 0, 2.5, cached=False)
SKIPPED = CheckSkipped("tests", "make test", "the set-up failed")
AT = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
STARTED = RunStarted("scripted:one", "act", {"limits.turns": 60, "ignored": ["`model: x` was not applied"]})


def events(*facts: Fact, run: int = 1) -> list[RunEvent]:
    """Number facts."""
    return [RunEvent("t", seq, run, AT, fact) for seq, fact in enumerate(facts, 1)]


def said(turn: int, price: float | None) -> ModelReplied:
    """Make a reply of a hundred tokens."""
    return ModelReplied(turn, "", 1, 10, 20, 30, 40, price, "scripted-1")


def check(phase: CheckPhase, code: int | None, name: str = "tests", commit: str = "a" * 40) -> CheckFinished:
    """Make a check's result."""
    return CheckFinished(phase, name, "make test", code, 1.0, "", commit, tree=f"tree of {commit}")


def ended(outcome: Outcome, reason: str = "") -> RunFinished:
    """End a run."""
    return RunFinished(outcome, reason, "My words.", 2, 200, None, 61.0)


def test_a_queued_run_is_queued() -> None:
    """Before it starts a run has a place in the queue and no meter."""
    view = progress_view(stand(events(RunQueued("flora", "", 3)), 1), marker="<!-- m -->", word="/agent")
    assert (view.state, view.position, view.requester, view.meter) == ("queued", 3, "flora", None)


def test_a_run_that_a_ceiling_holds_says_so_until_it_starts() -> None:
    """Whose ceiling, how much, and when it begins anew; a start makes it old news."""
    facts: list[Fact] = [RunQueued("flora", "", 0), RunHeld("repository", 5.0, "2026-12-01T00:00:00+00:00")]
    view = progress_view(stand(events(*facts), 1), marker="", word="/agent")
    assert view.state == "queued"
    assert view.reason == (
        "The daily ceiling of this repository, 5.00 US dollars, is reached. It begins anew on 2026-12-01 at 00:00 UTC, "
        "and this run then starts by itself."
    )
    assert line_of(facts[1]) == "waits: the daily ceiling of this repository is reached"
    assert progress_view(stand(events(*facts, STARTED), 1), marker="", word="/agent").reason == ""


def test_a_working_run_has_a_meter() -> None:
    """Replies add up to turns, tokens and price; what was not applied is a notice."""
    standing = stand(events(RunQueued("flora", "", 0), STARTED, said(1, 0.25), said(2, 0.5), Notice("Hm.")), 1)
    view = progress_view(standing, marker="", word="/agent")
    assert view.state == "working"
    assert view.meter is not None
    assert (view.meter.turn, view.meter.max_turns, view.meter.tokens) == (2, 60, 200)
    assert (view.meter.cost_usd, view.meter.context_tokens, view.meter.model) == (0.75, 100, "scripted-1")
    assert list(view.notices) == ["`model: x` was not applied", "Hm."]
    assert (view.reason, view.summary) == ("", "")


def test_one_unknown_price_makes_the_sum_unknown() -> None:
    """A sum that lacks a price is not shown as if it were one."""
    meter = stand(events(STARTED, said(1, 0.25), said(2, None)), 1).meter()
    assert meter is not None
    assert meter.cost_usd is None


def test_checks_stand_before_and_after() -> None:
    """Each check has one row: the first state and the last."""
    facts = [check("before", 1), check("before", 0, "lint"), check("after", 1), check("after", None, commit="b" * 40)]
    tests, lint = stand(events(*facts), 1).check_rows()
    assert tests.before is not None
    assert tests.after is not None
    assert (tests.before.exit_code, tests.after.exit_code, tests.after.tree) == (1, None, f"tree of {'b' * 40}")
    assert (tests.before.tests, lint.after) == (None, None)


def test_a_check_that_became_another_one_is_not_taken_for_it() -> None:
    """Under its name stands what the present command gave; a further run begins on work, not on what was there."""
    first = [check("before", 1), check("after", 0)]
    changed = [replace(one, command="true") for one in [check("before", 0), check("after", 0)]]
    [row] = stand(events(*first, *changed), 1).check_rows()
    assert (row.command, row.before) == ("true", None)
    assert row.after is not None
    [row] = stand(events(*first, check("before", 0), check("after", 1)), 1).check_rows()
    assert [one and one.exit_code for one in (row.before, row.after)] == [1, 1]


def test_a_check_that_was_taken_away_is_not_said_to_pass() -> None:
    """What it gave on earlier work says nothing of this; who reads the table sees that it was there."""
    first = [check("before", 0), check("before", 0, "lint"), check("after", 0), check("after", 0, "lint")]
    tests, lint = stand(events(*first, check("after", 0), check("after", 0, "lint")), 1).check_rows()
    assert tests.after is not None
    assert lint.after is not None
    tests, lint, style = stand(
        events(*first, check("before", 0), check("before", 0, "style"), check("after", 0)), 1
    ).check_rows()
    assert tests.after is not None
    assert (lint.after, lint.skipped) == (None, "the last checks were without it")
    assert (style.before, style.after, style.skipped) == (None, None, "")


@pytest.mark.parametrize("outcome", ["failed", "stopped", "budget"])
def test_what_ended_early_names_its_branch(outcome: Outcome) -> None:
    """Work without a pull request is found by its branch."""
    facts = events(STARTED, BranchPushed("agent/7-ab", "c" * 40), ended(outcome, "It broke."))
    view = progress_view(stand(facts, 1), marker="", word="/agent")
    assert view.state == outcome
    assert view.reason == "It broke. What was done so far is on the branch `agent/7-ab`."


def test_a_pull_request_is_named_instead_of_the_branch() -> None:
    """Where there is a pull request, it is what people look at."""
    facts = events(STARTED, BranchPushed("b", "c" * 40), PullOpened(9, "https://hub/9", updated=False), ended("done"))
    view = progress_view(stand(facts, 1), marker="", word="/agent")
    assert (view.state, view.reason, view.pull_number, view.summary) == ("done", "", 9, "My words.")


def test_each_run_stands_for_itself() -> None:
    """Facts of other runs do not count."""
    stream = [*events(STARTED, said(1, 1.0), ended("failed", "x")), *events(RunQueued("moss", "more", 0), run=2)]
    view = progress_view(stand(stream, 2), marker="", word="/agent")
    assert (view.state, view.requester, view.meter) == ("queued", "moss", None)


def test_commands_are_evidence() -> None:
    """Only tools that ran a command are listed as commands; errors stand out in the timeline."""
    facts = [
        ToolFinished(1, 0, "read", "a.py", is_error=True, seconds=0.1),
        ToolFinished(1, 1, "run", "make", is_error=False, seconds=2.0, command="make", exit_code=None),
    ]
    standing = stand(events(*facts), 1)
    assert [(row.command, row.exit_code) for row in standing.command_rows()] == [("make", None)]
    assert [(entry.text, entry.is_error) for entry in standing.timeline] == [
        ("read: a.py", True),
        ("run: make (out of time)", False),
    ]


def test_the_newest_plan_stands() -> None:
    """A call that sets none leaves it as it is."""
    first = ToolFinished(
        1, 0, "update_plan", "2 items", is_error=False, seconds=0.1, plan=[{"text": "a", "done": False}]
    )
    newer = replace(first, turn=2, plan=[{"text": "a", "done": True}, {"text": "b", "done": False}])
    read = ToolFinished(3, 0, "read", "a.py", is_error=False, seconds=0.1)
    view = progress_view(stand(events(STARTED, first, newer, read), 1), marker="", word="/agent")
    assert view.plan == [PlanItem("a", done=True), PlanItem("b", done=False)]


def test_every_kind_of_fact_has_its_line() -> None:
    """Each kind of fact is known to the fold; a reply alone is no news."""
    plan = PlanProposed(1, "Water it.", ("a.py",), 3, (), "Somebody has to say so.")
    news: list[Fact] = [STARTED, check("before", 0), ended("done"), Notice("a"), SETUP, SKIPPED]
    news += [plan, QuestionAsked("Which one?")]
    assert None not in [line_of(fact) for fact in news]
    assert line_of(said(1, None)) is None
    assert set(KINDS.values()) == set(_LINES)


def test_a_set_up_has_its_line() -> None:
    """Done, taken from an earlier task, failed, or not possible here: each says so."""
    cached = replace(SETUP, cached=True, remark="The project needs `cargo`, which is not installed here.")
    failed = replace(SETUP, exit_code=1, command="npm ci", output="E404")
    nothing = SetupFinished("", "", 0, 0.0, cached=False, remark="The project needs `go`.")
    assert [line_of(fact) for fact in (SETUP, cached, failed, nothing)] == [
        "set-up of node done in 2.5 s",
        "set-up of node taken from an earlier task; The project needs `cargo`, which is not installed here.",
        "set-up failed: npm ci: exit 1 in 2.5 s",
        "nothing was set up: The project needs `go`.",
    ]
    standing = stand(events(STARTED, failed), 1)
    assert standing.timeline[-1].is_error
    rows = progress_view(standing, marker="", word="/agent").evidence.setup
    assert rows == [SetupRow("node", "npm ci", 1, 2.5, cached=False, output="E404")]
    assert stand(events(STARTED), 1).setup_rows() == []


def test_a_set_up_for_the_checks_stands_beside_the_first_one() -> None:
    """The last one of them counts, and none where the work took its changes back or another run begins."""
    again = replace(SETUP, changed=["package.json"])
    failed, gone = replace(again, exit_code=1), replace(again, names="", command="")
    assert [line_of(fact) for fact in (again, failed, gone)] == [
        "set-up of node for the changed package.json done in 2.5 s",
        "set-up for the changed package.json failed: npm ci: exit 1 in 2.5 s",
        "nothing was set up for the changed package.json: nothing is asked for",
    ]
    first, second = stand(events(SETUP, failed, again), 1).setup_rows()
    assert (first.changed, second.changed, second.exit_code) == ((), ["package.json"], 0)
    assert len(stand(events(SETUP, again, SETUP), 1).setup_rows()) == 1


def test_a_skipped_check_is_no_failing_one() -> None:
    """It has a row with the reason, and keeps what an earlier run measured."""
    [row] = stand(events(SKIPPED), 1).check_rows()
    assert (row.before, row.after, row.skipped) == (None, None, "the set-up failed")
    [row] = stand(events(check("before", 1), SKIPPED), 1).check_rows()
    assert row.before is not None
    assert row.skipped == "the set-up failed"
    [row] = stand(events(check("before", 1), check("after", 0), replace(SKIPPED, phase="after")), 1).check_rows()
    assert row.before is not None
    assert row.after is None


FINDING = {"path": "t.py", "line": 3, "kind": "skip", "words": "Test `a` is skipped."}
CHANGED = DefinitionsChanged([FINDING], ["t.py"], ["t.py::b"])
COMMIT = CommitMade("d" * 40, "Mend it", 1, 1, 0, same_tree_as="c" * 40)


def test_evidence_is_of_the_work_that_was_judged_last() -> None:
    """Rows of the base's definition and of the proof, what the checks became, and the commit that was checked."""
    counted = replace(check("after", 0, commit="c" * 40), unit="tests", collected=3, passed=2, failed=0, skipped=1)
    facts: list[Fact] = [WorkspaceReady("b", "e" * 40, 1), check("before", 1), counted, CHANGED, check("base", 1)]
    facts += [check("proof", 1), ProofRun("shown", "tests"), COMMIT]
    standing = stand(events(*facts, WorkspaceReady("b", "f" * 40, 1)), None)
    seen = standing.evidence(())
    [row] = seen.checks
    assert [one and one.exit_code for one in (row.before, row.after, row.base, row.proof)] == [1, 0, 1, 1]
    assert row.after is not None
    assert row.after.tests == Counted("tests", 3, 2, 0, 1)
    assert str(row.after.tests) == "2 passed, 1 skipped"
    assert seen.findings == [FindingRow("t.py", 3, "Test `a` is skipped.")]
    assert (seen.restored, seen.tests, seen.proof) == (["t.py"], ["t.py::b"], ProofRow("shown", "tests"))
    assert (seen.base, seen.head, seen.tree) == ("e" * 40, "d" * 40, f"tree of {'c' * 40}")
    again = replace(CHANGED, findings=[], restored=[], tests=[], complete=False)
    [row] = (later := stand(events(*facts, again), None).evidence(())).checks
    assert (row.base, row.proof, later.proof, later.findings) == (None, None, None, [])


def test_checks_of_other_files_than_the_commits_have_no_tree() -> None:
    """Where the commit holds other files than were checked, no tree is told as if it were the commit's."""
    facts: list[Fact] = [check("after", 0, commit="c" * 40), replace(COMMIT, same_tree_as=None)]
    assert stand(events(*facts), 1).evidence().tree == ""


def test_what_the_work_does_to_its_checks_has_its_line() -> None:
    """Findings and the verdict are news; that nothing was found is none."""
    proofs = [ProofRun("shown", "tests"), ProofRun("green", "tests"), ProofRun("not run", "", "no test is new")]
    facts: list[Fact] = [CHANGED, replace(CHANGED, findings=[]), *proofs]
    assert [line_of(fact) for fact in facts] == [
        "the work changes what its checks mean; places to look at: 1",
        None,
        "the new or changed tests fail on the old code and pass now",
        "the new or changed tests pass on the old code too",
        "no new test was run on the old code: no test is new",
    ]
    assert line_of(check("base", 1)) == "check tests with the base's definition: exit 1 in 1.0 s"


def test_what_leaves_the_task_as_it_stands_is_no_part_of_its_work() -> None:
    """A check and a question begin nothing, compare nothing, and are of their own run alone."""
    work: list[Fact] = [RunQueued("maria", "Mend it", 0), WorkspaceReady("b", "c" * 40, 1), check("after", 0)]
    aside: list[Fact] = [
        RunQueued("maria", "", 0, "check"),
        WorkspaceReady("b", "e" * 40, 1),
        check("head", 1, commit="e" * 40),
    ]
    looked, done = events(*aside, run=1), events(*work, run=2)
    assert stand([*looked, *done, *events(*aside, run=3)], None).evidence() == stand(done, None).evidence()
    seen = stand([*looked, *done], 1).evidence()
    assert (seen.alone, seen.head, seen.tree, seen.base) == (True, "e" * 40, f"tree of {'e' * 40}", "")
    [row] = seen.checks
    assert row.before is None
    assert row.after is not None
    assert row.after.exit_code == 1
    assert line_of(check("head", 1)) == "check tests on the branch as it stands: exit 1 in 1.0 s"
