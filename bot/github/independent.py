"""The check run that says whether somebody approved the work who did not ask for it."""

from collections.abc import Sequence

from bot.github import pieces
from bot.github.base import CheckRun

NAME = "issuewright/independent-review"
_LISTED = 20


def check(head: str, task_id: str, *, by: str, asked: Sequence[str]) -> CheckRun:
    """Write it for one commit.

    Args:
        head: the commit.
        task_id: whose.
        by: login of who approved it; empty where nobody did whose approval counts.
        asked: logins of those whose approval does not count, since they asked for the work or took part in it.
    """
    people = ", ".join(pieces.person(login) for login in asked[:_LISTED]) or "someone"
    more = f" and {len(asked) - _LISTED} more" if len(asked) > _LISTED else ""
    rule = (
        "An approval counts that was given for exactly this commit, by a person with write access who neither asked for"
        f" the work nor took part in it. Those were: {people}{more}."
    )
    if by:
        summary = f"Approved by {pieces.person(by)}. {rule}"
        return CheckRun(NAME, head, task_id, "completed", "success", f"Approved by {by}", summary)
    title = "Waits for a writer other than those who asked"
    return CheckRun(NAME, head, task_id, "completed", "action_required", title, rule)


def not_shown(why: str) -> str:
    """Say why there is no such check run."""
    return f"Whether somebody else approved the work cannot be shown as `{NAME}`: {pieces.sentence(why)}"
