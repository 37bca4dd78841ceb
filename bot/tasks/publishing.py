"""How the work leaves the machine: one commit, one push, one pull request; each looked up before it is made."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, cast

from bot.domain.changes import WAITS, Finding
from bot.domain.events import BranchPushed, CommitMade, Notice, PullOpened
from bot.domain.protected import is_protected
from bot.errors import BranchMoved, Cancelled, PushRejected
from bot.github import comments, moved
from bot.github import protected as words
from bot.github.people import co_author
from bot.redaction import Leak, holds_secret, leaks, leaks_in_names, mask, mask_known
from bot.settings.repository import PATH
from bot.tasks import protection
from bot.tasks.checking import show_work
from bot.tasks.desk import Work
from bot.tasks.engines.base import Json
from bot.tasks.gates import heed_stop
from bot.tasks.marks import mark
from bot.tasks.moved import put_on_top
from bot.tasks.opening import Prepared
from bot.tasks.protection import Held
from bot.tasks.rounds import answer_round, leave_round
from bot.tasks.scene import Scene
from bot.workspace.base import EXPECTED, Workspace

DIFF_CHARS = 16 << 20
"""Of a change that are read as lines; the files behind are read whole."""
TOLD = 5
"""Places of secrets that are named."""


async def deliver(  # noqa: PLR0913 - all that is known of how a run ended
    scene: Scene,
    prepared: Prepared,
    *,
    summary: str,
    complete: bool,
    early: str = "",
    plan: str = "",
    heard: int | None = None,
) -> Work | None:
    """Commit, push and publish; None where nothing was changed, or what there is of it stays here.

    Args:
        scene: the run.
        prepared: what it began on.
        summary: the model's own account.
        complete: False where the run ended early and this is what there is.
        early: why it did, where the work is offered as a draft all the same.
        plan: what was carried out, in the words that people read; empty where there was no plan.
        heard: the last inbox item that the run heard; None where it heard a stop, and heeds no further one.

    Raises:
        Cancelled: somebody said stop before it was pushed, so that it is kept as unfinished work is, or published.
        Waits: people decide later whether it is pushed.
        PushRejected: the remote did not take it, under the task's name or another, or it holds a secret of ours.
        GitHubError: the pull request could not be opened or updated.
    """
    made = await _commit(scene, prepared, summary, plan)
    if isinstance(made, dict):
        held = _held(scene, prepared, made, summary)
        found = [Finding.from_data(one) for one in made["waits"]]
        if await protection.hold(scene, held, found, complete=complete, heard=heard):
            return None
        made = held.commit
    sha, ours = made, scene.task.branch.startswith("agent/")
    if sha is None and (prepared.expected is None or prepared.sheet or not complete or not ours):
        return None
    if sha is None:
        # An earlier life pushed the work, and may have ended before anything carried it.
        branch, sha = scene.task.branch, prepared.base
    else:
        there = prepared.expected is not None
        try:
            draft = bool(early) and ours
            branch, sha = await _push(scene, prepared, sha, seen=there and not complete, draft=draft, heard=heard)
        except Cancelled:
            await _push(scene, prepared, sha, seen=there, draft=False, name="push/kept")
            raise
    work = Work(sha, prepared.base, prepared.expected, branch, summary, complete, early)
    try:
        await publish_work(scene, work, "pull", "check/shown", heard=heard)
    except Cancelled:
        # It is where people see it, and the next round goes on from it.
        await leave_round(scene, prepared, work)
        raise
    await mark(scene, work, made or sha)
    return work


async def release(scene: Scene, prepared: Prepared, held: Held) -> Work:
    """Push and publish what a person approved, exactly as it was put to them, and answer the threads it deals with.

    Raises:
        Cancelled: somebody said stop before that.
        PushRejected: the remote did not take it.
        GitHubError: the pull request could not be opened or updated.
    """
    await protection.tell(scene, held, prepared.heard)
    branch, _ = await _push(scene, prepared, held.commit, seen=False, draft=False, name="protected/push", is_exact=True)
    await protection.let_go(scene, held)
    work = Work(held.commit, held.base, held.expected, branch, held.summary, complete=True)
    await publish_work(scene, work, "protected/pull", "protected/shown")
    await mark(scene, work, held.commit, "protected/marks")
    told = replace(prepared, base=held.base, threads=held.threads)
    await answer_round(scene, told, work, "protected/answers", of=held.run)
    return work


async def publish_work(scene: Scene, work: Work, name: str, shown: str, *, heard: int | None = None) -> None:
    """Open or update the pull request, and show the evidence as a check run of its head.

    Args:
        scene: the run.
        work: what is on its branch.
        name: of the step.
        shown: name of the step behind it.
        heard: the last inbox item that the run heard; None where no stop is heeded any more.
    """

    async def action() -> Json:
        await heed_stop(scene, heard)
        published = await scene.desk.publisher.publish(scene.task, scene.run, work)
        if published is None:
            return None
        if published.number is not None:
            if work.branch == scene.task.branch:
                # What is beside is another pull request, and whoever asks for something there begins another task.
                await scene.desk.store.set_pull(scene.task.id, published.number)
            updated = published.number == scene.task.pull_number
            await scene.recorder.note("pull", PullOpened(published.number, published.url, updated=updated))
        if published.remark:
            await scene.recorder.note("published", Notice(published.remark))
        return asdict(published)

    published = cast("dict[str, Any] | None", await scene.steps.do(name, action, patient=True))
    if published is not None and published["number"] is not None:
        await show_work(scene, work.commit, shown)


def _held(scene: Scene, prepared: Prepared, made: Mapping[str, Any], summary: str) -> Held:
    paths = sorted({path for one in made["waits"] for path in one["paths"]})
    sha, fact = str(made["sha"]), cast("dict[str, Any]", made["fact"])
    threads = [one.without_words for one in prepared.threads]
    held = Held(sha, prepared.base, prepared.expected, scene.task.branch, summary, "", paths, fact)
    return replace(held, run=scene.run.seq, threads=threads)


async def _commit(scene: Scene, prepared: Prepared, summary: str, plan: str) -> str | dict[str, Any] | None:
    """Make the commit; with what people decide about before, where there is such, its id is in a mapping."""
    task, run = scene.task, scene.run

    async def action() -> Json:
        opened = await scene.lease.opened()
        title = (run.request.strip().split("\n", 1)[0] if run.seq > 1 else "") or task.title
        by = co_author(run.requester, run.requester_id)
        message = mask(comments.commit_message(title, summary, number=task.number, task_id=task.id, by=by))
        author = await scene.desk.publisher.author(task)
        memory = scene.lease.memory
        without = None if memory.mode == "write" else memory.folder
        sha = await opened.workspace.commit(message, author, run.created_at, parent=prepared.base, without=without)
        checked = scene.lease.commit or prepared.base
        changed = await opened.workspace.changed_paths(checked, sha or prepared.base)
        if without and any(path == without or path.startswith(f"{without}/") for path in changed):
            await scene.recorder.note("memory", Notice(_left_out(without)))
        missed = {path: why for path, why in scene.lease.left_out.items() if why not in EXPECTED}
        if missed:
            await scene.recorder.note("left-out", Notice(words.left_out(missed)))
        if sha is not None:
            paths = await opened.workspace.changed_paths(prepared.base, sha)
            await keep_secrets(scene, opened.workspace, prepared.base, sha, paths)
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
            found = await protection.findings_of(scene, opened, prepared.base, sha, plan)
            if marked := [one for one in found if one.kind not in WAITS]:
                await scene.recorder.note("marked", Notice(words.marked(marked)))
            if waits := words.waiting(found):
                kept = {**asdict(fact), "protected": list(fact.protected)}
                if scene.desk.permits is not None:
                    await scene.recorder.note("commit", fact)
                return {"sha": sha, "waits": [one.to_data() for one in waits], "fact": kept}
            await scene.recorder.note("commit", fact)
        if run.intent in protection.GOES_ON:
            # Whatever waited before this run is in the commit now, or not wanted any more.
            await protection.keep(scene, None)
        return sha

    return cast("str | dict[str, Any] | None", await scene.steps.do("commit", action))


def _left_out(folder: str) -> str:
    return f"Changes below `{folder}`, the memory bank, are left out: only `memory: write` in `{PATH}` lets them in."


async def keep_secrets(scene: Scene, workspace: Workspace, base: str, sha: str, paths: Sequence[str]) -> None:
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


async def _push(  # noqa: PLR0913 - a push has this many sides
    scene: Scene,
    prepared: Prepared,
    sha: str,
    *,
    seen: bool,
    draft: bool,
    name: str = "push",
    is_exact: bool = False,
    heard: int | None = None,
) -> tuple[str, str]:
    """Push to the task's branch and return where the work stands, and as which commit.

    Where others pushed meanwhile it goes on top of theirs. Unfinished work on a branch that others see, and work that
    conflicts with theirs, goes to a branch beside it: nothing is lost and nothing is overwritten.

    Args:
        scene: the run.
        prepared: what it began on.
        sha: the commit.
        seen: whether it is unfinished and others see the task's branch.
        draft: whether it is offered as a draft, so that it may go there all the same.
        name: of the step.
        is_exact: whether people approved this very commit, so that no other one is pushed to the branch.
        heard: the last inbox item that the run heard; None where no stop is heeded any more.
    """
    task, publisher = scene.task, scene.desk.publisher

    async def action() -> Json:
        await _heed(scene, heard, sha)
        opened = await scene.lease.opened()
        aside = f"agent/{task.number}-{task.id[:8]}-run{scene.run.seq}"
        beside = seen and not await publisher.takes_unfinished(task, offered=draft)
        branch, expected = (aside, None) if beside else (task.branch, prepared.expected)
        if mask_known(branch) != branch:
            raise PushRejected("the branch's name holds a secret of this server: ask again with another title")
        # Whatever comes here was agreed to.
        workflows = await _changes_workflows(opened.workspace, prepared.base, sha)

        async def push(commit: str, onto: str | None) -> bool:
            return await publisher.push(task, opened.workspace, commit, branch, expected=onto, workflows=workflows)

        commit = sha
        try:
            pushed = await push(sha, expected)
        except BranchMoved:
            put = None if beside or is_exact else await put_on_top(scene, opened.workspace, sha, expected, push)
            if put is None:
                branch = aside
                pushed = await push(sha, None)
                await _tell_aside(scene, aside)
            else:
                commit, pushed = put, True
        if pushed:
            begins = bool(await opened.workspace.files_at(commit, ".github/workflows"))
            await scene.recorder.note("push", BranchPushed(branch, commit, workflows=begins))
        return {"branch": branch, "commit": commit}

    value = cast("dict[str, str]", await scene.steps.do(name, action, patient=True))
    return value["branch"], value["commit"]


async def _heed(scene: Scene, heard: int | None, sha: str) -> None:
    """Look whether somebody said stop; an earlier life may have pushed before that, and then it is too late."""
    try:
        await heed_stop(scene, heard)
    except Cancelled:
        task, origin = scene.task, await scene.lease.origin()
        if await scene.desk.workspaces.remote_head(task.id, origin, task.branch) != sha:
            raise


async def _changes_workflows(workspace: Workspace, base: str, sha: str) -> bool:
    return any(path.startswith(".github/workflows/") for path in await workspace.changed_paths(base, sha))


async def _tell_aside(scene: Scene, aside: str) -> None:
    """Say why the work is on another branch than the task's."""
    task, workspaces, local = scene.task, scene.desk.workspaces, scene.task.repository.is_local
    gone = not local and not await workspaces.remote_head(task.id, await scene.lease.origin(), task.branch)
    await scene.recorder.note("aside", Notice(moved.aside(task.branch, aside, local=local, gone=gone)))
