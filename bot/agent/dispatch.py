"""Run the calls of one reply, in order; whatever goes wrong is a result."""

from collections.abc import Sequence
from dataclasses import dataclass

from bot.domain.messages import ToolCall, ToolResult
from bot.tools.base import ToolOutput, Toolset

MAX_CALLS = 8
"""Calls of one reply that are run; the rest are answered with an error."""
CUT_OFF = (
    "Not executed: your reply was cut off before it was complete, so none of its calls ran. "
    "Send a smaller change, or one call at a time."
)


@dataclass(frozen=True, slots=True)
class Dispatched:
    """What the calls of one reply gave."""

    results: tuple[ToolResult, ...]
    """In the order of the calls."""
    summary: str | None
    """What the model said when it called `finish`; None where it did not."""
    readable: bool
    """Whether at least one call could be read."""
    outputs: tuple[ToolOutput, ...]
    """What each tool gave, in the order of the calls."""


async def dispatch(turn: int, calls: Sequence[ToolCall], toolset: Toolset) -> Dispatched:
    """Run the calls one after another; behind `finish` nothing runs."""
    results: list[ToolResult] = []
    outputs: list[ToolOutput] = []
    summary: str | None = None
    readable = False
    for index, call in enumerate(calls):
        output = await _one(turn, index, call, toolset, finished=summary is not None)
        results.append(ToolResult(call.id, output.text, is_error=output.is_error, images=tuple(output.images)))
        outputs.append(output)
        readable = readable or not output.malformed
        if output.finished:
            summary = output.text
    return Dispatched(tuple(results), summary, readable, tuple(outputs))


async def _one(turn: int, index: int, call: ToolCall, toolset: Toolset, *, finished: bool) -> ToolOutput:
    if finished:
        return ToolOutput("Not executed: `finish` was called before it.", call.name, is_error=True)
    if index >= MAX_CALLS:
        text = f"Not executed: at most {MAX_CALLS} calls of one reply are run. Send it again in the next reply."
        return ToolOutput(text, call.name, is_error=True)
    return await toolset.call(turn, index, call.name, call.arguments)


def refuse(calls: Sequence[ToolCall]) -> tuple[ToolResult, ...]:
    """Answer the calls of a reply that was cut off: none of them runs."""
    return tuple(ToolResult(call.id, CUT_OFF, is_error=True) for call in calls)
