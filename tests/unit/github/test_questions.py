"""What a plan's comment says of the files that it names."""

from bot.github import questions

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


def test_a_path_is_named_as_the_repository_does() -> None:
    """No detour hides where it ends, and what is protected is not cut."""
    assert files(f"docs/notes/{'a/../' * 50}../../{PATH}").endswith(f"to change: `{PATH}`")
    long = f"{'x' * 1_000}/AGENTS.md"
    assert f"`{long}`" in files(long)
