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
from bot.domain.command import (
    Answer,
    Approve,
    Ask,
    Budget,
    Check,
    ChooseModel,
    Command,
    Deny,
    Fix,
    Help,
    Plan,
    Retry,
    Status,
    Stop,
    Update,
)
from bot.errors import CommandError
from bot.github import commanding, comments

_ZERO_WIDTH = "\u200b\u200c\u200d\u200e\u200f\u2060\ufeff\xad"
_STRUCTURE_LIMIT = 4_096
"""Characters whose Markdown is read: what decides lies at the start, and hostile text gets no more time."""
_HTML_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@\-]{0,127}")
_HASH = re.compile(r"[0-9A-Fa-f]{8,64}")
_DOLLARS = re.compile(r"[0-9]{1,4}(\.[0-9]{1,2})?")

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
    options, rest = ({}, rest) if entry.takes and not entry.options else _options(rest, entry, word)
    return _made(entry, options, rest.strip(), f"{rest}\n{following}".strip(), word)


def _made(entry: catalogue.Entry, options: dict[str, str], line: str, words: str, word: str) -> Command:  # noqa: C901, PLR0911, PLR0912 - one case for each command
    """Make the command of an entry.

    Args:
        entry: what was asked for.
        options: their values.
        line: what follows on the first line.
        words: the same with all lines behind it.
        word: the command word.
    """
    match entry.name:
        case "fix":
            return Fix(words, options.get(catalogue.MODEL.name))
        case "plan":
            return Plan(words)
        case "approve":
            return _approve(line, words.removeprefix(line).strip(), entry.usage(word))
        case "deny":
            first, reason = _split(words)
            return Deny(first.lower(), reason) if _HASH.fullmatch(first) else Deny(None, words)
        case "ask" | "answer" if not words:
            raise CommandError(commanding.nothing_said(entry.name, usage=entry.usage(word)))
        case "ask":
            return Ask(words)
        case "answer":
            return Answer(words)
        case "retry" | "update" | "check" if words:
            raise CommandError(commanding.takes_no_words(words, usage=entry.usage(word), word=word))
        case "retry":
            return Retry(catalogue.FRESH.name in options)
        case "update":
            return Update()
        case "check":
            return Check()
        case "budget":
            return _budget(line, entry.usage(word))
        case "model":
            if not _MODEL.fullmatch(line):
                raise CommandError(commanding.bad_model(line, usage=entry.usage(word)))
            return ChooseModel(line)
        case "stop":
            return Stop()
        case "status":
            return Status()
        case _:
            return Help()


def _approve(line: str, following: str, usage: str) -> Approve:
    """Read what is approved; words of any other kind are no hash, and nobody guesses what was meant."""
    first, rest = _split(line)
    if first.casefold() == "always" and rest:
        return Approve(always=rest, text=following)
    if line and (rest or not _HASH.fullmatch(first)):
        raise CommandError(commanding.bad_hash(line, usage=usage))
    if not line and _HASH.fullmatch(_split(following)[0]):
        raise CommandError(commanding.hash_apart(usage=usage))
    return Approve(first.lower() or None, text=following)


def _budget(line: str, usage: str) -> Budget:
    value = line.removeprefix("$").removesuffix("USD").removesuffix("usd").strip()
    if not _DOLLARS.fullmatch(value) or not float(value):
        raise CommandError(commanding.bad_budget(line, usage=usage))
    return Budget(float(value))


def _split(text: str) -> tuple[str, str]:
    """Split off the first word."""
    first, rest = [*text.split(maxsplit=1), "", ""][:2]
    return first, rest


def _options(rest: str, entry: catalogue.Entry, word: str) -> tuple[dict[str, str], str]:
    """Take the options from before the text: their values, and the text."""
    given: dict[str, str] = {}
    usage = entry.usage(word)
    known = {option.name: option for option in entry.options}
    while rest.startswith("--"):
        written, rest = _split(rest)
        if written == "--":
            break
        name, equals, value = written.partition("=")
        if name not in known:
            raise CommandError(comments.unknown_option(name, usage=usage, did_you_mean=_similar(name, list(known))))
        if name in given:
            raise CommandError(comments.bad_option(name, problem="is given twice", usage=usage))
        if not known[name].value:
            if equals:
                raise CommandError(comments.bad_option(name, problem="takes no value", usage=usage))
        elif not equals:
            value, rest = _split(rest)
        if known[name].value and not _MODEL.fullmatch(value):
            raise CommandError(comments.bad_option(name, problem="needs a model's name", usage=usage))
        given[name] = value
    return given, rest


def _similar(name: str, known: Sequence[str]) -> str | None:
    return next(iter(difflib.get_close_matches(name.casefold()[:40], known, n=1)), None)
