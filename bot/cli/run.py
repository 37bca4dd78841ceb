"""`issuewright run`: a task on a repository of this machine, without GitHub."""

import asyncio
import hashlib
import re
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bot import bootstrap
from bot.cli.approval import Approval, Asking
from bot.cli.approval import Mode as Approve
from bot.cli.play import executor, worked
from bot.cli.sandboxing import tell
from bot.cli.screen import Screen, exit_code
from bot.cli.unfinished import SHORT, Left, left_in, meant
from bot.domain.events import RunFinished, RunStarted
from bot.domain.refs import RepositoryRef
from bot.domain.task import Mode, Run
from bot.errors import OperatorError, WorkspaceError
from bot.models import require
from bot.sandbox.base import Sandbox
from bot.sandbox.choose import Chosen
from bot.settings.server import ServerSettings
from bot.store.base import NewRequest
from bot.tasks.desk import Desk
from bot.tasks.engines.base import ABI, Body
from bot.tasks.liveness import Liveness
from bot.tasks.on_terminal import TerminalPublisher
from bot.tasks.oneshot import OneShot
from bot.tasks.progress import stopped
from bot.tasks.standing import Standing, stand
from bot.tools.base import Ci, FileLedger, Tool, Toolset
from bot.workspace.base import Origin, Workspace
from bot.workspace.git import Git
from bot.workspace.local import Place, fetch_back, place_of, uncommitted

TITLE_CHARS = 120
CLONE, CHECKOUT = "local", "checkout"
"""Whose name stands for a repository's owner: of tasks that work in a clone, and of those that work in place."""


@dataclass(frozen=True, slots=True)
class Request:
    """What was asked at the terminal."""

    title: str
    body: str
    text: str
    """All of it."""


@dataclass(frozen=True, slots=True)
class Call:
    """How the command was called."""

    repo: Path
    request: Request | None
    """None where a task just goes on."""
    resume: str | None
    """The beginning of the id of the task that goes on, or `NEWEST`; None begins a task."""
    model: str | None
    in_place: bool
    approve: Approve
    mode: Mode | None
    """None is that of the task which goes on, and else `act`."""
    more: Sequence[str]
    """Options that the command which goes on needs too."""
    around: Callable[[Body], Body] | None
    """Wraps the workflow, for tests."""

    def again(self, task_id: str) -> str:
        """Return the command that goes on with a task."""
        return shlex.join(["issuewright", "run", *self.more, "--resume", task_id[:SHORT]])


def work(
    *,
    repo: Path,
    issue: Path | None,
    task: str | None,
    model: str | None,
    in_place: bool,
    approve: Approve,
    mode: Mode | None,
    config: Path | None,
    state: Path | None,
    as_json: bool,
    resume: str | None = None,
    around: Callable[[Body], Body] | None = None,
) -> int:
    """Work on a repository of this machine; returns the exit code."""
    if sys.platform != "linux":
        raise OperatorError("`run` needs Linux (or WSL 2); on macOS use the container")
    request = None if resume is not None and issue is None and task is None else _request(issue, task)
    flags: dict[str, object] = {"models.act": model, "mode": mode or "act", "state_dir": str(state) if state else None}
    settings = bootstrap.load(config, flags, quiet=True)
    # A server with the same state would take these runs for GitHub's, and one as root gives out the same uids.
    place = settings.workspace
    beside = place.model_copy(update={"first_uid": place.first_uid + place.uids})
    settings = settings.model_copy(update={"state_dir": settings.state_dir / "terminal", "workspace": beside})
    named = {"--repo": repo if repo != Path() else None, "--config": config, "--state": state}
    more = [word for name, path in named.items() if path is not None for word in (name, str(path))]
    call = Call(repo.resolve(), request, resume, model, in_place, approve, mode, more, around)
    return asyncio.run(_Work(settings, call, Screen(as_json=as_json)).work())


def _request(issue: Path | None, task: str | None) -> Request:
    if (issue is None) == (task is None):
        raise OperatorError("say what to do with `--issue FILE` or with `--task TEXT`, one of the two")
    try:
        text = issue.read_text(encoding="utf-8") if issue is not None else task or ""
    except (OSError, UnicodeDecodeError) as error:
        raise OperatorError(f"{issue}: {error}") from error
    text = text.strip()
    lines = text.split("\n", 1)
    title = lines[0].lstrip("# ").strip()
    if not title:
        raise OperatorError("the task is empty: say what to do")
    body = lines[1].strip() if len(lines) > 1 else ""
    return Request(title[:TITLE_CHARS], text if len(title) > TITLE_CHARS else body, text)


