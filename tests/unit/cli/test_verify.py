"""What `issuewright verify` holds against each other; how it runs the checks is in `tests/e2e/test_evidence.py`."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from bot.cli.verify import _Claim, _claimed, _differences, _Seen
from bot.github.evidence import CheckResult, CheckRow, Counted
from bot.settings.repository import Check

BASE, HEAD, TREE, OTHER = "b" * 40, "c" * 40, "d" * 40, "e" * 40
TESTS = Check(name="tests", run="make test", timeout_s=1_800)
LINT = Check(name="lint", run="ruff check .")
SEEN = _Seen(
    [
        CheckRow(
            "tests", "make test", CheckResult(1, 1.0, BASE), CheckResult(0, 1.0, TREE, Counted("tests", 2, 2, 0, 0))
        )
    ],
    TREE,
    follows=True,
    files=[[TESTS], [TESTS]],
    found=["pytest -q"],
)
ROW = {
    "name": "tests",
    "command": "make test",
    "before": {"exit": 1, "tree": BASE},
    "after": {"exit": 0, "tree": TREE, "tests": {"passed": 2, "failed": 0, "skipped": 0}},
}
PASSED = "exit 0 (2 passed, 0 failed, 0 skipped)"
BLOCK = {"base": BASE, "head": HEAD, "tree": TREE, "checks": [ROW]}


def differences(block: dict[str, object], seen: _Seen = SEEN) -> list[str]:
    """Compare a block with what was seen."""
    return [*_differences(_Claim.model_validate({**BLOCK, **block}), seen)]


def row(**values: object) -> dict[str, object]:
    """Make a block of one check."""
    return {"checks": [{**ROW, **values}]}


def test_an_honest_block_is_as_recorded() -> None:
    """Also where the checks ran on other files than the head's, with the same end."""
    assert differences({}) == []
    assert differences({"tree": "", **row(after={**ROW["after"], "tree": OTHER})}) == []  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("block", "seen", "said"),
    [
        (row(before={"exit": 0}), SEEN, ["tests before the work: recorded exit 0, seen exit 1"]),
        (
            {"tree": "", **row(after={"exit": 2, "tree": OTHER})},
            SEEN,
            [f"tests after the work: recorded exit 2 on other files ({OTHER[:8]}), seen {PASSED}"],
        ),
        (
            row(after=None),
            SEEN,
            [f"tests after the work: recorded not run, seen {PASSED}"],
        ),
        (
            {"tree": OTHER},
            SEEN,
            [
                f"tests after the work: recorded on the tree {TREE[:8]}, not {OTHER[:8]}",
                f"the tree of {HEAD[:8]} is {TREE[:8]}, and not {OTHER[:8]}",
            ],
        ),
        (
            {},
            replace(SEEN, follows=False),
            [f"{HEAD[:8]} was not made from {BASE[:8]}, which is said to be there before it"],
        ),
        # The repository's own check is another one, or there are more of them.
        (
            {},
            replace(SEEN, files=[[Check(name="tests", run="pytest")], [LINT]]),
            ["tests: nothing in the repository names `make test` as a check"],
        ),
        (
            {},
            replace(SEEN, files=[[TESTS, LINT], [TESTS, LINT]]),
            ["lint: the repository names `ruff check .` as a check, and nothing is recorded of it"],
        ),
        # Between the work and now it came or went.
        ({}, replace(SEEN, files=[[TESTS], [TESTS, LINT]]), []),
        ({}, replace(SEEN, files=[[], [TESTS]]), []),
        ({}, replace(SEEN, files=[[], [TESTS, LINT], [TESTS, LINT]]), []),
        ({}, replace(SEEN, files=[[TESTS, LINT], [TESTS], [TESTS, LINT]]), []),
        (row(found=True), replace(SEEN, files=[[], []], found=["make test"]), []),
        (
            row(),
            replace(SEEN, files=[[], []], found=["make test"]),
            ["tests: nothing in the repository names `make test` as a check"],
        ),
    ],
)
def test_what_is_not_so_is_told(block: dict[str, object], seen: _Seen, said: Sequence[str]) -> None:
    """Whoever may edit the text may have altered any part of it."""
    assert differences(block, seen) == said


def test_a_check_has_the_time_that_the_repository_gives_it() -> None:
    """Else it ends early here, and an honest claim looks like a false one."""
    claim = _Claim.model_validate(BLOCK)
    assert [one.timeout_s for one in _claimed(claim, [[LINT], [TESTS]])] == [1_800]
    assert [one.timeout_s for one in _claimed(claim, [[Check(name="tests", run="true", timeout_s=9)]])] == [600]
