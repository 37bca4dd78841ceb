"""Predicts how many tokens a prompt has: what the provider counted last, and what was added since."""

from collections.abc import Sequence
from math import ceil

from bot.agent.context.sizes import BYTES_PER_TOKEN, prompt_size, size_of
from bot.domain.messages import Message, Prompt, Reply

SPARSEST = 8
"""Bytes of a token where text says least; a provider that counts fewer tokens leaves out what its cache had."""


class Gauge:
    """Follows one conversation; says the same of the same prompts and replies."""

    def __init__(self) -> None:
        self._sent: tuple[Message, ...] = ()
        """What the last request carried."""
        self._counted = 0
        """Tokens of the last request and its reply; 0 where nobody counted them."""
        self._bytes = 0
        """Of the last request, with what stands before its messages."""
        self._per_byte = 1 / BYTES_PER_TOKEN

    def tokens(self, prompt: Prompt) -> int:
        """Return how many tokens the prompt will have."""
        if not self._goes_on(prompt):
            return ceil(prompt_size(prompt) * self._per_byte)
        # Not measured from its beginning: a conversation is long, and this is asked at every turn.
        size = self._bytes + size_of(prompt.messages[len(self._sent) :])
        return max(self._counted + ceil(size_of(self._added(prompt)) / BYTES_PER_TOKEN), size // SPARSEST)

    def replied(self, prompt: Prompt, reply: Reply) -> None:
        """Take note of what the provider counted."""
        total = reply.usage.total_tokens
        asked = total - reply.usage.output_tokens
        if not asked:
            self._counted = 0
            return
        self._sent, self._counted, self._bytes = tuple(prompt.messages), total, prompt_size(prompt)
        self._per_byte = max(asked / max(self._bytes, 1), 1 / SPARSEST)

    def _goes_on(self, prompt: Prompt) -> bool:
        """Whether the prompt begins with what was counted."""
        return bool(self._counted) and tuple(prompt.messages[: len(self._sent)]) == self._sent

    def _added(self, prompt: Prompt) -> Sequence[Message]:
        added = prompt.messages[len(self._sent) :]
        # The reply is counted already.
        return added[1:] if added and added[0].role == "assistant" else added
