"""The dialect `json`: one fenced block for one call, or for a list of calls.

    ```json
    {"tool": "read", "arguments": {"path": "src/cart.py"}, "id": "k3f"}
    ```

The fence stands at the start of a line and says `json`; a closing fence cannot stand in valid JSON. A block that is
whole and has no `tool` shows data, and is text. `arguments` may be a string that holds the object.

A model that does not escape what it copies may have its block closed by that text. So a block that names a tool and is
no JSON makes the whole reply void. The token of the conversation as the last value of a call shows that the model ended
it; behind a call without it no other fence may follow, since that may be the one which the model meant to close it.
"""

import json
import re
from collections.abc import Mapping, Sequence

from bot.domain.messages import ToolCall, ToolResult, ToolSpec
from bot.llm.dialects.base import (
    NOTHING_RAN,
    VALUE_CHARS,
    Called,
    Event,
    Fault,
    Parser,
    Said,
    render_result,
    taught_results,
)
from bot.llm.dialects.lines import Fences, LineParser, is_closing
from bot.llm.dialects.shapes import Shape, UnfitError, arguments_of, shapes, strict, told

_OPEN = re.compile(r"(`{3,})json\s*\Z")
_KEYS = frozenset({"tool", "arguments"})
_TRIES = re.compile(r'"(?:tool|arguments)"\s*:')
_ITEM = '{"tool": "…", "arguments": {…}, "id": "…"}'
_FORM = """\
# How to call tools
Write each call into your reply as a block of its own, the fence at the start of a line:

```json
{{"tool": "…", "arguments": {{…}}, "id": "{token}"}}
```

A list of such objects in one block makes several calls. It is strict JSON: a line break in a text is `\\n`, a quote \
is `\\"`, no name is given twice; the `id` ends each call. {results}

# Tools
{tools}"""


class Json:
    """Fenced blocks."""

    def __init__(self, tools: Sequence[ToolSpec], token: str) -> None:
        self._shapes = shapes(tools)
        self._token = token

    def teach(self) -> str:
        """Say how tools are called."""
        tools = "\n\n".join(_taught(shape, self._token) for shape in self._shapes.values())
        return _FORM.format(token=self._token, results=taught_results(self._token), tools=tools)

    def render_call(self, call: ToolCall) -> str:
        """Spell a call; verbatim what the model wrote where that could not be read."""
        text, given = told(call)
        if given is None:
            return text
        item = {"tool": call.name, "arguments": given, "id": self._token}
        return f"```json\n{json.dumps(item, ensure_ascii=False)}\n```"

    def render_result(self, result: ToolResult, name: str) -> str:
        """Spell a result between tags with the token."""
        return render_result(result, name, self._token)

    def parser(self) -> Parser:
        """Begin a reply."""
        return LineParser(JsonGrammar(self._shapes, self._token), self._token)


class JsonGrammar:
    """Reads the lines of one reply."""

    opens = "`"

    def __init__(self, shapes: Mapping[str, Shape], token: str) -> None:
        self.opened: str | None = None
        self._shapes = shapes
        self._token = token
        self._fences = Fences()
        self._mark = ""
        self._lines: list[str] = []
        self._size = 0
        self._is_over = False
        """Whether a call without the token is closed."""

    def take(self, line: str) -> Sequence[Event] | None:
        """Take the next line."""
        if self.opened is None:
            if self._is_over and line.lstrip().startswith("```"):
                problem = (
                    "ambiguous: a code block follows a call without its id, which may have been closed by its text."
                )
                return _void(f'{problem} End each call with `"id": "{self._token}"`.')
            found = None if self._fences.mark else _OPEN.match(line)
            if found is None:
                self._fences.take(line)
                return None
            self.opened, self._mark, self._lines, self._size = "", found[1], [], 0
        elif line.startswith("`") and is_closing(line, self._mark):
            self.opened = None
            return self._read("".join(self._lines[1:]), line)
        self._lines.append(line)
        self._size += len(line)
        return _void(f"too_large: a block is longer than {VALUE_CHARS} characters.") if self._size > VALUE_CHARS else ()

    @property
    def missing(self) -> str:
        """The fence that must come."""
        return "" if self.opened is None else f"the closing line `{self._mark}`"

    def _read(self, text: str, closing: str) -> Sequence[Event]:
        """Read a whole block."""
        try:
            value = strict(text)
        except UnfitError as error:
            value, problem, is_unfit = None, str(error), True
        except ValueError as error:
            value, problem, is_unfit = None, str(error), False
        items = value if isinstance(value, list) else [value]
        tries = any(isinstance(item, dict) and not item.keys().isdisjoint(_KEYS) for item in items)
        if not (tries or (value is None and _TRIES.search(text))):
            return [Said("".join([*self._lines, closing]))]
        if value is not None:
            self._is_over = self._is_over or not all(self._is_ended(item) for item in items)
            return [self._item(item) for item in items]
        self._is_over = True
        if is_unfit:
            return [Fault(f"bad_arguments: {problem}.")]
        return _void(f"bad_call: the block is no valid JSON: {problem}.")

    def _is_ended(self, item: object) -> bool:
        """Whether the model itself ended a call: nobody else knows the token."""
        return isinstance(item, dict) and next(reversed(item.items()), None) == ("id", self._token)

    def _item(self, item: object) -> Event:
        """Read one call."""
        name = item.get("tool") if isinstance(item, dict) else None
        if not isinstance(item, dict) or not isinstance(name, str) or item.keys() - _KEYS - {"id"}:
            return Fault(f"bad_call: each call is `{_ITEM}`, with no other names.")
        if name not in self._shapes:
            return Fault(f"unknown_tool: {name[:100]!r}; the tools are {', '.join(self._shapes)}.", name)
        given = item.get("arguments", {})
        if isinstance(given, str):
            # Some models encode the arguments twice; the object is whole all the same.
            given = arguments_of(given or "{}")
        if not isinstance(given, dict):
            return Fault("bad_arguments: `arguments` must be one JSON object.", name)
        return Called(name, json.dumps(given))


def _taught(shape: Shape, token: str) -> str:
    given = ", ".join(f'"{name}": …' for name in shape.required)
    return f'{shape.heading}\n{{"tool": "{shape.name}", "arguments": {{{given}}}, "id": "{token}"}}{shape.options}'


def _void(problem: str) -> Sequence[Event]:
    return [Fault(f"{problem} {NOTHING_RAN}", whole=True)]
