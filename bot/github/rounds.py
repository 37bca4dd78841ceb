"""What is said in the threads of a review, and with the review that holds the answers."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from bot.domain.review import ThreadAnswer
from bot.github import pieces, text

_LIMIT = 4_000
SILENT = "Not dealt with in this round."
"""Begins what is said in a thread that the model did not answer."""
MORE = "What people wrote here since this round was asked for is left for the next one:"
"""Begins an answer that does not know all that is said there by now."""


@dataclass(frozen=True, slots=True)
class AnswerView:
    """What is known of one thread when a round ends."""

    answer: ThreadAnswer | None
    """The model's; None where it gave none."""
    commit: str | None
    """What this round added to the pull request; None where that is nothing."""
    path: str
    """The file that the thread is about."""
    changed: bool
    """Whether the commit changes that file."""
    beside: str = ""
    """The branch that holds what this round changed, where that is not the pull request's own."""
    resolved: bool = False
    """Whether people resolved the thread before."""
    seen: Collection[str] = ()
    """Marks of what others had said there when the round was told of it."""
    more: bool = False
    """Whether others said something there since."""


@dataclass(frozen=True, slots=True)
class RoundView:
    """What a round leaves in the threads."""

    replies: Sequence[tuple[str, AnswerView]]
    """Ids of threads, and what is known of each."""
    resolved: Sequence[str]
    """Ids of those that were dealt with, and are to be resolved."""
    left: int = 0
    """How many there was no room for."""


def answer(view: AnswerView, *, model: str, word: str) -> str:
    """Write what is answered in one thread: the model's words as such, and beside them what the harness saw.

    Args:
        view: the thread.
        model: its name.
        word: the command word.
    """
    if view.answer is None:
        return f"{SILENT} `{pieces.plain(word)} fix` asks again."
    said = f"{_seen(view, view.answer)}\n\n{pieces.word_of_model(model, view.answer.text, _LIMIT)}"
    return f"{MORE} `{pieces.plain(word)} fix` begins it.\n\n{said}" if view.more else said


def _seen(view: AnswerView, given: ThreadAnswer) -> str:
    if view.beside:
        return f"What this round changed is not in this pull request: it is on {text.code(view.beside)}."
    if view.commit is None:
        return "Nothing was changed in this round."
    if not given.done:
        return "Left as it is." if view.resolved else "Left open."
    touches = "changes" if view.changed else "does not change"
    return f"Dealt with in {view.commit}, which {touches} {text.code(view.path)}."


def review(view: RoundView) -> str:
    """Write the text of the review that holds the answers."""
    said = f"Answers to {_threads(len(view.replies))}."
    return f"{said} {left_over(view.left)}" if view.left else said


def in_thread() -> str:
    """Write the text of the review that holds the answer to a question."""
    return "The question is answered in its thread."


def left_over(threads: int) -> str:
    """Say that not all threads fit."""
    verb = "is" if threads == 1 else "are"
    return f"There was not room for all: {_threads(threads)} {verb} left for the next round."


def _threads(count: int) -> str:
    return "1 thread" if count == 1 else f"{count} threads"


def left_out(edited: int) -> str:
    """Say that comments were edited after the request, so that nobody decided about what they say now."""
    what = "1 comment was" if edited == 1 else f"{edited} comments were"
    return f"{what} edited after the request and left out. Ask again for what they say now."
