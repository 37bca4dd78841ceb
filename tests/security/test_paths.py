"""Each spelling of `corpus/paths.txt` asked of every file operation."""

import json
import os
from collections.abc import AsyncIterator, Awaitable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from bot.errors import ToolError, WorkspaceError
from bot.sandbox.base import Place
from bot.sandbox.process import ProcessSandbox
from bot.workspace.worktree import GitWorkspace
from tests.security.poisoned import CORPUS, Arena, arena, own, source
from tests.unit.workspace.helpers import AT, entries, opened

pytestmark = pytest.mark.security

LIMIT = 1 << 20


@dataclass(frozen=True)
class Spelling:
    """One line of the corpus."""

    expected: str
    path: str
    target: str | None = None
    """Where `link` leads to; None where there is none."""

    @property
    def codes(self) -> set[str]:
        """With which of them an operation may refuse it."""
        return set(self.expected.split("|"))


def spellings(*, works: bool) -> list[Spelling]:
    """Read the corpus."""
    found = []
    for line in (CORPUS / "paths.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            expected, _, rest = line.partition(" ")
            texts = json.loads("[" + rest.replace('" "', '", "') + "]")
            found.append(Spelling(expected, *texts))
    return [one for one in found if (one.expected == "works") == works]


@pytest.fixture(name="place")
def arena_fixture() -> Iterator[Arena]:
    """A folder with a secret beside the workspace."""
    with arena() as made:
        yield made


@pytest.fixture
def root(place: Arena) -> Path:
    """A workspace."""
    folder = place.base / "tree"
    for name in ("mine.txt", "a/b.txt", ".git/config"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    own(folder)
    return folder


@pytest.fixture
async def sandbox(root: Path) -> AsyncIterator[ProcessSandbox]:
    """What acts in it."""
    made = ProcessSandbox(Place(root, uid=own(root)))
    yield made
    await made.close()


def contents(folder: Path) -> dict[str, bytes]:
    """Read all files below a folder."""
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


async def refusals(*operations: Awaitable[object]) -> set[str]:
    """Await all; the codes of their refusals, and `done` where one was not refused."""
    found = set()
    for operation in operations:
        try:
            await operation
            found.add("done")
        except ToolError as error:
            found.add(str(error).partition(":")[0])
    return found


@pytest.mark.parametrize("spelling", spellings(works=False), ids=lambda one: f"{one.path[:40]!r}-{one.target}")
async def test_refused_spellings(place: Arena, root: Path, sandbox: ProcessSandbox, spelling: Spelling) -> None:
    """S52, S53, S54: every operation refuses with the right code, and nothing inside or outside changes."""
    path = spelling.path
    if spelling.target is not None:
        (root / "link").symlink_to(spelling.target)
        own(root / "link")
    before = contents(place.base)
    found = await refusals(
        sandbox.open(path, limit_bytes=LIMIT),
        sandbox.replace(path, b"x", expected_sha256=None),
        sandbox.replace(path, b"x", expected_sha256="0" * 64),
    )
    # A link itself may be moved and removed; what it leads to may not.
    others = await refusals(sandbox.move("mine.txt", path), sandbox.move(path, "moved"), sandbox.delete(path))
    assert found <= spelling.codes
    if spelling.target is None:
        assert others <= spelling.codes
    assert contents(place.base) == before


@pytest.mark.parametrize("spelling", spellings(works=True), ids=lambda one: f"{one.path[:40]!r}")
async def test_odd_spellings(root: Path, sandbox: ProcessSandbox, spelling: Spelling) -> None:
    """S53: a name is bytes: written, read, listed, moved and removed as it is."""
    path = spelling.path
    written = await sandbox.replace(path, b"one", expected_sha256=None)
    await sandbox.replace(path, b"two", expected_sha256=written.sha256)
    assert (await sandbox.open(path, limit_bytes=LIMIT)).data == b"two"
    assert contents(root)[path] == b"two"
    listed, _ = await sandbox.list("**", limit=100)
    assert path in [entry.path for entry in listed]
    hits, _ = await sandbox.search("^two$", glob=None, limit=10)
    assert [hit.path for hit in hits] == [path]
    await sandbox.move(path, "moved")
    await sandbox.move("moved", path)
    await sandbox.delete(path)
    assert set(contents(root)) == {"mine.txt", "a/b.txt", ".git/config"}


async def test_odd_spellings_in_git(place: Arena) -> None:
    """S53: the same names come into a commit and back to disk as the same bytes; those that lead out are no paths."""
    workspace, base = await opened(place.state, source(place))
    names = [one.path for one in spellings(works=True)]
    for name in names:
        (workspace.root / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace.root / name).write_text("x")
    commit = await workspace.checkpoint(names, "m", AT)
    added = {path.encode("utf-8", "surrogateescape") for path in entries(workspace.git_dir, commit)}
    assert {os.fsencode(name) for name in names} <= added
    assert await workspace.checkpoint(None, "m", AT) == commit
    await workspace.restore(base)
    assert not set(contents(workspace.root)) & set(names)
    await workspace.restore(commit)
    assert set(names) < set(contents(workspace.root))
    await outside(workspace, commit)


async def outside(workspace: GitWorkspace, commit: str) -> None:
    """Ask the working copy itself for what leads out."""
    for path in ("../secret.txt", "/etc/passwd", "a/../../x", "..", "."):
        assert await workspace.read_at(commit, path) is None
        with pytest.raises(WorkspaceError, match="no path inside"):
            await workspace.checkpoint([path], "m", AT)
