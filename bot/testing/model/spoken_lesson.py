"""What a system prompt teaches of calls in plain text: the dialect, its token, the tools; pure.

Read as a model reads it, from the words alone: nothing here knows the code that wrote them.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from bot.testing.model.reply import Call

_RULES = "# How to call tools\n"
_TOOLS = "\n# Tools\n"
_TOKEN = re.compile(r'`<result of="…" id="([^"\s]+)">`')
_HEADING = re.compile(r"^## (.+)$", re.MULTILINE)
_NOTES = re.compile(r"(?:\n(`.+`): a text of several lines.*)?(?:\nNeeded: (.+))?(?:\nOptional: (.+))?")
_NAME = re.compile(r"`([^`]+)`")
_KIND = re.compile(r"`([^`]+)` \((.+?)(?=, else |\))")
_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*\Z)|~{3,})")


@dataclass(frozen=True, slots=True)
class Form:
    """How one tool is called; without its parameters where nothing was taught of it."""

    name: str
    needed: Sequence[str] = ()
    """In the order taught."""
    texts: frozenset[str] = frozenset()
    """Parameters that are texts of several lines."""
    kinds: Mapping[str, str] = field(default_factory=dict)
    """Types as taught; what is not here is a string."""

    def spell(self, name: str, value: object) -> str:
        """Write a value: a string as it is, all else as JSON."""
        is_plain = isinstance(value, str) and self.kinds.get(name, "string") == "string"
        return str(value) if is_plain else json.dumps(value, ensure_ascii=False)

    def read(self, name: str, text: str) -> object:
        """Read a value as it was written."""
        if self.kinds.get(name, "string") == "string":
            return text
        try:
            return read_json(text)
        except ValueError:
            return text


@dataclass(frozen=True, slots=True)
class Lesson:
    """What was taught; empty forms where there are no tools."""

    token: str
    forms: Mapping[str, Form]

    def mark(self, text: str) -> str:
        """Return the delimiter of a text: the token, or the first numbered one that the text does not hold."""
        mark, number = self.token, 1
        while mark in text:
            number += 1
            mark = f"{self.token}-{number}"
        return mark

    def form(self, name: str) -> Form:
        """Return how a tool is called, be it ever so unknown."""
        return self.forms.get(name) or Form(name)


@dataclass(frozen=True, slots=True)
class Found:
    """Calls that stand in a text, from `start` up to `end`."""

    start: int
    end: int
    calls: Sequence[tuple[str, Mapping[str, object]]]
    """Name and arguments of each."""


class Spelling(Protocol):
    """One dialect."""

    evidence: str
    """Stands in the rules where this dialect is taught; `TOKEN` stands for the token."""

    def form(self, tools: str, at: int, name: str, token: str) -> tuple[Form, int] | None:
        """Look for the form of a tool, from a place in the list of tools; returns it, and where it ends."""
        ...

    def write(self, call: Call, lesson: Lesson) -> str:
        """Spell a call; one whose JSON is broken as a model would that takes the dialect for something else."""
        ...

    def find(self, text: str, at: int, lesson: Lesson) -> Found | None:
        """Read the calls that begin with the line at a place; None where there is no call."""
        ...


def read_lesson(system: str, spelling: Spelling) -> Lesson | None:
    """Read a system prompt; None where it does not teach this dialect."""
    _, _, taught = system.partition(_RULES)
    rules, begun, tools = taught.partition(_TOOLS)
    token = _TOKEN.search(rules)
    if not begun or token is None or spelling.evidence.replace("TOKEN", token[1]) not in rules:
        return None
    return Lesson(token[1], dict(_forms(tools, spelling, token[1])))


def _forms(tools: str, spelling: Spelling, token: str) -> Iterator[tuple[str, Form]]:
    # A description may have headings too; but only the one of a tool has a form below it.
    for heading in _HEADING.finditer(tools):
        found = spelling.form(tools, heading.end(), heading[1], token)
        if found is None:
            continue
        form, end = found
        notes = _NOTES.match(tools, end)
        texts, *kinds = notes.groups(default="") if notes else ("", "", "")
        yield (
            form.name,
            Form(
                form.name,
                form.needed,
                form.texts | frozenset(_NAME.findall(texts)),
                dict(_KIND.findall("\n".join(kinds))),
            ),
        )


def find_calls(text: str, spelling: Spelling, lesson: Lesson) -> Iterator[Found]:
    """Yield all calls of a text that stand outside of code, in order."""
    at, fence = 0, ""
    while at < len(text):
        if not fence and (found := spelling.find(text, at, lesson)) is not None:
            yield found
            at = found.end
            continue
        end = text.find("\n", at) + 1 or len(text)
        fence = _fence(text[at:end], fence)
        at = end


def _fence(line: str, fence: str) -> str:
    """Return the fence that is open behind a line."""
    if not fence:
        found = _FENCE.match(line)
        return "" if found is None else found[1]
    bare = line.strip()
    return "" if len(bare) >= len(fence) and not bare.strip(fence[0]) else fence


def read_json(text: str) -> object:
    """Read JSON in which nothing is named twice and every number is one.

    Raises:
        ValueError: it is none.
    """
    try:
        return json.loads(text, object_pairs_hook=_once, parse_constant=_finite, parse_float=_finite)
    except RecursionError as error:
        raise ValueError(str(error)) from error


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a name is given twice")
    return made


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is no number")
    return value
