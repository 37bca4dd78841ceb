"""The grammar of the dialect `prose`, as narrow as it can be: a verb, a value in backticks, blocks of text.

    WRITE `docs/today.md`
    ```k3f
    First line.
    ```k3f

A call is a whole line: a tool's name in capitals, then `name=value` words (a value with spaces as a JSON string), then
one value in backticks, which is the first parameter that the tool needs (or knows, where it needs none). Needed
parameters that the line does not give come in blocks directly below, in the order of the schema. A block with the token
of the conversation behind its backticks ends at the same line again; one without it ends where Markdown says, and no
other fence may follow it in the reply, since the text in it may hold the fence that closed it. `no-eol` behind an
opening fence: the last line break is not part of the text.

A line that only resembles a call makes the whole reply void, and the model is shown the form: a sentence is never taken
for an order.
"""

import json
import re
from collections.abc import Mapping, Sequence

from bot.llm.dialects.base import NOTHING_RAN, VALUE_CHARS, Called, Event, Fault
from bot.llm.dialects.lines import Fences, is_closing
from bot.llm.dialects.shapes import Given, Shape

NO_EOL = "no-eol"
_OPTION = re.compile(r' ([\w.-]+)=("(?:[^"\\]|\\.)*"|[^\s"`]+)')
_VERB = re.compile(r"([A-Z][A-Z_]+) `[^`]+`\s*\Z")
_REST = re.compile(r"(?: `([^`]+)`)?\s*\Z")
_BLOCK = re.compile(rf"(`{{3,}})([^\s`]*)( {NO_EOL})?[^`]*")


class ProseGrammar:
    """Reads the lines of one reply."""

    def __init__(self, shapes: Mapping[str, Shape], token: str, forms: Mapping[str, str]) -> None:
        self._verbs = {name.upper(): shape for name, shape in shapes.items()}
        self.opens = "".join(sorted({verb[0] for verb in self._verbs}))
        verbs = "|".join(sorted(map(re.escape, self._verbs), key=len, reverse=True))
        self._attempt = re.compile(rf"[\s>*_`#\-+\d.)]*({verbs or '(?!)'})[*_`:]*(?:\s|\Z)")
        self._token = token
        self._forms = forms
        self._fences = Fences()
        self._call: Given | None = None
        self._mark = ""
        """The line that closes the block that is open; empty where none is."""
        self._has_token = False
        self._dropped = ""
        """The last line break of the block that is open, where it is not part of the text."""
        self._is_plain = False
        """Whether a block without the token has begun in this reply."""
        self._is_over = False
        """Whether a call with such a block is closed."""
        self._block: list[str] = []
        self._size = 0

    @property
    def opened(self) -> str | None:
        """The tool whose call is open."""
        return None if self._call is None else self._call.shape.name

    def take(self, line: str) -> Sequence[Event] | None:
        """Take the next line."""
        if self._call is not None:
            return self._inside(self._call, line) if self._mark else self._between(self._call, line)
        if self._is_over and line.lstrip().startswith("```"):
            return self._twice()
        if self._fences.take(line):
            return None
        if found := self._attempt.match(line):
            return self._begin(self._verbs[found[1]], line)
        if (verb := _VERB.match(line)) is None:
            return None
        tools = ", ".join(self._verbs)
        return [Fault(f"unknown_tool: `{verb[1]}`; the tools are {tools}. {NOTHING_RAN}", verb[1].lower(), whole=True)]

    @property
    def missing(self) -> str:
        """The line that must close the block, or the block that must come."""
        if self._call is None:
            return ""
        return f"the closing line `{self._mark}`" if self._mark else f"the block with `{self._call.missing[0]}`"

    def _begin(self, shape: Shape, line: str) -> Sequence[Event]:
        """Read the line of a call, or of what resembles one."""
        self._call = call = Given(shape)
        at = len(shape.name)
        try:
            while option := _OPTION.match(line, at):
                call.add(option[1], json.loads(option[2]) if option[2].startswith('"') else option[2])
                at = option.end()
            rest = _REST.match(line, at)
            if rest is None or not line.startswith(shape.name.upper()):
                return self._void("bad_call: this line is no call.", shape)
            if rest[1] is not None:
                call.add(next(iter(call.missing or shape.names), "in backticks"), rest[1])
        except ValueError as error:
            return self._void(f"bad_arguments: {error}.", shape)
        return self._close(call)

    def _between(self, call: Given, line: str) -> Sequence[Event]:
        """Look for the next block."""
        found = _BLOCK.fullmatch(line.rstrip())
        if found is None:
            missing = f"bad_call: the block with `{call.missing[0]}` must begin here."
            return self._void(missing, call.shape) if line.strip() else ()
        ticks, word = found[1], found[2]
        self._dropped = line[len(line.rstrip("\r\n")) :] if found[3] else ""
        self._has_token = word == self._token or word.startswith(f"{self._token}-")
        if not self._has_token and self._is_over:
            return self._twice()
        self._is_plain = self._is_plain or not self._has_token
        self._mark, self._block, self._size = ticks + word if self._has_token else ticks, [], 0
        return ()

    def _inside(self, call: Given, line: str) -> Sequence[Event]:
        """Keep a line of the block, or close it."""
        if not (line.rstrip() == self._mark if self._has_token else is_closing(line, self._mark)):
            self._block.append(line)
            self._size += len(line)
            too_large = f"too_large: a block is longer than {VALUE_CHARS} characters."
            return self._void(too_large, call.shape) if self._size > VALUE_CHARS else ()
        text, self._mark = "".join(self._block).removesuffix(self._dropped), ""
        try:
            call.add(call.missing[0], text)
        except ValueError as error:
            return self._void(f"bad_arguments: {error}.", call.shape)
        return self._close(call)

    def _close(self, call: Given) -> Sequence[Event]:
        """End the call where it has all that it needs."""
        if call.missing:
            return ()
        self._call, self._is_over = None, self._is_plain
        return [Called(call.shape.name, call.arguments)]

    def _twice(self) -> Sequence[Event]:
        problem = "ambiguous: a code block follows one without the token, which may have closed that one."
        return [Fault(f"{problem} Put {self._token} behind both fences. {NOTHING_RAN}", self.opened or "", whole=True)]

    def _void(self, problem: str, shape: Shape) -> Sequence[Event]:
        return [Fault(f"{problem} {NOTHING_RAN} Write it so:\n{self._forms[shape.name]}", shape.name, whole=True)]
