"""A model that tries again."""

from collections.abc import Awaitable, Callable

from bot.domain.messages import Prompt, Reply
from bot.errors import MalformedReply, ModelError, ModelUnavailable
from bot.llm.base import Model, OnText

FIRST_DELAY_S = 1.0
LONGEST_DELAY_S = 30.0

OnRetry = Callable[[ModelError, float], None]
"""Hears, before each wait, what went wrong and how many seconds the wait takes."""


class Retrying:
    """Asks again what failed for a while: safe, since no tool has run before a reply is whole.

    Text that `on_text` heard of an attempt that then failed is not taken back: the next attempt begins at the first
    word. `on_retry` is called between the two, so whoever shows the text clears it there.
    """

    def __init__(
        self,
        model: Model,
        *,
        sleep: Callable[[float], Awaitable[None]],
        random: Callable[[], float],
        attempts: int = 5,
        deadline_s: float = 300.0,
        on_retry: OnRetry | None = None,
    ) -> None:
        """Wrap a model.

        Args:
            model: whom to ask; closed with this one.
            sleep: waits that many seconds.
            random: gives a number from 0 to 1.
            attempts: requests in all, 1 or more.
            deadline_s: seconds of waiting in all; a longer wait that the provider asks for fails at once.
            on_retry: hears of each retry.
        """
        self._model = model
        self._sleep = sleep
        self._random = random
        self._attempts = attempts
        self._deadline_s = deadline_s
        self._on_retry = on_retry

    @property
    def name(self) -> str:
        """`provider:model` of the wrapped model."""
        return self._model.name

    async def ask(self, prompt: Prompt, *, on_text: OnText | None = None) -> Reply:
        """Ask until a reply comes, within the limits; its usage is its own, what the others cost a meter counts.

        `ModelUnavailable` is tried again as long as attempts and waiting time last, `MalformedReply` once.

        Raises:
            ModelError: the last one.
        """
        waited_s, is_malformed_before = 0.0, False
        for attempt in range(self._attempts):
            try:
                return await self._model.ask(prompt, on_text=on_text)
            except (ModelUnavailable, MalformedReply) as error:
                delay_s = self._delay_s(attempt, error)
                is_malformed = isinstance(error, MalformedReply)
                is_last = attempt + 1 >= self._attempts or waited_s + delay_s > self._deadline_s
                if is_last or (is_malformed and is_malformed_before):
                    raise
                waited_s += delay_s
                is_malformed_before = is_malformed_before or is_malformed
                if self._on_retry is not None:
                    self._on_retry(error, delay_s)
                await self._sleep(delay_s)
        raise ValueError("attempts must be 1 or more")

    async def close(self) -> None:
        """Close the wrapped model."""
        await self._model.close()

    def _delay_s(self, attempt: int, error: ModelError) -> float:
        """Return a wait that doubles up to a bound, half of it by chance, never shorter than the provider asks."""
        delay_s = min(LONGEST_DELAY_S, FIRST_DELAY_S * 2.0**attempt) * (0.5 + self._random() / 2)
        asked_s = error.retry_after_s if isinstance(error, ModelUnavailable) else None
        return delay_s if asked_s is None else max(delay_s, asked_s)
