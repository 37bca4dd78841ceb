"""The grammar of the dialect `xml`: a tag for the tool, a tag for each parameter, as Cline taught it.

    <edit>
    <path>src/cart.py</path>
    <old id="k3f">
    total = 0
    </old id="k3f">
    <new id="k3f">
    total = 1
    </new id="k3f">
    </edit>

A tool's tag stands at the start of a line, outside fenced code, and has no attributes. A value with an id ends at the
first closing tag that repeats the id; the id is the token of the conversation, or begins with it. A value without one
ends at the first closing tag of its name, and where it has several lines, only the tool's closing tag may follow. One
line break behind an opening tag is dropped; so is one before a closing tag, of values without an id that are no free
text.

A free or long text without an id is loose: what stands in it may have closed it. Whoever wrote the file that the model
copies cannot keep the real closing tag from coming later, so a second end of the same tool makes the whole reply void,
and so does the end of one value without an id inside of another.
"""

import re
from collections.abc import Mapping, Sequence

from bot.llm.dialects.base import NOTHING_RAN, VALUE_CHARS, Called, Event, Fault
from bot.llm.dialects.lines import Fences
from bot.llm.dialects.shapes import Given, Shape

_TAG = re.compile(r"<(/?)([A-Za-z_][\w.:-]*)")
_PARAMETER = re.compile(r'<([^\s<>/="\']+)(?: id="([^"]*)")?>')
_NESTED = re.compile(r">\s*<([\w.:-]+)>")
_HTML = frozenset({"details", "div", "p", "table", "td", "tr", "ul", "ol", "li", "pre", "picture"})
"""Tags in which the name of a parameter may follow in an honest text, as `<summary>` does."""
_FOREIGN = frozenset({"function_calls", "function_call", "invoke", "tool_call", "tool_calls", "tool_use"})
"""How models were taught to call tools elsewhere."""


