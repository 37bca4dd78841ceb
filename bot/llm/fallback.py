"""A model with others behind it."""

from collections.abc import Callable, Sequence

from bot.domain.messages import Prompt, Reply
from bot.errors import BotError, MalformedReply, ModelRejected, ModelUnavailable, OperatorError
from bot.llm.base import Model, OnText

OnFall = Callable[[BotError, str], None]
"""Hears why a model was given up, and the name of the one that goes on."""


class Fallback:
    """Asks the next model where one cannot be had, and stays with it: its cache is warm, and the first one is away.

    Only what another provider may do better is a reason: no answer, a broken one, an account that may not ask, or an
    SDK that is not installed. A refusal is the model's own word, and a conversation that is too long is made shorter by
    who owns it.
    """

    def __init__(self, models: Sequence[Model], on_fall: OnFall) -> None:
        """Wrap models.

        Args:
            models: in the order in which they are asked; at least one. Closed with this one.
            on_fall: hears of each change.
        """
        self._models = models
        self._on_fall = on_fall
        self._at = 0

    @property
    def name(self) -> str:
        """`provider:model` of the model that is asked now."""
        return self._models[self._at].name

    async def ask(self, prompt: Prompt, *, on_text: OnText | None = None) -> Reply:
        """Ask until one answers; what the others used a meter counts.

        Raises:
            ModelError: of the last model; the same kinds as `Model.ask` says.
            OperatorError: the last model cannot be asked at all.
        """
        while True:
            try:
                return await self._models[self._at].ask(prompt, on_text=on_text)
            except (ModelUnavailable, MalformedReply, ModelRejected, OperatorError) as error:
                if self._at + 1 == len(self._models):
                    raise
                self._at += 1
                self._on_fall(error, self.name)

    async def close(self) -> None:
        """Close all models."""
        for model in self._models:
            await model.close()