class _Work:
    """One call of the command."""

    def __init__(self, settings: ServerSettings, call: Call, screen: Screen) -> None:
        self._settings = settings
        self._call = call
        self._screen = screen
        self._git = Git(settings.state_dir)
        self._liveness = Liveness(settings.state_dir / "executors")

    async def work(self) -> int:
        """Begin a task or go on with one; returns the exit code."""
        call = self._call
        try:
            place = await place_of(self._git, call.repo)
        except WorkspaceError as error:
            # Nothing has begun yet: no task failed, the call names the wrong place.
            raise OperatorError(str(error)) from error
        if call.resume is None:
            require(self._settings)
        stores = bootstrap.open_stores(self._settings)
        try:
            left = None if call.resume is None else await self._left(stores, call.resume)
            return exit_code(await self._worked(stores, place, left))
        finally:
            await stores.close()

    async def _left(self, stores: bootstrap.Stores, name: str) -> Left:
        """Find the task that is to go on, and take from it what cannot change."""
        left = await meant(stores.tasks, self._liveness, _number(self._call.repo), name, self._call.repo)
        if self._call.in_place and not _is_in_place(left.task.repository):
            raise OperatorError(f"task {left.short} works in a clone and ends as a branch: leave out `--in-place`")
        if left.standing == "done" and self._call.request is None:
            raise OperatorError(f"task {left.short} is done: say with `--task TEXT` what else to do")
        events = await stores.tasks.events(left.task.id)
        before = [event.fact for event in events if isinstance(event.fact, RunStarted)]
        if before and self._call.model is None:
            models = self._settings.models.model_copy(update={"act": before[-1].model})
            self._settings = self._settings.model_copy(update={"models": models})
        if before and self._call.mode is None:
            self._settings = self._settings.model_copy(update={"mode": before[-1].settings["mode"]})
        require(self._settings)
        return left

    async def _worked(self, stores: bootstrap.Stores, place: Place, left: Left | None) -> Run:
        in_place = self._call.in_place if left is None else _is_in_place(left.task.repository)
        if left is None:
            await self._tell_before(stores, in_place=in_place)
        bootstrap.warm(self._settings)
        chosen = await bootstrap.choose_sandbox(self._settings)
        tell(chosen, self._screen.say)
        # What is amiss with the settings is found before there is a run, which would stay in the queue.
        approval = Approval(self._call.approve, self._screen)
        desk = self._desk(stores, place, chosen, approval, in_place=in_place)
        shot = OneShot(desk, self._liveness, executor(), around=self._call.around)
        if left is None:
            accepted = await stores.tasks.accept(_new(self._call, place), bootstrap.now())
            run, after = accepted.run, 0
        else:
            run, after = await self._further(desk, shot, place, left)
        again = self._call.again(run.task_id)
        self._screen.say(f"task {run.task_id[:SHORT]}; `{again}` goes on after an interruption", "dim")
        approval.stop = desk.stop_of(run.id)
        done = await worked(shot, run, self._screen, stores, after=after, again=again)
        standing = stand(await stores.tasks.events(done.task_id), done.seq)
        _tell(self._screen, standing, self._call.repo, in_place=in_place)
        if done.outcome == "waiting" and standing.has_plan_open:
            self._screen.say(
                f"`{again}` carries the plan out; `{again} --task '…'` does, and says what to do otherwise"
            )
        elif done.outcome == "waiting":
            self._screen.say(f"`{again} --task '…'` answers and goes on; without `--task` it goes on as it is")
        elif done.outcome != "done":
            self._screen.say(f"`{again}` goes on with it")
        return done

    async def _tell_before(self, stores: bootstrap.Stores, *, in_place: bool) -> None:
        """Say what a person may have forgotten: what is not committed, and a task that is not finished."""
        if changes := await uncommitted(self._git, self._call.repo):
            told = "the work builds on them" if in_place else "the work begins from HEAD, without them"
            self._screen.say(f"{len(changes)} uncommitted changes in {self._call.repo}: {told}", "yellow")
        async for left in left_in(stores.tasks, self._liveness, _number(self._call.repo)):
            # Only the last one: what was left behind by a newer task was left on purpose.
            if left.goes_on:
                self._screen.say(f"unfinished: {left}; `{self._call.again(left.task.id)}` goes on with it", "yellow")
            break

    async def _further(self, desk: Desk, shot: OneShot, place: Place, left: Left) -> tuple[Run, int]:
        """Return the run that goes on with a task, and the position in its stream from which on that is news.

        A run that was cut off goes on itself, from its record. Where that would not do it is ended, and a further run
        begins with the same transcript: a person's checkout may have changed meanwhile, and a run keeps the model, the
        words and the stop that it has.
        """
        store, call, run = desk.store, self._call, left.run
        anew = _is_in_place(left.task.repository) or call.request is not None or call.model is not None
        if run.state == "running" and (anew or await stopped(desk, run.task_id)):
            run = await shot.end(run)
        if run.state == "finished" or call.request is not None:
            request = _next(left, place, call.request.text if call.request else "")
            run = (await store.accept(request, bootstrap.now())).run
        if run.state == "queued":
            return run, 0
        # Its end is news even if it is recorded: it was not complete.
        shown = [event.seq for event in await store.events(run.task_id) if not isinstance(event.fact, RunFinished)]
        return run, max(shown, default=0)

    def _desk(
        self, stores: bootstrap.Stores, place: Place, chosen: Chosen, approval: Approval, *, in_place: bool
    ) -> Desk:
        settings = self._settings

        async def deliver(workspace: Workspace, commit: str, branch: str, expected: str | None) -> bool:
            if in_place:
                return False
            await fetch_back(self._git, place.root, workspace.git_dir, commit, branch, expected=expected)
            return True

        async def no_token() -> str | None:
            return None

        def bind(tools: Sequence[Tool], place: Sandbox, ledger: FileLedger, ci: Ci | None) -> Toolset:
            return Asking(bootstrap.bind(tools, place, ledger, ci), approval, tools)

        key = f"local-{hashlib.sha256(str(place.root).encode()).hexdigest()[:16]}"
        publisher = TerminalPublisher(
            place.root,
            settings,
            author=place.author,
            origin=Origin(key, str(place.root), no_token),
            deliver=deliver,
            prompt=approval.line,
        )
        workspaces = bootstrap.make_checkout(settings) if in_place else bootstrap.make_workspaces(settings)
        return bootstrap.make_desk(
            settings,
            stores.tasks,
            publisher,
            chosen,
            workspaces=workspaces,
            bind_tools=bind,
            permits=approval.permits,
        )


