"""A workshop in memory: working copies, a place for tools, a scripted model, and the desk that holds them."""

import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

from bot.agent.context.window import Window
from bot.agent.policy import load
from bot.domain.changes import FileChange
from bot.domain.merging import Conflict, Merged, PutOn
from bot.domain.messages import Message, Part, Prompt, Reply, TextPart, ToolCall, Usage
from bot.domain.task import Run, Task
from bot.errors import BranchMoved, RepositoryRefused, ToolError, WorkspaceError
from bot.llm.base import Model, OnText
from bot.llm.meter import Metered
from bot.sandbox.base import Access, Change, Entry, ExecResult, FileContent, Hit, Level, Sandbox
from bot.settings.resolve import RunSettings
from bot.settings.server import ServerSettings
from bot.store.base import DeliveryStore, NewRequest, TaskStore
from bot.tasks.desk import Desk, Permits, Publisher, Shelter
from bot.tasks.engines.base import Step
from bot.tasks.engines.inline import InlineEngine
from bot.tasks.lease import Lease
from bot.tasks.on_github import GitHubPublisher
from bot.tasks.recorder import Recorder
from bot.tasks.scene import Scene
from bot.tasks.steps import Steps
from bot.tools.base import Ci, FileLedger, Tool, ToolContext, Toolset
from bot.tools.standard import standard_tools
from bot.tools.toolset import StandardToolset
from bot.workspace.base import Credentials, DiffStat, Identity, Opened, Origin
from bot.workspace.prepared import PreparedFolders
from tests.unit.store.made import request
from tests.unit.tasks.github import MemoryApp, MemoryGitHub

START = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
FILES = {"rose.txt": b"dry\n"}

SHELTER = Shelter("bubblewrap", shell=True)
POLICIES = load()


@dataclass
class Clock:
    """Stands still until it is moved."""

    at: datetime = START

    def __call__(self) -> datetime:
        """Return the time."""
        return self.at

    def move(self, seconds: float) -> None:
        """Let time go by."""
        self.at += timedelta(seconds=seconds)


def _hash(*values: object) -> str:
    return hashlib.sha256(repr(values).encode()).hexdigest()[:40]


class Bench:
    """A place for tools, in memory; commands are functions on the files."""

    level: Level = "none"
    root = "."

    def __init__(
        self,
        copy: "Copy",
        commands: dict[str, Callable[["Copy"], Awaitable[ExecResult] | ExecResult]],
        programs: Sequence[str] = ("git",),
    ) -> None:
        self._programs = programs
        self._copy = copy
        self._commands = commands
        self.closed = False
        self.careful = False
        """Whether a file is only replaced by who knows it, as in a real one."""

    async def run(self, command: str, *, timeout_s: float, cwd: str = ".", output_chars: int = 16_000) -> ExecResult:
        """Run a known command; an unknown one is not found."""
        self._copy.shop.log.append(f"run {command[:20]}")
        if command not in self._commands:
            there = "\n".join(["Made-up Linux", *self._programs])
            return ExecResult(127 if "os-release" not in command else 0, there, "", 0.1, timed_out=False)
        given = self._commands[command](self._copy)
        return given if isinstance(given, ExecResult) else await given

    async def open(self, path: str, *, limit_bytes: int) -> FileContent:
        """Read a file."""
        if path not in self._copy.files:
            raise ToolError(f"not_found: {path}")
        data = self._copy.files[path]
        return FileContent(data[:limit_bytes], len(data), 0o644, hashlib.sha256(data).hexdigest())

    async def replace(self, path: str, data: bytes, *, expected_sha256: str | None) -> FileContent:
        """Write a file."""
        there = self._copy.files.get(path)
        if self.careful and expected_sha256 != (None if there is None else hashlib.sha256(there).hexdigest()):
            raise ToolError(f"stale: {path}")
        self._copy.shop.log.append(f"write {path}")
        self._copy.files[path] = data
        return FileContent(data, len(data), 0o644, hashlib.sha256(data).hexdigest())

    async def apply(self, changes: Sequence[Change]) -> Sequence[str | None]:
        """Write and remove files."""
        for change in changes:
            if change.data is None:
                del self._copy.files[change.path]
            else:
                self._copy.files[change.path] = change.data
        return [None if change.data is None else hashlib.sha256(change.data).hexdigest() for change in changes]

    async def python_complaint(self, source: bytes) -> str | None:
        """Have none."""
        return None

    async def delete(self, path: str) -> None:
        """Remove a file."""
        del self._copy.files[path]

    async def move(self, source: str, target: str) -> None:
        """Rename a file."""
        self._copy.files[target] = self._copy.files.pop(source)

    async def list(self, pattern: str, *, limit: int) -> tuple[Sequence[Entry], int]:
        """List everything."""
        return [Entry(path, "file", len(data)) for path, data in self._copy.files.items()], len(self._copy.files)

    async def search(self, pattern: str, *, glob: str | None, limit: int) -> tuple[Sequence[Hit], int]:
        """Find nothing."""
        return [], 0

    async def close(self) -> None:
        """Note it."""
        self.closed = True


