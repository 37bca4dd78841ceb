"""Figures, names and foreign words as pieces of the comments."""

from collections.abc import Sequence
from datetime import datetime

from bot.domain.ceilings import Whose
from bot.github import text
from bot.github.visible import visible

SENTENCE_LIMIT = 4_000
_PATHS = 5
_PATH_CHARS = 200


def cost(cost_usd: float | None) -> str:
    """Write a price; None is unknown."""
    if cost_usd is None:
        return "cost unknown"
    return f"≈ ${cost_usd:.2f}" if cost_usd >= 0.01 or cost_usd == 0 else "< $0.01"  # noqa: PLR2004 - one cent


def count(number: int) -> str:
    """Write a number in thousands or millions."""
    for size, unit in ((1_000_000, "M"), (1_000, "K")):
        if number >= size:
            return f"{number / size:.1f}{unit}"
    return str(number)


def duration(seconds: float) -> str:
    """Write seconds for people."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def clock(at: datetime) -> str:
    """Write the time of day."""
    return f"{at:%H:%M} UTC"


def person(login: str) -> str:
    """Name a person without calling them."""
    return f"`{plain(login)}`" if login else "someone"


def daily_ceiling(whose: Whose, usd: float, until: datetime) -> str:
    """Say why a queued run does not start, and when it does."""
    return (
        f"The daily ceiling of this {whose}, {usd:.2f} US dollars, is reached. It begins anew on"
        f" {until:%Y-%m-%d at %H:%M} UTC, and this run then starts by itself."
    )


def another_budget(word: str, path: str) -> str:
    """Say how to go on with a run that reached its budget, and who sets it."""
    return (
        f"`{word} fix` goes on with a budget of its own; `{word} fix <text>` says what matters most; `{word} budget"
        f" <usd>` gives it more. The budget is `limits` in `{path}`, and at most what who runs this server allows."
    )


def how_to_decide(word: str, short: str = "") -> str:
    """Say what people can do about a plan that waits.

    Args:
        word: the command word.
        short: the plan's hash as people write it.
    """
    return f"`{word} approve{f' {short}' if short else ''}` lets the work begin; {about_a_plan(word)}"


def about_a_plan(word: str) -> str:
    """Say what people can do about a plan, beside letting it be carried out."""
    return f"`{word} plan <text>` says what to change; `{word} ask <question>` asks about it; `{word} stop` drops it."


def how_to_answer(word: str) -> str:
    """Say what people can do about a question that waits."""
    return f"`{word} answer <text>` answers; `{word} fix` goes on without an answer."


def plain(value: str) -> str:
    """Make a name fit to stand between backticks."""
    return (
        " ".join(
            text.clean(value).replace("`", "'").replace("<!--", f"<{text.ZERO_WIDTH}!--").replace("|", "/").split()
        )
        or "?"
    )


def sentence(words: str) -> str:
    """Make foreign words one harmless sentence."""
    line = text.cell(shorten(words, SENTENCE_LIMIT))
    return line if line.endswith((".", "!", "?", "…")) else f"{line}."


def shorten(words: str, limit: int) -> str:
    """Cut words at a number of characters."""
    return words if len(words) <= limit else words[: limit - 1].rstrip() + "…"


def cell(words: str, limit: int) -> str:
    """Make foreign words one cell of a table."""
    return text.cell(shorten(words, limit))


def code_cell(words: str, limit: int) -> str:
    """Make foreign words one cell of a table, in code."""
    return text.cell_code(shorten(words, limit))


def paths(named: Sequence[str]) -> str:
    """Name files of a repository in one line: the first five, and how many more there are."""
    more = f" and {len(named) - _PATHS} more" if len(named) > _PATHS else ""
    return ", ".join(text.cell_code(shorten(path, _PATH_CHARS)) for path in named[:_PATHS]) + more


def details(summary: str, body: str) -> str:
    """Fold a part away."""
    return f"<details>\n<summary>{summary}</summary>\n\n{body}\n\n</details>"


def exit_code(code: int | None) -> str:
    """Write how a command ended; None is out of time."""
    return "out of time" if code is None else str(code)


def word_of_model(model: str, words: str, limit: int) -> str:
    """Quote what a model says, as its word and nobody else's."""
    name = f" `{plain(model)}`" if model else ""
    return f"In the words of the model{name}, unchecked:\n\n{text.quote(visible(shorten(words, limit)))}"
