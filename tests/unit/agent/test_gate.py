"""What a person's pattern allows for the rest of a task, and what it never does."""

import pytest

from bot.agent.gate import Gate, always, lifts
from bot.agent.policy import Surroundings, load
from bot.settings.resolve import resolve
from bot.settings.server import ServerSettings

DEFAULT = {"default": load()["default"]}


def lifted(pattern: str, command: str) -> bool:
    """Say whether a pattern lifts a command under the packed policy."""
    return lifts([always("run", pattern)], "run", {"command": command}, Surroundings(), DEFAULT)


@pytest.mark.parametrize(
    ("pattern", "command"),
    [
        ("rm build", "rm build -rf / ."),
        ("rm", "rm -rf ."),
        ("cp a", "cp a .github/workflows/ci.yml"),
        ("cat", "cat a > AGENTS.md"),
        ("find", "find -delete"),
        ("git rm", "git rm -r ."),
    ],
)
def test_no_pattern_lifts_what_is_asked_about_call_by_call(pattern: str, command: str) -> None:
    """Protected files and mass deletion need the very call."""
    assert not lifted(pattern, command)


def test_no_pattern_lifts_it_under_strict_either() -> None:
    """The stricter policy is not the looser one."""
    applies = resolve(ServerSettings(policy="strict"), None).policy
    policies = Gate.of(load(), applies, "landlock", "/agent").policies
    for pattern, command, lifted_ in (("rm", "rm -rf .", False), ("tee", "tee AGENTS.md", False), ("rm", "rm a", True)):
        rules = [always("run", pattern)]
        assert lifts(rules, "run", {"command": command}, Surroundings(), policies) is lifted_


@pytest.mark.parametrize(("pattern", "command"), [("rm build", "rm build -rf"), ("git push", "git push origin main")])
def test_a_pattern_lifts_what_begins_so(pattern: str, command: str) -> None:
    """All else that a rule asks about is lifted."""
    assert lifted(pattern, command)


@pytest.mark.parametrize("pattern", ["docs/*", "deploy/*", "docs/**", "*.md", "**/one"])
def test_a_glob_that_names_something_is_one(pattern: str) -> None:
    """Any part of it may be the name."""
    assert always("write", pattern).path == (pattern,)


@pytest.mark.parametrize("pattern", ["*", "**", "**/*", "?/*"])
def test_a_glob_of_every_file_is_none(pattern: str) -> None:
    """It would allow everything."""
    with pytest.raises(ValueError, match="more than every file"):
        always("write", pattern)


def test_a_glob_lifts_no_protected_file() -> None:
    """Of a folder that holds one, all but that."""
    rules = [always("write", "sub/*")]
    assert lifts(rules, "write", {"path": "sub/a"}, Surroundings(), DEFAULT)
    assert not lifts(rules, "write", {"path": "sub/AGENTS.md"}, Surroundings(), DEFAULT)
