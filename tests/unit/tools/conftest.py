import os
import shutil
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.sandbox.base import Place
from bot.sandbox.process import ProcessSandbox
from bot.tools.base import FileLedger, ToolContext
from bot.tools.standard import standard_tools
from bot.tools.toolset import StandardToolset

UID = 1500


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