class Copy:
    """One working copy in memory."""

    root = Path("/nowhere")

    def __init__(self, shop: "Shop", files: dict[str, bytes]) -> None:
        self.shop = shop
        self.files = files
        self.closed = False

    @property
    def git_dir(self) -> Path:
        """Beside it the harness keeps what belongs to the task."""
        return self.shop.place / "repository.git"

    async def checkpoint(self, paths: Sequence[str] | None, message: str, at: datetime) -> str:
        """Keep the files under their hash."""
        return self.shop.keep(self.files, "wip", message, at)

    async def restore(self, commit: str, *, bare: bool = False) -> None:
        """Take the files of a commit."""
        if bare:
            self.shop.log.append("bare")
        self.files = dict(self.shop.commits[commit])

    async def commit(
        self, message: str, author: Identity, at: datetime, *, parent: str, without: str | None = None
    ) -> str | None:
        """Keep the files where they differ from the parent's, but for those that are to stay as they are there."""
        before, files = self.shop.commits[parent], self.files
        if without is not None:
            files = {path: data for path, data in files.items() if not path.startswith(f"{without}/")}
            files |= {path: data for path, data in before.items() if path.startswith(f"{without}/")}
        if files == before:
            return None
        made = self.shop.keep(files, author.name, message, at, parent)
        self.shop.parents[made] = parent
        self.shop.signed[made] = (author.name, message, at)
        return made

    @property
    def left_out(self) -> Mapping[str, str]:
        """All is taken in but what the shop says."""
        return self.shop.left_out

    async def changes(self, base: str, commit: str) -> tuple[Sequence[FileChange], int]:
        """List what differs; all are plain files."""
        before, after = self.shop.commits[base], self.shop.commits[commit]
        paths = sorted(path for path in {*before, *after} if before.get(path) != after.get(path))
        modes = [(path, 0o100644 * (path in before), 0o100644 * (path in after)) for path in paths]
        held = [(before.get(path, b""), after.get(path, b"")) for path in paths]
        rows = zip(modes, held, strict=True)
        made = (FileChange(*row, len(data), "", _hash(data), _hash(was), len(was)) for row, (was, data) in rows)
        return list(made), len(before)

    async def push(
        self, commit: str, branch: str, *, expected: str | None, credentials: Credentials | None = None
    ) -> None:
        """Move a remote branch."""
        self.shop.log.append(f"push {branch}{' with other credentials' if credentials else ''}")
        stands = self.shop.branches.get(branch)
        if stands == commit:
            return
        if stands != expected:
            raise BranchMoved(f"{branch} stands elsewhere")
        self.shop.branches[branch] = commit

    async def diff(self, base: str, commit: str, *, limit_chars: int, paths: Sequence[str] = ()) -> str:
        """Show the new text of some files; of all of them tasks need none."""
        after = self.shop.commits[commit]
        return "\n".join(f"+++ {path}\n+{after.get(path, b'').decode(errors='replace')}" for path in paths)

    async def diff_stat(self, base: str, commit: str) -> DiffStat:
        """Count files alone."""
        return DiffStat(len(await self.changed_paths(base, commit)), 1, 1)

    async def changed_paths(self, base: str, commit: str) -> Sequence[str]:
        """List what differs."""
        before, after = self.shop.commits[base], self.shop.commits[commit]
        return sorted(path for path in {*before, *after} if before.get(path) != after.get(path))

    async def links(self, commit: str) -> Mapping[str, str]:
        """There are none."""
        return {}

    async def read_at(self, commit: str, path: str) -> bytes | None:
        """Read a file as of a commit."""
        return self.shop.commits[commit].get(path)

    async def files_at(self, commit: str, folder: str) -> Mapping[str, int]:
        """List the files in a folder as of a commit."""
        above = "" if folder == "." else f"{folder}/"
        found = {path.removeprefix(above): data for path, data in self.shop.commits[commit].items()}
        return {
            name: len(data)
            for name, data in found.items()
            if "/" not in name and above + name in self.shop.commits[commit]
        }

    async def paths_named(self, commit: str, name: str) -> frozenset[str]:
        """List the files of a name as of a commit."""
        return frozenset(path for path in self.shop.commits[commit] if path.rpartition("/")[2] == name)

    async def tree_of(self, commit: str) -> str:
        """Name the files of a commit."""
        tree = _hash(sorted(self.shop.commits[commit].items()))
        self.shop.trees[tree] = self.shop.commits[commit]
        return tree

    async def mixed(self, commit: str, other: str, paths: Sequence[str], at: datetime) -> str:
        """Keep the files of a commit, with some of another's."""
        files, others = dict(self.shop.commits[commit]), self.shop.commits[other]
        for path in paths:
            files.pop(path, None)
            if path in others:
                files[path] = others[path]
        return self.shop.keep(files, "mixed", commit, at)

    async def with_file(
        self, commit: str, path: str, data: bytes | None, author: Identity, at: datetime, message: str
    ) -> str:
        """Keep the files of a commit, with another one or without it."""
        files = {name: held for name, held in self.shop.commits[commit].items() if name != path}
        made = self.shop.keep(files if data is None else files | {path: data}, "file", commit, at, message)
        self.shop.parents[made] = commit
        return made

    async def merge(self, ours: str, theirs: str) -> Merged:
        """Join file by file; what both sides changed is in conflict and holds both."""
        lines = [self.shop.history(one) for one in (ours, theirs)]
        common = next((one for one in lines[0] if one in lines[1]), None)
        if common is None:
            raise WorkspaceError("nothing in common")
        base, mine, other = (self.shop.commits[one] for one in (common, ours, theirs))
        files, conflicts = dict[str, bytes](), []
        for path in sorted({*base, *mine, *other}):
            was, here, there = base.get(path), mine.get(path), other.get(path)
            if here not in {was, there} and there != was and (here is None or there is None):
                conflicts.append(Conflict(path, "deleted"))
                files[path] = here or there or b""
            elif here not in {was, there} and there != was:
                conflicts.append(Conflict(path, "lines"))
                texts = [text or b"" for text in (here, was, there)]
                marks = [f"<<<<<<< {ours}\n".encode(), b"||||||| 1\n", b"=======\n", f">>>>>>> {theirs}\n".encode()]
                files[path] = b"".join([marks[0], texts[0], marks[1], texts[1], marks[2], texts[2], marks[3]])
            elif (kept := there if here == was else here) is not None:
                files[path] = kept
        tree = _hash(sorted(files.items()))
        self.shop.trees[tree] = files
        return Merged(tree, conflicts, there=theirs in lines[0])

    async def joined(self, tree: str, parents: Sequence[str], author: Identity, at: datetime, message: str) -> str:
        """Keep the files of a tree as a commit."""
        made = self.shop.keep(self.shop.trees[tree], author.name, parents, at, message)
        self.shop.parents[made], self.shop.also[made] = parents[0], list(parents[1:])
        return made

    async def put_on(self, commit: str, head: str, *, since: str) -> PutOn | None:
        """Put the same change on another commit, unless somebody did."""
        shop = self.shop
        if since not in shop.history(head):
            return None
        others = [one for one in shop.history(head) if one not in shop.history(since)]
        for place, one in enumerate(others):
            if shop.signed.get(one) == shop.signed[commit]:
                return PutOn(one, len(others) - place - 1, there=True)
        merged = await self.merge(head, commit)
        if merged.conflicts:
            return None
        if shop.trees[merged.tree] == shop.commits[head]:
            return PutOn(head, len(others), there=True, same=True)
        made = shop.keep(shop.trees[merged.tree], shop.signed[commit], head)
        shop.parents[made], shop.signed[made] = head, shop.signed[commit]
        return PutOn(made, len(others), there=False)

    async def close(self) -> None:
        """Note it."""
        self.closed = True


