"""Others pushed while a run worked: its commit is put on top of theirs, once, where the two do not conflict."""

from collections.abc import Awaitable, Callable
from dataclasses import replace

from bot.domain.events import CommitMade, Notice
from bot.domain.merging import PutOn
from bot.errors import BranchMoved, CloneFailed, RepositoryRefused
from bot.github import moved as words
from bot.tasks.scene import Scene
from bot.workspace.base import Workspace

Push = Callable[[str, str], Awaitable[bool]]
"""Pushes a commit to the task's branch, which has to stand at the second one."""


async def put_on_top(scene: Scene, workspace: Workspace, commit: str, expected: str | None, push: Push) -> str | None:
    """Push a commit's change on top of where the branch stands; for an action of a step.

    Ids depend on nothing but the run and the branch, and what an earlier life pushed is found in the branch's history:
    one change is there once.

    Args:
        scene: the run.
        workspace: its working copy.
        commit: what the branch did not take.
        expected: where the branch stood when the run began; None where there was none.
        push: to the branch.

    Returns:
        The commit that is on the branch; None where it conflicts, the branch was rewritten or deleted, or moved again.

    Raises:
        PushRejected: the remote did not take it for another reason.
    """
    if expected is None or scene.task.repository.is_local:
        return None
    try:
        head = await scene.desk.workspaces.fetch(scene.task.id, await scene.lease.origin(), scene.task.branch)
    except (CloneFailed, RepositoryRefused):
        return None
    put = await workspace.put_on(commit, head, since=expected)
    if put is None:
        return None
    if not put.there:
        try:
            await push(put.commit, head)
        except BranchMoved:
            return None
    if put.commit != commit:
        await _tell(scene, commit, put)
    return put.commit


async def _tell(scene: Scene, commit: str, put: PutOn) -> None:
    """Record the commit that people see: no check ran on its files."""
    events = await scene.desk.store.events(scene.task.id)
    made = [event.fact for event in events if isinstance(event.fact, CommitMade) and event.fact.sha == commit]
    if made:
        await scene.recorder.note(
            "rebased/commit", replace(made[-1], sha=put.commit, same_tree_as=None, put_from=commit)
        )
    word = scene.lease.gate.word if scene.lease.gate else "/agent"
    told = words.same(word) if put.same else words.rebased(put.others, word)
    await scene.recorder.note("rebased", Notice(told))
