"""Predicts how many tokens a prompt has: what the provider counted last, and what was added since."""

from collections.abc import Sequence
from math import ceil

from bot.agent.context.sizes import BYTES_PER_TOKEN, prompt_size, size_of
from bot.domain.messages import Message, Prompt, Reply

SPARSEST = 8
"""Bytes of a token where text says least; a provider that counts fewer tokens leaves out what its cache had."""
WRONG = 1.5
"""A count so many times the prediction is that of several attempts together, of which all but one were thrown away."""


class Gauge:
    """Follows one conversation; says the same of the same prompts and replies."""

    def __init__(self) -> None:
        self._sent: tuple[Message, ...] = ()
        """What the last request carried."""
        self._counted = 0
        """Tokens of the last request and its reply; 0 where nobody counted them."""
        self._per_byte = 1 / BYTES_PER_TOKEN

    def tokens(self, prompt: Prompt) -> int:
        """Return how many tokens the prompt will have."""
        size = prompt_size(prompt)
        if not self._goes_on(prompt):
            return ceil(size * self._per_byte)
        return max(self._counted + ceil(size_of(self._added(prompt)) / BYTES_PER_TOKEN), size // SPARSEST)

    def replied(self, prompt: Prompt, reply: Reply) -> None:
        """Take note of what the provider counted."""
        total = reply.usage.total_tokens
        asked = total - reply.usage.output_tokens
        if not asked:
            self._counted = 0
            return
        if self._goes_on(prompt) and asked > WRONG * (predicted := self.tokens(prompt)):
            asked, total = predicted, predicted + reply.usage.output_tokens
        self._sent, self._counted = tuple(prompt.messages), total
        self._per_byte = max(asked / max(prompt_size(prompt), 1), 1 / SPARSEST)

    def _goes_on(self, prompt: Prompt) -> bool:
        """Whether the prompt begins with what was counted."""
        return bool(self._counted) and tuple(prompt.messages[: len(self._sent)]) == self._sent

    def _added(self, prompt: Prompt) -> Sequence[Message]:
        added = prompt.messages[len(self._sent) :]
        # The reply is counted already.
        return added[1:] if added and added[0].role == "assistant" else added
