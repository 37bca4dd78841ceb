"""What is said where others pushed to a branch while a run worked on it."""

from bot.github import pieces


def rebased(others: int, word: str) -> str:
    """Say what the commit stands on, and that no check ran there.

    Args:
        others: commits that were pushed meanwhile.
        word: the command word.
    """
    commits = "a commit that was" if others == 1 else f"{others} commits that were"
    return (
        f"The work is rebased over {commits} pushed meanwhile. The checks ran before that: "
        f"`{pieces.plain(word)} check` runs them on the new head."
    )


def aside(branch: str, beside: str, *, local: bool) -> str:
    """Say where the work is instead.

    Args:
        branch: the task's own.
        beside: the branch that holds it.
        local: whether that is a person's own checkout.
    """
    others = "is checked out or " if local else ""
    return f"`{branch}` {others}has commits of others by now, so the work is beside it, on `{beside}`."
