"""The tools of one mode: finds the tool, reads its arguments, and turns what goes wrong into a result."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace

from bot.domain.messages import ToolSpec, Unreadable
from bot.errors import MalformedCall, ToolError
from bot.sandbox.output import clip
from bot.tools.base import Tool, ToolContext, ToolOutput

_ARGUMENT_CHARS = 2 << 20
_TEXT_CHARS = 30_000
_READ_CHARS = 52_000
"""Tools that only read keep a limit of their own, 50 kB; cutting the middle out of a file would mislead."""
_UNFIT = re.compile("[\x00\ud800-\udfff]")


class StandardToolset:
    """Runs tools on one workspace."""

    def __init__(self, tools: Sequence[Tool], context: ToolContext) -> None:
        self._tools = {tool.spec.name: tool for tool in sorted(tools, key=lambda tool: tool.spec.name)}
        self._context = context

    @property
    def specs(self) -> Sequence[ToolSpec]:
        """Sorted by name."""
        return [tool.spec for tool in self._tools.values()]

    def reads_only(self, name: str) -> bool:
        """Whether a tool changes nothing; True for a name that is not offered."""
        return name not in self._tools or self._tools[name].reads_only

    async def call(self, turn: int, index: int, name: str, arguments: str) -> ToolOutput:
        """Parse the arguments, check them and run the tool; what goes wrong is a result with `is_error`."""
        try:
            output = await self._call(name, arguments)
        except ToolError as error:
            malformed = isinstance(error, MalformedCall)
            return ToolOutput(fit(str(error), _TEXT_CHARS), fit(name, 100), is_error=True, malformed=malformed)
        text = fit(output.text, _READ_CHARS if self.reads_only(name) else _TEXT_CHARS)
        return replace(output, text=text, summary=fit(output.summary, 500))

    async def _call(self, name: str, arguments: str) -> ToolOutput:
        unreadable = Unreadable.found_in(arguments)
        if unreadable is not None:
            raise MalformedCall(unreadable.fault)
        tool = self._tools.get(name)
        if tool is None:
            raise MalformedCall(f"unknown_tool: {name[:100]!r}; the tools are {', '.join(self._tools)}")
        return await tool.call(read_arguments(arguments, repair=tool.reads_only), self._context)


def fit(text: str, limit: int) -> str:
    """Cut a text and take out what no JSON may carry to a provider."""
    return clip(_UNFIT.sub("\ufffd", text), limit)


def read_arguments(text: str, *, repair: bool) -> dict[str, object]:
    """Read a JSON object; nothing is guessed.

    Args:
        text: as the model wrote it; empty means no arguments.
        repair: whether an object inside a string is taken too, as some models write it.

    Raises:
        ToolError: it is no object, or names something twice.
    """
    if len(text) > _ARGUMENT_CHARS:
        raise MalformedCall(f"bad_arguments: more than {_ARGUMENT_CHARS} characters")
    value = _decode(text) if text.strip() else {}
    if repair and isinstance(value, str):
        value = _decode(value)
    if not isinstance(value, dict):
        raise MalformedCall("bad_arguments: the arguments are no JSON object")
    return {str(key): item for key, item in value.items()}


def _decode(text: str) -> object:
    try:
        value: object = json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant)
    except RecursionError:
        raise MalformedCall("bad_arguments: nested too deep") from None
    except ValueError as error:
        raise MalformedCall(f"bad_arguments: no valid JSON: {error}") from None
    return value


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise MalformedCall("bad_arguments: a name is given twice")
    return made


def _no_constant(name: str) -> object:
    raise MalformedCall(f"bad_arguments: {name} is no JSON")
