"""Finds lines that stand for code that a model left out."""

import re

_LEAD = re.compile(r"^(?:#+|//+|/\*+|\*+|<!--|--+|;+|%+|\{/\*+|[(\[{])+\s*")
_TRAIL = re.compile(r"\s*(?:\*+/\}?|-->|[)\]}])+$")
_DOTS = re.compile(r"\.{3,}|…")
_SUBJECT = re.compile(
    r"^(?:(?:keep|leave)\s+)?(?:all\s+)?(?:the\s+)?(?:your\s+)?"
    r"(?:rest|remaining|remainder|existing|previous|original|other|unchanged|same)\b"
    r"(?:\s+[\w'-]+){0,6}$",
    re.IGNORECASE,
)
_THING = re.compile(
    r"\b(?:code|files?|functions?|methods?|class(?:es)?|contents?|implementations?|imports?|lines?|tests?|logic|body"
    r"|module|section|document|script|config(?:uration)?|unchanged)\b",
    re.IGNORECASE,
)
_STATUS = re.compile(
    r"[\s,:-]*\b(?:(?:is|are|remains?|stays?|goes|continues?)\s+)?"
    r"(?:unchanged|omitted|as\s+(?:before|is|it\s+was)|the\s+same(?:\s+as\s+before)?|(?:goes\s+)?here)\s*$",
    re.IGNORECASE,
)

_MOST_CHARS = 300
"""Nobody writes a longer one, and the time that these expressions take grows with the square of the length."""


def is_placeholder(line: str) -> bool:
    """Whether a whole line says that code was left out, as `# ... rest of the code unchanged ...`."""
    if len(line) > _MOST_CHARS:
        return False
    bare = _TRAIL.sub("", _LEAD.sub("", line.strip()))
    comment = bare != line.strip() or bool(_DOTS.match(bare))
    words = _DOTS.sub(" ", bare).strip(" .()[]{}")
    short = _STATUS.sub("", words).strip(" ,:-")
    marked = bool(_DOTS.search(bare)) or short != words
    # Without the mark of a comment it may be prose, as in a README.
    return comment and marked and bool(_SUBJECT.match(short or words)) and bool(_THING.search(words))


def left_out(new: str, old: str) -> str | None:
    """Return the first such line of `new` that `old` does not have."""
    known = {line.strip() for line in old.splitlines()}
    found = (line.strip() for line in new.splitlines())
    return next((line for line in found if line not in known and is_placeholder(line)), None)
