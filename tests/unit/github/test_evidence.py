"""Evidence for programs and for check runs; how people read it is in `tests/cases/comments`."""

from dataclasses import replace

import pytest

from bot.github.evidence import (
    CheckResult,
    CheckRow,
    Counted,
    EvidenceView,
    FindingRow,
    block,
    evidence_check,
    read_block,
    section,
)

HEAD, BASE, TREE = "c" * 40, "b" * 40, "d" * 40
EVIL = "x --> <!-- @maria closes #9 https://evil.example & \u2028"
WELL = CheckRow("tests", "make test", CheckResult(1, 1.0), CheckResult(0, 1.0, TREE, Counted("tests", 2, 2, 0, 0)))
VIEW = EvidenceView(checks=[WELL], base=BASE, head=HEAD, tree=TREE)


def test_a_program_reads_what_was_written() -> None:
    """The block survives any command, and lends it no power: no end of the comment, no mention, no keyword."""
    view = replace(VIEW, checks=[replace(WELL, command=EVIL)])
    written = block(view)
    for power in ("@", "#", "-->", "<!--", "&", "//"):
        assert power not in written.removeprefix("<!--").removesuffix("-->")
    assert written.count("\n") == 0
    assert read_block(f"words\n\n{written}\n<!-- else -->") == {
        "base": BASE, "head": HEAD, "tree": TREE, "checks": [{
            "name": "tests", "command": EVIL, "found": False,
            "before": {"exit": 1, "tests": None, "tree": ""},
            "after": {
                "exit": 0, "tree": TREE,
                "tests": {"unit": "tests", "collected": 2, "passed": 2, "failed": 0, "skipped": 0},
            },
        }],
    }  # fmt: skip


def test_the_last_block_counts() -> None:
    """What is quoted above it is not it; what cannot be read is passed over."""
    forged = block(replace(VIEW, head="f" * 40))
    found = read_block(f"{forged}\n{block(VIEW)}\n<!-- issuewright:evidence:v1 {{broken}} -->")
    assert found is not None
    assert found["head"] == HEAD
    assert read_block("<!-- issuewright:evidence:v1 [1] -->") is None
    assert read_block("<!-- issuewright:evidence:v1 " + '{"a":' * 3_000 + "} -->") is None


@pytest.mark.parametrize(
    "view",
    [
        replace(VIEW, head=""),
        replace(VIEW, checks=()),
        replace(VIEW, checks=[replace(WELL, command="y" * 4_000)] * 5),
    ],
    ids=["no commit yet", "no checks", "too long"],
)
def test_where_there_is_nothing_to_read_there_is_no_block(view: EvidenceView) -> None:
    """Half a block would be none."""
    assert block(view) == ""


@pytest.mark.parametrize(
    ("row", "conclusion", "title"),
    [
        (WELL, "success", "1 of 1 checks pass"),
        (replace(WELL, after=CheckResult(2, 1.0)), "failure", "0 of 1 checks pass"),
        (replace(WELL, after=CheckResult(None, 1.0)), "failure", "0 of 1 checks pass"),
        (replace(WELL, after=None, skipped="the set-up failed"), "neutral", "0 of 1 checks pass"),
        (replace(WELL, base=CheckResult(1, 1.0)), "failure", "1 of 1 checks pass"),
        (replace(WELL, base=CheckResult(0, 1.0)), "success", "1 of 1 checks pass"),
    ],
)
def test_a_check_run_says_how_it_stands(row: CheckRow, conclusion: str, title: str) -> None:
    """Green is what passes also as the base defined it; what did not run is neither."""
    check = evidence_check(replace(VIEW, checks=[row]), "a" * 32)
    assert (check.conclusion, check.title) == (conclusion, title)
    assert (check.head_sha, check.external_id, check.status) == (HEAD, "a" * 32, "completed")
    assert "| tests | `make test` | 1 |" in check.summary


def test_what_passed_on_other_files_is_no_green() -> None:
    """Where the work was put on top of what others pushed, no check ran on the commit; a failure stays one."""
    check = evidence_check(replace(VIEW, tree=""), "a" * 32)
    assert (check.conclusion, check.title) == ("neutral", "1 of 1 checks pass, on other files than this commit's")
    failed = replace(WELL, after=CheckResult(1, 1.0, TREE))
    assert evidence_check(replace(VIEW, tree="", checks=[failed]), "a" * 32).conclusion == "failure"
    not_run = replace(WELL, after=None, skipped="the set-up failed")
    assert evidence_check(replace(VIEW, tree="", checks=[not_run]), "a" * 32).title == "0 of 1 checks pass"


