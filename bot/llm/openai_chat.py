"""Models behind OpenAI's Chat Completions, or behind one of the many servers that speak like it."""

import time
from collections import Counter
from collections.abc import Callable

from bot.domain.messages import Prompt, Reply
from bot.llm.base import OnText
from bot.llm.openai_chat_reply import ReplyBuilder
from bot.llm.openai_chat_wire import COMPATIBLE, OPENAI, Habits, events_of, to_wire
from bot.llm.openai_client import Endpoint, OpenAIClient
from bot.llm.transport import ClientOptions

PATH = "/chat/completions"


class OpenAIChatModel:
    """One model."""

    def __init__(  # noqa: PLR0913 - each is one setting
        self,
        name: str,
        *,
        endpoint: Endpoint,
        max_output_tokens: int,
        effort: str | None = None,
        habits: Habits | None = None,
        client_options: ClientOptions | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Prepare; nothing is imported or opened yet.

        Args:
            name: `provider:model`; the part behind the colon goes to the API, unless the endpoint has a deployment.
            endpoint: where the API is.
            max_output_tokens: cap of one reply, reasoning included.
            effort: of reasoning, as the model knows it; None: its default, or it does not reason.
            habits: what the server takes; None: what OpenAI and Azure take there, and else what all take.
            client_options: how the API is reached.
            clock: Unix time, for dates in `retry-after`.
        """
        self._name = name
        self._endpoint = endpoint
        self._max_output_tokens = max_output_tokens
        self._effort = effort
        self._habits = habits or (OPENAI if endpoint.needs_key else COMPATIBLE)
        self._client = OpenAIClient(name, endpoint, client_options, clock=clock)
        self.unknown: Counter[str] = Counter()
        """Names of fields, contents and reasons that were passed over, and how often."""

    @property
    def name(self) -> str:
        """`provider:model`, as configured."""
        return self._name

    async def warm(self) -> None:
        """Import the SDK and make its client; raises `OperatorError` as `OpenAIClient.warm`."""
        await self._client.warm()

    async def ask(self, prompt: Prompt, *, on_text: OnText | None = None) -> Reply:
        """Send the prompt and return the whole reply; errors as `Model.ask` says.

        An error carries the usage of what it threw away (`bot.llm.discarded.usage_of`).
        """
        body = to_wire(
            prompt,
            model=self._name,
            wire_model=self._endpoint.deployment,
            max_output_tokens=self._max_output_tokens,
            effort=self._effort,
            habits=self._habits,
        )
        body["stream"] = True
        if self._habits.streamed_usage:
            body["stream_options"] = {"include_usage": True}
        builder = ReplyBuilder(self._name, self._endpoint.provider)
        try:
            return await self._client.ask(PATH, body, builder, events_of, on_text)
        finally:
            self.unknown.update(builder.unknown)

    async def close(self) -> None:
        """Close the connections; a later request opens new ones."""
        await self._client.close()
