"""Code as coloured HTML, by class names that the style sheet knows."""

from __future__ import annotations

from markupsafe import Markup
from pygments import highlight as colour
from pygments.formatters import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name, get_lexer_for_filename
from pygments.util import ClassNotFound

LONGEST = 200_000
"""Characters; longer code stays plain, for pygments needs seconds for it."""

PREFIX = "hl-"


def highlight(code: str, language: str, _attributes: str = "") -> str:
    """Return the HTML of a fenced block's content; empty when the language is unknown, so that it is escaped."""
    try:
        lexer = get_lexer_by_name(language, stripnl=False) if language else None
    except ClassNotFound:
        lexer = None
    return _html(code, lexer) if lexer is not None and len(code) <= LONGEST else ""


def lines_of(code: str, path: str) -> list[Markup]:
    """Return the lines of a file as HTML, coloured by its name."""
    try:
        lexer = get_lexer_for_filename(path, stripnl=False)
    except ClassNotFound:
        lexer = None
    if lexer is None or len(code) > LONGEST:
        return [Markup.escape(line) for line in code.splitlines()]
    # pygments closes its elements at each line's end
    return [Markup(line) for line in _html(code, lexer).removesuffix("\n").split("\n")]  # noqa: S704 -- escaped


def _html(code: str, lexer: Lexer) -> str:
    formatter: HtmlFormatter[str] = HtmlFormatter(nowrap=True, classprefix=PREFIX)
    return str(colour(code, lexer, formatter))