class Shop:
    """All working copies and the remote, in memory."""

    def __init__(self, files: dict[str, bytes] | None = None) -> None:
        self.commits: dict[str, dict[str, bytes]] = {}
        self.parents: dict[str, str] = {}
        """Of the commits that were made on top of another one."""
        self.also: dict[str, list[str]] = {}
        """Further parents."""
        self.signed: dict[str, tuple[str, str, datetime]] = {}
        """Author, message and date of commits of work."""
        self.trees: dict[str, dict[str, bytes]] = {}
        self.branches = {"main": self.keep(files or FILES, "first")}
        self.opened: list[tuple[str, str | None]] = []
        self.forgotten: list[str] = []
        self.log: list[str] = []
        self.place = Path("/nowhere")
        self.left_out: dict[str, str] = {}

    def keep(self, files: dict[str, bytes], *facts: object) -> str:
        """Keep a commit."""
        sha = _hash(sorted(files.items()), *facts)
        self.commits[sha] = dict(files)
        return sha

    def history(self, commit: str) -> list[str]:
        """List a commit and all that it stands on, nearest first."""
        found = [commit]
        for one in found:
            above = [*filter(None, [self.parents.get(one)]), *self.also.get(one, ())]
            found.extend(parent for parent in above if parent not in found)
        return found

    def theirs(self, branch: str, **files: bytes) -> str:
        """Let a person push to a branch; underscores stand for dots."""
        head = self.branches[branch]
        changed = {name.replace("_", "."): data for name, data in files.items()}
        made = self.keep(self.commits[head] | changed, "theirs", head)
        self.parents[made] = head
        self.branches[branch] = made
        return made

    async def open(self, task_id: str, origin: Origin, branch: str, *, commit: str | None = None) -> Opened:
        """Make a copy of a commit or of a branch."""
        self.opened.append((branch, commit))
        stands = commit or self.branches[branch]
        return Opened(Copy(self, dict(self.commits[stands])), stands, 1, None)

    async def remote_head(self, task_id: str, origin: Origin, branch: str) -> str | None:
        """Say where a branch stands."""
        return self.branches.get(branch)

    async def fetch(self, task_id: str, origin: Origin, branch: str) -> str:
        """Say where a branch stands that is there."""
        if branch not in self.branches:
            raise RepositoryRefused(f"the repository has no branch `{branch}`")
        return self.branches[branch]

    async def forget(self, task_id: str, *, but_commits: bool = False) -> None:
        """Note it."""
        self.forgotten.append(f"{task_id} but commits" if but_commits else task_id)


