"""A small project of each ecosystem goes from set-up to green tests inside the sandbox, and then without a network."""

import asyncio
import json
import os
import shutil
import socket
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import NoReturn, TypeVar

import pytest

from bot import bootstrap
from bot.domain.events import CheckFinished, CheckSkipped, CommitMade, Fact, RunFinished, SetupFinished, ToolFinished
from bot.domain.messages import ToolCall
from bot.errors import OperatorError
from bot.sandbox.base import Level
from bot.sandbox.choose import Chosen, choose
from bot.sandbox.egress.presets import ask
from bot.sandbox.helper.kernel import hide
from bot.settings.server import SandboxSection, ServerSettings, WorkspaceSection
from bot.store.opening import open_store
from bot.tasks.liveness import Liveness
from bot.tasks.on_terminal import TerminalPublisher
from bot.tasks.oneshot import OneShot
from bot.workspace.base import Identity, Origin, Workspace
from tests.e2e.projects import GO, JAVA, NODE, NODE_REGISTRY, PYTHON, RUST, Project
from tests.unit.store.made import request
from tests.unit.tasks.made import Clock, Script, finish, reply, write

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
PROJECTS = {
    "python": PYTHON, "node": NODE, "node-registry": NODE_REGISTRY, "go": GO, "rust": RUST, "java": JAVA,
}  # fmt: skip
LEVELS: tuple[Level, ...] = ("bubblewrap", "landlock")
T = TypeVar("T")
PATH = "/usr/local/bin:/usr/bin:/bin"


def lacking(why: str) -> NoReturn:
    """Skip, or fail where the machine is meant to have everything."""
    if os.environ.get("REQUIRE_SANDBOX") == "1":
        pytest.fail(why)
    pytest.skip(why)


class Town:
    """One machine with one repository, on which tasks are worked on one after the other."""

    def __init__(
        self, folder: Path, files: Mapping[str, str], chosen: Chosen, uid: int, private: tuple[str, ...] = ()
    ) -> None:
        self.folder = folder
        self.checkout = folder / "checkout"
        self.chosen = chosen
        self.tasks = 0
        self.settings = ServerSettings(
            mode="act",
            state_dir=folder / "state",
            sandbox=SandboxSection(private_hosts=private),
            workspace=WorkspaceSection(first_uid=uid),
        )
        for name, text in files.items():
            place = self.checkout / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
        self.git("init", "--quiet", "--initial-branch", "main")
        self.commit()

    def git(self, *args: str) -> None:
        """Run git in the checkout."""
        identity = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
        subprocess.run(["git", *identity, *args], cwd=self.checkout, check=True)

    def commit(self) -> None:
        """Commit all that there is."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "All")

    async def work(self, *commands: str) -> list[Fact]:
        """Let one task run commands, add a file and finish; return what happened."""
        self.tasks += 1
        tasks, deliveries = open_store(self.folder / "state", None, now=Clock())

        async def deliver(_: Workspace, __: str, ___: str, ____: str | None) -> bool:
            return True

        async def token() -> str | None:
            return None

        origin = Origin("local-town", str(self.checkout), token)
        author = Identity("A", "a@example.org")

        async def nobody(_: str) -> None:
            return None

        publisher = TerminalPublisher(
            self.checkout, self.settings, author=author, origin=origin, deliver=deliver, prompt=nobody
        )
        script = Script(
            reply(*(ToolCall(f"r{at}", "run", json.dumps({"command": one})) for at, one in enumerate(commands))),
            reply(write("done.txt", "done")),
            reply(finish()),
            reply(finish()),
            reply(finish()),
        )
        desk = bootstrap.make_desk(self.settings, tasks, publisher, self.chosen)
        desk = replace(desk, model=lambda name, tell, meter: script, clock=Clock())
        accepted = await tasks.accept(request(f"key-{self.tasks}", number=self.tasks), Clock()())
        liveness = Liveness(self.folder / "state" / "executors")
        await OneShot(desk, liveness, f"us-{self.tasks}").work(accepted.run)
        facts = [event.fact for event in await tasks.events(accepted.task.id)]
        await tasks.close()
        await deliveries.close()
        return facts


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that other uids may pass through, in a place that a sandbox leaves visible."""
    place = "/srv" if os.access("/srv", os.W_OK) else Path.home()
    with tempfile.TemporaryDirectory(prefix="town-", dir=place, ignore_cleanup_errors=True) as made:
        Path(made).chmod(0o711)
        yield Path(made)


