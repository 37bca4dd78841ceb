"""Stops a model that deletes a large part of the repository: a person has to agree to that."""

from collections import Counter
from collections.abc import Sequence
from pathlib import PurePosixPath

from bot.domain.changes import SHARE
from bot.errors import ToolError
from bot.tools.base import ToolContext

_ALL = 1 << 20
WORDS = (
    "A person has to agree to that, and nobody can be asked from here. Leave them; if the task cannot be done without, "
    "call `finish` and say which files have to go and why."
)


async def allow(context: ToolContext, paths: Sequence[str]) -> None:
    """Let files go, unless too many would be gone with them.

    Raises:
        ToolError: too many; nothing was deleted.
    """
    await begin(context)
    there = context.ledger.there or frozenset()
    gone = await _gone(context, there, without=paths)
    if _too_many(gone, there):
        raise ToolError(
            f"needs_agreement: {len(gone)} of {len(there)} files would be gone, more than {SHARE:.0%}; nothing was "
            f"deleted now. {WORDS}"
        )


async def begin(context: ToolContext) -> None:
    """Note what is there, the first time; commands side by side wait for the one look that is before all of them."""
    async with context.ledger.looking:
        if context.ledger.there is None:
            names = await _names(context)
            # What cannot be listed in time is not watched.
            context.ledger.there = names or frozenset()
            context.ledger.files = len(context.ledger.there)


async def complaint(context: ToolContext) -> str:
    """Say so where a command has deleted too many; looks closely only where there are fewer files than before."""
    there = context.ledger.there
    if not there:
        return ""
    try:
        _, count = await context.sandbox.list("**", limit=0)
    except ToolError:
        return ""
    fewer, context.ledger.files = count < context.ledger.files, count
    gone = await _gone(context, there) if fewer else frozenset()
    if not _too_many(gone, there):
        return ""
    some = ", ".join(sorted(gone)[:5])
    return (
        f"needs_agreement: {len(gone)} of {len(there)} files are gone, more than {SHARE:.0%} ({some}, …). "
        f"Put them back. {WORDS}"
    )


async def _gone(context: ToolContext, there: frozenset[str], without: Sequence[str] = ()) -> frozenset[str]:
    """List what was there and is not now, or will not be `without` some; what a command moved elsewhere is not gone."""
    now = await _names(context)
    # What cannot be listed is taken to be there still.
    now = (there if now is None else now) - set(without)
    fresh = Counter(PurePosixPath(path).name for path in now - there)
    gone = set()
    for path in there - now:
        name = PurePosixPath(path).name
        if fresh[name]:
            fresh[name] -= 1
        else:
            gone.add(path)
    return frozenset(gone)


async def _names(context: ToolContext) -> frozenset[str] | None:
    try:
        entries, _ = await context.sandbox.list("**", limit=_ALL)
    except ToolError:
        return None
    return frozenset(entry.path for entry in entries)


def _too_many(gone: frozenset[str], there: frozenset[str]) -> bool:
    return len(gone) > 1 and len(gone) > SHARE * len(there)
