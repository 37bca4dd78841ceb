"""What needs no model: turns dropped from the middle, and the longest results cut.

Source of the halves and quarters: `ContextManager.ts` of https://github.com/cline/cline
"""

from collections.abc import Sequence
from dataclasses import replace

from bot.agent.context.handover import TRUNCATED, Facts, told, with_words
from bot.agent.context.sizes import part_size, size_of
from bot.agent.context.turns import Turn, joined, split
from bot.agent.context.window import Room
from bot.domain.messages import Message, Part, TextPart, ToolResult
from bot.sandbox.output import clip

SHORTEST = 600
"""Bytes that are left of each result, however long all of them are together."""
_NOTE = 100
"""Bytes for the note that `clip` leaves between the ends."""
CUT = "[Cut by the harness, since the conversation did not fit: ask for a smaller part.]\n"


def truncate(messages: Sequence[Message], room: Room, facts: Facts) -> list[Message]:
    """Drop turns from the middle until the transcript is within the room or nothing more can go.

    The first message, the first exchange and the newest turn stay. Half of what lies between them goes, then half of
    the rest, which leaves a quarter, and so on. What people said in it is told anew, at the end of the first exchange.

    Args:
        messages: oldest first.
        room: for all messages, and for people's words.
        facts: what is told with it.
    """
    head, turns = split(messages)
    made, size, gone = list(messages), size_of(messages), 0
    while size > room.limit and gone < len(turns) - 2:
        middle = len(turns) - 1 - gone
        gone += min(middle - 1, middle - middle // 2)
        left = turns[1 : 1 + gone]
        behind = told(TRUNCATED.format(count=gone), facts, left, room.words)
        made = joined(head, [_noted(turns[0], behind), *turns[1 + gone :]])
        size = size_of(made)
    return made


def cut_results(messages: Sequence[Message], limit: int) -> list[Message]:
    """Cut the longest results, all to the same length, until the transcript is within the limit or they are short.

    Args:
        messages: oldest first.
        limit: bytes of all messages.
    """
    excess = size_of(messages) - limit
    if excess <= 0:
        return list(messages)
    sizes = [part_size(part) for message in messages for part in message.parts if isinstance(part, ToolResult)]
    longest = max(SHORTEST, _level(sizes, excess))
    return [_shortened(message, longest) for message in messages]


def _noted(first: Turn, behind: Sequence[TextPart]) -> Turn:
    if first[-1].role == "user":
        return (*first[:-1], with_words(first[-1], behind))
    return (*first, Message("user", tuple(behind)))


def _level(sizes: Sequence[int], excess: int) -> int:
    """Return the length to which all longer ones have to be cut so that `excess` bytes go."""
    left = sorted(sizes, reverse=True)
    for count, size in enumerate(left, 1):
        following = left[count] if count < len(left) else 0
        # The first `count` are longer than the next; together they give what they are above it.
        if (sum(left[:count]) - count * following) >= excess:
            return (sum(left[:count]) - excess) // count
        if not size:
            break
    return 0


def _shortened(message: Message, longest: int) -> Message:
    parts = tuple(_cut(part, longest) for part in message.parts)
    return message if parts == message.parts else replace(message, parts=parts)


def _cut(part: Part, longest: int) -> Part:
    if not isinstance(part, ToolResult) or (size := part_size(part)) <= longest:
        return part
    text = part.text.removeprefix(CUT)
    room, long = max(longest - len(CUT) - _NOTE, 0), part_size(TextPart(text))
    shown = clip(text, room * len(text) // long) if long > room else text
    cut = replace(part, text=CUT + shown, images=())
    return cut if part_size(cut) < size else part
