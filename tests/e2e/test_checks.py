"""The checks that are told from a project's files are really run on it: green as it is, red where it is spoilt."""

import asyncio
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.sandbox.base import Place
from bot.sandbox.process import ProcessSandbox
from bot.tools.base import FileLedger, ToolContext
from bot.tools.standard import standard_tools
from bot.tools.toolset import StandardToolset
from tests.e2e.checked import GO, JAVA, NODE, PYTHON, RUST, Checked

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
PROJECTS = {"python": PYTHON, "node": NODE, "go": GO, "rust": RUST, "java": JAVA}
PROGRAMS = [Path(sys.executable).parent]
"""Where linters of Python are."""
UID = 200_000 + os.getpid() % 30_000 * 65
PATH = "/usr/local/bin:/usr/bin:/bin"
"""Where sandboxes find programs beside those."""


@pytest.fixture(params=PROJECTS)
def project(request: pytest.FixtureRequest) -> Checked:
    """One of the projects."""
    chosen = PROJECTS[request.param]
    if missing := [program for program in chosen.needs if shutil.which(program, path=PATH) is None]:
        pytest.skip(f"{', '.join(missing)} is not installed here")
    return chosen


@pytest.fixture
def tree(project: Checked) -> Iterator[Path]:
    """Its files."""
    with tempfile.TemporaryDirectory(prefix="iw-checks-", dir="/var/tmp", ignore_cleanup_errors=True) as made:
        top = Path(made)
        for name, text in project.files.items():
            place = top / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
        for place in (top, *top.rglob("*")):
            if os.geteuid() == 0:
                os.chown(place, UID, UID)
            place.chmod(0o755 if place.is_dir() else 0o644)
        yield top


def rows(text: str) -> list[tuple[str, str]]:
    """Read the table: exit code and name."""
    return re.findall(r"^(\d+) \| \d+ \| ([\w ]+): `", text, re.MULTILINE)


async def test_found_checks_pass_and_tell_what_is_broken(project: Checked, tree: Path) -> None:
    """All of them pass on the project; where a line is spoilt its tests fail, and the result shows how."""
    sandbox = ProcessSandbox(Place(tree, uid=UID if os.geteuid() == 0 else None, programs=PROGRAMS))
    toolset = StandardToolset(standard_tools(), ToolContext(sandbox, FileLedger()))
    try:
        output = await toolset.call(1, 0, "checks", "")
        assert rows(output.text) == [("0", name) for _, name, _ in project.checks], output.text
        assert (output.exit_code, output.is_error, output.changed) == (0, False, None)
        name, old, new = project.spoil
        place = tree / name
        await asyncio.to_thread(place.write_text, project.files[name].replace(old, new))
        output = await toolset.call(2, 0, "checks", '{"names": ["tests"]}')
        [(code, name)] = rows(output.text)
        assert (code != "0", name) == (True, project.checks[-1][1])
        assert f"\n{name}:\n" in output.text
        assert output.exit_code == int(code)
        assert not output.is_error
    finally:
        await sandbox.close()
