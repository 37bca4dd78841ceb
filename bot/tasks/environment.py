"""The prepared environment: the project is set up by the harness before the first edit, and kept for later tasks.

Where the work changes what the set-up reads, the project is set up again before the checks that follow it.
"""

import platform
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import cast

from bot.agent.prompt import setup_again_told, setup_told
from bot.domain.events import Notice, SetupFinished
from bot.errors import WorkspaceError
from bot.projects.base import Files, Recipe
from bot.projects.detect import detect, is_wanted
from bot.projects.plan import Plan, filled, named_by, plan
from bot.redaction import mask_tokens
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
    changed: Sequence[str] = ()
    """Files of the work that asked for another set-up than the first one."""

    def told(self, task_id: str) -> str:
        """Say it to the model before the work; empty where nothing was set up."""
        if not self.key and not self.failed:
            return ""
        return setup_told(task_id, self.names or "by the repository's own commands", self.failed, self.output)

    def told_again(self, task_id: str) -> str:
        """Say to the model that its own changes could not be set up; empty where that is not so."""
        return setup_again_told(task_id, self.changed, self.failed, self.output) if self.failed and self.changed else ""


def why_no_checks(scene: Scene, environment: Environment) -> str:
    """Say why no check is run; empty where they are."""
    if not scene.lease.shell:
        return "commands are not run here"
    return "the set-up failed" if environment.failed else ""


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


