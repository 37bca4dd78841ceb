"""What is said of bringing a base branch into another: to people, and in the history."""

from collections.abc import Mapping, Sequence

from bot.domain.merging import Stands
from bot.github import pieces, text
from bot.github.comments import commit_message


def merge_message(base: str, branch: str, *, number: int, task_id: str, by: str) -> str:
    """Write the message of the commit that joins two branches."""
    return commit_message(f"Merge branch `{base}` into `{branch}`", "", number=number, task_id=task_id, by=by)


def merged(base: str, commit: str, resolved: Mapping[str, Stands]) -> str:
    """Say what was done.

    Args:
        base: the base branch.
        commit: its head.
        resolved: files in which the two conflicted, and whose version stands now.
    """
    told = f"{text.code(base)} is merged in, as of `{pieces.plain(commit[:8])}`"
    ways: dict[Stands, str] = {
        "anew": "was resolved by the model",
        "ours": "stands as on this branch",
        "theirs": f"stands as on {text.code(base)}",
        "git": "stands as git left it",
    }
    parts = [
        f"{pieces.paths(paths)} {way}"
        for one, way in ways.items()
        if (paths := [path for path, stands in resolved.items() if stands == one])
    ]
    return f"{told}. Of what conflicted, {'; '.join(parts)}." if parts else f"{told}."


def up_to_date(base: str) -> str:
    """Say that there was nothing to do."""
    return f"The branch has all that is on {text.code(base)} already; nothing was pushed."


def no_branch(branch: str) -> str:
    """Refuse to merge into what is not there."""
    return f"The branch {text.code(branch)} is not there any more, so there is nothing to merge into."


def waits() -> str:
    """Refuse to move the branch below work that people have not decided about."""
    return "Work waits for somebody's decision before it is pushed to this branch: decide about that first."


def moved(branch: str) -> str:
    """Say why the merge was dropped: its second parent would be of another state."""
    return f"{text.code(branch)} got commits of others meanwhile, so the merge was not pushed: ask for it again"


def unresolved(paths: Sequence[str]) -> str:
    """Say why the merge was dropped: conflicts are left."""
    return f"Conflicts are left in {pieces.paths(paths)}, so nothing of the merge was pushed."


def protected(paths: Sequence[str]) -> str:
    """Say why the merge was dropped: the model changed what people decide about."""
    return (
        f"The model's resolution changes {pieces.paths(paths)}, which people decide about, so nothing of the merge was "
        "pushed: resolve that by hand."
    )
