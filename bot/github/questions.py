"""What is put to people on GitHub: a plan before the work, and a question in the middle of it."""

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass

from bot.domain.proposal import Proposal
from bot.domain.protected import is_protected
from bot.github import pieces, text

_PLAN_LIMIT = 24_000
_LINE_LIMIT = 1_000
_FILES = 40
_AROUND = 10_000
"""Characters of a plan's comment beside the plan: how to answer, why it waits, our mark."""


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
    hash: str = ""
    """What names exactly this plan, as people write it; empty only in records of earlier versions."""
    superseded: str = ""
    """The same of the plan that stands in its place; empty while this one does."""


def plan(view: PlanView, remark: str = "") -> str:
    """Write the comment that holds a plan; the remark says what people have to know of how it is put."""
    word = pieces.plain(view.word)
    # How to answer stands before everything that may be long: a comment is cut at its end.
    if view.superseded:
        parts = [superseded(view)]
    elif view.waits:
        parts = [waiting(view), _answers(view, word)]
    else:
        parts = ["**Plan.** The work goes on.", _answers(view, word)]
    return "\n\n".join([*parts, *([remark] if remark else []), *about(view)])


def superseded(view: PlanView) -> str:
    """Say that another plan stands in its place."""
    named = f" `{view.hash}`" if view.hash else ""
    return f"**Superseded.** Plan{named} is no longer to be decided about; plan `{view.superseded}` stands now."


def waiting(view: PlanView) -> str:
    """Call who asked, and say that a plan waits and why."""
    named = f" `{view.hash}`" if view.hash else ""
    return _capital(f"{calling(view.requester)}**plan{named} waits for you.** {pieces.sentence(view.waits)}")


def about(view: PlanView) -> list[str]:
    """Tell all of a plan, in parts: what it expects and asks, and the model's words, which hide none of that."""
    parts = []
    if view.files:
        parts.append(f"**Files** it expects to change: {_named(view.files)}")
    if view.turns is not None:
        parts.append(f"It expects to take {view.turns} turn{'' if view.turns == 1 else 's'}.")
    if view.questions:
        listed = [f"{number}. {_line(question)}" for number, question in enumerate(view.questions, 1)]
        parts.append("\n".join(["**Questions**", "", *listed]))
    return [*parts, pieces.word_of_model(view.model, view.plan, _PLAN_LIMIT)]


def is_shown_whole(plan: Proposal) -> bool:
    """Whether people can read all of a plan in one comment: who approves it approves what they saw."""
    if len(plan.text) > _PLAN_LIMIT or any(len(one) > _LINE_LIMIT for one in plan.questions):
        return False
    shown = "\n\n".join(about(PlanView("", plan.text, plan.files, plan.turns, plan.questions, "")))
    return text.fits(shown, text.LIMIT - _AROUND)


def _named(files: Sequence[str]) -> str:
    """List files as the repository names them; those that are protected come first, all of them, and none is cut."""
    known = [*dict.fromkeys(posixpath.normpath(path) for path in files)]
    decided = [path for path in known if is_protected(path)]
    others = [path for path in known if not is_protected(path)]
    shown = [*decided, *(pieces.shorten(path, 200) for path in others[:_FILES])]
    more = len(others) - _FILES
    return ", ".join(text.code(path) for path in shown) + (f" and {more} more" if more > 0 else "")


def _answers(view: PlanView, word: str) -> str:
    if not view.waits:
        return f"`{word} stop` ends the work; `{word} fix <text>` adds to it."
    if view.questions:
        return f"`{word} answer <text>` answers and lets the work begin; {pieces.about_a_plan(word)}"
    return pieces.how_to_decide(word, view.hash)


def answer(asked: str, answered: str, *, model: str) -> str:
    """Write the comment that answers a person's question.

    Args:
        asked: in the person's words.
        answered: in the model's words.
        model: its name.
    """
    shown = text.quote(pieces.shorten(asked, _LINE_LIMIT))
    return f"{shown}\n\n{pieces.word_of_model(model, answered, _PLAN_LIMIT)}\n\nNothing was changed by this."


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
            _capital(f"{calling(requester)}**a question**, and the work waits for the answer."),
            f"`{pieces.plain(word)} answer <text>` answers, also over several lines.",
            pieces.word_of_model(model, asked, _PLAN_LIMIT),
        ]
    )


def calling(login: str) -> str:
    """Call a person, who then gets a notification; empty for what is no login, as of an App."""
    return f"@{login}: " if re.fullmatch(r"[A-Za-z0-9_-]+", login) else ""


def _capital(line: str) -> str:
    """Begin a line that calls nobody as a sentence does."""
    return f"**{line[2].upper()}{line[3:]}" if line.startswith("**") else line


def first(word: str) -> str:
    """Say that comments on lines are taken up with the answer to the question that waits."""
    word = pieces.plain(word)
    return (
        f"A question waits for an answer: `{word} answer <text>`. These comments are dealt with after that;"
        f" `{word} fix` begins at once, without an answer."
    )


def unanswered() -> str:
    """Say that a question is off."""
    return "Nobody answered the question before this was asked for, so the work goes on without an answer."


def nothing_asked(word: str) -> str:
    """Refuse an answer where nothing was asked."""
    return f"Nothing waits for an answer here. `{pieces.plain(word)} fix <text>` asks for work."


def _line(words: str) -> str:
    return text.cell(pieces.shorten(words, _LINE_LIMIT))
