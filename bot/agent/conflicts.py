"""What the model is told of a merge that it has to complete, and how it is seen that it did not."""

import re
from collections.abc import Mapping, Sequence

from bot.agent.prompt import fence
from bot.domain.merging import Clash, Conflict

_HOW: Mapping[Clash, str] = {
    "lines": "both sides changed the same lines; they stand between markers, what they came from in the middle",
    "binary": "a binary file that both sides changed; this branch's stands there",
    "link": "a symbolic link that both sides changed; this branch's stands there",
    "submodule": "a submodule that both sides moved; this branch's stands, and you cannot change it",
    "deleted": "changed on one side and deleted on the other; the changed one stands there",
    "renamed": "renamed on one side, and renamed otherwise or deleted on the other",
    "kind": "a file on one side, and a folder or a link on the other",
}
_MOST = 200
_SPLIT = re.compile(rb"^={7,}\r?$", re.MULTILINE)


def conflicts_told(task_id: str, branch: str, conflicts: Sequence[Conflict]) -> str:
    """Ask the model to complete a merge.

    Args:
        task_id: for the fence around names that others chose.
        branch: the base branch that is merged in.
        conflicts: what git could not join.
    """
    listed = "\n".join(f"{one.path!r}: {_HOW[one.clash]}" for one in conflicts[:_MOST])
    more = f"\nand {len(conflicts) - _MOST} more" if len(conflicts) > _MOST else ""
    return (
        "The harness merges the base branch into this branch; both names and what conflicts are below. The work tree "
        "holds the result as far as git could join it. Resolve each conflict so that what both sides wanted is kept, "
        "remove all markers, change nothing else, and call `finish`. The harness makes the merge commit; run no git "
        f"commands that write.\n{fence(task_id, 'conflicts', f'base branch: {branch}' + chr(10) + listed + more)}"
    )


def left_told(task_id: str, paths: Sequence[str]) -> str:
    """Answer `finish` while markers are left."""
    listed = "\n".join(repr(path) for path in paths)
    return (
        "Not finished: conflict markers are left in these files, or they stand under a name that git made up for one "
        f"side. Resolve that and call `finish` again.\n{fence(task_id, 'files with conflicts', listed)}"
    )


def names_a_side(data: bytes, ids: Sequence[str]) -> bool:
    """Whether a file holds a marker with the id of a side, wherever it came from."""
    pairs = zip((b"<", b">"), ids, strict=True)
    return any(re.search(rb"^%s{7,} %s" % (sign, re.escape(name.encode())), data, re.MULTILINE) for sign, name in pairs)


def is_a_sides_name(path: str, ids: Sequence[str]) -> bool:
    """Whether git gave a file this name because another one stands at its own on the other side."""
    return re.search(rf"~(?:{'|'.join(map(re.escape, ids))})(?:_\d+)?(?:/|$)", path) is not None


def has_markers(data: bytes, sides: Sequence[bytes], ids: Sequence[str]) -> bool:
    """Whether a file still holds markers of a merge.

    Args:
        data: the file as it is now.
        sides: the file as each side had it: what looks like a marker there is text.
        ids: how the markers name the sides.
    """
    if names_a_side(data, ids):
        return True
    common = re.compile(rb"^\|{7,} [0-9a-f]{7,40}\r?$", re.MULTILINE)
    for pattern in (common, _SPLIT):
        if len(pattern.findall(data)) > sum(len(pattern.findall(side)) for side in sides):
            return True
    return False
