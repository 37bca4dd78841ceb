"""A bug of a released package, mended as its next release mended it, and shown by the package's own tests."""

import itertools
import json
import os
import re
import shlex
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from bot.testing.model.reply import Call
from bot.testing.model.script import Condition, Conversation, Script, Turn
from tests.e2e.real.archives import (
    IndexUnreachable,
    Replacement,
    different,
    download,
    install,
    make_environment,
    replacements,
)
from tests.e2e.stage import Stage

pytestmark = pytest.mark.e2e

BUDGET_S = 60
NAME = "cachetools"
"""MIT, no dependencies, and its source archive holds its tests."""
BUGGY = ("4.2.0", "3796e1de094f0eaca982441c92ce96c68c89cced4cd97721ab297ea4b16db90e")
MENDED = ("4.2.1", "f469e29e7aa4cff64d8de4aad95ce76de8ea1125a16c68e0d93f65c3c3dc92e9")
"""Its changelog says that caches handle a `__missing__` that does not store the item."""
FIXED = ("cachetools/lfu.py", "cachetools/lru.py", "cachetools/mru.py")
REGRESSION = "tests/__init__.py"
"""The tests that those of all caches inherit; the release that mends the bug also mends what they ask for."""

TITLE = "An LRU or LFU cache breaks when `__missing__` does not store its value"
BODY = """\
A cache class of mine has a `__missing__` that computes a value and keeps it only if it fits. For a value that is too
big it returns it without storing it. From then on the cache counts a key that it does not hold: evicting with
`popitem()` raises `KeyError` for that key although there are other items.

`LRUCache` and `LFUCache` show it; `test_missing_getsizeof` in `tests/` reproduces it.
"""
FAILING = (
    "tests/test_lfu.py::LFUCacheTest::test_missing_getsizeof",
    "tests/test_lru.py::LRUCacheTest::test_missing_getsizeof",
)
PASSED = 171
LEFT_BEHIND = "find . -name .pytest_cache"
"""Shows that there is something which must not be committed."""


@dataclass(frozen=True, slots=True)
class Project:
    """The buggy release as a repository, the files of the next one, and the command that tells them apart."""

    repository: Mapping[str, bytes | str]
    released: Mapping[str, bytes | str]
    command: str
    environment: Path
    """What the operator lets commands read beside the system."""


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Fetch both releases once, and prepare an environment in which the work tree's uid can run the tests."""
    folder = tmp_path_factory.mktemp("real")
    # Workers that go side by side have a folder more.
    above = itertools.takewhile(lambda one: one != Path(tempfile.gettempdir()), folder.parents)
    for parent in (folder, *above):
        parent.chmod(0o711)
    python = make_environment(folder / "environment")
    archives = folder / "archives"
    archives.mkdir()
    try:
        before, after = (download(python, NAME, *release, archives) for release in (BUGGY, MENDED))
        install(python, "pytest>=8,<10")
    except IndexUnreachable as error:
        if os.environ.get("REQUIRE_INDEX") == "1":
            raise
        pytest.skip(f"pip reaches no package index: {str(error)[-300:]}")
    command = f"PYTHONPATH=. {shlex.quote(str(python))} -m pytest -q tests"
    config = f"version: 1\nsetup: false\nchecks:\n  - name: tests\n    run: {json.dumps(command)}\n"
    repository = {**before, REGRESSION: after[REGRESSION], ".github/issuewright.yml": config}
    return Project(repository, after, command, folder / "environment")


def real_fix(project: Project) -> list[Replacement]:
    """Derive the fix from the two releases, and be sure that nothing else of the package differs but its version."""
    before, after = project.repository, project.released
    assert different(before, after, under=f"{NAME}/") == {*FIXED, f"{NAME}/__init__.py"}
    assert text(before, f"{NAME}/__init__.py").replace(BUGGY[0], MENDED[0]) == text(after, f"{NAME}/__init__.py")
    fix = [one for path in FIXED for one in replacements(path, text(before, path), text(after, path))]
    assert [one.path for one in fix] == list(FIXED)
    assert all("if key in self:" in one.new and "if key in self:" not in one.old for one in fix)
    assert all(one.new.count("\n") == one.old.count("\n") + 1 for one in fix)
    return fix


