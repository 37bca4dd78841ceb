"""The dialect `prose`: taught, and spelled as `bot.llm.dialects.prose_grammar` reads it."""

import json
import re
from collections.abc import Sequence

from bot.domain.messages import ToolCall, ToolResult, ToolSpec
from bot.llm.dialects.base import Parser, render_result, taught_results, unused
from bot.llm.dialects.lines import LineParser
from bot.llm.dialects.prose_grammar import NO_EOL, ProseGrammar
from bot.llm.dialects.shapes import Shape, shapes, told

_BARE = re.compile(r'[^\s"`]+')
_NAME = re.compile(r"[\w.-]+")
_FORM = """\
# How to call tools
Write each call on a line of its own, outside of code blocks: the tool in capitals, then one value in backticks, \
exactly as it is. Nothing else may stand on that line, so `RUN the tests` is no call. A text that does not fit there \
comes in a block right below, between two equal lines with three backticks and `{token}`, or `{token}-2` if the text \
itself holds `{token}`; write ` {no_eol}` behind the first line where the text has no line break at its end. Other \
values stand before the one in backticks, as `limit=20` or `name="two words"`. Lists and objects are JSON. \
Several calls may follow one another. {results}

# Tools
{tools}"""


class Prose:
    """Lines that begin with a verb."""

    def __init__(self, tools: Sequence[ToolSpec], token: str) -> None:
        self._shapes = shapes(tools)
        self._token = token
        self._forms = {name: _form(shape, token) for name, shape in self._shapes.items()}

    def teach(self) -> str:
        """Say how tools are called."""
        shapes = self._shapes.values()
        tools = "\n\n".join(f"{shape.heading}\n{self._forms[shape.name]}{shape.options}" for shape in shapes)
        return _FORM.format(token=self._token, no_eol=NO_EOL, results=taught_results(self._token), tools=tools)

    def render_call(self, call: ToolCall) -> str:
        """Spell a call; verbatim what the model wrote where that could not be read."""
        text, given = told(call)
        if given is None or not all(_NAME.fullmatch(name) for name in given):
            return text
        shape = self._shapes.get(call.name) or Shape(ToolSpec(call.name, "", {}))
        texts = {name: shape.spelled(name, value) for name, value in given.items()}
        first = next(iter(shape.required), "")
        blocks = [name for name in shape.required if name in texts and (name == first or shape.is_free(name))]
        line = [call.name.upper(), *(_option(name, text) for name, text in texts.items() if name not in blocks)]
        if first in blocks and not shape.is_free(first) and re.fullmatch(r"[^`\r\n]+", texts[first]):
            line.append(f"`{texts[blocks.pop(0)]}`")
        return "\n".join([" ".join(line), *(self._block(texts[name]) for name in blocks)])

    def render_result(self, result: ToolResult, name: str) -> str:
        """Spell a result between tags with the token."""
        return render_result(result, name, self._token)

    def parser(self) -> Parser:
        """Begin a reply."""
        return LineParser(ProseGrammar(self._shapes, self._token, self._forms), self._token)

    def _block(self, text: str) -> str:
        mark = f"```{unused(self._token, text)}"
        if not text or text.endswith("\n"):
            return f"{mark}\n{text}{mark}"
        return f"{mark} {NO_EOL}\n{text}\n{mark}"


def _option(name: str, text: str) -> str:
    return f"{name}={text if _BARE.fullmatch(text) else json.dumps(text, ensure_ascii=False)}"


def _form(shape: Shape, token: str) -> str:
    """Show how a tool is called with what it needs."""
    first = next(iter(shape.required), "")
    words = [f"{name}=…" for name in shape.required if name != first and not shape.is_free(name)]
    line = [shape.name.upper(), *words, *([f"`{first}`"] if first and not shape.is_free(first) else [])]
    block = f"```{token}\n{{}}\n```{token}"
    return "\n".join([" ".join(line), *(block.format(name) for name in shape.required if shape.is_free(name))])