async def town(
    folder: Path, files: Mapping[str, str], level: Level, check: str, *, extra: str = "", network: str = ""
) -> Town:
    """Make a machine; skips where the level cannot be had.

    Args:
        folder: for everything.
        files: of the repository.
        level: of the sandbox.
        check: the repository's one check.
        extra: more of the repository's settings.
        network: the preset that set-up uses.
    """
    hide()
    uid = 200_000 + os.getpid() % 30_000 * 65
    try:
        # Behind the uids of work trees.
        attacker = uid + 64 if os.geteuid() == 0 else None
        chosen = await choose(level, level, uid=attacker, allowed_none=False)
    except OperatorError as error:
        lacking(str(error))
    said = files.get(".github/issuewright.yml", "")
    config = f"version: 1\n{said}{extra}checks:\n- name: tests\n  run: {check}\n"
    # The index of the machine that runs this may be inside its own network.
    private = (await ask(network)).hosts if network else ()
    return Town(folder, {**files, ".github/issuewright.yml": config}, chosen, uid, private)


def only(kind: type[T], facts: list[Fact]) -> T:
    """Return the one fact of a kind."""
    found = [fact for fact in facts if isinstance(fact, kind)]
    assert len(found) == 1, shown(facts)
    return found[0]


def shown(facts: list[Fact]) -> str:
    """All facts, a line each."""
    return "\n".join(str(fact)[:1500] for fact in facts)


def cannot(project: Project, level: Level) -> str:
    """Say why a project cannot be tried here; empty where it can."""
    missing = [program for program in project.needs if shutil.which(program, path=PATH) is None]
    if missing:
        return f"{', '.join(missing)} is not installed where sandboxes find programs"
    if project is JAVA and level == "landlock":
        return "Gradle listens on a socket of its own, which `landlock` gives nobody while the network is off"
    return ""


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", PROJECTS)
async def test_set_up_then_green_then_no_network(name: str, level: Level, folder: Path) -> None:
    """Checks are green before and after; the next task takes the same environment; neither reaches a network."""
    project = PROJECTS[name]
    if why := cannot(project, level):
        lacking(why) if "installed" in why else pytest.skip(why)
    place = await town(folder, project.files, level, project.check, network=project.network)
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        address = f"/dev/tcp/127.0.0.1/{listener.getsockname()[1]}"
        reached = await asyncio.to_thread(subprocess.run, ["bash", "-c", f"exec 3<>{address}"], check=False)
        assert reached.returncode == 0
        commands = (
            project.proof,
            f"exec 3<>{address}",
            'echo >"$ISSUEWRIGHT_SHARED/x" || echo >"$ISSUEWRIGHT_SHARED/tree.tar"',
            'touch "$ISSUEWRIGHT_OWN/mine"',
        )
        took = []
        for cached in (False, True):
            begun = time.monotonic()
            facts = await place.work(*commands)
            took.append(time.monotonic() - begun)
            told = only(SetupFinished, facts)
            if not cached and told.exit_code != 0 and project is NODE_REGISTRY:
                pytest.skip(f"npm's registry is not reached from inside the sandbox here: {told.output[-300:]}")
            # Elsewhere than under a constant path an installed package belongs to one tree alone.
            bound = level == "landlock" and name in {"python", "go"}
            assert (told.exit_code, told.cached) == (0, cached and not bound), shown(facts)
            checks = [fact for fact in facts if isinstance(fact, CheckFinished)]
            assert [(check.phase, check.exit_code) for check in checks] == [("before", 0), ("after", 0)], shown(facts)
            tools = [fact.exit_code for fact in facts if isinstance(fact, ToolFinished) and fact.command]
            assert (tools[0], tools[3]) == (0, 0), shown(facts)
            assert 0 not in tools[1:3], shown(facts)
            ended = only(RunFinished, facts)
            assert ended.outcome == "done", shown(facts)
            print(f"{name} {level}: set-up {told.seconds:.1f} s, cached={told.cached}, run {took[-1]:.1f} s")  # noqa: T201