class Script:
    """A model that answers by how far the transcript has come since the last first message of a run."""

    name = "scripted:one"

    def __init__(self, *replies: Reply | Exception) -> None:
        self._replies = replies
        self.prompts: list[Prompt] = []
        self.closed = False

    async def ask(self, prompt: Prompt, *, on_text: OnText | None = None) -> Reply:
        """Give the reply of this turn."""
        given = self._replies[len(self.prompts)]
        self.prompts.append(prompt)
        if isinstance(given, Exception):
            raise given
        if on_text is not None:
            on_text(given.message.text)
        return given

    async def close(self) -> None:
        """Note it."""
        self.closed = True


def reply(*parts: Part) -> Reply:
    """Make a reply that cost something."""
    made = Message("assistant", parts)
    return Reply(made, "tool" if made.calls else "end", Usage(10, 20, 30, 40), "scripted-1")


def write(path: str, content: str, call_id: str = "w") -> ToolCall:
    """Call `write`."""
    return ToolCall(call_id, "write", f'{{"path": "{path}", "content": "{content}"}}')


def run(command: str, call_id: str = "r") -> ToolCall:
    """Call `run`."""
    return ToolCall(call_id, "run", f'{{"command": "{command}"}}')


def read(path: str, call_id: str = "o") -> ToolCall:
    """Call `read`."""
    return ToolCall(call_id, "read", f'{{"path": "{path}"}}')


