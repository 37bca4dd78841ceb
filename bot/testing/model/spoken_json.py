"""The dialect `json` as a model speaks it: a fenced block for each call; pure."""

import json
import re
from collections.abc import Mapping
from typing import cast

from bot.testing.model.reply import Call
from bot.testing.model.spoken_lesson import Form, Found, Lesson, read_json

_BLOCK = re.compile(r"```json[ \t]*\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
_TAUGHT = re.compile(r'"([^"]+)": …')


class Json:
    """Fenced blocks; the token is the last value of a call."""

    evidence: str = '"arguments": {…}, "id": "TOKEN"}\n```'

    def form(self, tools: str, at: int, name: str, token: str) -> tuple[Form, int] | None:
        """Look for the object on a line of its own."""
        line = rf'^\{{"tool": "{re.escape(name)}", "arguments": \{{(.*)\}}, "id": "{re.escape(token)}"\}}$'
        found = re.compile(line, re.MULTILINE).search(tools, at)
        return None if found is None else (Form(name, _TAUGHT.findall(found[1])), found.end())

    def write(self, call: Call, lesson: Lesson) -> str:
        """Spell a call; broken JSON is broken here as well."""
        name = json.dumps(call.tool, ensure_ascii=False)
        return f'```json\n{{"tool": {name}, "arguments": {call.spelled()}, "id": "{lesson.token}"}}\n```'

    def find(self, text: str, at: int, lesson: Lesson) -> Found | None:
        """Read a block that holds a call, or a list of calls."""
        block = _BLOCK.match(text, at)
        if block is None:
            return None
        try:
            value = read_json(block[1])
        except ValueError:
            return None
        items = value if isinstance(value, list) else [value]
        calls = [(str(item["tool"]), _arguments(item)) for item in items if isinstance(item, dict) and "tool" in item]
        return Found(at, block.end(), calls) if calls else None


def _arguments(item: Mapping[str, object]) -> Mapping[str, object]:
    value = item.get("arguments")
    # The keys of a JSON object are strings.
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}