class XmlGrammar:
    """Reads the lines of one reply."""

    opens = "<"

    def __init__(self, shapes: Mapping[str, Shape], token: str) -> None:
        self._shapes = shapes
        self._parameters = frozenset(name for shape in shapes.values() for name in shape.names)
        self._token = token
        self._id = re.compile(rf"{token}(?:-\w+)?")
        self._fences = Fences()
        self._unknown = ""
        """The tag that stood alone on the line before, where it is no tool's."""
        self._loose: set[str] = set()
        """Tools of calls that are closed, but may have been closed by the text in them."""
        self._ended: set[str] = set()
        """Tools of closed calls that had a value without an id, be it ever so short."""
        self._call: Given | None = None
        self._fault = ""
        """The first thing that is wrong with a call whose end is certain all the same."""
        self._closers: set[str] = set()
        """What ended the values without an id."""
        self._is_loose = False
        self._is_last = False
        """Whether a long value without an id has ended, so that the tool's closing tag must follow."""
        self._name = ""
        self._closer = ""
        """Ends the value that is open; empty where none is."""
        self._has_id = False
        self._value: list[str] = []
        self._size = 0

    @property
    def opened(self) -> str | None:
        """The tool whose call is open."""
        return None if self._call is None else self._call.shape.name

    def take(self, line: str) -> Sequence[Event] | None:
        """Take the next line."""
        return self._text(line) if self._call is None else self._body(self._call, line, 0)

    @property
    def missing(self) -> str:
        """The closing tag that must come."""
        return "" if self._call is None else f"`{self._closer or f'</{self._call.shape.name}>'}`"

    def _text(self, line: str) -> Sequence[Event] | None:
        # Also in what looks like code: the text of a call may have closed it and then opened a fence.
        if any(f"</{name}>" in line for name in self._ended):
            return self._twice()
        if self._fences.take(line) or not line.strip():
            return None
        before, self._unknown = self._unknown, ""
        found = _TAG.match(line)
        return None if found is None else self._tag(line, found, before)

    def _tag(self, line: str, found: re.Match[str], before: str) -> Sequence[Event] | None:
        """Judge a line of text that begins with a tag; `before` is the tag that stood alone on the line before."""
        closing, name = found.groups()
        if name not in self._shapes:
            return None if closing else self._foreign(name, line[found.end() :], before)
        if closing:
            return _void(f"bad_call: `</{name}>` closes no call.", name)
        if not line.startswith(">", found.end()):
            return _void(f"bad_call: attributes are not allowed: write `<{name}>`, and parameters as tags in it.", name)
        self._call = call = Given(self._shapes[name])
        self._fault, self._is_loose, self._is_last = "", False, False
        self._closers.clear()
        return self._body(call, line, found.end() + 1)

    def _foreign(self, name: str, rest: str, before: str) -> Sequence[Event] | None:
        """Tell a tool that is not there from a tag that is text: by the parameter that follows it.

        Args:
            name: the tag's.
            rest: of its line.
            before: the tag that stood alone on the line before.
        """
        inner = _NESTED.match(rest)
        if inner is not None and inner[1] in self._parameters:
            before = name
        elif name not in self._parameters or not rest.startswith(">"):
            before = name if name in _FOREIGN else ""
        if before and before not in _HTML:
            return _void(f"unknown_tool: `{before}`; the tools are {', '.join(self._shapes)}.", before)
        self._unknown = name if rest.rstrip() == ">" else ""
        return None

    def _body(self, call: Given, line: str, at: int) -> Sequence[Event]:
        """Read on inside of a call, from a place in the line."""
        tool = call.shape.name
        end = f"</{tool}>"
        while at < len(line):
            if self._closer:
                start, at = at, line.find(self._closer, at)
                self._keep(line[start:] if at < 0 else line[start:at])
                if self._size > VALUE_CHARS:
                    return _void(f"too_large: `{self._name}` is longer than {VALUE_CHARS} characters.", tool)
                if at < 0:
                    break
                at += len(self._closer)
                if problem := self._give(call):
                    return _void(problem, tool)
            elif line[at].isspace():
                at += 1
            elif line.startswith(end, at):
                return self._close(call, line[at + len(end) :])
            else:
                found = _PARAMETER.match(line, at)
                problem = "only parameters may stand in it" if found is None else self._open(found)
                if found is None or problem:
                    shown = line[at : at + 80].rstrip()
                    return _void(f"ambiguous: inside `{tool}` {problem}, at {shown!r}.", tool)
                at = found.end()
        return ()

    def _open(self, found: re.Match[str]) -> str:
        """Begin a value; says what is wrong where its end could not be told."""
        name, own = found.groups()
        if self._is_last:
            return f'nothing may follow the long text of `{self._name}`: put id="{self._token}" into both of its tags'
        if own is not None and not self._id.fullmatch(own):
            return f'the id must be "{self._token}"'
        self._name, self._has_id = name, own is not None
        self._closer = f"</{name}>" if own is None else f'</{name} id="{own}">'
        self._value, self._size = [], 0
        return ""

    def _keep(self, text: str) -> None:
        self._value.append(text)
        self._size += len(text)

    def _give(self, call: Given) -> str:
        """End the value that is open; says what is wrong where an earlier one may have ended in this one."""
        name, text, closer, self._closer = self._name, "".join(self._value), self._closer, ""
        if not self._has_id:
            if before := next((before for before in self._closers if before in text), ""):
                return f'ambiguous: `{before}` stands in `{name}` too: put id="{self._token}" into the tags of both.'
            self._closers.add(closer)
            is_free = call.shape.is_free(name)
            self._is_last = "\n" in text.strip("\r\n")
            self._is_loose = self._is_loose or self._is_last or is_free
            if not self._is_last and not is_free and text.startswith(("\n", "\r\n")):
                text = text.removesuffix("\n").removesuffix("\r")
        text = text.removeprefix("\r\n") if text.startswith("\r\n") else text.removeprefix("\n")
        try:
            call.add(name, text)
        except ValueError as error:
            self._fault = self._fault or f"bad_arguments: {error}."
        return ""

    def _close(self, call: Given, rest: str) -> Sequence[Event]:
        tool = call.shape.name
        if rest.strip():
            return _void(f"ambiguous: something follows `</{tool}>` on its line: {rest.strip()[:80]!r}.", tool)
        if self._is_loose and tool in self._loose:
            return self._twice()
        if self._is_loose:
            self._loose.add(tool)
        if self._closers:
            self._ended.add(tool)
        self._call = None
        return [Fault(self._fault, tool) if self._fault else Called(tool, call.arguments)]

    def _twice(self) -> Sequence[Event]:
        return _void(
            "ambiguous: a call with a text that has no id was closed twice, so its text may hold its own closing tag. "
            f'Put id="{self._token}" into the opening and the closing tag of each text.',
            self.opened or "",
        )


def _void(problem: str, name: str) -> Sequence[Event]:
    return [Fault(f"{problem} {NOTHING_RAN}", name, whole=True)]
