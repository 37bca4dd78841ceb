"""Scripted replies and small toolsets for tests of the loop."""

import itertools
from collections.abc import Callable, Mapping, Sequence

from bot.agent.conduct import Finishing
from bot.agent.context.conversation import Context
from bot.agent.context.window import Window
from bot.agent.journal import Journal
from bot.agent.limits import LimitGuard, Limits
from bot.agent.loop import Agent, Listen
from bot.domain.messages import (
    Message,
    Part,
    Prompt,
    Reply,
    StopReason,
    TextPart,
    ToolCall,
    ToolResult,
    ToolSpec,
    Usage,
)
from bot.llm.base import Model, OnText
from bot.tools.base import ToolOutput, Toolset

WIDE = Limits(turns=100, tokens=10**9, usd=1000.0, minutes=1000.0)
USAGE = Usage(input_tokens=10, cache_read_tokens=3, cache_write_tokens=2, output_tokens=5)
ROOMY = Window.of(1_000_000, 8_192)
TASK = Message("user", (TextPart("Do it."),))


def call(name: str, arguments: str = "{}", call_id: str = "") -> ToolCall:
    """Make a call; its id follows from its name where none is given."""
    return ToolCall(call_id or f"call-{name}", name, arguments)


def reply(*parts: Part, stop: StopReason | None = None) -> Reply:
    """Make a reply; it stops for its calls where it has some."""
    made = Message("assistant", parts)
    return Reply(made, stop or ("tool" if made.calls else "end"), USAGE, "scripted-1")


def say(text: str, stop: StopReason = "end") -> Reply:
    """Make a reply of text alone."""
    return reply(TextPart(text), stop=stop)


def finish(summary: str = "All done.") -> ToolCall:
    """Make a call of `finish`."""
    return ToolCall("call-finish", "finish", summary)


def loop(
    model: Model,
    tools: Toolset,
    guard: LimitGuard,
    listen: Listen,
    *,
    checks: Sequence[str] = (),
    window: Window = ROOMY,
) -> Agent:
    """Put a loop together, as a run does."""
    journal = Journal(lambda: guard.budget)
    context = Context(window, model.ask, lambda: journal.facts)
    return Agent(context, tools, guard, listen, finishing=Finishing(checks), journal=journal)


class ScriptedModel:
    """Gives scripted replies in order and counts them on a guard, as the recorded model does."""

    def __init__(
        self, replies: Sequence[Reply | Exception], guard: LimitGuard, *, usd: float | None = 0.01, each_s: float = 1.0
    ) -> None:
        self._replies = list(replies)
        self._guard = guard
        self._usd = usd
        self._each_s = each_s
        self.prompts: list[Prompt] = []

    @property
    def name(self) -> str:
        """A made-up name."""
        return "scripted:one"

    async def ask(self, prompt: Prompt, *, on_text: OnText | None = None) -> Reply:
        """Give the next reply, or raise what stands in its place."""
        self.prompts.append(prompt)
        given = self._replies.pop(0)
        if isinstance(given, Exception):
            raise given
        self._guard.replied(given.usage, self._usd, len(self.prompts) * self._each_s)
        return given

    async def close(self) -> None:
        """Do nothing."""


class Tools:
    """A toolset of plain functions; notes what was called."""

    def __init__(self, tools: Mapping[str, Callable[[str], ToolOutput]] | None = None) -> None:
        self._tools = dict(tools or {})
        self.called: list[tuple[int, int, str]] = []

    @property
    def specs(self) -> Sequence[ToolSpec]:
        """One description for each."""
        return [ToolSpec(name, name, {"type": "object"}) for name in sorted({*self._tools, "finish"})]

    def reads_only(self, name: str) -> bool:
        """All of them only read."""
        return True

    async def call(self, turn: int, index: int, name: str, arguments: str) -> ToolOutput:
        """Call the function; the text of `finish` is its argument."""
        self.called.append((turn, index, name))
        if name == "finish":
            return ToolOutput(arguments, "finished", finished=True)
        if name in self._tools:
            return self._tools[name](arguments)
        return ToolOutput(f"unknown tool {name}", name, is_error=True, malformed=True)


def answer(text: str, *, is_error: bool = False, malformed: bool = False) -> Callable[[str], ToolOutput]:
    """Make a tool that always gives the same."""
    return lambda _: ToolOutput(text, "did", is_error=is_error, malformed=malformed)


def broken_rules(transcript: Sequence[Message]) -> list[str]:
    """Name each rule of providers that a transcript breaks; empty for none."""
    broken = []
    if not transcript or transcript[0].role != "user":
        broken.append("it does not start with a user message")
    for before, after in itertools.pairwise(transcript):
        if before.role == after.role:
            broken.append(f"two messages of {before.role} follow each other")
    for index, message in enumerate(transcript):
        if not message.parts:
            broken.append(f"message {index} is empty")
        behind = transcript[index - 1] if index else Message("assistant", ())
        broken += _broken_in(index, message, behind if behind.role == "assistant" else Message("assistant", ()))
    if transcript and transcript[-1].calls:
        broken.append("the last calls have no results")
    return broken


def _broken_in(index: int, message: Message, behind: Message) -> list[str]:
    results = [part for part in message.parts if isinstance(part, ToolResult)]
    if message.role == "assistant":
        return [f"message {index}: the model gives results"] if results else []
    broken = [f"message {index}: a person calls tools"] if message.calls else []
    if [part.call_id for part in results] != [one.id for one in behind.calls]:
        broken.append(f"message {index}: its results are not those of the calls before it, in their order")
    if list(message.parts[: len(results)]) != results:
        broken.append(f"message {index}: something stands before a result")
    if any(isinstance(part, TextPart) and not part.text.strip() for part in message.parts):
        broken.append(f"message {index}: an empty text")
    return broken
