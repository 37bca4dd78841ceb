"""A transcript taken apart into turns: between two of them, and nowhere else, it may be cut."""

from collections.abc import Sequence
from itertools import chain, pairwise

from bot.domain.messages import Message, TextPart

Turn = tuple[Message, ...]
"""A reply and what came behind it: the results of its calls, and what was said."""
PEOPLE = ("A person ", "You are asked ")
"""Begin what people say, as `loop.heard` and `prompt.next_message` word it. A tool cannot write such a text of its own:
what it gives is a result, and only texts are looked at."""


def split(messages: Sequence[Message]) -> tuple[Turn, list[Turn]]:
    """Return what stands before the first reply, and the turns."""
    begins = [index for index, message in enumerate(messages) if message.role == "assistant"]
    bounds = [*begins, len(messages)]
    return tuple(messages[: bounds[0]]), [tuple(messages[begin:end]) for begin, end in pairwise(bounds)]


def joined(head: Turn, turns: Sequence[Turn]) -> list[Message]:
    """Put it together again."""
    return [*head, *chain.from_iterable(turns)]


def words_of_people(turns: Sequence[Turn]) -> list[TextPart]:
    """Return what people said in these turns, oldest first: instructions, which no summary may bend."""
    return [
        part
        for turn in turns
        for message in turn
        if message.role == "user"
        for part in message.parts
        if isinstance(part, TextPart) and part.text.startswith(PEOPLE)
    ]
