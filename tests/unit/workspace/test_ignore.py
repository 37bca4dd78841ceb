import subprocess
import time
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bot.workspace.ignore import Rules, parse
from tests.unit.workspace.helpers import git

FILES = [
    "a",
    "b",
    "ab",
    "a/b",
    "a/b/c",
    "build/x",
    "src/build/y",
    "x.log",
    "src/x.log",
    "!a",
    "#a",
    "a ",
    "a/.b",
    "s/t/u/v",
]
LINES = [
    "a", "/a", "a/", "*.log", "!x.log", "build/", "/build", "src/build", "**/b", "a/**", "a/**/c", "**", "*", "!a/",
    "?", "[ab]", "[!a]", "[^a]*", "[a-c]", "[[:alpha:]]", "[]a]", "[a", "\\!a", "\\#a", "#a", "a\\ ", "a ", "s/**/v",
    "s/*/v", "", "!*/", "a?", "*b*", ".b", "/", "**/", "!/a/b", "a\\", "\\a", "*/b", "s/**", "[z-a]", "[a\\-c]",
    "x.l[n-p]g\r", "**b", "a**",
]  # fmt: skip


def ignored(rules_of: dict[str, bytes], path: str) -> bool:
    """Walk down to a path as the recorder does."""
    rules = Rules().plus(rules_of.get(""))
    *above, name = path.split("/")
    place = ""
    for folder in above:
        place = f"{place}{folder}/"
        rules = rules.enter(folder.encode()).plus(rules_of.get(place))
    return rules.ignores(name.encode(), is_folder=False)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(root=st.lists(st.sampled_from(LINES), max_size=5), below=st.lists(st.sampled_from(LINES), max_size=3))
def test_agrees_with_git(tmp_path: Path, root: list[str], below: list[str]) -> None:
    """Our reading of `.gitignore` is git's own, for every combination of lines and paths."""
    folder = tmp_path / "ignored"
    if not folder.exists():
        folder.mkdir()
        git(folder, "init", "--quiet")
        (folder / "a").mkdir()
    texts = {"": "\n".join(root).encode(), "a/": "\n".join(below).encode()}
    for place, text in texts.items():
        (folder / place / ".gitignore").write_bytes(text)
    asked = [path for path in FILES if path != "a"]
    command = ["git", "check-ignore", "--no-index", "-z", "-v", "-n", "--stdin"]
    done = subprocess.run(command, cwd=folder, input="\0".join(asked).encode(), capture_output=True, check=False)
    assert done.returncode in {0, 1}
    answers = done.stdout.decode().split("\0")[:-1]
    patterns = dict(zip(answers[3::4], answers[2::4], strict=True))
    assert list(patterns) == asked
    theirs = {path: bool(pattern) and not pattern.startswith("!") for path, pattern in patterns.items()}
    assert {path: ignored(texts, path) for path in asked} == theirs


def test_hostile_patterns_take_no_time() -> None:
    """Patterns made to backtrack without end are matched in no time."""
    start = time.perf_counter()
    for line in (b"*a" * 60 + b"b", b"**/a/" * 60 + b"b", b"[" * 5_000, b"?*" * 200 + b"b"):
        rules = Rules().plus(line)
        assert not rules.ignores(b"a" * 250, is_folder=False)
        deep = rules
        for _ in range(60):
            deep = deep.enter(b"a")
        assert not deep.ignores(b"c", is_folder=False)
    assert time.perf_counter() - start < 20


def test_byte_order_mark() -> None:
    """A byte order mark is no part of the first pattern."""
    assert len(parse(b"\xef\xbb\xbf*.log\n\n# note\n")) == 1
    assert Rules().plus(b"\xef\xbb\xbf*.log").ignores(b"x.log", is_folder=False)