STRAYS = """\
setup:
- sed -i s/./changed/ *.txt
- echo stray >stray.txt
- mkdir -p node_modules/.bin web/node_modules && echo 1 >node_modules/m && ln -s ../m node_modules/.bin/m
- echo 2 >web/node_modules/n && cp /bin/true "$ISSUEWRIGHT_SHARED/t" && chmod 6755 "$ISSUEWRIGHT_SHARED/t"
- echo 3 >"$ISSUEWRIGHT_OWN/o" && sleep 1000 &
- ': >"$HOME/.before"'
"""


@pytest.mark.parametrize("level", LEVELS)
async def test_what_a_set_up_leaves_is_given_to_later_tasks_and_is_no_part_of_the_work(
    level: Level, folder: Path
) -> None:
    """Ignored files come back in each tree as copies; changes of tracked files and strays do not, nor does a uid."""
    # The git of commands says whether the tree is what the commit says, before anything else has restored it.
    check = "test -e node_modules/m && git diff --exit-code --stat"
    place = await town(folder, {"a.txt": "a\n", "web/w.txt": ""}, level, check, extra=STRAYS)
    look = (
        'cat a.txt node_modules/.bin/m web/node_modules/n "$ISSUEWRIGHT_OWN/o"; test ! -e stray.txt && '
        'echo 9 >node_modules/m && echo 9 >"$ISSUEWRIGHT_OWN/o" && stat -c %a "$ISSUEWRIGHT_SHARED/t"'
    )
    for content in ("a", "b", "c"):
        (place.checkout / "a.txt").write_text(f"{content}\n")
        place.git("commit", "--quiet", "--all", "--allow-empty", "--message", content)
        facts = await place.work(look)
        assert only(SetupFinished, facts).exit_code == 0, shown(facts)
        [seen] = [fact for fact in facts if isinstance(fact, ToolFinished) and fact.command]
        assert (seen.exit_code, (seen.output or "").split()[-5:]) == (0, [content, "1", "2", "3", "555"]), shown(facts)
        assert {fact.exit_code for fact in facts if isinstance(fact, CheckFinished)} == {0}, shown(facts)
        assert only(CommitMade, facts).files == 1, shown(facts)
    for archive in (folder / "state" / "environments").glob("*/*/content/tree.tar"):
        with tarfile.open(archive) as tar:
            assert "./stray.txt" not in tar.getnames()


@pytest.mark.parametrize("level", LEVELS)
async def test_a_failed_set_up_is_no_failing_test(level: Level, folder: Path) -> None:
    """What fails is the set-up: told as such with its output; no check is run, and the work is done all the same."""
    place = await town(folder, {"a.txt": "a\n"}, level, "test -e a.txt", extra="setup:\n- echo no such thing; exit 3\n")
    facts = await place.work("true")
    told = only(SetupFinished, facts)
    assert (told.exit_code, told.output) == (3, "no such thing")
    assert [fact for fact in facts if isinstance(fact, CheckFinished)] == []
    skipped = only(CheckSkipped, facts)
    assert skipped.reason == "the set-up failed"
    ended = only(RunFinished, facts)
    assert ended.outcome == "done"
    assert list((folder / "state" / "environments" / "local-town").glob("*/")) == []
