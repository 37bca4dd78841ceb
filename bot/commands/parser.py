"""From a comment's Markdown to a command.

A command is the first line that a reader sees, and only as plain words of a paragraph: what is quoted, in code, in a
list, in HTML, a heading or a link is talk about commands.
"""

import difflib
import re
from collections.abc import Sequence

from markdown_it import MarkdownIt
from markdown_it.token import Token

from bot.commands import catalogue
from bot.domain.command import Answer, Command, Fix, Help, Status, Stop
from bot.errors import CommandError
from bot.github import comments, questions

_ZERO_WIDTH = "\u200b\u200c\u200d\u200e\u200f\u2060\ufeff\xad"
_STRUCTURE_LIMIT = 4_096
"""Characters whose Markdown is read: what decides lies at the start, and hostile text gets no more time."""
_HTML_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@\-]{0,127}")

# Blocks alone: words within a paragraph are compared as they were typed, so an escape or entity makes no command.
_BLOCKS = MarkdownIt("commonmark").enable("table")
_BLOCKS.core.ruler.disable(["inline", "text_join"])


def parse(text: str, word: str = "/agent") -> Command | None:
    """Read the command of a comment; None where there is none.

    Args:
        text: the comment's Markdown as GitHub sent it.
        word: what a command begins with, as a whole word, in any case.

    Raises:
        CommandError: it begins with the word, and what follows cannot be understood.
    """
    if word.casefold() not in text.casefold():
        return None
    lines = _visible(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"))
    start = _first_paragraph(lines)
    if start is None:
        return None
    first = lines[start].strip(" \t")
    if first[: len(word)].casefold() != word.casefold() or not _ends_word(first[len(word) :]):
        return None
    return _command(first[len(word) :], "\n".join(lines[start + 1 :]), word)


def _visible(lines: list[str]) -> list[str]:
    """Leave out leading lines without anything to see, and what cannot be seen before the first words."""
    for number, line in enumerate(lines):
        rest = line.lstrip(" \t" + _ZERO_WIDTH)
        if rest.strip():
            lead = line[: len(line) - len(rest)].translate(dict.fromkeys(map(ord, _ZERO_WIDTH)))
            return [lead + rest, *lines[number + 1 :]]
    return []


def _first_paragraph(lines: list[str]) -> int | None:
    """Return the line on which the text's first visible block starts, where that is a paragraph."""
    tokens = _BLOCKS.parse("\n".join(lines)[:_STRUCTURE_LIMIT])
    token = next((token for token in tokens if not _is_hidden(token)), None)
    if token is None or token.type != "paragraph_open" or token.map is None:
        return None
    return token.map[0]


def _is_hidden(token: Token) -> bool:
    """Tell whether a block is HTML comments alone."""
    return token.type == "html_block" and not _HTML_COMMENT.sub("", token.content).strip()


def _ends_word(rest: str) -> bool:
    return not rest or rest[0].isspace()


def _command(rest: str, following: str, word: str) -> Command:
    name, rest = _split(rest)
    name = name.strip(_ZERO_WIDTH)
    if not name:
        return Help()
    entry = catalogue.find(name)
    if entry is None:
        guess = _similar(name, catalogue.NAMES)
        raise CommandError(comments.unknown_command(name, word=word, did_you_mean=guess, known=catalogue.NAMES))
    # What begins with dashes is text where all that is taken is text.
    model, rest = (None, rest) if entry.takes_text and not entry.options else _options(rest, entry, word)
    match entry.name:
        case "fix":
            return Fix(f"{rest}\n{following}".strip(), model)
        case "answer":
            if not (words := f"{rest}\n{following}".strip()):
                raise CommandError(questions.no_answer(word))
            return Answer(words)
        case "stop":
            return Stop()
        case "status":
            return Status()
        case _:
            return Help()


def _split(text: str) -> tuple[str, str]:
    """Split off the first word."""
    first, rest = [*text.split(maxsplit=1), "", ""][:2]
    return first, rest


def _options(rest: str, entry: catalogue.Entry, word: str) -> tuple[str | None, str]:
    """Take the options from before the text: (model, text)."""
    model: str | None = None
    usage = entry.usage(word)
    while rest.startswith("--"):
        option, rest = _split(rest)
        if option == "--":
            break
        name, equals, value = option.partition("=")
        if name not in [known.name for known in entry.options]:
            guess = _similar(name, [known.name for known in entry.options])
            raise CommandError(comments.unknown_option(name, usage=usage, did_you_mean=guess))
        if not equals:
            value, rest = _split(rest)
        if model is not None:
            raise CommandError(comments.bad_option(name, problem="is given twice", usage=usage))
        if not _MODEL.fullmatch(value):
            raise CommandError(comments.bad_option(name, problem="needs a model's name", usage=usage))
        model = value
    return model, rest


def _similar(name: str, known: Sequence[str]) -> str | None:
    return next(iter(difflib.get_close_matches(name.casefold()[:40], known, n=1)), None)
