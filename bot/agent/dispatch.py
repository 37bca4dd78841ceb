"""Run the calls of one reply: what reads side by side, all else in order; what goes wrong is a result."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from bot.domain.messages import ToolCall, ToolResult
from bot.tools.base import ToolOutput, Toolset

MAX_CALLS = 8
"""Calls of one reply that are run; the rest are answered with an error."""
ENDINGS = frozenset({"ask_person", "finish", "propose_plan"})
"""Tools that change nothing, but have to know how everything before them went."""
RUN = "run"
"""Its neighbours may go side by side although they change things, where that is wished."""
Together = Callable[[int, Mapping[int, ToolCall]], Awaitable[Sequence[ToolOutput]]]
"""Runs calls of a turn side by side, by their indexes, and gives their results in that order."""
CUT_OFF = (
    "Not executed: your reply was cut off before it was complete, so none of its calls ran. "
    "Send a smaller change, or one call at a time."
)


@dataclass(frozen=True, slots=True)
class Dispatched:
    """What the calls of one reply gave; each sequence is as long as the calls, and in their order."""

    results: tuple[ToolResult, ...]
    """For the model."""
    ending: ToolOutput | None
    """What the call gave that ends the loop; None where there was none."""
    readable: bool
    """Whether at least one call that ran could be read."""
    outputs: tuple[ToolOutput, ...]
    """What each tool gave; what did not run changed nothing."""
    ran: tuple[bool, ...]
    """Whether a call ran; one that repeats another of its reply did not."""


async def dispatch(
    turn: int, calls: Sequence[ToolCall], toolset: Toolset, together: Together | None = None
) -> Dispatched:
    """Run the calls of a reply, each at most once.

    Neighbours that only read go side by side; they begin in their order, so that their steps are the same at every
    replay. What changes something waits for all before it, and so does what ends the loop. Behind a change that failed
    no further one is made, since it may rest on it; a command that ends with an exit code is not one that failed.

    Args:
        turn: 1 for the first reply of the run.
        calls: in their order.
        toolset: runs them.
        together: runs neighbouring commands, of which none waits for another; None leaves each of them alone.

    Raises:
        BotError: what the first call raised of those that raised something, after its neighbours have ended.
    """
    replied = _Reply(turn, calls, toolset, together)
    for batch in _batches(calls, toolset, is_together=together is not None):
        await replied.run(batch)
    outputs = tuple(replied.outputs[index] for index in range(len(calls)))
    ran = tuple(index in replied.ran for index in range(len(calls)))
    return Dispatched(
        tuple(
            ToolResult(call.id, output.text, is_error=output.is_error, images=tuple(output.images))
            for call, output in zip(calls, outputs, strict=True)
        ),
        next((output for output in outputs if output.finished), None),
        any(did and not output.malformed for did, output in zip(ran, outputs, strict=True)),
        outputs,
        ran,
    )


def refuse(calls: Sequence[ToolCall]) -> tuple[ToolResult, ...]:
    """Answer the calls of a reply that was cut off: none of them runs."""
    return tuple(ToolResult(call.id, CUT_OFF, is_error=True) for call in calls)


def _is_alone(call: ToolCall, toolset: Toolset) -> bool:
    return call.name in ENDINGS or not toolset.reads_only(call.name)


def _batches(calls: Sequence[ToolCall], toolset: Toolset, *, is_together: bool) -> Iterator[Sequence[int]]:
    """Part the calls' indexes into neighbours that may go side by side."""

    def kind(index: int) -> str:
        if is_together and calls[index].name == RUN:
            return "commands"
        return "alone" if _is_alone(calls[index], toolset) else "looks"

    for what, indexes in itertools.groupby(range(len(calls)), kind):
        if what == "alone":
            yield from ([index] for index in indexes)
        else:
            yield list(indexes)


def _copy(output: ToolOutput, first: int) -> ToolOutput:
    """Give a result once more, without what it costs most; what it changed was changed once."""
    note = f"[The same as call {first + 1} of this reply, so it was done once; this is its result.]"
    return replace(output, text=f"{note}\n{output.text}", changed=(), images=())


class _Reply:
    """The calls of one reply while they are run."""

    def __init__(self, turn: int, calls: Sequence[ToolCall], toolset: Toolset, together: Together | None) -> None:
        self._turn = turn
        self._calls = calls
        self._toolset = toolset
        self._together = together
        self._first: dict[tuple[str, str], int] = {}
        self._failed: int | None = None
        self._is_over = ""
        self.outputs: dict[int, ToolOutput] = {}
        self.ran: set[int] = set()

    async def run(self, batch: Sequence[int]) -> None:
        """Run those of some neighbours that are to run, and answer the others."""
        copies: dict[int, int] = {}
        begun: list[int] = []
        for index in batch:
            call = self._calls[index]
            key = (call.name, call.arguments)
            why_not = self._why_not(index, known=key in self._first)
            if why_not:
                self.outputs[index] = ToolOutput(f"Not executed: {why_not}", call.name, is_error=True)
            elif key in self._first:
                copies[index] = self._first[key]
            else:
                self._first[key] = index
                begun.append(index)
        self.outputs |= zip(begun, await self._made(begun), strict=True)
        self.outputs |= {index: _copy(self.outputs[first], first) for index, first in copies.items()}
        self.ran.update(begun)
        self._conclude(begun)

    def _why_not(self, index: int, *, known: bool) -> str:
        """Say why a call must not run; empty where it may."""
        if self._is_over:
            return f"`{self._is_over}` was called before it."
        if index >= MAX_CALLS:
            return f"at most {MAX_CALLS} calls of one reply are run. Send it again in the next reply."
        if self._failed is not None and not known and _is_alone(self._calls[index], self._toolset):
            return (
                f"call {self._failed + 1} of this reply, `{self._calls[self._failed].name}`, failed, and what may rest "
                "on it is not done. Read its result, then send this call again if it is still right."
            )
        return ""

    async def _made(self, indexes: Sequence[int]) -> Sequence[ToolOutput]:
        """Run calls side by side."""
        if self._together is not None and len(indexes) > 1 and self._calls[indexes[0]].name == RUN:
            return await self._together(self._turn, {index: self._calls[index] for index in indexes})
        # All end before anything is raised: which of them are recorded must not hang on which was the quickest.
        given = await asyncio.gather(
            *(
                self._toolset.call(self._turn, index, self._calls[index].name, self._calls[index].arguments)
                for index in indexes
            ),
            return_exceptions=True,
        )
        outputs: list[ToolOutput] = []
        for one in given:
            if isinstance(one, BaseException):
                raise one
            outputs.append(one)
        return outputs

    def _conclude(self, indexes: Sequence[int]) -> None:
        """Draw from calls that went side by side what they mean for those behind them."""
        changes = [index for index in indexes if not self._toolset.reads_only(self._calls[index].name)]
        for index in indexes:
            self._is_over = self._calls[index].name if self.outputs[index].finished else self._is_over
        if changes:
            # What was looked at before may look otherwise now, and what was tried before may go otherwise; of several
            # that were tried nobody knows which was the last.
            only = self._calls[changes[0]]
            self._first = {(only.name, only.arguments): changes[0]} if len(changes) == 1 else {}
            self._failed = next((index for index in changes if self.outputs[index].is_error), self._failed)
