"""What is put to people on GitHub: a plan before the work, and a question in the middle of it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from bot.github import pieces, text

_PLAN_LIMIT = 24_000
_LINE_LIMIT = 1_000
_FILES = 40


@dataclass(frozen=True, slots=True)
class PlanView:
    """All that a plan's comment shows."""

    model: str
    plan: str
    """Markdown, in the model's words."""
    files: Sequence[str]
    turns: int | None
    """Replies that the work is expected to take; None where the plan does not say."""
    questions: Sequence[str]
    waits: str
    """Why it waits for people, as a sentence; empty where the work has begun."""
    requester: str = ""
    """Login of who asked for the run, who gets a notification of a plan that waits."""
    word: str = "/agent"


def plan(view: PlanView) -> str:
    """Write the comment that holds a plan."""
    word = pieces.plain(view.word)
    waits = f"{_calling(view.requester)}**this plan waits for you.** {pieces.sentence(view.waits)}"
    # How to answer stands before everything that may be long: a comment is cut at its end.
    parts = [
        _capital(waits) if view.waits else "**Plan.** The work goes on.",
        _answers(view, word),
        pieces.word_of_model(view.model, view.plan, _PLAN_LIMIT),
    ]
    if view.questions:
        listed = [f"{number}. {_line(question)}" for number, question in enumerate(view.questions, 1)]
        parts.append("\n".join(["**Questions**", "", *listed]))
    if view.files:
        shown = ", ".join(text.code(pieces.shorten(path, 200)) for path in view.files[:_FILES])
        more = len(view.files) - _FILES
        parts.append(f"**Files** it expects to change: {shown}{f' and {more} more' if more > 0 else ''}")
    if view.turns is not None:
        parts.append(f"It expects to take {view.turns} turn{'' if view.turns == 1 else 's'}.")
    return "\n\n".join(parts)


def _answers(view: PlanView, word: str) -> str:
    if not view.waits:
        return f"`{word} stop` ends the work; `{word} fix <text>` adds to it."
    if view.questions:
        return f"`{word} answer <text>` answers and lets the work begin; `{word} stop` drops the plan."
    return pieces.how_to_decide(word)


def question(asked: str, *, model: str, requester: str, word: str) -> str:
    """Write the comment that asks people.

    Args:
        asked: in the model's words.
        model: its name.
        requester: login of who asked for the run, who gets a notification.
        word: the command word.
    """
    return "\n\n".join(
        [
            _capital(f"{_calling(requester)}**a question**, and the work waits for the answer."),
            f"`{pieces.plain(word)} answer <text>` answers, also over several lines.",
            pieces.word_of_model(model, asked, _PLAN_LIMIT),
        ]
    )


def _calling(login: str) -> str:
    """Call a person, who then gets a notification; empty for what is no login, as of an App."""
    return f"@{login}: " if re.fullmatch(r"[A-Za-z0-9_-]+", login) else ""


def _capital(line: str) -> str:
    """Begin a line that calls nobody as a sentence does."""
    return f"**{line[2].upper()}{line[3:]}" if line.startswith("**") else line


def nothing_asked(word: str) -> str:
    """Refuse an answer where nothing was asked."""
    return f"Nothing waits for an answer here. `{pieces.plain(word)} fix <text>` asks for work."


def no_answer(word: str) -> str:
    """Refuse an answer without words."""
    return f"The answer is missing: `{pieces.plain(word)} answer <text>`."


def _line(words: str) -> str:
    return text.cell(pieces.shorten(words, _LINE_LIMIT))
