"""A call that was made, and not recorded before the process died, is made again and leaves the same tree."""

import json
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bot.sandbox.base import Place
from bot.sandbox.process import ProcessSandbox
from bot.tools.base import FileLedger, ToolContext, ToolOutput
from bot.tools.standard import standard_tools
from bot.tools.toolset import StandardToolset
from bot.workspace.clone import GitWorkspaces
from tests.unit.tools.calls import tree
from tests.unit.tools.conftest import UID
from tests.unit.workspace.helpers import local, seed

FILES: dict[str, str | bytes] = {
    "a.py": "x = 1\n",
    "b.sh": "echo b\n",
    "c.txt": b"one\r\ntwo\r\n",
    "d/e.txt": "e\n",
    "f.txt": "f\n",
    "g.txt": "g\n",
}
PATCH = """\
*** Begin Patch
*** Add File: new/n.txt
+n
*** Update File: a.py
 x = 1
+y = 2
*** Update File: b.sh
*** Move to: bin/b.sh
-echo b
+echo bee
*** Delete File: f.txt
*** End Patch
"""
REST = ".issuewright-0.tmp"
CALLS: list[tuple[str, dict[str, object]]] = [
    ("edit", {"path": "a.py", "old": "x = 1\n", "new": "x = 1\nx = 1 + x\n"}),
    ("edit", {"path": "made.py", "old": "", "new": "z = 1\n"}),
    ("write", {"path": "c.txt", "content": "three\n"}),
    ("write", {"path": "w/x/y.txt", "content": "y\n"}),
    ("delete", {"path": "d/e.txt"}),
    ("move", {"path": "d/e.txt", "target": "q/e.txt"}),
    ("apply_patch", {"patch": PATCH}),
]


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that a work tree's own user can pass."""
    folder = Path(tempfile.mkdtemp(prefix="iw-test-", dir="/tmp"))
    folder.chmod(0o711)
    seed(folder / "source", FILES)
    yield folder
    shutil.rmtree(folder)


@asynccontextmanager
async def life(place: Path, commit: str | None, seen: dict[str, str]) -> AsyncIterator[tuple[ToolContext, str]]:
    """Open the task's working copy where the record says it stood, as one process of the server does."""
    uids = range(UID, UID + 1) if os.geteuid() == 0 else None
    workspaces = GitWorkspaces(place / "state", uids=uids)
    opened = await workspaces.open("t1", local(place / "source"), "main", commit=commit)
    sandbox = ProcessSandbox(Place(opened.workspace.root, uid=opened.owner_uid))
    try:
        yield ToolContext(sandbox, FileLedger(dict(seen))), opened.base
    finally:
        await sandbox.close()
        await opened.workspace.close()


async def call(context: ToolContext, name: str, arguments: dict[str, object]) -> ToolOutput:
    """Call a tool as a model does."""
    return await StandardToolset(standard_tools(), context).call(1, 0, name, json.dumps(arguments))


@pytest.mark.parametrize(("name", "arguments"), CALLS, ids=[f"{name}-{index}" for index, (name, _) in enumerate(CALLS)])
@pytest.mark.parametrize("cut", ["after", "amid"])
async def test_the_same_tree(place: Path, name: str, arguments: dict[str, object], cut: str) -> None:
    """Whether the call was done when the process died, or half of it and all kinds of rest lay about."""
    async with life(place, None, {}) as (context, base):
        await call(context, "read", {"path": "c.txt"})
        known = dict(context.ledger.seen)
        before = tree(context)
        first = await call(context, name, arguments)
        assert not first.is_error
        once = tree(context)
        assert once != before
        if cut == "amid":
            rest = f"echo half > {REST}; echo half >> a.py; rm -rf c.txt d new; mkdir -p bin/b.sh; ln -s a f"
            await context.sandbox.run(rest, timeout_s=5)
    async with life(place, base, known) as (context, _):
        found = tree(context)
        # What nobody commits, lists or searches may lie about.
        assert (found.pop(REST, None) is not None) == (cut == "amid")
        assert found == before
        assert REST not in (await call(context, "list", {})).text
        assert (await call(context, "search", {"pattern": "half"})).text == "nothing found"
        again = await call(context, name, arguments)
        assert again == first
        found = tree(context)
        found.pop(REST, None)
        assert found == once
