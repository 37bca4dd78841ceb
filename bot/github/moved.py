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


def same(word: str) -> str:
    """Say that nothing is left to be pushed, and that no check ran on what is there.

    Args:
        word: the command word.
    """
    return (
        "Others pushed the same change meanwhile, so nothing was pushed. The checks ran before that: "
        f"`{pieces.plain(word)} check` runs them on the new head."
    )


def merged(branch: str, base: str) -> str:
    """Say where the work begins once what was made before is merged.

    Args:
        branch: whose pull request was merged.
        base: the branch that it begins from.
    """
    return f"The pull request of `{branch}` was merged, so this begins on another branch, from `{base}`."


def aside(branch: str, beside: str, *, local: bool, gone: bool = False) -> str:
    """Say where the work is instead.

    Args:
        branch: the task's own.
        beside: the branch that holds it.
        local: whether that is a person's own checkout.
        gone: whether the task's own was deleted meanwhile.
    """
    if gone:
        return f"`{branch}` is not there any more, so the work is on `{beside}`."
    others = "is checked out or " if local else ""
    return f"`{branch}` {others}has commits of others by now, so the work is beside it, on `{beside}`."


def heard(word: str) -> str:
    """Say what is heard on the pull request of work that lies beside the task's branch.

    Args:
        word: the command word.
    """
    return (
        "This pull request is beside the task's own. Reviews without a command, pushes and checks of others begin "
        f"nothing here, and it is not marked ready by itself; `{pieces.plain(word)} fix` takes it up, with what stands "
        "open on its lines."
    )
