"""What a plan's comment says of the files that it names."""

import pytest

from bot.domain.proposal import Proposal
from bot.github import questions
from bot.github.text import cut

PATH = ".github/workflows/x.yml"


def files(*named: str) -> str:
    """Return the line that names files."""
    shown = questions.plan(questions.PlanView("m", "Do it.", named, 3, (), "It is for you."))
    [line] = [line for line in shown.split("\n") if line.startswith("**Files**")]
    return line


def test_protected_files_come_first_and_all() -> None:
    """However many others there are, and wherever the model put them."""
    named = [*(f"src/{number}.py" for number in range(60)), *(f"{number}/AGENTS.md" for number in range(50))]
    line = files(*named)
    assert line.count("/AGENTS.md`") == 50
    assert line.index("49/AGENTS.md") < line.index("src/0.py")
    assert line.endswith("and 20 more")


@pytest.mark.parametrize(
    ("plan", "whole"),
    [
        (Proposal("x" * 20_000, ["a"] * 100, 3, ["Why?"] * 10), True),
        (Proposal("&#" * 10_000), False),
        (Proposal("\U0001f600" * 16_000, (), 3, ["x" * 999] * 10), True),
        (Proposal("\U0001f600" * 20_000, (), 3, ["&#" * 499] * 10), False),
        (Proposal("x" * 24_001), False),
        (Proposal("Water it.", (), 3, ["x" * 1_001]), False),
    ],
)
def test_a_plan_is_shown_whole_or_not_at_all(plan: Proposal, *, whole: bool) -> None:
    """One comment has to hold all of it, as GitHub counts."""
    assert questions.is_shown_whole(plan) == whole
    if whole:
        shown = questions.plan(questions.PlanView("m", plan.text, plan.files, plan.turns, plan.questions, "It waits."))
        assert cut(shown) == shown


def test_a_path_is_named_as_the_repository_does() -> None:
    """No detour hides where it ends, and what is protected is not cut."""
    assert files(f"docs/notes/{'a/../' * 50}../../{PATH}").endswith(f"to change: `{PATH}`")
    long = f"{'x' * 1_000}/AGENTS.md"
    assert f"`{long}`" in files(long)
