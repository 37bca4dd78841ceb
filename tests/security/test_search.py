"""Patterns and globs are data, and no search takes for ever."""

import os
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from bot.errors import ToolError
from bot.sandbox.base import Place
from bot.sandbox.process import ProcessSandbox
from tests.security.poisoned import WORDS, Arena, arena, own

pytestmark = pytest.mark.security

CAP_S = 10.0
POISON = r"""
repo
git config core.fsmonitor "$EVIL"; git config core.pager "$EVIL"; git config grep.openFilesInPager "$EVIL"
git config diff.evil.textconv "$EVIL"; git config diff.evil.command "$EVIL"; git config diff.external "$EVIL"
git config filter.evil.clean "$EVIL"; git config filter.evil.process "$EVIL"; git config alias.grep "!$EVIL"
attr '* diff=evil filter=evil text'
hook post-index-change; repo inner; git -C inner config core.fsmonitor "$EVIL"
"""


@pytest.fixture(name="place")
def arena_fixture() -> Iterator[Arena]:
    """A folder, a marker and a listener."""
    with arena() as made:
        yield made


@pytest.fixture
def root(place: Arena) -> Path:
    """A workspace."""
    folder = place.base / "tree"
    folder.mkdir()
    (folder / "mine.txt").write_text("hello --pre=sh -z\n")
    (folder / "-z").write_text("hello\n")
    own(folder)
    return folder


@pytest.fixture
async def sandbox(place: Arena, root: Path) -> AsyncIterator[ProcessSandbox]:
    """What acts in it, in an environment that names the attacker's program wherever it can."""
    evil = str(place.base / "evil")
    names = ("RIPGREP_CONFIG_PATH", "GIT_PAGER", "PAGER", "GIT_EXTERNAL_DIFF", "LESSOPEN")
    environment = {**place.environment(), **dict.fromkeys(names, evil)}
    made = ProcessSandbox(Place(root, uid=own(root), environment=environment))
    yield made
    await made.close()


@pytest.mark.parametrize(
    "pattern",
    ["--pre=sh", "-z", "-O$EVIL", "--open-files-in-pager=$EVIL", "-f/etc/passwd", "--untracked", "--", "-e", "-r",
     "$(touch $MARKS/x)", "`touch $MARKS/x`", "hello\\E(?{system('touch x')})", "(?C1)hello", "!touch x"],
)  # fmt: skip
async def test_patterns_are_data(place: Arena, sandbox: ProcessSandbox, pattern: str) -> None:
    """S60: a pattern that looks like an option, or like code, is looked for or refused as a pattern."""
    pattern = pattern.replace("$EVIL", str(place.base / "evil")).replace("$MARKS", str(place.base / "marks"))
    try:
        hits, _ = await sandbox.search(pattern, glob=None, limit=10)
    except ToolError as error:
        assert str(error).startswith("bad_pattern")  # noqa: PT017 - either is right
    else:
        assert {hit.path for hit in hits} <= {"mine.txt", "-z"}
    assert place.marks == []


@pytest.mark.parametrize(
    "glob",
    ["-z", "--pre=sh", "-O/bin/sh", ":(top)..", ":!mine.txt", ":(attr:x)", ":/", ":(exclude)*", "../*", "/etc/*",
     "{../,/etc/}*", ".git/*", "**/../../*", "a\0b", "*)(", "[", "{"],
)  # fmt: skip
async def test_globs_are_data(place: Arena, sandbox: ProcessSandbox, glob: str) -> None:
    """S60: so is a glob; none reaches beyond the workspace."""
    for operation in (sandbox.search("root|hello|canary", glob=glob, limit=50), sandbox.list(glob, limit=50)):
        try:
            rows, _ = await operation
        except ToolError:
            continue
        assert {row.path for row in rows} <= {"mine.txt", "-z"}
    assert place.marks == []


async def test_poisoned_repository(place: Arena, sandbox: ProcessSandbox) -> None:
    """S60: no program that a repository in the workspace names is run by a search or a listing."""
    done = await sandbox.run(WORDS + POISON, timeout_s=30)
    assert done.exit_code == 0, done.stderr
    place.forget_damage()
    assert (await sandbox.search("hello", glob=None, limit=10))[1] == 2
    await sandbox.list("**", limit=100)
    assert place.marks == []
    assert place.listener.calls == []


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|aa)+$", "(.*a){25}$", "^(([a-z])+.)+[A-Z]([a-z])+$"])
async def test_catastrophic_patterns(root: Path, sandbox: ProcessSandbox, pattern: str) -> None:
    """S60: an expression that backtracks without end is ended, and the next search works."""
    (root / "trap").write_text(("a" * 40 + "!\n") * 500)
    own(root)
    started = time.monotonic()
    try:
        await sandbox.search(pattern, glob="trap", limit=10)
    except ToolError as error:
        assert str(error).startswith(("bad_pattern", "too_much"))  # noqa: PT017 - being quick is right as well
    assert time.monotonic() - started < CAP_S + 5
    assert (await sandbox.search("hello", glob=None, limit=10))[1] == 2


async def test_pipe_for_rules(root: Path, sandbox: ProcessSandbox) -> None:
    """S60: where git waits for a pipe that stands for its rules, the search ends all the same."""
    (root / "p").mkdir()
    os.mkfifo(root / "p" / ".gitignore")
    own(root)
    started = time.monotonic()
    with pytest.raises(ToolError, match="too_much"):
        await sandbox.list("**", limit=10)
    assert time.monotonic() - started < CAP_S + 5
