"""The check run that says how a task stands, above all what it waits for."""

from collections.abc import Mapping

from bot.github import pieces, text
from bot.github.base import CheckConclusion, CheckRun
from bot.github.comments import ProgressState, ProgressView, next_steps

CHECK_NAME = "issuewright/task"
_TITLE_CHARS = 120
_CONCLUSIONS: Mapping[ProgressState, CheckConclusion] = {
    "waiting": "action_required",
    "done": "success",
    "failed": "failure",
}
_TITLES: Mapping[ProgressState, str] = {
    "done": "The work is done",
    "failed": "The work failed",
    "stopped": "The work was stopped",
    "budget": "The work reached a limit",
}


def task_check(view: ProgressView, head: str, task_id: str) -> CheckRun:
    """Write the check run of a run that ended.

    Args:
        view: of that run.
        head: the commit on which people see it.
        task_id: whose it is.
    """
    # GitHub shows titles as they are, without Markdown.
    waits = " ".join(text.clean(view.reason).replace("`", "").split()) or "A person is needed"
    title = pieces.shorten(
        waits if view.state == "waiting" else _TITLES.get(view.state, "The work ended"), _TITLE_CHARS
    )
    said = pieces.sentence(view.reason) if view.reason else ""
    summary = "\n\n".join(filter(None, [said, next_steps(view)]))
    conclusion = _CONCLUSIONS.get(view.state, "neutral")
    return CheckRun(CHECK_NAME, head, task_id, "completed", conclusion, title, summary)