def _number(repo: Path) -> int:
    """Repositories of this machine have negative ids, GitHub's have positive ones."""
    return -int(hashlib.sha256(str(repo).encode()).hexdigest()[:12], 16)


def _is_in_place(repository: RepositoryRef) -> bool:
    return repository.full_name.startswith(f"{CHECKOUT}/")


def _new(call: Call, place: Place) -> NewRequest:
    if call.request is None:
        raise RuntimeError("a task begins with what to do")
    task_id, owner = bootstrap.new_id(), CHECKOUT if call.in_place else CLONE
    return NewRequest(
        task_id=task_id,
        event_key=f"terminal:{task_id}",
        repository=RepositoryRef(_number(call.repo), f"{owner}/{call.repo.name}", place.branch, private=True),
        # Each request of the terminal is a thread of its own.
        number=int(task_id[:7], 16),
        kind="issue",
        title=call.request.title,
        body=call.request.body,
        requester=place.author.name,
        requester_id=0,
        request="",
        model=None,
        comment_id=None,
        installation_id=None,
        branch=f"agent/{_slug(call.request.title)}-{task_id[:SHORT]}",
        base_branch=place.branch,
        pull_number=None,
        abi=ABI,
    )


def _next(left: Left, place: Place, text: str) -> NewRequest:
    task = left.task
    return NewRequest(
        task_id=task.id,
        event_key=f"terminal:{task.id}:{left.run.seq}:{bootstrap.new_id()[:SHORT]}",
        repository=task.repository,
        number=task.number,
        kind=task.kind,
        title=task.title,
        body=task.body,
        requester=place.author.name,
        requester_id=0,
        request=text,
        model=None,
        comment_id=None,
        installation_id=None,
        branch=task.branch,
        base_branch=task.base_branch,
        pull_number=None,
        abi=ABI,
    )


def _slug(title: str) -> str:
    words = re.findall(r"[a-z0-9]+", title.lower())
    return "-".join(words)[:40].strip("-") or "task"


def _tell(screen: Screen, standing: Standing, repo: Path, *, in_place: bool) -> None:
    if standing.finished and standing.finished.summary:
        screen.say(f"\nThe model says:\n{standing.finished.summary}\n")
    if in_place:
        screen.say(f"The changes are in {repo}: look at them with `git diff`")
    elif standing.pushed is not None:
        base = standing.workspace.commit[:12] if standing.workspace else "HEAD"
        screen.say(f"The work is on the branch `{standing.pushed.branch}`: `git diff {base} {standing.pushed.branch}`")
