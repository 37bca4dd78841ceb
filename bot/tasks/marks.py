"""What of a pushed change needs a look, pointed out where it is; the pull request's text names the files anyway."""

import logging

from bot.domain.changes import WAITS, Kind
from bot.errors import GitHubError
from bot.github import protected as words
from bot.tasks import protection
from bot.tasks.desk import Work
from bot.tasks.engines.base import Json
from bot.tasks.scene import Scene
from bot.tools.place import changed_line
from bot.workspace.base import Workspace

log = logging.getLogger(__name__)

MOST = 10
"""Comments of one run; more of them nobody reads."""


async def mark(scene: Scene, work: Work, made: str, name: str = "marks") -> None:
    """Point out the first changed line of each file that is pushed without being asked about, but needs a look.

    A refusal is logged and no more: the work stands.

    Args:
        scene: the run.
        work: as it was published.
        made: the commit of this run, before it was put on top of what others pushed, where it was.
        name: of the step.
    """
    if work.branch != scene.task.branch:
        # The task's pull request has no line of what is beside it.
        return

    async def action() -> Json:
        opened = await scene.lease.opened()
        found = await protection.findings_of(scene, opened, work.base, made, "")
        kinds: dict[str, list[Kind]] = {}
        for finding in found:
            for path in finding.paths if finding.kind not in WAITS else ():
                kinds.setdefault(path, []).append(finding.kind)
        marks = []
        for path in [*kinds][:MOST]:
            line = await _line(opened.workspace, work, path)
            marks += [] if line is None else [(path, line, words.mark(kinds[path]))]
        await scene.desk.publisher.point_out(scene.task, scene.run, work.commit, marks)
        return len(marks)

    try:
        await scene.steps.do(name, action, patient=True)
    except GitHubError as error:
        log.warning("marks.refused", extra={"run": scene.run.id, "error": str(error)})


async def _line(workspace: Workspace, work: Work, path: str) -> int | None:
    """Return the first line that differs; None where the file is gone, no text, or has the same lines."""
    before, after = await workspace.read_at(work.base, path), await workspace.read_at(work.commit, path)
    return None if after is None else changed_line(before or b"", after)
