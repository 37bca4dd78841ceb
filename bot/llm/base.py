"""The seam to a model."""

from collections.abc import Callable
from typing import Protocol

from bot.domain.messages import Prompt, Reply

OnText = Callable[[str], None]
"""Hears the text of a reply while it streams; pieces in order."""


class Model(Protocol):
    """One model behind one API."""

    @property
    def name(self) -> str:
        """`provider:model`, as configured."""
        ...

    async def ask(self, prompt: Prompt, *, on_text: OnText | None = None) -> Reply:
        """Send the prompt and return the whole reply.

        Raises:
            ModelUnavailable: overloaded, rate limited, unreachable, or the reply broke off (partial text is thrown
                away); `retry_after_s` as the provider said.
            ContextOverflow: longer than the window; nothing was billed.
            MalformedReply: the stream broke the protocol; partial text is thrown away.
            ModelRefused: the model declined.
            ModelRejected: authentication, balance, an unknown model or a bad request.
        """
        ...

    async def close(self) -> None:
        """Give back connections."""
        ...
