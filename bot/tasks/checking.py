"""The checks alone, on a branch as it stands: no model is asked, nothing is changed and nothing is pushed."""

from bot.domain.events import Notice
from bot.errors import GitHubError, TaskRefused
from bot.github import checking as words
from bot.tasks.checks import Checker, evidence_of
from bot.tasks.engines.base import Json
from bot.tasks.environment import ProjectSetup, why_no_checks
from bot.tasks.opening import Begun, Prepared
from bot.tasks.scene import Scene
from bot.tasks.standing import pushed_by_us, stand


async def check_branch(scene: Scene, begun: Begun, prepared: Prepared) -> None:
    """Run the checks once on the head of the task's branch, and show them there.

    Raises:
        TaskRefused: there is no such branch.
        Cancelled: a person stopped the run.
        GitHubError: nobody could be told.
    """
    if prepared.expected is None:
        raise TaskRefused(words.no_branch(scene.task.branch))
    ours = await _mark(scene, prepared.base)
    if ours and not scene.run.commanded:
        # It carries its evidence already, which tells more than the checks alone.
        return
    environment = await ProjectSetup(scene, begun.settings, prepared).first()
    checker = Checker(scene, evidence_of(begun.settings, prepared.checks))
    await checker.all("head", skipped=why_no_checks(scene, environment))
    await show(scene, prepared.base)


async def show(scene: Scene, head: str, name: str = "check/shown") -> None:
    """Show what is recorded as a check run of a commit.

    Args:
        scene: the run.
        head: that people see, since it was pushed.
        name: of the step.

    Raises:
        GitHubError: it could not be shown, for another reason than that it is not permitted.
    """

    async def action() -> Json:
        if remark := await scene.desk.publisher.evidence(scene.task, scene.run, head):
            await scene.recorder.note(name, Notice(remark))
        return None

    await scene.steps.do(name, action, patient=True)


async def show_work(scene: Scene, head: str, name: str) -> None:
    """Do it for work that is published: that stands, whatever becomes of its check run."""
    try:
        await show(scene, head, name)
    except GitHubError as error:
        await scene.recorder.note(f"{name}/failed", Notice(words.not_shown(str(error))))


async def _mark(scene: Scene, head: str) -> bool:
    """Mark evidence of an earlier commit, and say whether the head is what we pushed last, on which the checks ran.

    What goes wrong with that keeps no check from running.
    """

    async def action() -> Json:
        await scene.desk.publisher.outdated(scene.task, head)
        events = await scene.desk.store.events(scene.task.id)
        seen = stand(events, None).evidence(())
        return pushed_by_us(events, scene.task) == head and bool(seen.tree or not seen.checks)

    try:
        return await scene.steps.do("check/stale", action, patient=True) is True
    except GitHubError as error:
        await scene.recorder.note("check/stale/failed", Notice(words.not_marked(str(error))))
        return False
