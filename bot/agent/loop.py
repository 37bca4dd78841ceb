"""The loop itself: the transcript is its only state, so going on after a crash is calling it again."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from bot.agent.conduct import Finishing, Silence
from bot.agent.context.conversation import Context
from bot.agent.dispatch import Dispatched, dispatch, refuse
from bot.agent.journal import Journal
from bot.agent.limits import LimitGuard
from bot.domain.messages import Message, Reply, TextPart
from bot.errors import ModelRefused
from bot.tools.base import Toolset

NUDGE = "Your last reply called no tool. Go on with the task, or call `finish` with a summary if it is done."
AGAIN = "You made this very call before and it gave this very result. Try something else."
Listen = Callable[[int], Awaitable[Sequence[str]]]
"""Gives what people said since the last turn, oldest first; raises Cancelled where one said stop."""


def heard(text: str) -> str:
    """Tell the model whose words these are."""
    return f"A person on the thread says:\n{text}"


@dataclass(frozen=True, slots=True)
class Finished:
    """How the loop ended."""

    summary: str
    """The model's own account."""
    said_so: bool
    """Whether it called `finish`; otherwise it only stopped calling tools."""


class Agent:
    """One model with its tools, working on one transcript."""

    def __init__(
        self,
        context: Context,
        toolset: Toolset,
        guard: LimitGuard,
        listen: Listen,
        *,
        finishing: Finishing,
        journal: Journal,
    ) -> None:
        """Put the parts together.

        Args:
            context: asks the model within its window.
            toolset: what the model may do.
            guard: ends the run at its limits.
            listen: gives what people say meanwhile.
            finishing: knows the checks that are due before the end.
            journal: takes note of what was done.
        """
        self._context = context
        self._toolset = toolset
        self._guard = guard
        self._listen = listen
        self._finishing = finishing
        self._journal = journal

    async def run(self, system: str, transcript: list[Message]) -> Finished:
        """Go on from the transcript until the model is done.

        Args:
            system: the system prompt; the same for the whole task.
            transcript: oldest first, ends with a user message; messages are appended to it, and where it no longer
                fits into the model's window, older ones are replaced.

        Raises:
            LimitReached: a limit is reached; the transcript is complete up to there.
            Cancelled: a person stopped the run.
            ModelError: the model cannot be used.
        """
        silence = Silence()
        # What was sent once is never altered: the provider's cache would miss it.
        is_sent = False
        while True:
            if not is_sent:
                _add(transcript, [heard(text) for text in await self._listen(self._guard.spent.turns + 1)])
            self._guard.check()
            if not is_sent:
                _add(transcript, self._guard.nearing())
            reply = await self._context.ask(system, self._toolset.specs, transcript)
            if reply.stop == "refusal":
                raise ModelRefused(reply.message.text or "The model declined to answer.")
            answer = silence.judge(reply)
            is_sent = answer == "again"
            if is_sent:
                continue
            transcript.append(reply.message if reply.message.parts else Message("assistant", (TextPart("(nothing)"),)))
            if answer == "act":
                done = await self._act(reply, transcript)
                if done is not None:
                    return done
            elif answer == "done":
                return Finished(reply.message.text, said_so=False)
            else:
                transcript.append(Message("user", (TextPart(NUDGE),)))

    async def _act(self, reply: Reply, transcript: list[Message]) -> Finished | None:
        calls = reply.message.calls
        if reply.stop != "tool":
            transcript.append(Message("user", refuse(calls)))
            self._guard.formatted(well=False)
            return None
        outcome = await dispatch(self._guard.spent.turns, calls, self._toolset)
        for output in outcome.outputs:
            self._finishing.acted(output)
            self._journal.acted(output)
        if outcome.summary is not None:
            if not (refusal := self._finishing.refusal()):
                transcript.append(Message("user", outcome.results))
                return Finished(outcome.summary, said_so=True)
            outcome = _unfinished(outcome, refusal)
        transcript.append(Message("user", outcome.results))
        self._guard.formatted(well=outcome.readable)
        # What did not run is no repetition: copies within a reply, and what was skipped behind a failure.
        again = [
            self._guard.repeated(call, result, changed=bool(output.changed))
            for call, result, output, ran in zip(calls, outcome.results, outcome.outputs, outcome.ran, strict=True)
            if ran
        ]
        if any(again):
            transcript[-1] = Message("user", (*outcome.results, TextPart(AGAIN)))
        return None


def _unfinished(outcome: Dispatched, refusal: str) -> Dispatched:
    """Answer `finish` with why the work goes on."""
    results = tuple(
        replace(result, text=refusal, is_error=True) if output.finished else result
        for result, output in zip(outcome.results, outcome.outputs, strict=True)
    )
    return replace(outcome, results=results, summary=None)


def _add(transcript: list[Message], texts: Sequence[str]) -> None:
    """Add words to the last message, which is the user's and was not sent yet."""
    if texts:
        parts = transcript[-1].parts
        transcript[-1] = Message("user", (*parts, *(TextPart(text) for text in texts)))
