"""The prepared environment: the project is set up by the harness before the first edit, and kept for later tasks."""

import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import cast

from bot.agent.prompt import setup_told
from bot.domain.events import Notice, SetupFinished
from bot.errors import WorkspaceError
from bot.projects.base import Files, Recipe
from bot.projects.detect import detect, is_wanted
from bot.projects.plan import Plan, filled, named_by, plan
from bot.sandbox.base import Access, Sandbox
from bot.sandbox.egress.presets import PRESETS
from bot.settings.resolve import RunSettings, RunSetup
from bot.tasks.engines.base import Json
from bot.tasks.lease import FIT_S, Fitted
from bot.tasks.opening import Prepared
from bot.tasks.scene import Scene
from bot.workspace.base import Opened
from bot.workspace.prepared import Held, PreparedFolders, own_folder

NO_COMMANDS = "No commands are run here, since nothing on this server can shut them in."
OUTPUT_CHARS = 4_000
"""Of the output of the command that failed; its head and its tail."""
PROJECT_FILES = 400
"""That are read to tell what a project is."""
ASK_S = 60.0
"""Seconds that it may take to ask for programs and their versions."""
_LISTED = 50_000
_HERE = "find . -mindepth 1 -path ./.git -prune -o -print0 | LC_ALL=C sort -z"
_CLEAN = "git clean -ffdxq . || true"
"""Takes away what the set-up of a killed worker left in the tree."""
_REMEMBER = f'{_HERE} >"$HOME/.before"'
_KEEP = f"""\
{_HERE} | LC_ALL=C comm -z -13 "$HOME/.before" - >"$HOME/.new" &&
tar --null --no-recursion --verbatim-files-from --files-from "$HOME/.new" -cf "$ISSUEWRIGHT_SHARED/tree.tar" &&
tar -C "$ISSUEWRIGHT_OWN" -cf "$ISSUEWRIGHT_SHARED/own.tar" . && touch "$ISSUEWRIGHT_OWN/.$ISSUEWRIGHT_KEY"
"""
"""Keeps what set-up made in the tree and in the task's own folder; the harness has restored what the commit holds."""
_PUT = """\
tree=$PWD; cd "$ISSUEWRIGHT_OWN" || exit 1
[ ! -e ".$ISSUEWRIGHT_KEY" ] || exit 0
chmod -R u+w . && find . -mindepth 1 -delete && tar -xf "$ISSUEWRIGHT_SHARED/own.tar" &&
cd "$tree" && tar -xf "$ISSUEWRIGHT_SHARED/tree.tar" && touch "$ISSUEWRIGHT_OWN/.$ISSUEWRIGHT_KEY"
"""
"""Gives a work tree its own copies; they are written to, so they are no links into what others read."""


@dataclass(frozen=True, slots=True)
class Environment:
    """What came of the set-up, as recorded."""

    key: str = ""
    """Of the prepared environment; empty where there is none."""
    names: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)
    """For later commands, before the folders are put in."""
    failed: str = ""
    """How the set-up failed, as "`npm ci` ended with exit code 1"; empty where it did not."""
    output: str = ""
    """Of the command that failed."""

    def told(self, task_id: str) -> str:
        """Say it to the model; empty where nothing was set up."""
        if not self.key and not self.failed:
            return ""
        return setup_told(task_id, self.names or "by the repository's own commands", self.failed, self.output)


@dataclass(frozen=True, slots=True)
class _Failure:
    """A command of the set-up that did not end with 0."""

    command: str
    exit_code: int | None
    output: str

    @property
    def sentence(self) -> str:
        """Say how it ended."""
        ended = "ran out of time" if self.exit_code is None else f"ended with exit code {self.exit_code}"
        return f"`{self.command}` {ended}"


