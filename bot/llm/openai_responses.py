"""Models behind OpenAI's Responses API, or behind one that speaks like it."""

import time
from collections import Counter
from collections.abc import Callable

from bot.domain.messages import Prompt, Reply
from bot.llm.base import OnText
from bot.llm.openai_client import Endpoint, OpenAIClient
from bot.llm.openai_responses_reply import ReplyBuilder
from bot.llm.openai_responses_wire import Reasoning, events_of, reasons, to_wire
from bot.llm.transport import ClientOptions

PATH = "/responses"


class OpenAIResponsesModel:
    """One model; nothing of a conversation is stored at the provider."""

    def __init__(  # noqa: PLR0913 - each is one setting
        self,
        name: str,
        *,
        endpoint: Endpoint,
        max_output_tokens: int,
        reasoning: Reasoning | None = None,
        is_reasoning: bool | None = None,
        client_options: ClientOptions | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Prepare; nothing is imported or opened yet.

        Args:
            name: `provider:model`; the part behind the colon goes to the API, unless the endpoint has a deployment.
            endpoint: where the API is.
            max_output_tokens: cap of one reply, reasoning included.
            reasoning: how the model reasons; None: as it does by itself.
            is_reasoning: whether it reasons at all; None: by its name, which a deployment may hide.
            client_options: how the API is reached.
            clock: Unix time, for dates in `retry-after`.
        """
        self._name = name
        self._endpoint = endpoint
        self._max_output_tokens = max_output_tokens
        if is_reasoning is None:
            is_reasoning = reasoning is not None or reasons(name.partition(":")[2])
        self._reasoning = (reasoning or Reasoning()) if is_reasoning else None
        self._client = OpenAIClient(name, endpoint, client_options, clock=clock)
        self.unknown: Counter[str] = Counter()
        """Names of events, items and contents that were passed over, and how often."""

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
            reasoning=self._reasoning,
        )
        builder = ReplyBuilder(self._name, self._endpoint.provider)
        try:
            return await self._client.ask(PATH, {**body, "stream": True}, builder, events_of, on_text)
        finally:
            self.unknown.update(builder.unknown)

    async def close(self) -> None:
        """Close the connections; a later request opens new ones."""
        await self._client.close()
