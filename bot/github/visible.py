"""Markdown of others shown whole: GitHub keeps words of it out of sight that whoever acts upon it reads."""

import re
from collections.abc import Iterator, Sequence

from bot.github.text import ZERO_WIDTH, clean

_FENCE = re.compile(r"([\s>*+\-]*|\s*\d{1,9}[.)]\s+)(`{3,}(?=[^`]*$)|~{3,})[ \t]*(.*)")
_LANGUAGE = re.compile(
    r"bash|c|c\+\+|c#|cmake|console|cpp|cs|csharp|css|diff|dockerfile|go|gradle|graphql|groovy|html|http|ini|java"
    r"|javascript|js|json|json5|jsonc|jsx|kotlin|make|makefile|markdown|md|perl|php|powershell|proto|py|python|rb|rs|ruby"
    r"|rust|scala|sh|shell|sql|swift|text|toml|ts|tsx|txt|typescript|xml|yaml|yml|zsh",
    re.IGNORECASE,
)
"""Of these GitHub shows the source as it stands; of others a word says something, or they are drawn."""
_ROW = re.compile(r"\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?")
"""The line below a table's header."""
_PIPE = re.compile(r"(?<!\\)\|")
_MATH = re.compile(r"(?<!\S)\$(?=\S)")


def visible(text: str) -> str:
    """Bring to light what GitHub would not show of a text.

    That is: what stands behind a fence's language, the source of drawings, cells beyond a table's header, and what
    formulas leave out. HTML and links are no matter of this, see `neutralise`.
    """
    # As it is later: what nobody sees may keep a fence from being one.
    return "\n".join(_shown(clean(text).split("\n")))


def _shown(lines: Sequence[str]) -> Iterator[str]:
    code, widths = _in_code(lines), _widths(lines)
    for number, (line, width) in enumerate(zip(lines, widths, strict=True)):
        match = _FENCE.fullmatch(line)
        if number in code:
            yield line
        elif match:
            yield from _opened(match[1], match[2], match[3].strip())
        elif "|" in line and _ROW.fullmatch(row := _bare(line)) and width > _cells(row):
            yield line.replace("-", "-" + ZERO_WIDTH, 1)
        elif line.strip("> \t") == "$$" or (line.count("$") > 1 and re.search(r"[\\%]", line)):
            yield _MATH.sub(ZERO_WIDTH + "$", line)
        else:
            yield line


def _in_code(lines: Sequence[str]) -> set[int]:
    """Return the lines behind those that open a fence, up to its end; a look at each line alone takes more for one."""
    from markdown_it import MarkdownIt  # noqa: PLC0415 - costs time, and the terminal needs none

    # Where GitHub sees blocks: of HTML there is none by then.
    blocks = MarkdownIt("commonmark").disable("html_block")
    blocks.core.ruler.disable(["inline", "text_join"])
    fences = [token.map for token in blocks.parse("\n".join(lines)) if token.type == "fence" and token.map]
    return {number for first, end in fences for number in range(first + 1, end)}


def _opened(before: str, ticks: str, info: str) -> Iterator[str]:
    """Open a block of code; what is more than the name of a language stands in it."""
    language, _, rest = info.partition(" ")
    if not _LANGUAGE.fullmatch(language):
        language, rest = "", info
    yield f"{before}{ticks}{language}"
    if rest.strip():
        # Of a list's item the mark stands once.
        yield re.sub(r"[^\s>]", " ", before) + rest.strip()


def _widths(lines: Sequence[str]) -> list[int]:
    """Count for each line the cells of the widest row from there to the next empty line."""
    widths, width = [], 0
    for line in reversed(lines):
        row = _bare(line)
        width = max(width, _cells(row)) if row else 0
        widths.append(width)
    return widths[::-1]


def _bare(line: str) -> str:
    return line.lstrip("> \t").rstrip()


def _cells(row: str) -> int:
    return len(_PIPE.findall(row)) + 1 - row.startswith("|") - (len(row) > 1 and row.endswith("|"))
