"""GitHub-flavoured Markdown to sanitised HTML."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

import nh3
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from markupsafe import Markup

from bot.testing.hub.pages.highlight import highlight

TAGS = frozenset(
    [
        "a",
        "abbr",
        "b",
        "blockquote",
        "br",
        "code",
        "dd",
        "del",
        "details",
        "div",
        "dl",
        "dt",
        "em",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "hr",
        "i",
        "img",
        "input",
        "ins",
        "kbd",
        "li",
        "ol",
        "p",
        "pre",
        "q",
        "rp",
        "rt",
        "ruby",
        "s",
        "samp",
        "small",
        "span",
        "strike",
        "strong",
        "sub",
        "summary",
        "sup",
        "table",
        "tbody",
        "td",
        "tfoot",
        "th",
        "thead",
        "tr",
        "tt",
        "ul",
        "var",
    ]
)
ATTRIBUTES = {
    "a": {"href", "title"},
    "code": {"class"},
    "details": {"open"},
    "img": {"src", "alt", "title", "width", "height"},
    "input": {"checked"},
    "li": {"class"},
    "ol": {"start"},
    "pre": {"class"},
    "span": {"class"},
    "td": {"align", "colspan", "rowspan"},
    "th": {"align", "colspan", "rowspan"},
}
CLASSES = re.compile(r"hl(?:-\w+)?|task")
"""The only classes that text may bring, so that it cannot dress up as a part of the page."""

LINKS = re.compile(
    r"(?P<url>\bhttps?://[^\s<>\"']+[^\s<>\"'.,;:!?)\]])"
    r"|(?<![\w/&@])@(?P<login>[A-Za-z0-9](?:[A-Za-z0-9-]{0,38})(?:\[bot\])?)(?![\w/])"
    r"|(?<![\w/&#])#(?P<number>\d{1,9})\b"
)
TASK = re.compile(r"\[([ xX])\][ \t]+")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a text stands: what its mentions, numbers and relative links mean."""

    login: Callable[[str], str | None]
    """Address of an account, or None when there is none."""
    number: Callable[[int], str | None]
    """Address of an issue or pull request, or None when there is none."""
    folder: str | None = None
    """Where relative links of a file lead, ending in a slash; None leaves them."""
    breaks: bool = True
    """Whether a line's end is a break, as in comments and not in files."""


def render(text: str, place: Place) -> Markup:
    """Return the HTML of a Markdown text, safe to stand in a page.

    Scripts, handlers, styles, forms and frames are taken out; comments are not shown; images of other hosts become
    their alternative text or a link.
    """
    parser = _parser(breaks=place.breaks)
    html = parser.render(text, {"place": place})
    clean = nh3.clean(
        html,
        tags=set(TAGS),
        attributes={tag: set(names) for tag, names in ATTRIBUTES.items()},
        attribute_filter=_attribute,
        set_tag_attribute_values={"input": {"type": "checkbox", "disabled": ""}},
        url_schemes={"http", "https", "mailto"},
        link_rel="nofollow noopener noreferrer",
    )
    return Markup(clean)  # noqa: S704 -- sanitised in the line above


def _attribute(_tag: str, name: str, value: str) -> str | None:
    if name == "class":
        return " ".join(one for one in value.split() if CLASSES.fullmatch(one)) or None
    if name == "src":
        return value if is_local(value) else None
    return value


def is_local(address: str) -> bool:
    """Tell whether an address is of this server, by being a plain path."""
    return address.startswith("/") and not address.startswith(("//", "/\\")) and not any(c < "!" for c in address)


def _parser(*, breaks: bool) -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"breaks": breaks, "highlight": highlight}).enable(["table", "strikethrough"])
    parser.core.ruler.push("references", _references)
    parser.core.ruler.push("tasks", _tasks)
    parser.core.ruler.push("columns", _columns)
    parser.add_render_rule("image", _image)
    return parser


def _references(state: StateCore) -> None:
    """Link addresses, mentions and numbers in running text; make relative links lead into the repository."""
    place: Place = state.env["place"]
    for block in state.tokens:
        if block.type != "inline" or not block.children:
            continue
        depth, children = 0, []
        for token in block.children:
            depth += token.nesting if token.type in ("link_open", "link_close") else 0
            if place.folder is not None:
                _lead(token, place.folder)
            children += _linked(token, place) if token.type == "text" and not depth else [token]
        block.children = children


def _lead(token: Token, folder: str) -> None:
    name = "src" if token.type == "image" else "href"
    target = token.attrs.get(name)
    if isinstance(target, str) and target and not target.startswith(("/", "#")) and not urlsplit(target).scheme:
        token.attrSet(name, folder.replace("/blob/", "/raw/", 1) + target if name == "src" else folder + target)


def _linked(token: Token, place: Place) -> list[Token]:
    parts: list[Token] = []
    end = 0
    for match in LINKS.finditer(token.content):
        target = _target(match, place)
        if target is not None:
            parts += [_text(token.content[end : match.start()]), *_link(target, match[0])]
            end = match.end()
    return [*parts, _text(token.content[end:])] if parts else [token]


def _target(match: re.Match[str], place: Place) -> str | None:
    if match["url"]:
        return match["url"]
    return place.login(match["login"]) if match["login"] else place.number(int(match["number"]))


def _text(content: str) -> Token:
    return Token("text", "", 0, content=content)


def _link(target: str, text: str) -> list[Token]:
    opening = Token("link_open", "a", 1, attrs={"href": target})
    return [opening, _text(text), Token("link_close", "a", -1)]


def _tasks(state: StateCore) -> None:
    """Turn `[ ]` and `[x]` at the beginning of list items into boxes."""
    for index, token in enumerate(state.tokens):
        if token.type != "inline" or not token.children or index < 2:  # noqa: PLR2004 -- list item, paragraph, text
            continue
        item, first = state.tokens[index - 2], token.children[0]
        match = TASK.match(first.content) if first.type == "text" and item.type == "list_item_open" else None
        if match:
            item.attrSet("class", "task")
            checked = " checked" if match[1] != " " else ""
            first.content = first.content[match.end() :]
            token.children.insert(0, Token("html_inline", "", 0, content=f"<input type=checkbox{checked}> "))


def _columns(state: StateCore) -> None:
    """State a column's alignment as an attribute, for styles are taken out."""
    for token in state.tokens:
        style = token.attrs.get("style")
        if token.type in ("th_open", "td_open") and isinstance(style, str):
            token.attrs = {"align": style.removeprefix("text-align:")}


def _image(renderer: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType) -> str:
    """Show an image of this server; of another one, a link to it."""
    token = tokens[index]
    source = str(token.attrs.get("src", ""))
    if is_local(source):
        return str(RendererHTML.image(renderer, tokens, index, options, env))
    label = Markup.escape(renderer.renderInlineAsText(token.children or [], options, env) or "image")
    return f'<a href="{Markup.escape(source)}">{label} (image)</a>'
