"""What the harness itself knows of the work, told anew where a part of the transcript goes."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bot.agent.context.sizes import part_size
from bot.agent.context.turns import Turn, words_of_people
from bot.domain.messages import Message, TextPart
from bot.sandbox.output import clip

BEGINS = "[From the harness] "
"""Begins each such text, so that the next one takes its place."""
SUMMARISED = "The older part of this conversation did not fit any more; your note above stands in its place."
TRUNCATED = "A part of this conversation did not fit any more: {count} turns between here and what follows are gone."
PATHS = 100
PATH_CHARS = 300
SHORTEST_WORDS = 300
"""Bytes that are left of each, however much people said."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known without asking a model."""

    changed: Sequence[str] = ()
    """Paths of files that differ from the commit where the run began."""
    checks: Sequence[str] = ()
    """The last result of each check, as "`pytest -q` ended with exit code 1"."""
    plan: str = ""
    """The model's plan as it stands."""
    budget: str = ""
    """What is used and what is left, as one sentence."""


def told(why: str, facts: Facts, gone: Sequence[Turn], room: int) -> list[TextPart]:
    """Say why something is missing, what is known, and what people said there.

    Args:
        why: a sentence.
        facts: what is known.
        gone: the turns that are missing.
        room: bytes of people's words.
    """
    lines = [f"{BEGINS}{why} What the harness knows:"]
    lines.append(f"- Files changed so far: {_paths(facts.changed)}")
    lines += [f"- Check: {check}" for check in facts.checks]
    if facts.plan:
        lines.append(f"- The plan:\n{facts.plan}")
    if facts.budget:
        lines.append(f"- {facts.budget}")
    lines.append("Files may differ from what you remember: read again what you rely on.")
    return [*_within(words_of_people(gone), room), TextPart("\n".join(lines))]


def with_words(message: Message, added: Sequence[TextPart]) -> Message:
    """Return a user message with texts at its end, without what the harness told there before."""
    old = (part for part in message.parts if not (isinstance(part, TextPart) and part.text.startswith(BEGINS)))
    return replace(message, parts=(*old, *added))


def _within(words: Sequence[TextPart], room: int) -> list[TextPart]:
    """Return people's words within so many bytes: the newest whole, of older ones what there is room for."""
    kept: list[TextPart] = []
    for part in reversed(words):
        size = part_size(part)
        # What is cut keeps its beginning, which says whose words they are.
        fits = size <= max(room, SHORTEST_WORDS)
        kept.append(part if fits else TextPart(clip(part.text, max(room, SHORTEST_WORDS) * len(part.text) // size)))
        room = max(0, room - size)
    return kept[::-1]


def _paths(paths: Sequence[str]) -> str:
    # A path is the repository's text: it gets no line of its own.
    shown = [f"`{' '.join(path.split())[:PATH_CHARS].replace('`', '?')}`" for path in paths[:PATHS]]
    more = [f"and {len(paths) - PATHS} more"] if len(paths) > PATHS else []
    return ", ".join([*shown, *more]) or "none"
