"""A summary by the model of what only it knows: how it is asked for, and what is taken for one."""

from collections.abc import Sequence
from dataclasses import replace

from bot.agent.context.sizes import part_size, size_of
from bot.agent.context.turns import Turn, joined, split
from bot.agent.prompts import render
from bot.domain.messages import Message, Part, Prompt, Reply, TextPart, ToolResult

LEFT_OUT = "[Left out here for length.]"
SHARES = (0.0, 0.1, 0.2, 0.5, 1.0)
"""Of the results that are left out of what is summarised, one after the other while it is too long; as goose does."""


def parts_of(messages: Sequence[Message], tail: int) -> tuple[Turn, list[Turn], list[Turn]]:
    """Return what stays before the summary, what it stands for, and what stays behind it.

    Args:
        messages: oldest first.
        tail: bytes of the newest turns that stay; the newest one does in any case, since its results are unread.
    """
    head, turns = split(messages)
    kept = 1
    while kept < len(turns) and sum(size_of(turn) for turn in turns[-kept - 1 :]) <= tail:
        kept += 1
    return head, turns[:-kept], turns[-kept:]


def request(prompt: Prompt, kept: int, share: float) -> Prompt:
    """Ask for a summary behind everything that was said, so that the provider's cache serves it.

    Args:
        prompt: the request that would be too long.
        kept: replies that stay as they are.
        share: of the results that are left out.
    """
    text = render("handover", kept=kept, shortened=share > 0)
    *before, last = _without_results(prompt.messages, share)
    return replace(prompt, messages=(*before, replace(last, parts=(*last.parts, TextPart(text)))))


def accepted(reply: Reply, instead_of: Sequence[Turn]) -> str:
    """Return the summary; empty where the reply is none: a call, a text that broke off, or one that saves nothing."""
    text = reply.message.text.strip()
    if reply.stop != "end" or reply.message.calls:
        return ""
    return text if part_size(TextPart(text)) < size_of(joined((), instead_of)) else ""


def summarised(head: Turn, kept: Sequence[Turn], summary: str, behind: Sequence[TextPart]) -> list[Message]:
    """Put the transcript together with the summary between its beginning and its end.

    The summary is the model's own message: what it took from a file must not come back with the weight of a person's
    words. Those stand behind it, to the letter, beside what the harness knows.
    """
    note = Message("assistant", (TextPart(summary),))
    return joined((*head, note, Message("user", tuple(behind))), kept)


def _without_results(messages: Sequence[Message], share: float) -> list[Message]:
    """Leave out a share of the results, those in the middle first: the beginning and the end say most of the work."""
    places = [
        (index, place)
        for index, message in enumerate(messages)
        for place, part in enumerate(message.parts)
        if isinstance(part, ToolResult)
    ]
    middle = (len(places) - 1) / 2
    order = sorted(range(len(places)), key=lambda one: (abs(one - middle), one))
    gone = {places[one] for one in order[: round(len(places) * share)]}

    def shown(index: int, place: int, part: Part) -> Part:
        if isinstance(part, ToolResult) and (index, place) in gone and part_size(part) > len(LEFT_OUT):
            return replace(part, text=LEFT_OUT, images=())
        return part

    return [
        replace(message, parts=tuple(shown(index, place, part) for place, part in enumerate(message.parts)))
        for index, message in enumerate(messages)
    ]
