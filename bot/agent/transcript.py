"""Adding to a conversation, whose roles take turns."""

from collections.abc import Iterable

from bot.domain.messages import Message, TextPart


def say(transcript: list[Message], texts: Iterable[str]) -> None:
    """Add words as the user: to the last message where that is the user's, which was not sent yet, else behind it."""
    parts = tuple(TextPart(text) for text in texts if text)
    if not parts:
        return
    last = transcript[-1]
    if last.role == "user":
        transcript[-1] = Message("user", (*last.parts, *parts))
    else:
        transcript.append(Message("user", parts))
