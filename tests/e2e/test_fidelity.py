"""What lies in the agent's work tree arrives on its branch, byte for byte, and nothing else does."""

import asyncio
import json
import re
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bot.sandbox.base import Place
from bot.sandbox.process import ProcessSandbox
from bot.testing.model.reply import Call
from bot.testing.model.script import Conversation, Script, Turn
from bot.tools.base import FileLedger, ToolContext
from bot.tools.standard import standard_tools
from bot.tools.toolset import StandardToolset
from bot.workspace.base import Identity, Origin, Workspace
from bot.workspace.clone import GitWorkspaces
from tests.e2e.fidelity import CASES, Case, Plumbing, all_of
from tests.e2e.stage import Stage, until

pytestmark = pytest.mark.e2e

AT = datetime(2026, 11, 30, 12, tzinfo=UTC)
BOT = Identity("wright[bot]", "1+wright[bot]@users.noreply.github.com")
SERVED = (
    "binary",
    "edited-crlf",
    "made-executable",
    "dangling",
    "no-utf-8",
    "newlines",
    "attributes-eol",
    "attributes-lfs",
    "tracked-and-made-anew",
    "moved-and-edited",
    "file-to-folder",
    "submodule-trodden",
)
"""Cases that are played from the issue to the pull request; each asks for something else of the server."""


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository on the local GitHub with all cases in it."""

    stage: Stage
    plumbing: Plumbing
    base: str

    @classmethod
    def on(cls, stage: Stage) -> "Repository":
        """Put all cases on its main branch."""
        plumbing = Plumbing(stage.repository.path, stage.folder / "index")
        return cls(stage, plumbing, plumbing.commit("main", all_of(CASES)))

    def expected(self, case: Case) -> str:
        """Return the tree that has to arrive."""
        return self.plumbing.tree(self.base, case.within(case.after))


@dataclass(frozen=True, slots=True)
class Carrier:
    """An agent's work tree and tools in that repository; the cases follow one another in them."""

    repository: Repository
    workspace: Workspace
    tools: StandardToolset
    sandbox: ProcessSandbox

    @classmethod
    async def at(cls, repository: Repository) -> "Carrier":
        """Clone it as a server does."""
        stage = repository.stage

        async def token() -> str:
            return stage.hub.create_installation_token(stage.installation).value

        copies = GitWorkspaces(stage.folder / "copies", uids=[stage.first_uid])
        origin = Origin(f"github-{stage.repository.id}", f"{stage.hub.base_url}/acme/shop.git", token)
        opened = await copies.open("carried", origin, "main")
        sandbox = ProcessSandbox(Place(opened.workspace.root, uid=opened.owner_uid))
        tools = StandardToolset(standard_tools(), ToolContext(sandbox, FileLedger()))
        return cls(repository, opened.workspace, tools, sandbox)

    async def carry(self, case: Case) -> str:
        """Let tools do a case's work, lose all of it but the last checkpoint, and push; return the branch."""
        await self.workspace.restore(self.repository.base)
        kept = self.repository.base
        for turn, call in enumerate(case.calls):
            output = await self.tools.call(turn, 0, call.tool, json.dumps(call.arguments))
            assert not output.is_error, output.text
            assert output.exit_code in {0, None}, output.text
            kept = await self.workspace.checkpoint(output.changed, call.tool, AT)
        for path in self.workspace.root.iterdir():
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        await self.workspace.restore(kept)
        made = await self.workspace.commit("Carry", BOT, AT, parent=self.repository.base)
        assert made is not None, "nothing was changed"
        await self.workspace.push(made, f"agent/{case.name}", expected=None)
        return f"agent/{case.name}"


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    """One event loop for all cases."""
    with asyncio.Runner() as made:
        yield made


@pytest.fixture(scope="module")
def carrier(runner: asyncio.Runner) -> Iterator[Carrier]:
    """One work tree for all cases."""
    with (
        tempfile.TemporaryDirectory(prefix="carried-", ignore_cleanup_errors=True) as made,
        Stage(Path(made), Script([]), {"README.md": ""}, webhook=False).open() as stage,
    ):
        carrier = runner.run(Carrier.at(Repository.on(stage)))
        yield carrier
        runner.run(carrier.sandbox.close())


def test_there_are_forty_cases_and_more() -> None:
    """Each has a name of its own, changes something, and those that are served are among them."""
    assert len(CASES) >= 40
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names)
    assert all(case.after for case in CASES)
    assert set(SERVED) < set(names)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_work_arrives_as_it_is(carrier: Carrier, runner: asyncio.Runner, case: Case) -> None:
    """The pushed tree is the one that git's plumbing makes of what was to be done."""
    branch, repository = runner.run(carrier.carry(case)), carrier.repository
    assert repository.plumbing.git("rev-parse", f"{branch}^{{tree}}") == repository.expected(case)
    assert repository.plumbing.git("rev-parse", f"{branch}^") == repository.base


def _told(case: Case) -> Conversation:
    turns = [Turn("I act.", calls=[call]) for call in case.calls]
    return Conversation(case.name, [*turns, Turn("Done.", calls=[Call("finish", {"summary": "Carried."})])], case.name)


def test_the_server_carries_it_to_the_pull_request(folder: Path) -> None:
    """From the issue to the pull request the same trees; the App is the author, and who asked stands as co-author."""
    served = [case for case in CASES if case.name in SERVED]
    script = Script([_told(case) for case in served], name="carry")
    with Stage(folder, script, {"README.md": ""}).open() as stage:
        repository = Repository.on(stage)
        with stage.serving():
            numbers = {stage.labelled(f"Carry {case.name}", "As it is.").number: case for case in served}
            until(lambda: True if len(stage.pulls()) == len(served) else None, "the pull requests")
        assert stage.model.problems == []
        for pull in stage.pulls():
            assert pull.pull is not None
            branch = pull.pull.head_ref
            case = numbers[int(re.match(r"agent/(\d+)-", branch)[1])]  # type: ignore[index]
            assert stage.git("rev-parse", f"{branch}^{{tree}}") == repository.expected(case), case.name
            assert stage.git("rev-parse", f"{branch}^") == repository.base
            us = f"{stage.app.bot.login} <{stage.app.bot.id}+{stage.app.bot.login}@users.noreply.github.com>"
            assert stage.git("log", "-1", "--format=%an <%ae>;%cn <%ce>", branch) == f"{us};{us}"
            by = f"maria <{stage.maria.id}+maria@users.noreply.github.com>"
            assert stage.git("log", "-1", "--format=%(trailers:key=Co-authored-by,valueonly)", branch).strip() == by