def test_a_check_run_without_checks_is_no_green() -> None:
    """Nothing shows anything."""
    check = evidence_check(EvidenceView(head=HEAD), "a" * 32)
    assert (check.conclusion, check.title) == ("neutral", "There are no checks")


def test_a_check_run_names_what_weakens_it_and_holds_the_logs() -> None:
    """In the title, where nobody overlooks it; head and tail of a long log."""
    result = CheckResult(0, 1.0, TREE, None, "first" + "." * 9_000 + "last @maria")
    view = replace(VIEW, checks=[replace(WELL, after=result)], findings=[FindingRow("a", 1, "It is gone.")])
    check = evidence_check(view, "a" * 32)
    assert check.title == "1 of 1 checks pass; this change weakens or redefines its own checks"
    assert "first" in check.text
    assert "last @maria\n```" in check.text
    assert len(check.text) < 4_000


def test_other_files_than_the_checked_ones_are_said() -> None:
    """A commit that leaves something out is not what was checked."""
    assert "**The commit `cccccccc` holds other files than those they ran on.**" in section(replace(VIEW, tree=""))
    assert "`cccccccc`, whose tree is `dddddddd`" in section(VIEW)
    assert (read_block(block(replace(VIEW, tree=""))) or {})["tree"] == ""


@pytest.mark.parametrize(
    ("counted", "shown"),
    [
        (Counted("tests", 3, 2, 0, 1), "2 passed, 1 skipped"),
        (Counted("tests", None, 2, 1, 0), "2 passed, 1 failed"),
        # Nobody ran the rest, as with `-x`, or which of them passed is not told.
        (Counted("tests", 10, 3, 1, 0), "3 passed, 1 failed, 10 found"),
        (Counted("tests", 4, None, 2, 0), "2 failed, 4 found"),
        (Counted("packages", 3, 2, 1, 0), "2 passed, 1 failed packages"),
        (Counted("tests", 0, None, 0, 0), "0 found"),
    ],
)
def test_tests_that_were_found_and_not_run_are_told(counted: Counted, shown: str) -> None:
    """What passed, failed and was skipped says all of it, or how many there were stands beside it."""
    assert str(counted) == shown


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (Counted("tests", 4, 3, 1, 0), Counted("tests", 4, 3, 0, 1), "ran fewer tests than before: 3 instead of 4"),
        (Counted("tests", 1, 0, 1, 0), Counted("tests", 0, 0, 0, 0), "ran fewer tests than before: 0 instead of 1"),
        (Counted("tests", 12, 12), None, "how many tests it ran is not known any more; before it was 12"),
        (Counted("tests", 2, 2), Counted("packages", 2, 2), "not known any more; before it was 2"),
        (Counted("tests", 2, 1, 1, 0), Counted("tests", 3, 2, 0, 1), ""),
        (None, Counted("tests", 0, 0), ""),
    ],
)
def test_fewer_tests_are_told(before: Counted | None, after: Counted | None, told: str) -> None:
    """Whatever took them away, where the check ends well all the same."""
    row = CheckRow("tests", "make test", CheckResult(1, 1.0, tests=before), CheckResult(0, 1.0, TREE, after))
    view = replace(VIEW, checks=[row])
    shown = section(view)
    assert told in shown
    assert ("**`tests` ends well, but" in shown) == bool(told)
    assert ("with fewer tests than before" in evidence_check(view, "t").title) == bool(told)
    failed = replace(view, checks=[replace(row, after=CheckResult(1, 1.0, TREE, after))])
    assert "ends well" not in section(failed)


def test_checks_that_were_not_run_here_are_told_apart() -> None:
    """What they became takes nothing from the table, and is no word in the title."""
    apart = FindingRow("ci.yml", 2, "What CI runs has changed.", apart=True)
    check = evidence_check(replace(VIEW, findings=[apart]), "a" * 32)
    assert check.title == "1 of 1 checks pass"
    assert "It changes checks that were not run here:\n\n- `ci.yml` line 2: What CI runs has changed." in check.summary
    assert "weakens" not in check.summary
    both = section(replace(VIEW, findings=[apart, FindingRow("a", 1, "It is gone.")]))
    assert (
        both.index("weakens or redefines")
        < both.index("It is gone.")
        < both.index("not run here")
        < both.index("ci.yml")
    )
