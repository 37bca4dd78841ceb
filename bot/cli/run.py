"""`issuewright run`: a task on a repository of this machine, without GitHub."""

import asyncio
import hashlib
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bot import bootstrap
from bot.cli.approval import Approval, Asking
from bot.cli.play import executor, worked
from bot.cli.sandboxing import tell
from bot.cli.screen import Screen, exit_code
from bot.domain.refs import RepositoryRef
from bot.errors import OperatorError, WorkspaceError
from bot.models import require
from bot.sandbox.base import Sandbox
from bot.sandbox.choose import Chosen
from bot.settings.server import ServerSettings
from bot.store.base import NewRequest
from bot.tasks.desk import Desk
from bot.tasks.engines.base import ABI
from bot.tasks.liveness import Liveness
from bot.tasks.on_terminal import TerminalPublisher
from bot.tasks.oneshot import OneShot
from bot.tasks.standing import Standing, stand
from bot.tools.base import FileLedger, Tool, Toolset
from bot.workspace.base import Origin, Workspace
from bot.workspace.git import Git
from bot.workspace.local import Place, fetch_back, place_of, uncommitted

TITLE_CHARS = 120


@dataclass(frozen=True, slots=True)
class Request:
    """What was asked at the terminal."""

    title: str
    body: str


def work(
    *,
    repo: Path,
    issue: Path | None,
    task: str | None,
    model: str | None,
    in_place: bool,
    approve: Literal["never", "edits", "all"],
    config: Path | None,
    state: Path | None,
    as_json: bool,
) -> int:
    """Work on a repository of this machine; returns the exit code."""
    if sys.platform != "linux":
        raise OperatorError("`run` needs Linux (or WSL 2); on macOS use the container")
    request = _request(issue, task)
    flags: dict[str, object] = {"models.act": model, "state_dir": str(state) if state else None}
    settings = bootstrap.load(config, flags, quiet=True)
    # A server with the same state would take these runs for GitHub's, and one as root gives out the same uids.
    place = settings.workspace
    beside = place.model_copy(update={"first_uid": place.first_uid + place.uids})
    settings = settings.model_copy(update={"state_dir": settings.state_dir / "terminal", "workspace": beside})
    return asyncio.run(_work(settings, repo.resolve(), request, Screen(as_json=as_json), approve, in_place=in_place))


def _request(issue: Path | None, task: str | None) -> Request:
    if (issue is None) == (task is None):
        raise OperatorError("say what to do with `--issue FILE` or with `--task TEXT`, one of the two")
    try:
        text = issue.read_text(encoding="utf-8") if issue is not None else task or ""
    except (OSError, UnicodeDecodeError) as error:
        raise OperatorError(f"{issue}: {error}") from error
    lines = text.strip().split("\n", 1)
    title = lines[0].lstrip("# ").strip()
    if not title:
        raise OperatorError("the task is empty: say what to do")
    body = lines[1].strip() if len(lines) > 1 else ""
    return Request(title[:TITLE_CHARS], text.strip() if len(title) > TITLE_CHARS else body)


async def _work(
    settings: ServerSettings,
    repo: Path,
    request: Request,
    screen: Screen,
    approve: Literal["never", "edits", "all"],
    *,
    in_place: bool,
) -> int:
    git = Git(settings.state_dir)
    try:
        place = await place_of(git, repo)
    except WorkspaceError as error:
        # Nothing has begun yet: no task failed, the call names the wrong place.
        raise OperatorError(str(error)) from error
    require(settings)
    if changes := await uncommitted(git, repo):
        told = "the work builds on them" if in_place else "the work begins from HEAD, without them"
        screen.say(f"{len(changes)} uncommitted changes in {repo}: {told}", "yellow")
    chosen = await bootstrap.choose_sandbox(settings)
    tell(chosen, screen.say)
    stores = bootstrap.open_stores(settings)
    try:
        # What is amiss with the settings is found before there is a run, which would stay in the queue.
        desk = _desk(settings, stores, git, place, chosen, Approval(approve, screen), in_place=in_place)
        accepted = await stores.tasks.accept(_new(repo, request, place), bootstrap.now())
        shot = OneShot(desk, Liveness(settings.state_dir / "executors"), executor())
        done = await worked(shot, accepted.run, screen, stores)
        _tell(screen, stand(await stores.tasks.events(done.task_id), done.seq), repo, in_place=in_place)
        return exit_code(done)
    finally:
        await stores.close()


def _new(repo: Path, request: Request, place: Place) -> NewRequest:
    task_id = bootstrap.new_id()
    # Repositories of this machine have negative ids, GitHub's have positive ones.
    number = -int(hashlib.sha256(str(repo).encode()).hexdigest()[:12], 16)
    repository = RepositoryRef(number, f"local/{repo.name}", place.branch, private=True)
    return NewRequest(
        task_id=task_id,
        event_key=f"terminal:{task_id}",
        repository=repository,
        # Each request of the terminal is a thread of its own.
        number=int(task_id[:7], 16),
        kind="issue",
        title=request.title,
        body=request.body,
        requester=place.author.name,
        requester_id=0,
        request="",
        model=None,
        comment_id=None,
        installation_id=None,
        branch=f"agent/{_slug(request.title)}-{task_id[:8]}",
        base_branch=place.branch,
        pull_number=None,
        abi=ABI,
    )


def _slug(title: str) -> str:
    words = re.findall(r"[a-z0-9]+", title.lower())
    return "-".join(words)[:40].strip("-") or "task"


def _desk(
    settings: ServerSettings,
    stores: bootstrap.Stores,
    git: Git,
    place: Place,
    chosen: Chosen,
    approval: Approval,
    *,
    in_place: bool,
) -> Desk:
    async def deliver(workspace: Workspace, commit: str, branch: str) -> bool:
        if in_place:
            return False
        await fetch_back(git, place.root, workspace.git_dir, commit, branch)
        return True

    async def no_token() -> str | None:
        return None

    def bind(tools: Sequence[Tool], place: Sandbox, ledger: FileLedger) -> Toolset:
        return Asking(bootstrap.bind(tools, place, ledger), approval)

    key = f"local-{hashlib.sha256(str(place.root).encode()).hexdigest()[:16]}"
    publisher = TerminalPublisher(
        place.root, settings, author=place.author, origin=Origin(key, str(place.root), no_token), deliver=deliver
    )
    workspaces = bootstrap.make_checkout(settings) if in_place else bootstrap.make_workspaces(settings)
    return bootstrap.make_desk(settings, stores.tasks, publisher, chosen, workspaces=workspaces, bind_tools=bind)


def _tell(screen: Screen, standing: Standing, repo: Path, *, in_place: bool) -> None:
    if standing.finished and standing.finished.summary:
        screen.say(f"\nThe model says:\n{standing.finished.summary}\n")
    if in_place:
        screen.say(f"The changes are in {repo}: look at them with `git diff`")
    elif standing.pushed is not None:
        base = standing.workspace.commit[:12] if standing.workspace else "HEAD"
        screen.say(f"The work is on the branch `{standing.pushed.branch}`: `git diff {base} {standing.pushed.branch}`")
