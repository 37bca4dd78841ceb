"""Models behind Anthropic's Messages API: its own, another that speaks like it, Amazon's or Google's."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from bot.domain.messages import Message, Prompt, Reply, TextPart, Usage
from bot.errors import MalformedReply, ModelError, ModelRefused, ModelRejected, ModelUnavailable, OperatorError
from bot.llm.anthropic_errors import error_for
from bot.llm.anthropic_platform import Direct, Platform
from bot.llm.anthropic_reply import Event, ReplyBuilder
from bot.llm.anthropic_wire import Thinking, events_of, to_wire
from bot.llm.base import OnText
from bot.llm.discarded import with_usage
from bot.llm.keys import ApiKey
from bot.llm.transport import ClientOptions, connecting, unreached
from bot.redaction import mask, masked

if TYPE_CHECKING:
    import anthropic

    from bot.llm.anthropic_platform import Client

RESENDS = 3
"""How often a paused reply is sent back to be continued."""
MIN_THINKING_TOKENS = 1024
"""Source: https://docs.anthropic.com/en/docs/build-with-claude/extended-thinking"""
_STREAMS = ("text/event-stream", "application/vnd.amazon.eventstream")


def load_sdk() -> None:
    """Import the SDK (0.7 s of CPU), so that the first request need not."""
    import anthropic  # noqa: F401, PLC0415 - as above


