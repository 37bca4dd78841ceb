"""Making other people's and models' words harmless before we post them.

A zero-width space breaks what GitHub or another bot would act upon. It works inside and outside of code alike, so
nothing hangs on guessing where GitHub sees code, and a reader sees the words as they were.
"""

import re
import unicodedata

LIMIT = 65_536
"""Characters that GitHub takes in a comment or pull request."""

ZERO_WIDTH = "\u200b"

_LONG_LINE = 2_000
"""A line beyond this is cut within; a shorter one is left out whole."""

_ESCAPE_CODES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])?")
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\U000e0000-\U000e0fff]"
)
_ENTITY = re.compile(r"&(?=#|(?:commat|num|sol|excl|lsqb|lbrack);)")
_TAG = re.compile(r"<(?=[A-Za-z/!?])")
_IMAGE = re.compile(r"!(?=\[)")
_MENTION = re.compile(r"@(?=[A-Za-z0-9_\-])")
_COMMAND = re.compile(
    r"^((?:[^\S\n]|[>*+\-#|\u200b-\u200d\u2060\ufeff\xad]|\d{1,9}[.)](?=[^\S\n]))*)/(?=[A-Za-z])", re.MULTILINE
)
_CLOSING = re.compile(
    r"\b([cfr])(?=(?:lose[sd]?|ix(?:e[sd])?|esolve[sd]?)[\s:*_`~\[(<\\\u200b-\u200d\u2060\ufeff]{0,12}"
    r"(?:#|GH-|https?://|[\w.\-]+/[\w.\-]+#))",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r":(?=//)|www(?=\.)", re.IGNORECASE)
_LINK = re.compile(r"\](?=:|\((?!(?!//)[\w./#][\w./#\-]*\)))")
"""What makes a link to elsewhere: a definition, or a target that is not plainly a place of this repository.

A target needs neither `//` nor a name of a protocol that is written out to lead to another host.
"""
_TRAILER = re.compile(
    r"^[^\S\n]*(?:[A-Za-z-]+-by|skip-checks|Change-Id|Release-As|BREAKING[ -]CHANGE)[^\S\n]*:.*$\n?",
    re.MULTILINE | re.IGNORECASE,
)
_SKIP_CI = re.compile(r"\[(?=\s*(?:skip|no|ci|actions?)[\s-]+(?:skip|ci|actions?)\s*\])", re.IGNORECASE)
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


def clean(text: str) -> str:
    """Take out what no reader sees: terminal codes, control and direction characters, tag characters."""
    text = _ESCAPE_CODES.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    return _INVISIBLE.sub("", text)


def neutralise(text: str) -> str:
    """Keep the words and take their power: mentions, commands, closing keywords, images, links, HTML, our marks.

    Which host is ours is not known here, so only relative links stay links; of all others the address can be read.
    Doing it twice changes nothing more.
    """
    text = _ENTITY.sub("&amp;", clean(text))
    text = _TAG.sub("<" + ZERO_WIDTH, text)
    text = _IMAGE.sub("!" + ZERO_WIDTH, text)
    text = _MENTION.sub("@" + ZERO_WIDTH, text)
    text = _COMMAND.sub(r"\1/" + ZERO_WIDTH, text)
    text = _CLOSING.sub(r"\1" + ZERO_WIDTH, text)
    text = _ADDRESS.sub(r"\g<0>" + ZERO_WIDTH, text)
    return _LINK.sub("]" + ZERO_WIDTH, text)


def neutralise_commit(text: str) -> str:
    """Make words fit for a commit message: also no sign-offs in others' names and nothing that switches checks off."""
    text = _TRAILER.sub("", neutralise(text))
    return _SKIP_CI.sub("[" + ZERO_WIDTH, text).strip()


def quote(text: str) -> str:
    """Quote words as a block, so that an open fence or list in them ends with the quote."""
    lines = neutralise(text).strip("\n").split("\n")
    return "\n".join(f"> {line}".rstrip() for line in lines)


def code(text: str) -> str:
    """Set one line of text in code."""
    line = " ".join(clean(text).replace("<!--", f"<{ZERO_WIDTH}!--").split())
    if not line:
        return "` `"
    ticks = "`" * (_longest_run(line, "`") + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{ticks}{pad}{line}{pad}{ticks}"


def cell_code(text: str) -> str:
    """Set one line of text in code within a table."""
    return code(text).replace("|", "\\|")


def cell(text: str) -> str:
    """Make words fit for one cell of a table."""
    return " ".join(neutralise(text).split()).replace("|", "\\|")


def fence(text: str, info: str = "") -> str:
    """Set output in a fence that nothing within can close."""
    body = clean(text).replace("<!--", f"<{ZERO_WIDTH}!--").rstrip("\n")
    ticks = "`" * max(3, _longest_run(body, "`") + 1)
    return f"{ticks}{info}\n{body}\n{ticks}"


def cut(text: str, limit: int = LIMIT, *, tail: str = "") -> str:
    """Shorten a text to GitHub's limit at the end of a line, closing what is open, and end it with the tail.

    Args:
        text: Markdown whose foreign parts went through the functions above.
        limit: in characters; those beyond the basic plane count twice, as the stricter of two readings.
        tail: what has to survive, as our mark.
    """
    tail = f"\n\n{tail}" if tail else ""
    if fits(text + tail, limit):
        return text + tail
    notice = "\n\n*Shortened: the text was longer than GitHub takes.*"
    room = limit - _size(tail) - _size(notice)
    kept: list[str] = []
    closing: list[str] = []
    used = 0
    for line in text.split("\n"):
        after = _closing(closing, line)
        need = _size(line) + 1
        spare = room - used - sum(_size(part) + 1 for part in after)
        if need > spare:
            if need > _LONG_LINE and spare > 1 and after == closing:
                kept.append(line[: spare // 2])
            break
        kept.append(line)
        closing, used = after, used + need
    return "\n".join([*kept, *reversed(closing)]) + notice + tail


def title(text: str, *, fallback: str, limit: int = 120) -> str:
    """Make one visible line: no line breaks, no powers, and words where there were only pictures."""
    line = " ".join(neutralise(text).split())
    if not any(unicodedata.category(letter)[0] in "LN" for letter in line):
        line = fallback
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def _closing(before: list[str], line: str) -> list[str]:
    """Follow what a line opens and closes; last opened last."""
    match = _FENCE.match(line)
    if before and before[-1] != "</details>":
        rest = line.strip()
        ends = match is not None and set(rest) == {before[-1][0]} and len(rest) >= len(before[-1])
        return before[:-1] if ends else before
    if match is not None:
        return [*before, match[1]]
    if line.startswith("<details"):
        return [*before, "</details>"]
    if line.startswith("</details>") and before:
        return before[:-1]
    return before


def _longest_run(text: str, letter: str) -> int:
    return max((len(run) for run in re.findall(re.escape(letter) + "+", text)), default=0)


def fits(text: str, limit: int = LIMIT) -> bool:
    """Whether GitHub takes a text whole."""
    return _size(text) <= limit


def _size(text: str) -> int:
    return len(text) + sum(1 for letter in text if letter > "\uffff")
