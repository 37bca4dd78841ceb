"""The file that holds a plan on the task's branch: put there, found again, and taken away before the work."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, replace

from bot.domain.events import PlanProposed
from bot.domain.proposal import Sheet, short
from bot.domain.review import OpenThread
from bot.domain.task import Intent, Run, Task
from bot.errors import PushRejected, TaskRefused
from bot.github import plan_pull
from bot.github.base import GitHub
from bot.github.questions import PlanView
from bot.redaction import mask
from bot.store.base import Effect, TaskStore
from bot.tasks.scene import Scene
from bot.tasks.standing import stand
from bot.workspace.base import Workspace

SLOT = "plan.file"
"""The slot of the effect that says which file of the task's branch holds a plan."""
NAME = "PLAN.md"
BEGINS_WITHOUT: frozenset[Intent] = frozenset({"fix", "plan"})
"""What begins on the branch as it will be once the file is gone; all else takes the branch as people see it."""


async def kept(store: TaskStore, task: Task) -> Sheet | None:
    """Return the file that was put last, also one that is gone; None where there never was one."""
    effect = await store.effect(task.id, SLOT)
    return Sheet(**json.loads(effect.remote_id)) if effect else None


async def _keep(store: TaskStore, task: Task, sheet: Sheet) -> None:
    await store.keep_effect(task.id, Effect(SLOT, "file", json.dumps(asdict(sheet))))


async def view_of(
    store: TaskStore, task: Task, run: Run, plan: PlanProposed, word: str, *, superseded: str = ""
) -> PlanView:
    """Gather what people see of a plan."""
    meter = stand(await store.events(task.id), run.seq).meter()
    return PlanView(
        meter.model if meter else "",
        plan.text,
        plan.files,
        plan.turns,
        plan.questions,
        plan.waits,
        run.requester,
        word,
        short(plan.hash),
        superseded,
    )


async def put(scene: Scene, base: str, plan: PlanProposed, word: str) -> Sheet:
    """Put a plan on the task's branch, by a commit of that file alone on top of what is there; again changes nothing.

    Args:
        scene: the run.
        base: what a branch that is not there yet is made from.
        plan: it.
        word: the command word.
    """
    desk, task, run = scene.desk, scene.task, scene.run
    origin, workspace = await scene.lease.origin(), (await scene.lease.opened()).workspace
    head = await desk.workspaces.remote_head(task.id, origin, task.branch)
    tip = await desk.workspaces.fetch(task.id, origin, task.branch) if head else base
    before = await kept(desk.store, task)
    path = before.path if before and not before.gone else await _free(workspace, base, task)
    text = plan_pull.file(await view_of(desk.store, task, run, plan, word), plan.hash)
    data = f"{mask(text)}\n".encode("utf-8", "replace")
    sheet = Sheet(path, plan.hash, hashlib.sha256(data).hexdigest())
    # Before the push: who comes after a crash knows which file is ours.
    await _keep(desk.store, task, sheet)
    if await workspace.read_at(tip, path) == data:
        return sheet
    message = plan_pull.commit_message(short(plan.hash), number=task.number)
    author = await desk.publisher.author(task)
    commit = await workspace.with_file(tip, path, data, author, run.created_at, message)
    try:
        await desk.publisher.push(task, workspace, commit, task.branch, expected=tip if head else None, workflows=False)
    except PushRejected as error:
        return replace(sheet, refused=str(error))
    return sheet


async def _free(workspace: Workspace, base: str, task: Task) -> str:
    """Find a name that nothing in the repository has, in whatever case."""
    there = {name.casefold() for name in await workspace.files_at(base, ".")}
    for name in (NAME, f"PLAN-{task.number}.md"):
        if name.casefold() not in there and await workspace.read_at(base, name) is None:
            return name
    return f"PLAN-{task.number}-{task.id[:8]}.md"


async def cleared(scene: Scene, expected: str | None) -> str:
    """Let the work begin on the branch without the file that holds its plan; nothing is pushed yet.

    Returns:
        The file's path; empty where the branch holds none.
    """
    sheet = await kept(scene.desk.store, scene.task)
    if sheet is None or sheet.gone or expected is None or scene.run.intent not in BEGINS_WITHOUT:
        return ""
    lease, opened = scene.lease, await scene.lease.opened()
    if await opened.workspace.read_at(opened.base, sheet.path) is None:
        return sheet.path if opened.base != expected else ""
    message = plan_pull.commit_message("", number=scene.task.number, gone=True)
    author = await scene.desk.publisher.author(scene.task)
    commit = await opened.workspace.with_file(opened.base, sheet.path, None, author, scene.run.created_at, message)
    await lease.close()
    lease.commit = commit
    return sheet.path


async def drop(store: TaskStore, task: Task) -> None:
    """Note that the work took the file away."""
    sheet = await kept(store, task)
    if sheet is not None and not sheet.gone:
        await _keep(store, task, replace(sheet, gone=True))


async def threads_for(scene: Scene, threads: Sequence[OpenThread]) -> list[OpenThread]:
    """Choose the threads that a run is told: about the plan who plans, all others who works, and where it is asked."""
    sheet = await kept(scene.desk.store, scene.task)

    def about(thread: OpenThread) -> bool:
        return sheet is not None and thread.path == sheet.path and (thread.outdated or not sheet.gone)

    return [thread for thread in threads if thread.asks or about(thread) is (scene.run.intent == "plan")]


async def holds(store: TaskStore, task: Task, plan: PlanProposed) -> bool:
    """Say whether a plan is on the task's branch, to be reviewed there."""
    sheet = await kept(store, task)
    return sheet is not None and not sheet.gone and sheet.plan == plan.hash and task.pull_number is not None


async def require_seen(
    github: GitHub, store: TaskStore, task: Task, plan: PlanProposed, word: str, *, commit: str | None = ""
) -> None:
    """Refuse a yes whose author did not see exactly the plan that waits, where that is a file.

    Args:
        github: as the right installation.
        store: knows which file.
        task: whose.
        plan: that waits.
        word: the command word.
        commit: that was reviewed, None where GitHub does not say; empty for a yes that names the plan itself.

    Raises:
        TaskRefused: a review is of another head than the present one, or that one holds something else.
        GitHubError: GitHub could not be asked.
    """
    sheet = await kept(store, task)
    if sheet is None or task.pull_number is None or not await holds(store, task, plan):
        return
    pull = await github.pull(task.repository, task.pull_number)
    if commit not in {"", pull.head_sha}:
        raise TaskRefused(plan_pull.old_head(commit, pull.head_sha, short(plan.hash), word))
    data = await github.read_file(task.repository, sheet.path, pull.head_sha)
    if data is None or hashlib.sha256(data).hexdigest() != sheet.digest:
        raise TaskRefused(plan_pull.other_file(sheet.path, pull.head_sha, short(plan.hash), word))