async def set_up(scene: Scene, settings: RunSettings, prepared: Prepared) -> Environment:
    """Set the project up, or take what an earlier task set up; from then on the work tree's commands have it.

    A set-up that fails is no error: the run goes on, and people and the model are told.
    """
    work = _Work(scene, settings, prepared)

    async def action() -> Json:
        return asdict(await work.begin())

    value = cast("dict[str, object]", await scene.steps.do("environment", action, stoppable=True))
    made = Environment(
        str(value["key"]),
        str(value["names"]),
        cast("dict[str, str]", value["variables"]),
        str(value["failed"]),
        str(value["output"]),
    )
    if made.key or settings.network:
        await scene.lease.refit(work.fitting(made))
    return made


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What one project needs on this machine."""

    plan: Plan
    key: str
    """Of an environment that every task of the repository may use."""
    own_key: str
    """Of the same for this task alone."""
    remark: str


class _Work:
    """Sets up the project of one run."""

    def __init__(self, scene: Scene, settings: RunSettings, prepared: Prepared) -> None:
        self._scene = scene
        self._settings = settings
        self._prepared = prepared
        self._seconds = 0.0
        self._failure = _Failure("", None, "")

    async def begin(self) -> Environment:
        """Do it for the first time in this run, and tell people."""
        scene, folders = self._scene, self._scene.desk.environments
        live = await scene.lease.live()
        if not scene.lease.shell:
            text = f"{NO_COMMANDS} Nothing was set up and no check was run."
            await scene.recorder.note("environment", Notice(text))
            return Environment()
        # A person's own checkout is set up by that person, and not ours to install into.
        if folders is None or not live.opened.movable or self._settings.setup.run == ():
            return Environment()
        wanted = await self._wanted(live.sandbox)
        if wanted is None:
            return Environment()
        if not wanted.plan.commands:
            await self._note(wanted, SetupFinished("", "", 0, 0.0, cached=False, remark=wanted.remark))
            return Environment()
        held, key = await self._held(folders, live.opened, wanted)
        seconds = round(self._seconds, 2)
        if held is None:
            failure = self._failure
            fact = SetupFinished("", failure.command, failure.exit_code, seconds, cached=False, output=failure.output)
            await self._note(wanted, fact)
            return Environment(names=", ".join(wanted.plan.names), failed=failure.sentence, output=failure.output)
        # The lock is taken again with the work tree.
        held.release()
        command = " && ".join(wanted.plan.shown)
        await self._note(wanted, SetupFinished("", command, 0, seconds, cached=not held.fresh))
        return self._made(wanted, key)

    def fitting(self, made: Environment) -> "_Fitting":
        """Return what gives a work tree the environment."""
        return _Fitting(self, made, self._settings.network)

    async def held(self, made: Environment, opened: Opened) -> tuple[Held, Environment]:
        """Hold a recorded environment, made again where it is no longer on this machine."""
        folders = self._scene.desk.environments
        if folders is None:
            raise WorkspaceError("this process has no place for prepared environments")
        lease = self._scene.lease
        if held := await folders.hold((await lease.origin()).key, made.key):
            return held, made
        # What the model did meanwhile must play no part in it.
        await opened.workspace.restore(self._prepared.base)
        async with lease.apart(Access()) as sandbox:
            wanted = await self._wanted(sandbox)
        if wanted is None:
            raise WorkspaceError("the prepared environment is gone, and cannot be made here again")
        again, key = await self._held(folders, opened, wanted)
        await opened.workspace.restore(lease.commit or self._prepared.base)
        if again is None:
            raise WorkspaceError(
                f"the prepared environment is gone, and making it again failed: {self._failure.sentence}"
            )
        return again, self._made(wanted, key)

    def _made(self, wanted: _Wanted, key: str) -> Environment:
        variables = wanted.plan.variables(self._settings.network)
        return Environment(key, ", ".join(wanted.plan.names), variables)

    async def _note(self, wanted: _Wanted, fact: SetupFinished) -> None:
        told = replace(fact, names=", ".join(wanted.plan.names), remark=wanted.remark)
        await self._scene.recorder.note("environment", told)

    async def _wanted(self, sandbox: Sandbox) -> _Wanted | None:
        """Find out what the project needs, from the commit that the run began on; None where it needs nothing."""
        files = await self._files(sandbox)
        recipes = detect(files)
        present, versions = await _asked(sandbox, recipes)
        usable = [recipe for recipe in recipes if present.issuperset(recipe.needs)]
        remark = " ".join(
            f"The project needs `{program}`, which is not installed here."
            for program in dict.fromkeys(one for recipe in recipes for one in recipe.needs if one not in present)
        )
        made = plan(usable, files, self._settings.setup.run)
        if not made.commands and not remark:
            return None
        facts = [versions, platform.machine(), sandbox.level, sandbox.root if made.bound else ""]
        return _Wanted(made, made.key(facts), made.key([*facts, self._scene.task.id]), remark)

    async def _files(self, sandbox: Sandbox) -> Files:
        """Read the project's own files, as the commit has them."""
        listed, _ = await sandbox.list("**", limit=_LISTED)
        workspace = (await self._scene.lease.opened()).workspace
        named = named_by(self._settings.setup.run or ())
        entries = [entry.path for entry in listed if entry.kind == "file"]
        paths = [path for path in entries if path in named or is_wanted(path)][:PROJECT_FILES]
        found = {path: await workspace.read_at(self._prepared.base, path) for path in paths}
        return {path: data for path, data in found.items() if data is not None}

    async def _held(self, folders: PreparedFolders, opened: Opened, wanted: _Wanted) -> tuple[Held | None, str]:
        """Take the environment that everybody may use, else one that only a task like this one may use.

        What people or a model changed on a branch is run by some installers, so what they make there is for the task
        alone; what the base branch makes is for all.
        """
        origin = await self._scene.lease.origin()

        async def make(folder: Path) -> bool:
            return await self._make(opened, folder, wanted)

        if self._prepared.expected is not None:
            if held := await folders.hold(origin.key, wanted.key):
                return held, wanted.key
            return await folders.take(origin.key, wanted.own_key, opened.owner_uid, make), wanted.own_key
        return await folders.take(origin.key, wanted.key, opened.owner_uid, make), wanted.key

    async def _make(self, opened: Opened, folder: Path, wanted: _Wanted) -> bool:
        """Run the commands on the tree as the commit has it, and leave the tree so; False where one fails."""
        own, todo = _own_place(opened), wanted.plan
        own_folder(own, opened.owner_uid, empty=True)
        base = self._prepared.base
        network = _allowed(self._settings.setup, todo.names)
        variables = _variables(todo.variables(PRESETS), folder, own, folder.parent.name)
        access = Access(writable=[folder, own], environment=variables, network=network)
        async with self._scene.lease.apart(access) as sandbox:
            await sandbox.run(_CLEAN, timeout_s=ASK_S)
            await opened.workspace.restore(base)
            await sandbox.run(_REMEMBER, timeout_s=ASK_S)
            try:
                done = await self._run(sandbox, todo.commands)
            finally:
                # Changes of what is tracked, and what is neither tracked nor ignored, would be taken for the model's.
                await opened.workspace.restore(base)
            return done and await self._one(sandbox, _KEEP, FIT_S)

    async def _run(self, sandbox: Sandbox, commands: Sequence[str]) -> bool:
        for command in commands:
            left_s = self._settings.setup.timeout_s - self._seconds
            if not await self._one(sandbox, command, max(1.0, left_s)):
                return False
        return True

    async def _one(self, sandbox: Sandbox, command: str, timeout_s: float) -> bool:
        outcome = await sandbox.run(command, timeout_s=timeout_s, output_chars=OUTPUT_CHARS)
        self._seconds += outcome.seconds
        if outcome.exit_code == 0:
            return True
        output = "\n".join(part for part in (outcome.stdout.strip(), outcome.stderr.strip()) if part)
        self._failure = _Failure(command, outcome.exit_code, output)
        return False


