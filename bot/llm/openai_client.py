"""OpenAI's SDK behind both of its wires: a body goes out, decoded events come back, errors are ours."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from bot.domain.messages import Reply, Usage
from bot.errors import MalformedReply, ModelError, ModelRefused, ModelRejected, ModelUnavailable, OperatorError
from bot.llm.base import OnText
from bot.llm.discarded import with_usage
from bot.llm.keys import ApiKey
from bot.llm.openai_errors import OPENAI, Provider, error_for
from bot.llm.openai_events import DONE, Event
from bot.llm.transport import ClientOptions, connecting, unreached
from bot.redaction import mask, masked

if TYPE_CHECKING:
    import openai

    from bot.llm.openai_stream import Stream

BASE_URL = "https://api.openai.com/v1"
"""Named here, since the SDK would else look into the environment."""

EventsOf = Callable[[Event], Iterable[Event]]


class Builder(Protocol):
    """Puts one reply together."""

    usage: Usage
    refusal: str
    unknown: Counter[str]

    def feed(self, event: Event) -> str:
        """Take the next event and return the text it adds; raises a `ModelError`."""
        ...

    def finish(self) -> Reply:
        """Return the reply; raises a `ModelError`."""
        ...


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where an API is, and who opens it."""

    api_key: ApiKey = field(default="", repr=False)
    """Empty for a server of one's own that asks for none."""
    base_url: str | None = None
    """With `/v1`; for Azure the resource, without `/openai`; None: OpenAI's own."""
    api_version: str | None = None
    """Of Azure, as `2025-04-01-preview`; None: it is not Azure."""
    deployment: str | None = None
    """What the API calls the model where that is not its name, as on Azure."""
    provider: Provider = OPENAI
    """Whom errors name, and what they say to set."""

    @property
    def url(self) -> str:
        """Where the API is."""
        return self.base_url or BASE_URL

    @property
    def needs_key(self) -> bool:
        """Whether nobody answers there without a key."""
        return self.base_url is None or self.api_version is not None


def load_sdk() -> None:
    """Import the SDK (0.5 s of CPU), so that the first request need not."""
    import openai  # noqa: F401, PLC0415 - as above


