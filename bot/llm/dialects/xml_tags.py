"""The dialect `xml`: taught, and spelled as `bot.llm.dialects.xml_grammar` reads it."""

import re
from collections.abc import Sequence

from bot.domain.messages import ToolCall, ToolResult, ToolSpec
from bot.llm.dialects.base import Parser, render_result, taught_results, unused
from bot.llm.dialects.lines import LineParser
from bot.llm.dialects.shapes import Shape, shapes, told
from bot.llm.dialects.xml_grammar import XmlGrammar

_NAME = re.compile(r'[^\s<>/="\']+')
_FORM = """\
# How to call tools
Write each call into your reply as below, its tag at the start of a line and outside of code blocks; a tag has no \
attributes but the `id`. Several calls may follow one another. Rules:
- A value of one line: `<path>src/a.py</path>`, exactly as it is; nothing is escaped or decoded.
- A text of several lines: `id="{token}"` in its opening and in its closing tag. It begins behind the first line break \
and ends right before the closing tag, so a closing tag on a line of its own leaves a line break at its end. If the \
text itself holds `{token}`, write `{token}-2` in both tags.
- Numbers as `5`, switches as `true` or `false`, lists and objects as JSON.
- A parameter is given once; optional ones are left out or written like the others.
{results}

# Tools
{tools}"""


class Xml:
    """Tags, as Cline taught them."""

    def __init__(self, tools: Sequence[ToolSpec], token: str) -> None:
        self._shapes = shapes(tools)
        self._token = token

    def teach(self) -> str:
        """Say how tools are called."""
        taught = "\n\n".join(self._taught(shape) for shape in self._shapes.values())
        return _FORM.format(token=self._token, results=f"- {taught_results(self._token)}", tools=taught)

    def render_call(self, call: ToolCall) -> str:
        """Spell a call; verbatim what the model wrote where that could not be read."""
        text, given = told(call)
        if given is None or not all(_NAME.fullmatch(name) for name in given):
            return text
        shape = self._shapes.get(call.name) or Shape(ToolSpec(call.name, "", {}))
        body = [self._spelled(shape, name, value) for name, value in given.items()]
        return "\n".join([f"<{call.name}>", *body, f"</{call.name}>"])

    def render_result(self, result: ToolResult, name: str) -> str:
        """Spell a result between tags with the token."""
        return render_result(result, name, self._token)

    def parser(self) -> Parser:
        """Begin a reply."""
        return LineParser(XmlGrammar(self._shapes, self._token), self._token)

    def _spelled(self, shape: Shape, name: str, value: object) -> str:
        text = shape.spelled(name, value)
        if not isinstance(value, str):
            # JSON knows the escape, and no closing tag is left in it.
            text = text.replace("</", "<\\/")
        # The closing tag of another value without an id may not stand in this one either.
        if not shape.is_free(name) and not re.search(r"[\r\n]|</", text):
            return f"<{name}>{text}</{name}>"
        own = unused(self._token, text)
        return f'<{name} id="{own}">\n{text}</{name} id="{own}">'

    def _taught(self, shape: Shape) -> str:
        body = [
            f'<{name} id="{self._token}">\n…\n</{name} id="{self._token}">'
            if shape.is_free(name)
            else f"<{name}>…</{name}>"
            for name in shape.required
        ]
        form = "\n".join([f"<{shape.name}>", *body, f"</{shape.name}>"])
        free = ", ".join(f"`{name}`" for name in shape.names if shape.is_free(name) and name not in shape.required)
        note = f"\n{free}: a text of several lines, even where it has only one" if free else ""
        return f"{shape.heading}\n{form}{note}{shape.options}"