class ProjectSetup:
    """Sets the project of one run up before the work, and again before its checks.

    A set-up that fails is no error: the run goes on, and people and the model are told.
    """

    def __init__(self, scene: Scene, settings: RunSettings, prepared: Prepared) -> None:
        self._scene = scene
        self._settings = settings
        self._prepared = prepared
        self._first = self._latest = Environment()

    async def first(self) -> Environment:
        """Set the project up, or take what an earlier task set up; from then on the work tree's commands have it."""
        work = _Work(self._scene, self._settings, self._prepared, self._prepared.base)
        made = self._first = self._latest = await self._step("environment", work.begin)
        if made.key or self._settings.network:
            await self._scene.lease.refit(work.fitting(made))
        return made

    async def again(self, attempt: int, *, wanted: bool) -> Environment:
        """Do it again for the commit that is to be checked, where that has other files of those that set-up reads.

        From then on the work tree's commands have what was made; where that fails, they keep what they had.

        Args:
            attempt: 1 for the first checks after the work.
            wanted: whether there are checks.
        """
        lease, before = self._scene.lease, self._latest
        commit = lease.commit or self._prepared.base
        unmoved = commit == self._prepared.base and before == self._first
        if unmoved or not lease.shell or not wanted:
            return before
        name = f"environment/after/{attempt}"
        work = _Work(self._scene, self._narrowed(), self._prepared, commit)
        made = self._latest = await self._step(name, lambda: work.again(name, self._first, before))
        if made != before and not made.failed:
            await lease.refit(work.fitting(made))
        return made

    def _narrowed(self) -> RunSettings:
        """Return what applies to files that nobody has looked at yet.

        What they install runs beside the code and could carry it to a registry that takes uploads. So a private
        repository's reaches no more than the model's own commands.
        """
        settings = self._settings
        if not self._scene.task.repository.private:
            return settings
        network = tuple(name for name in settings.setup.network if name in settings.network)
        return replace(settings, setup=replace(settings.setup, network=network))

    async def _step(self, name: str, make: Callable[[], Awaitable[Environment]]) -> Environment:
        async def action() -> Json:
            made = asdict(await make())
            return {**made, "changed": [*made["changed"]]}

        value = cast("dict[str, object]", await self._scene.steps.do(name, action, stoppable=True))
        return Environment(
            str(value["key"]),
            str(value["names"]),
            cast("dict[str, str]", value["variables"]),
            str(value["failed"]),
            str(value["output"]),
            # An earlier version kept none.
            tuple(cast("list[str]", value.get("changed", ()))),
        )


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
    """Sets up the project of one run as one commit has it."""

    def __init__(self, scene: Scene, settings: RunSettings, prepared: Prepared, commit: str) -> None:
        self._scene = scene
        self._settings = settings
        self._base = prepared.base
        self._commit = commit
        self._own = commit != prepared.base or prepared.expected is not None
        """Whether the commit holds what people or a model changed."""
        self._seconds = 0.0
        self._failure = _Failure("", None, "")

    async def begin(self) -> Environment:
        """Do it for the first time in this run, and tell people."""
        scene = self._scene
        live = await scene.lease.live()
        if not scene.lease.shell:
            text = f"{NO_COMMANDS} Nothing was set up and no check was run."
            await scene.recorder.note("environment", Notice(text))
            return Environment()
        folders = self._folders(live.opened)
        wanted = await self._wanted(live.sandbox) if folders is not None else None
        if folders is None or wanted is None:
            return Environment()
        return await self._set_up("environment", folders, live.opened, wanted)

    async def again(self, name: str, first: Environment, latest: Environment) -> Environment:
        """Do it for what the work changed, and tell people; return the latest one where that is what it takes.

        Args:
            name: of the step.
            first: the environment of the base commit.
            latest: of the last checks.
        """
        live = await self._scene.lease.live()
        folders = self._folders(live.opened)
        if folders is None:
            return latest
        named = named_by(self._settings.setup.run or ())
        paths = await live.workspace.changed_paths(self._base, self._commit)
        changed = tuple(path for path in paths if path in named or is_wanted(path))
        if not changed and latest == first:
            return latest
        wanted = await self._wanted(live.sandbox) or _Wanted(plan((), {}, None), "", "", "")
        same = latest.key in {wanted.key, wanted.own_key} if wanted.plan.commands else not latest.key
        if same and not latest.failed:
            return latest
        # What the earlier set-up put there would hide what this one lacks.
        await self._scene.lease.renew()
        return await self._set_up(name, folders, live.opened, wanted, changed)

    def _folders(self, opened: Opened) -> PreparedFolders | None:
        """Return where environments are kept; None where nothing is to be set up."""
        # A person's own checkout is set up by that person, and not ours to install into.
        wants = opened.movable and self._settings.setup.run != ()
        return self._scene.desk.environments if wants else None

    async def _set_up(
        self, name: str, folders: PreparedFolders, opened: Opened, wanted: _Wanted, changed: Sequence[str] = ()
    ) -> Environment:
        names = ", ".join(wanted.plan.names)

        async def note(fact: SetupFinished) -> None:
            told = replace(fact, names=names, remark=wanted.remark, changed=changed)
            await self._scene.recorder.note(name, told)

        if not wanted.plan.commands:
            await note(SetupFinished("", "", 0, 0.0, cached=False))
            return Environment(changed=changed)
        held, key = await self._held(folders, opened, wanted)
        seconds = round(self._seconds, 2)
        if held is None:
            failure = self._failure
            await note(
                SetupFinished("", failure.command, failure.exit_code, seconds, cached=False, output=failure.output)
            )
            return Environment("", names, {}, failure.sentence, failure.output, changed)
        # The lock is taken again with the work tree.
        held.release()
        await note(SetupFinished("", " && ".join(wanted.plan.shown), 0, seconds, cached=not held.fresh))
        return replace(self._made(wanted, key), changed=changed)

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
        await opened.workspace.restore(self._commit)
        async with lease.apart(Access()) as sandbox:
            wanted = await self._wanted(sandbox)
        if wanted is None:
            raise WorkspaceError("the prepared environment is gone, and cannot be made here again")
        again, key = await self._held(folders, opened, wanted)
        await opened.workspace.restore(lease.commit or self._commit)
        if again is None:
            raise WorkspaceError(
                f"the prepared environment is gone, and making it again failed: {self._failure.sentence}"
            )
        return again, self._made(wanted, key)

    def _made(self, wanted: _Wanted, key: str) -> Environment:
        variables = wanted.plan.variables(self._settings.network)
        return Environment(key, ", ".join(wanted.plan.names), variables)

    async def _wanted(self, sandbox: Sandbox) -> _Wanted | None:
        """Find out what the project needs, from its files in the commit; None where it needs nothing."""
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
        found = {path: await workspace.read_at(self._commit, path) for path in paths}
        return {path: data for path, data in found.items() if data is not None}

    async def _held(self, folders: PreparedFolders, opened: Opened, wanted: _Wanted) -> tuple[Held | None, str]:
        """Take the environment that everybody may use, else one that only a task like this one may use.

        What people or a model changed is run by some installers, so what they make of that is for the task alone; what
        the base branch makes is for all.
        """
        origin = await self._scene.lease.origin()

        async def make(folder: Path) -> bool:
            return await self._make(opened, folder, wanted)

        if self._own:
            if held := await folders.hold(origin.key, wanted.key):
                return held, wanted.key
            return await folders.take(origin.key, wanted.own_key, opened.owner_uid, make), wanted.own_key
        return await folders.take(origin.key, wanted.key, opened.owner_uid, make), wanted.key

    async def _make(self, opened: Opened, folder: Path, wanted: _Wanted) -> bool:
        """Run the commands on the tree as the commit has it, and leave the tree so; False where one fails."""
        own, todo = opened.own, wanted.plan
        own_folder(own, opened.owner_uid, empty=True)
        network = _allowed(self._settings.setup, todo.names)
        variables = _variables(todo.variables(PRESETS), folder, own, folder.parent.name)
        access = Access(writable=[folder, own], environment=variables, network=network)
        async with self._scene.lease.apart(access) as sandbox:
            # Another set-up, or that of a killed worker, may have left something.
            await opened.workspace.restore(self._commit, bare=True)
            await sandbox.run(_REMEMBER, timeout_s=ASK_S)
            try:
                done = await self._run(sandbox, todo.commands)
            finally:
                # Changes of what is tracked, and what is neither tracked nor ignored, would be taken for the model's.
                await opened.workspace.restore(self._commit)
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
        self._failure = _Failure(command, outcome.exit_code, mask_tokens(output))
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
        own_folder(opened.own, opened.owner_uid, empty=False)
        variables = _variables(made.variables, held.folder, opened.own, made.key)
        access = Access([held.folder], [opened.own], variables, self.network)
        return Fitted(access, _PUT, held.release)


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