class AnthropicModel:
    """One model of Anthropic's; the vendor's SDK is imported at the first request, which `warm` can bring forward."""

    def __init__(  # noqa: PLR0913 - each is one setting
        self,
        name: str,
        *,
        api_key: ApiKey = "",
        base_url: str | None = None,
        platform: Platform | None = None,
        max_output_tokens: int,
        thinking_budget: Thinking = None,
        client_options: ClientOptions | None = None,
        max_retries: int = 0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Prepare; nothing is imported or opened yet.

        Args:
            name: `provider:model`; the part behind the colon goes to the API.
            api_key: of Anthropic, or what gives the one that is valid now, asked before each request.
            base_url: without `/v1`; None: Anthropic's own.
            platform: who else serves the model, in place of both.
            max_output_tokens: cap of one reply, thinking included.
            thinking_budget: tokens of that for thinking, from 1,024 and below the cap; `adaptive` for models that
                measure it themselves; None: no thinking is asked for.
            client_options: how the API is reached.
            max_retries: the SDK's own retries, 0 under `Retrying`: one layer of retries is enough.
            clock: Unix time, for dates in `retry-after`.

        Raises:
            OperatorError: a thinking budget that the API does not take.
        """
        if isinstance(thinking_budget, int) and not MIN_THINKING_TOKENS <= thinking_budget < max_output_tokens:
            raise OperatorError(
                f"{name}: the thinking budget is {thinking_budget}: set it to at least {MIN_THINKING_TOKENS} and below "
                f"the output limit of {max_output_tokens}"
            )
        self._name = name
        self._platform = platform or Direct(api_key, base_url)
        self._base_url = self._platform.base_url
        self._max_output_tokens = max_output_tokens
        self._thinking = thinking_budget
        self._options = client_options or ClientOptions()
        self._max_retries = max_retries
        self._clock = clock
        self._client: Client | None = None
        self._opening = asyncio.Lock()
        self.unknown: Counter[str] = Counter()
        """Names of events, blocks and deltas that were passed over, and how often."""

    @property
    def name(self) -> str:
        """`provider:model`, as configured."""
        return self._name

    async def warm(self) -> None:
        """Import the SDK and make its client in a thread (1.3 s of CPU); asks nothing of the network.

        Raises:
            OperatorError: a library is not installed, the certificates cannot be read, or the URL or proxy is none.
        """
        async with self._opening:
            if self._client is None:
                self._client = await asyncio.to_thread(self._connect)

    async def ask(self, prompt: Prompt, *, on_text: OnText | None = None) -> Reply:
        """Send the prompt and return the whole reply; errors as `Model.ask` says.

        A reply that the API pauses is sent back up to three times and comes as one. An error carries the usage of what
        it threw away (`bot.llm.discarded.usage_of`).
        """
        reply = await self._ask_once(prompt, on_text)
        for _ in range(RESENDS):
            if reply.stop != "pause":
                break
            longer = replace(prompt, messages=(*prompt.messages, reply.message))
            try:
                more = await self._ask_once(longer, on_text)
            except ModelError as error:
                raise with_usage(error, reply.usage) from error.__cause__
            reply = _joined(reply, more)
        return reply

    async def close(self) -> None:
        """Close the connections; a later request opens new ones."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _ask_once(self, prompt: Prompt, on_text: OnText | None) -> Reply:
        body = to_wire(prompt, model=self._name, max_output_tokens=self._max_output_tokens, thinking=self._thinking)
        builder = ReplyBuilder(self._name, self._platform.host)
        try:
            async with aclosing(self._events({**body, "stream": True})) as events:
                async for event in events:
                    if (text := builder.feed(event)) and on_text is not None:
                        on_text(text)
            reply = builder.finish()
            if reply.stop == "refusal":
                raise ModelRefused(f"{self._name} declined to answer: {builder.refusal or 'it gave no reason'}")
        except ModelError as error:
            raise with_usage(error, builder.usage) from error.__cause__
        finally:
            self.unknown.update(builder.unknown)
        return reply

    async def _events(self, body: dict[str, Any]) -> AsyncGenerator[Event]:  # Any: the provider's JSON
        """Post the body and give the decoded events; no error of the SDK or its transport gets out."""
        await self.warm()
        import anthropic  # noqa: PLC0415 - imported by `warm`
        import httpx2  # noqa: PLC0415 - the SDK's own transport, whose errors it lets through while it streams

        client = self._client
        if client is None:
            raise ModelUnavailable(f"{self._name} was closed while it was asked")
        await self._platform.authorize(client, self._name)
        try:
            # `post` and not `messages.create`: that one warns of deprecated models and builds an object of each event.
            stream = await client.post(
                "/v1/messages",
                **self._written(body),
                cast_to=object,
                stream=True,
                stream_cls=anthropic.AsyncStream[object],
            )
            async with stream:
                async for event in self._read(stream):
                    yield event
        except anthropic.APIStatusError as error:
            raise self._error(error) from error
        except (anthropic.APIConnectionError, httpx2.HTTPError) as error:
            raise unreached(error, self._name, self._base_url) from error
        except (anthropic.AnthropicError, httpx2.InvalidURL, ValueError) as error:
            raise ModelRejected(
                f"The request to {self._name} at {self._base_url} cannot be made: {mask(str(error))}"
            ) from error
        except Exception as error:
            if (meant := self._platform.meaning(error, self._name)) is None:
                raise
            raise meant from error

    def _written(self, body: dict[str, Any]) -> dict[str, Any]:  # Any: JSON, and what the SDK's method takes
        if not self._platform.as_given:
            return {"body": body}
        # The SDK would copy all of a long conversation, value by value, before it writes it down.
        return {"content": json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()}

    async def _read(self, stream: "anthropic.AsyncStream[object]") -> AsyncGenerator[Event]:
        """Give the decoded events of an answer, whether it came as events or in one piece.

        Raises:
            MalformedReply: neither JSON nor UTF-8.
        """
        kind = stream.response.headers.get("content-type", "")
        try:
            if not kind.startswith(_STREAMS):
                for event in _told(kind, await stream.response.aread()):
                    yield event
                return
            # Not `raw_events`, which knows no frames, nor the stream itself, which drops events that it does not know.
            async for sent in stream._iter_events():  # noqa: SLF001
                if sent.data:
                    yield sent.json()
        except ValueError as error:
            raise MalformedReply(f"The stream of {self._name} cannot be read: {error}") from error

    def _error(self, error: "anthropic.APIStatusError") -> ModelError:
        body, headers, host = masked(error.body), error.response.headers, self._platform.host
        return error_for(error.status_code, body, host=host, headers=headers, now_s=self._clock())

    def _connect(self) -> "Client":
        import anthropic  # noqa: PLC0415 - costs 1.3 s of CPU
        import httpx2  # noqa: PLC0415 - comes with the SDK

        try:
            how = connecting(self._options)
            http = anthropic.DefaultAsyncHttpxClient(
                verify=how.verify, proxy=how.proxy, timeout=how.timeout, trust_env=False
            )
            client = self._platform.connect(http, self._max_retries)
        except (ValueError, httpx2.InvalidURL) as error:
            raise OperatorError(f"{self._name} cannot be reached at {self._base_url}: {mask(str(error))}") from error
        # The SDK takes these from the environment, where they may be meant for somebody else.
        client._custom_headers = {}  # noqa: SLF001
        return client


def _told(kind: str, raw: bytes) -> list[Event]:
    """Return the events of an answer that is no stream.

    Raises:
        MalformedReply: it is no message either.
    """
    try:
        message = json.loads(raw)
        return list(events_of(message))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise MalformedReply(f"Where a stream was expected there came {kind or 'something'}") from error


def _joined(first: Reply, second: Reply) -> Reply:
    """Return both as one reply; a text goes on where the first one stopped."""
    parts, more = list(first.message.parts), list(second.message.parts)
    if parts and more and isinstance(last := parts[-1], TextPart) and isinstance(following := more[0], TextPart):
        parts[-1:], more[:1] = [TextPart(last.text + following.text)], []
    usage: Usage = first.usage + second.usage
    return replace(second, message=Message("assistant", (*parts, *more)), usage=usage)