class OpenAIClient:
    """One place that speaks OpenAI's APIs; the SDK is imported at the first request, which `warm` can bring forward."""

    def __init__(
        self,
        name: str,
        endpoint: Endpoint,
        options: ClientOptions | None = None,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Prepare; nothing is imported or opened yet.

        Args:
            name: of the model, for errors.
            endpoint: where the API is.
            options: how it is reached.
            clock: Unix time, for dates in `retry-after`.
        """
        self._name = name
        self._endpoint = endpoint
        self._options = options or ClientOptions()
        self._clock = clock
        self._client: openai.AsyncOpenAI | None = None
        self._opening = asyncio.Lock()

    async def warm(self) -> None:
        """Import the SDK and make its client in a thread (about a second of CPU); asks nothing of the network.

        Raises:
            OperatorError: the certificates cannot be read, or the URL or proxy is none.
        """
        async with self._opening:
            if self._client is None:
                self._client = await asyncio.to_thread(self._connect)

    async def close(self) -> None:
        """Close the connections; a later request opens new ones."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def ask(
        self, path: str, body: Mapping[str, Any], builder: Builder, events_of: EventsOf, on_text: OnText | None
    ) -> Reply:
        """Post the body and return the reply that the builder makes of the answer; errors as `Model.ask` says.

        Args:
            path: below the base URL, with a slash in front.
            body: of a streaming request.
            builder: a fresh one.
            events_of: tells an answer that came in one piece as events.
            on_text: hears the text while it comes.
        """
        if self._endpoint.needs_key and not self._endpoint.api_key:
            raise ModelRejected(f"There is no API key for {self._name}. Set {self._endpoint.provider.key}")
        try:
            async with aclosing(self._events(path, body, events_of)) as events:
                async for event in events:
                    if (text := builder.feed(event)) and on_text is not None:
                        on_text(text)
            reply = builder.finish()
            if reply.stop == "refusal":
                reason = builder.refusal or reply.message.text or "it gave no reason"
                raise ModelRefused(f"{self._name} declined to answer: {reason}")
        except ModelError as error:
            raise with_usage(error, builder.usage) from error.__cause__
        return reply

    async def _events(self, path: str, body: Mapping[str, Any], events_of: EventsOf) -> AsyncGenerator[Event]:
        """Post the body and give the decoded events; no error of the SDK or its transport gets out."""
        await self.warm()
        import httpx2  # noqa: PLC0415 - the SDK's own transport, whose errors it may let through
        import openai  # noqa: PLC0415 - imported by `warm`

        from bot.llm.openai_stream import Stream  # noqa: PLC0415 - imports the SDK

        client, url = self._client, self._endpoint.url
        if client is None:
            raise ModelUnavailable(f"{self._name} was closed while it was asked")
        try:
            # `post` and not `responses.create`: that one builds an object of each event.
            stream = await client.post(path, body=body, cast_to=object, stream=True, stream_cls=Stream)
            async with stream:
                async for event in self._read(stream, events_of):
                    yield event
        except openai.APIStatusError as error:
            raise self._error(error.status_code, error.body, error.response.headers) from error
        except (openai.APIConnectionError, httpx2.HTTPError) as error:
            raise unreached(error, self._name, url) from error
        except openai.APIError as error:
            raise self._error(None, error.body, {}) from error
        except (openai.OpenAIError, httpx2.InvalidURL, ValueError) as error:
            raise ModelRejected(f"The request to {self._name} at {url} cannot be made: {mask(str(error))}") from error

    async def _read(self, stream: "Stream", events_of: EventsOf) -> AsyncGenerator[Event]:
        """Give the decoded events of an answer, whether it came as events or in one piece, and `DONE` if it said so.

        Raises:
            MalformedReply: neither JSON objects nor UTF-8.
        """
        kind = stream.response.headers.get("content-type", "")
        try:
            if "text/event-stream" not in kind:
                for event in _told(kind, await stream.response.aread(), events_of):
                    yield event
                return
            async for data in stream:
                if not isinstance(data, Mapping):
                    raise MalformedReply(f"The stream of {self._name} has an event that is no object")
                yield data
            if stream.is_done:
                yield DONE
        except ValueError as error:
            raise MalformedReply(f"The stream of {self._name} cannot be read: {error}") from error

    def _error(self, status: int | None, body: object, headers: Mapping[str, str]) -> ModelError:
        now_s, provider = self._clock(), self._endpoint.provider
        return error_for(status, masked(body), provider=provider, headers=headers, now_s=now_s)

    def _connect(self) -> "openai.AsyncOpenAI":
        import httpx2  # noqa: PLC0415 - comes with the SDK
        import openai  # noqa: PLC0415 - costs about a second of CPU

        endpoint = self._endpoint
        try:
            way = connecting(self._options)
            http = openai.DefaultAsyncHttpxClient(
                verify=way.verify, proxy=way.proxy, timeout=way.timeout, trust_env=False
            )
            if endpoint.api_version is None:
                # The SDK wants some key, also for a server that asks for none.
                key = endpoint.api_key or "none"
                client = openai.AsyncOpenAI(api_key=key, base_url=endpoint.url, max_retries=0, http_client=http)
            else:
                client = _azure(endpoint, endpoint.api_version, http)
        except (ValueError, httpx2.InvalidURL, openai.OpenAIError) as error:
            raise OperatorError(f"{self._name} cannot be reached at {endpoint.url}: {mask(str(error))}") from error
        # The SDK takes these from the environment, where they may be meant for somebody else.
        client.organization = client.project = None
        return client


def _azure(endpoint: Endpoint, api_version: str, http: "openai.DefaultAsyncHttpxClient") -> "openai.AsyncOpenAI":
    """Make Azure's client: a key that changes is a token of Entra's there."""
    import openai  # noqa: PLC0415 - imported before

    key = endpoint.api_key
    return openai.AsyncAzureOpenAI(
        azure_endpoint=endpoint.url,
        api_version=api_version,
        api_key=key if isinstance(key, str) else None,
        azure_ad_token_provider=None if isinstance(key, str) else key,
        max_retries=0,
        http_client=http,
    )


def _told(kind: str, raw: bytes, events_of: EventsOf) -> list[Event]:
    """Return the events of an answer that is no stream.

    Raises:
        MalformedReply: it is no reply either.
    """
    try:
        return list(events_of(json.loads(raw)))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise MalformedReply(f"Where a stream was expected there came {kind or 'something'}") from error
