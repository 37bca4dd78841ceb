"""A model that fails as it is told."""

from dataclasses import replace

from bot.domain.messages import Message, Prompt, Reply, TextPart, Usage
from bot.errors import BotError
from bot.llm.base import OnText

PROMPT = Prompt("", (), (Message("user", (TextPart("x"),)),))
REPLY = Reply(Message("assistant", (TextPart("ok"),)), "end", Usage(1, 1, 1, 1))


class Flaky:
    """Fails as told, then answers."""

    def __init__(self, *errors: BotError, name: str = "test:flaky", usage: Usage = REPLY.usage) -> None:
        self.name = name
        self.errors = list(errors)
        self.usage = usage
        self.asked = 0
        self.is_closed = False

    async def ask(self, prompt: Prompt, *, on_text: OnText | None = None) -> Reply:
        """Raise the next error; without one, answer."""
        self.asked += 1
        if on_text is not None:
            on_text(f"{self.asked} ")
        if self.errors:
            raise self.errors.pop(0)
        return replace(REPLY, usage=self.usage)

    async def close(self) -> None:
        """Note it."""
        self.is_closed = True
