"""The loop itself: the transcript is its only state, so going on after a crash is calling it again."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from bot.agent.conduct import Finishing, Silence
from bot.agent.context.conversation import Context
from bot.agent.dispatch import Dispatched, Together, dispatch, refuse
from bot.agent.journal import Journal
from bot.agent.limits import LimitGuard
from bot.agent.modes import ACT, Phase
from bot.agent.transcript import say
from bot.domain.messages import Message, Reply, TextPart
from bot.domain.proposal import Proposal
from bot.errors import ModelRefused
from bot.tools.base import ToolOutput, Toolset

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
    """Whether it called the tool for that; otherwise it only stopped calling tools."""
    proposal: Proposal | None = None
    """The plan, where it was made."""
    question: str = ""
    """What people are asked; empty where nothing is."""


class Agent:
    """One model with its tools, working on one transcript."""

    def __init__(  # noqa: PLR0913 - the loop is where all of these meet
        self,
        context: Context,
        toolset: Toolset,
        guard: LimitGuard,
        listen: Listen,
        *,
        finishing: Finishing,
        journal: Journal,
        phase: Phase = ACT,
        together: Together | None = None,
    ) -> None:
        """Put the parts together.

        Args:
            context: asks the model within its window.
            toolset: what the model may do.
            guard: ends the run at its limits.
            listen: gives what people say meanwhile.
            finishing: knows the checks that are due before the end.
            journal: takes note of what was done.
            phase: plan or work.
            together: runs neighbouring commands of a reply side by side; None leaves each of them alone.
        """
        self._context = context
        self._toolset = toolset
        self._guard = guard
        self._listen = listen
        self._finishing = finishing
        self._journal = journal
        self._phase = phase
        self._together = together

    async def run(self, transcript: list[Message]) -> Finished:
        """Go on from the transcript until the model is done.

        Args:
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
                say(transcript, [heard(text) for text in await self._listen(self._guard.spent.turns + 1)])
            self._guard.check()
            if not is_sent:
                say(transcript, self._guard.nearing(self._phase.ending))
            reply = await self._context.ask(self._phase.system, self._toolset.specs, transcript)
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
                transcript.append(Message("user", (TextPart(self._phase.nudge),)))

    async def _act(self, reply: Reply, transcript: list[Message]) -> Finished | None:
        calls = reply.message.calls
        if reply.stop != "tool":
            transcript.append(Message("user", refuse(calls)))
            self._guard.formatted(well=False)
            return None
        outcome = await dispatch(self._guard.spent.turns, calls, self._toolset, self._together)
        for output in outcome.outputs:
            self._finishing.acted(output)
            self._journal.acted(output)
        if outcome.ending is not None:
            is_question = outcome.ending.question is not None
            if is_question or not (refusal := self._finishing.refusal()):
                transcript.append(Message("user", outcome.results))
                return _finished(outcome.ending)
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


def _finished(ending: ToolOutput) -> Finished:
    """Say how the loop ended by a call."""
    summary = "" if ending.proposal or ending.question else ending.text
    return Finished(summary, said_so=True, proposal=ending.proposal, question=ending.question or "")


def _unfinished(outcome: Dispatched, refusal: str) -> Dispatched:
    """Answer `finish` with why the work goes on."""
    results = tuple(
        replace(result, text=refusal, is_error=True) if output.finished else result
        for result, output in zip(outcome.results, outcome.outputs, strict=True)
    )
    return replace(outcome, results=results, ending=None)
