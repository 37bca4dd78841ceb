"""How the work leaves the machine: one commit, one push, one pull request; each looked up before it is made."""

import asyncio
from collections.abc import Sequence
from dataclasses import asdict
from typing import cast

from bot.domain.events import BranchPushed, CommitMade, Notice, PullOpened
from bot.domain.protected import is_protected
from bot.errors import BranchMoved, PushRejected
from bot.github import comments
from bot.redaction import Leak, holds_secret, leaks, leaks_in_names, mask, mask_known
from bot.settings.repository import PATH
from bot.tasks.desk import Work
from bot.tasks.engines.base import Json
from bot.tasks.opening import Prepared
from bot.tasks.scene import Scene
from bot.workspace.base import Workspace

DIFF_CHARS = 16 << 20
"""Of a change that are read as lines; the files behind are read whole."""
TOLD = 5
"""Places of secrets that are named."""


async def deliver(scene: Scene, prepared: Prepared, *, summary: str, complete: bool, early: str = "") -> Work | None:
    """Commit, push and publish; None where nothing was changed.

    Args:
        scene: the run.
        prepared: what it began on.
        summary: the model's own account.
        complete: False where the run ended early and this is what there is.
        early: why it did, where the work is offered as a draft all the same.

    Raises:
        PushRejected: the remote did not take it, under the task's name or another, or it holds a secret of ours.
        GitHubError: the pull request could not be opened or updated.
    """
    sha = await _commit(scene, prepared, summary)
    ours = scene.task.branch.startswith("agent/")
    if sha is None and (prepared.expected is None or not complete or not ours):
        return None
    if sha is None:
        # An earlier life pushed the work, and may have ended before anything carried it.
        branch, sha = scene.task.branch, prepared.base
    else:
        seen = not complete and prepared.expected is not None
        branch = await _push(scene, prepared, sha, seen=seen, draft=bool(early) and ours)
    work = Work(sha, prepared.base, prepared.expected, branch, summary, complete, early)

    async def action() -> Json:
        published = await scene.desk.publisher.publish(scene.task, scene.run, work)
        if published is None:
            return None
        if published.number is not None:
            await scene.desk.store.set_pull(scene.task.id, published.number)
            updated = published.number == scene.task.pull_number
            await scene.recorder.note("pull", PullOpened(published.number, published.url, updated=updated))
        if published.remark:
            await scene.recorder.note("published", Notice(published.remark))
        return asdict(published)

    await scene.steps.do("pull", action, patient=True)
    return work


async def _commit(scene: Scene, prepared: Prepared, summary: str) -> str | None:
    task, run = scene.task, scene.run

    async def action() -> Json:
        opened = await scene.lease.opened()
        subject = run.request.strip().split("\n", 1)[0] if run.seq > 1 else ""
        message = mask(comments.commit_message(subject or task.title, summary, number=task.number, task_id=task.id))
        author = await scene.desk.publisher.author(task)
        memory = scene.lease.memory
        without = None if memory.mode == "write" else memory.folder
        sha = await opened.workspace.commit(message, author, run.created_at, parent=prepared.base, without=without)
        checked = scene.lease.commit or prepared.base
        changed = await opened.workspace.changed_paths(checked, sha or prepared.base)
        if without and any(path == without or path.startswith(f"{without}/") for path in changed):
            await scene.recorder.note("memory", Notice(_left_out(without)))
        if sha is not None:
            paths = await opened.workspace.changed_paths(prepared.base, sha)
            await _keep_secrets(scene, opened.workspace, prepared.base, sha, paths)
            stat = await opened.workspace.diff_stat(prepared.base, sha)
            subject = message.split("\n", 1)[0]
            fact = CommitMade(
                sha,
                subject,
                stat.files,
                stat.insertions,
                stat.deletions,
                same_tree_as=None if changed else checked,
                protected=sorted(filter(is_protected, paths)),
            )
            await scene.recorder.note("commit", fact)
        return sha

    return cast("str | None", await scene.steps.do("commit", action))


def _left_out(folder: str) -> str:
    return f"Changes below `{folder}`, the memory bank, are left out: only `memory: write` in `{PATH}` lets them in."


async def _keep_secrets(scene: Scene, workspace: Workspace, base: str, sha: str, paths: Sequence[str]) -> None:
    """Refuse a change that would publish a secret of ours, and remark on what looks like somebody's.

    Raises:
        PushRejected: names the places, never the values.
    """
    diff = await workspace.diff(base, sha, limit_chars=DIFF_CHARS)
    found, read = await asyncio.to_thread(leaks, diff)
    found += leaks_in_names(paths)
    # A diff that was cut ends inside its last file.
    whole = set(paths) - read if len(diff) < DIFF_CHARS // 2 else set(paths)
    for path in sorted(whole):
        data = await workspace.read_at(sha, path)
        if data is not None and await asyncio.to_thread(holds_secret, data):
            found.append(Leak(mask(path), None, "a secret of this server", certain=True))
    if certain := [leak for leak in found if leak.certain]:
        raise PushRejected(
            f"the change holds what has to stay secret ({_places(certain)}). It stays on the server; take that out, "
            "give the secret a new value if others may have seen it, and ask again"
        )
    if found:
        remark = f"The change adds what looks like a credential: {_places(found)}. Make sure that it is made up."
        await scene.recorder.note("credentials", Notice(remark))


def _places(found: Sequence[Leak]) -> str:
    more = f" and {len(found) - TOLD} more" if len(found) > TOLD else ""
    return "; ".join(str(leak) for leak in found[:TOLD]) + more


async def _push(scene: Scene, prepared: Prepared, sha: str, *, seen: bool, draft: bool) -> str:
    """Push to the task's branch and return where the work stands.

    Unfinished work on a branch that others see, and work whose branch moved meanwhile, goes to a branch beside it:
    nothing is lost and nothing is overwritten.

    Args:
        scene: the run.
        prepared: what it began on.
        sha: the commit.
        seen: whether it is unfinished and others see the task's branch.
        draft: whether it is offered as a draft, so that it may go there all the same.
    """
    task, publisher = scene.task, scene.desk.publisher

    async def action() -> Json:
        opened = await scene.lease.opened()
        aside = f"agent/{task.number}-{task.id[:8]}-run{scene.run.seq}"
        beside = seen and not await publisher.takes_unfinished(task, offered=draft)
        branch, expected = (aside, None) if beside else (task.branch, prepared.expected)
        if mask_known(branch) != branch:
            raise PushRejected("the branch's name holds a secret of this server: ask again with another title")
        try:
            pushed = await publisher.push(task, opened.workspace, sha, branch, expected=expected)
        except BranchMoved:
            branch = aside
            pushed = await publisher.push(task, opened.workspace, sha, branch, expected=None)
            others = "is checked out or " if task.repository.is_local else ""
            told = f"`{task.branch}` {others}has commits of others by now, so the work is beside it, on `{aside}`."
            moved = Notice(told)
            await scene.recorder.note("aside", moved)
        if pushed:
            await scene.recorder.note("push", BranchPushed(branch, sha))
        return branch

    return str(await scene.steps.do("push", action, patient=True))