def finish(summary: str = "Watered.", call_id: str = "f") -> ToolCall:
    """Call `finish`."""
    return ToolCall(call_id, "finish", f'{{"summary": "{summary}"}}')


def words(text: str) -> TextPart:
    """Make plain words."""
    return TextPart(text)


@dataclass
class World:
    """Everything that a task needs, and the store that outlives it."""

    store: TaskStore
    deliveries: DeliveryStore
    clock: Clock = field(default_factory=Clock)
    github: MemoryGitHub = field(default_factory=MemoryGitHub)
    shop: Shop = field(default_factory=Shop)
    settings: ServerSettings = field(default_factory=lambda: ServerSettings(mode="act", independent_review=False))
    commands: dict[str, Callable[[Copy], Awaitable[ExecResult] | ExecResult]] = field(default_factory=dict)
    programs: Sequence[str] = ("git",)
    price: float | None = 0.25
    window: Window = field(default_factory=lambda: Window.of(200_000, 8_192))
    benches: list[Bench] = field(default_factory=list)
    accesses: list[Access] = field(default_factory=list)
    environments: PreparedFolders | None = None
    shelter: Shelter = SHELTER
    permits: Permits | None = None
    careful: bool = False

    def desk(self, model: Model, publisher: Publisher | None = None) -> Desk:
        """Make a fresh desk, as each life of a process has one."""

        async def sandbox(opened: Opened, access: Access) -> Sandbox:
            self.accesses.append(access)
            bench = Bench(cast("Copy", opened.workspace), self.commands, self.programs)
            bench.careful = self.careful
            self.benches.append(bench)
            return bench

        def tools(_: RunSettings) -> Sequence[Tool]:
            return standard_tools()

        def bind(chosen: Sequence[Tool], place: Sandbox, ledger: FileLedger, ci: Ci | None) -> Toolset:
            return StandardToolset(chosen, ToolContext(place, ledger, ci))

        return Desk(
            store=self.store,
            workspaces=self.shop,
            publisher=publisher or self.publisher(),
            shelter=self.shelter,
            sandbox=sandbox,
            tools=tools,
            toolset=bind,
            model=lambda name, tell, meter: Metered(model, meter),
            window=lambda name: self.window,
            price_usd=lambda name, usage: self.price,
            policies=POLICIES,
            permits=self.permits,
            environments=self.environments,
            clock=self.clock,
        )

    def publisher(self) -> GitHubPublisher:
        """Make the publisher on this GitHub."""
        return GitHubPublisher(
            self.store,
            MemoryApp(self.github),
            self.settings,
            shelter=SHELTER,
            monotonic=lambda: self.clock().timestamp(),
        )

    async def begin(self, key: str = "first", **changes: object) -> tuple[Task, Run]:
        """Queue a run and take it."""
        accepted = await self.store.accept(self.request(key, **changes), self.clock())
        await self.store.admit("us", slots=9, per_installation=9)
        taken = await self.store.run(accepted.task.id, accepted.run.seq)
        assert taken is not None
        return accepted.task, taken

    def request(self, key: str, **changes: object) -> NewRequest:
        """Make a request of issue 7: a command where it has a comment, else a label."""
        return request(key, commanded=changes.get("comment_id") is not None, **changes)  # type: ignore[arg-type]

    async def scene(self, task: Task, one: Run, step: Step, model: Model | None = None) -> Scene:
        """Make what one life of a run shares."""
        desk = self.desk(model or Script())
        steps = Steps(step, self.store, desk.stop_of(one.id))
        lease = Lease(desk, task)
        lease.tools = standard_tools()
        return Scene(desk, task, one, steps, Recorder(desk, one), lease)

    async def live(self, one: Run, body: Callable[[str, Step], Awaitable[None]]) -> None:
        """Play one life of a run with the inline engine."""

        async def wrapped(run_id: str, step: Step) -> None:
            await body(run_id, step)

        engine = InlineEngine(self.store)
        await engine.launch(wrapped)
        await engine.start(one)
        await engine.wait(one)
