import json
import os
import shutil
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.sandbox.base import Place
from bot.sandbox.process import ProcessSandbox
from bot.tools.base import FileLedger, ToolContext, ToolOutput
from bot.tools.standard import standard_tools
from bot.tools.toolset import StandardToolset
from tests.unit.tools.calls import Put, Use

# Of this process of the tests: whoever has it is ended with its sandbox.
UID = 40_000 + os.getpid() % 4096


@pytest.fixture
async def context() -> AsyncIterator[ToolContext]:
    """A real workspace with a uid that is not root's."""
    base = Path(tempfile.mkdtemp(prefix="iw-test-", dir="/tmp"))
    uid = UID if os.geteuid() == 0 else None
    if uid is not None:
        os.chown(base, uid, uid)
    os.chmod(base, 0o755)  # noqa: PTH101 - one call to the kernel
    sandbox = ProcessSandbox(Place(base, uid=uid))
    yield ToolContext(sandbox, FileLedger())
    await sandbox.close()
    shutil.rmtree(base)


@pytest.fixture
def toolset(context: ToolContext) -> StandardToolset:
    """All tools on it."""
    return StandardToolset(standard_tools(), context)


@pytest.fixture
def use(toolset: StandardToolset) -> Use:
    """Call a tool as a model does."""

    async def call(name: str, **arguments: object) -> ToolOutput:
        return await toolset.call(1, 0, name, json.dumps(arguments))

    return call


@pytest.fixture
def put(context: ToolContext) -> Put:
    """Change a file behind the tools' back."""

    async def write(path: str, data: bytes, mode: str = "644") -> None:
        await context.sandbox.run(f"rm -f '{path}'", timeout_s=5)
        await context.sandbox.replace(path, data, expected_sha256=None)
        await context.sandbox.run(f"chmod {mode} '{path}'", timeout_s=5)

    return write