@dataclass(frozen=True, slots=True)
class _Fitting:
    """Gives opened work trees one environment."""

    work: _Work
    made: Environment
    network: Sequence[str]

    async def __call__(self, opened: Opened) -> Fitted:
        """Hold the environment, made again where this machine has it no more, and say how to use it."""
        if not self.made.key:
            return Fitted(Access(network=self.network))
        held, made = await self.work.held(self.made, opened)
        own = _own_place(opened)
        own_folder(own, opened.owner_uid, empty=False)
        access = Access([held.folder], [own], _variables(made.variables, held.folder, own, made.key), self.network)
        return Fitted(access, _PUT, held.release)


def _own_place(opened: Opened) -> Path:
    """Name the task's own folder, beside its git directory: it goes with the task."""
    return opened.workspace.git_dir.with_name("own")


def _variables(variables: Mapping[str, str], shared: Path, own: Path, key: str) -> dict[str, str]:
    made = filled(variables, shared=str(shared), own=str(own), path="")
    return made | {"ISSUEWRIGHT_SHARED": str(shared), "ISSUEWRIGHT_OWN": str(own), "ISSUEWRIGHT_KEY": key}


def _allowed(setup: RunSetup, names: Sequence[str]) -> Sequence[str]:
    """Name what set-up may reach: what was found out needs its own ecosystem's index, beside hosts for all."""
    if setup.run is not None:
        return setup.network
    return [name for name in setup.network if name not in PRESETS or name in names]


async def _asked(sandbox: Sandbox, recipes: Sequence[Recipe]) -> tuple[set[str], str]:
    """Ask which programs are there, and for what else decides what they make."""
    needs = sorted({program for recipe in recipes for program in recipe.needs})
    if not needs:
        return set(), ""
    probe = f"for p in {' '.join(needs)}; do command -v $p >/dev/null && echo $p; done; true"
    present = set((await sandbox.run(probe, timeout_s=ASK_S)).stdout.split())
    usable = [recipe.versions for recipe in recipes if present.issuperset(recipe.needs)]
    return present, (await sandbox.run("; ".join([*usable, "true"]), timeout_s=ASK_S)).stdout
