"""The loop itself: the transcript is its only state, so going on after a crash is calling it again."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from bot.agent.dispatch import dispatch, refuse
from bot.agent.limits import LimitGuard
from bot.domain.messages import Message, Prompt, Reply, TextPart
from bot.errors import ModelRefused
from bot.llm.base import Model
from bot.tools.base import Toolset

NUDGE = "Your last reply called no tool. Go on with the task, or call `finish` with a summary if it is done."
NUDGES = 2
"""Replies without a call that are answered with `NUDGE`; the next one is taken as the final answer."""
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

    def __init__(self, model: Model, toolset: Toolset, guard: LimitGuard, listen: Listen) -> None:
        self._model = model
        self._toolset = toolset
        self._guard = guard
        self._listen = listen

    async def run(self, system: str, transcript: list[Message]) -> Finished:
        """Go on from the transcript until the model is done.

        Args:
            system: the system prompt; the same for the whole task.
            transcript: oldest first, ends with a user message; messages are appended to it.

        Raises:
            LimitReached: a limit is reached; the transcript is complete up to there.
            Cancelled: a person stopped the run.
            ModelError: the model cannot be used.
        """
        nudges = 0
        while True:
            turn = self._guard.spent.turns + 1
            self._hear(transcript, await self._listen(turn))
            self._guard.check()
            reply = await self._model.ask(Prompt(system, self._toolset.specs, tuple(transcript)))
            if reply.stop == "refusal":
                raise ModelRefused(reply.message.text or "The model declined to answer.")
            transcript.append(reply.message if reply.message.parts else Message("assistant", (TextPart("(nothing)"),)))
            if reply.message.calls:
                nudges = 0
                done = await self._act(turn, reply, transcript)
                if done is not None:
                    return done
            elif nudges >= NUDGES and reply.stop == "end":
                return Finished(reply.message.text, said_so=False)
            else:
                nudges += 1
                transcript.append(Message("user", (TextPart(NUDGE),)))

    async def _act(self, turn: int, reply: Reply, transcript: list[Message]) -> Finished | None:
        calls = reply.message.calls
        if reply.stop != "tool":
            transcript.append(Message("user", refuse(calls)))
            self._guard.formatted(well=False)
            return None
        outcome = await dispatch(turn, calls, self._toolset)
        transcript.append(Message("user", outcome.results))
        if outcome.summary is not None:
            return Finished(outcome.summary, said_so=True)
        self._guard.formatted(well=outcome.readable)
        again = [self._guard.repeated(call, result) for call, result in zip(calls, outcome.results, strict=True)]
        if any(again):
            transcript[-1] = Message("user", (*outcome.results, TextPart(AGAIN)))
        return None

    @staticmethod
    def _hear(transcript: list[Message], said: Sequence[str]) -> None:
        if said:
            last = transcript[-1]
            transcript[-1] = Message("user", (*last.parts, *(TextPart(heard(text)) for text in said)))
