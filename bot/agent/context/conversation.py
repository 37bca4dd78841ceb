"""One conversation within one window: asks the model, and makes the transcript shorter when it has to be."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from bot.agent.context.duplicates import without_duplicates
from bot.agent.context.gauge import Gauge
from bot.agent.context.handover import SUMMARISED, Facts, told
from bot.agent.context.sizes import prompt_size, size_of
from bot.agent.context.summary import SHARES, accepted, parts_of, request, summarised
from bot.agent.context.truncation import cut_results, truncate
from bot.agent.context.window import Room, Window
from bot.domain.context import ContextMeter, thousands
from bot.domain.messages import Message, Prompt, Reply, ToolSpec
from bot.errors import ContextOverflow, ModelError

Ask = Callable[[Prompt], Awaitable[Reply]]
"""Asks the model, for a turn or for a summary; each request is a step of its own in the record."""
PROGRESS = 1.1
"""Times the size behind a compaction for which the next one waits, where little could be brought down."""
Means = Literal["duplicates", "summary", "truncation", "cut results"]


@dataclass(frozen=True, slots=True)
class Compaction:
    """What a compaction did."""

    messages: Sequence[Message]
    """The transcript from now on."""
    before: int
    after: int
    """Tokens of the prompt; estimates."""
    means: tuple[Means, ...]

    def __str__(self) -> str:
        """Say it to people."""
        return (
            f"The conversation was made shorter: {thousands(self.before)} to {thousands(self.after)} tokens "
            f"({', '.join(self.means)})."
        )


Told = Callable[[Compaction], Awaitable[None]]
"""Hears of a compaction."""


class Context:
    """The model's view of a conversation; the loop asks through it."""

    def __init__(
        self,
        window: Window,
        ask: Ask,
        facts: Callable[[], Facts],
        told: Told | None = None,
    ) -> None:
        """Begin.

        Args:
            window: of the model.
            ask: asks it; raises what `Model.ask` does.
            facts: gives what the harness knows at this moment, from what was recorded.
            told: hears of each compaction.
        """
        self._window = window
        self._ask = ask
        self._facts = facts
        self._told = told
        self._gauge = Gauge()
        self._stuck_below = 0
        """Tokens below which nothing is tried again: see `PROGRESS`."""

    def measure(self, prompt: Prompt) -> ContextMeter:
        """Say how full the window will be."""
        return ContextMeter(self._gauge.tokens(prompt), self._window.tokens)

    async def ask(self, system: str, tools: Sequence[ToolSpec], transcript: list[Message]) -> Reply:
        """Ask for the next reply.

        Args:
            system: the system prompt.
            tools: sorted by name.
            transcript: oldest first, ends with a user message; its messages are replaced where it has to be shorter.

        Raises:
            ContextOverflow: too long for the provider even after compaction; the transcript is whole.
            ModelError: as `Model.ask` says.
        """
        prompt = await self._fitted(Prompt(system, tools, tuple(transcript)), transcript, forced=False)
        try:
            reply = await self._ask(prompt)
        except ContextOverflow as error:
            shorter = await self._fitted(prompt, transcript, forced=True)
            if shorter is prompt:
                raise self._too_long(prompt, error) from error
            prompt = shorter
            try:
                reply = await self._ask(prompt)
            except ContextOverflow as again:
                raise self._too_long(prompt, again) from again
        self._gauge.replied(prompt, reply)
        return reply

    async def compact(self, prompt: Prompt, *, forced: bool = False) -> Compaction | None:
        """Make the transcript of a prompt shorter.

        Args:
            prompt: the next request.
            forced: whether the provider found it too long; otherwise something is done from 80 % of the window on.

        Returns:
            None where nothing is to be done, or nothing can be.
        """
        before = self._gauge.tokens(prompt)
        if forced:
            self._window = self._window.refused(before)
        elif before < max(self._window.compact_at, self._stuck_below):
            return None
        # From here on all is counted in bytes, by what a token of this very prompt has.
        size = prompt_size(prompt)
        made, means = await self._shorter(prompt, size / max(before, 1))
        after = round(prompt_size(replace(prompt, messages=made)) * before / size)
        self._stuck_below = round(after * PROGRESS)
        return Compaction(made, before, after, tuple(means)) if size_of(made) < size_of(prompt.messages) else None

    async def _fitted(self, prompt: Prompt, transcript: list[Message], *, forced: bool) -> Prompt:
        done = await self.compact(prompt, forced=forced)
        if done is None:
            return prompt
        transcript[:] = done.messages
        if self._told is not None:
            await self._told(done)
        return replace(prompt, messages=tuple(transcript))

    async def _shorter(self, prompt: Prompt, per_token: float) -> tuple[list[Message], list[Means]]:
        """Take one means after the other until the messages are within the limit."""
        means: list[Means] = []
        room = Room.of(self._window, per_token, fixed=prompt_size(prompt) - size_of(prompt.messages))
        made = without_duplicates(prompt.messages)
        if size_of(made) < size_of(prompt.messages):
            means.append("duplicates")
        if size_of(made) > room.limit:
            shorter, limit = await self._summary(prompt, made, room)
            room = replace(room, limit=limit)
            made, means = (shorter, [*means, "summary"]) if size_of(shorter) < size_of(made) else (made, means)
        if size_of(made) > room.limit:
            shorter = truncate(made, room, self._facts())
            made, means = (shorter, [*means, "truncation"]) if size_of(shorter) < size_of(made) else (made, means)
        if size_of(made) > room.limit:
            shorter = cut_results(made, room.limit)
            made, means = (shorter, [*means, "cut results"]) if size_of(shorter) < size_of(made) else (made, means)
        return made, means

    async def _summary(self, prompt: Prompt, messages: list[Message], room: Room) -> tuple[list[Message], int]:
        """Have the model summarise all but the newest turns.

        Returns:
            The messages, as they were where it gives no summary; and the limit of bytes for all messages, which is
            lower where the provider refused what should have fitted.
        """
        head, gone, kept = parts_of(messages, room.tail)
        limit, was_refused = room.limit, False
        for share in SHARES if gone else ():
            # As it was sent before, where that may do: the provider's cache has it.
            about = prompt if share == 0 else replace(prompt, messages=tuple(messages))
            question = request(about, len(kept), share)
            size = size_of(question.messages)
            if share < 1 and prompt_size(question) > room.whole:
                continue
            try:
                reply = await self._ask(question)
            except ContextOverflow:
                self._window = self._window.refused(self._gauge.tokens(question))
                limit, was_refused = min(limit, size // 2), True
                continue
            except ModelError:
                # What stands in the way of a summary stands in the way of the next turn too, and is told there.
                break
            # What was refused says only what is too much; this says what fits.
            limit = min(limit, size) if was_refused else limit
            if text := accepted(reply, gone):
                return summarised(head, kept, text, told(SUMMARISED, self._facts(), gone, room.words)), limit
            break
        return messages, limit

    def _too_long(self, prompt: Prompt, error: ContextOverflow) -> ContextOverflow:
        return ContextOverflow(
            f"The conversation is too long for the model even after it was made shorter ({self.measure(prompt)}): "
            f"{str(error).rstrip('.')}. Choose a model with a larger window, or a smaller task."
        )