def text(files: Mapping[str, bytes | str], path: str) -> str:
    """Return a file as text."""
    data = files[path]
    return data if isinstance(data, str) else data.decode()


def script(command: str, fix: list[Replacement]) -> Script:
    """Look at the failure, read what is to blame, replay the real fix, see the tests pass."""
    run = Call("run", {"command": command})
    turns = (
        Turn("I reproduce it.", calls=[run]),
        Turn(
            "Those caches note a use of a key that they may not hold.",
            calls=[Call("read", {"path": path}) for path in FIXED],
            expect=[
                *(Condition(tool="run", matches=f"^FAILED {re.escape(name)}") for name in FAILING),
                Condition(tool="run", matches=r"\Aexit code: 1$"),
                Condition(tool="run", matches=rf"^{len(FAILING)} failed, {PASSED - len(FAILING)} passed"),
            ],
        ),
        Turn(
            "I ask before I note it.",
            calls=[Call("edit", {"path": one.path, "old": one.old, "new": one.new}) for one in fix],
            expect=[Condition(tool="read", matches=re.escape(one.old.rstrip("\n"))) for one in fix],
        ),
        Turn(
            "I run the tests again, and look at what they leave behind.",
            calls=[run, Call("run", {"command": LEFT_BEHIND})],
            expect=[Condition(tool="edit", matches=f"^edited {re.escape(path)}$", is_error=False) for path in FIXED],
        ),
        Turn(
            "Done.",
            calls=[Call("finish", {"summary": "A cache notes the use of a key only if it holds it."})],
            expect=[
                Condition(tool="run", matches=rf"\Aexit code: 0\n(?s:.*)^{PASSED} passed", lacks="(?i)failed"),
                Condition(tool="run", matches=r"^\./\.pytest_cache$"),
            ],
        ),
    )
    return Script([Conversation("real fix", turns, match="does not store its value")], name="real-project")


def evidence(body: str, command: str) -> tuple[int, int, str]:
    """Read the harness's row of evidence: exit code before and after, and the commit that was tested."""
    section = body.partition("### Evidence")[2].partition("<details>")[0]
    assert "run by Issuewright itself, not by the model" in section
    cells = rf"\| tests \| `{re.escape(command)}` \| (\d+) \| (\d+) \| [^|]+\| [^|]+\| [\d.]+ \| `([0-9a-f]{{8}})` \|"
    (row,) = re.findall(f"^{cells}$", section, re.MULTILINE)
    return int(row[0]), int(row[1]), str(row[2])


def test_a_real_bug_is_mended_and_its_own_tests_show_it(project: Project, folder: Path) -> None:
    """The label on the issue ends as a pull request with the files of the next release, red before and green after."""
    begun = time.monotonic()
    played = script(project.command, real_fix(project))
    with Stage(folder, played, project.repository).open() as stage:
        with stage.serving(ISSUEWRIGHT_SANDBOX__PATHS=str(project.environment)):
            issue = stage.labelled(TITLE, BODY)
            told = stage.story_ends(issue.number)
        assert stage.model.problems == []
        assert len(stage.model.requests) == len(played.conversations[0].turns)
        assert told.startswith("**Done**: [#2]"), told

        (pull,) = stage.pulls()
        assert pull.pull is not None
        assert pull.body is not None
        branch = pull.pull.head_ref
        assert stage.git("rev-list", "--count", f"main..{branch}") == "1"
        assert stage.git("diff", "--name-status", "main", branch).splitlines() == [f"M\t{path}" for path in FIXED]
        for path in FIXED:
            assert stage.git("show", f"{branch}:{path}") == text(project.released, path).strip()

        message = stage.git("log", "-1", "--format=%B", branch)
        assert message.startswith(f"{TITLE}\n")
        assert f"#{issue.number}" in message

        # Its checks pass, and no others run here.
        assert not pull.pull.draft
        assert pull.user is stage.app.bot
        assert pull.title == TITLE
        assert pull.body.startswith(f"Closes #{issue.number}\n")
        assert "3 files changed, 6 lines added, 3 lines removed." in pull.body
        assert len(stage.bot_comments(issue.number)) == 1
        assert stage.bot_comments(pull.number) == []

        before, after, tested = evidence(pull.body, project.command)
        assert before != 0
        assert after == 0
        assert f"`{tested}`" in told
    assert time.monotonic() - begun < BUDGET_S
