"""Models behind Google's Gemini API, or behind one that speaks like it."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from bot.domain.messages import Prompt, Reply
from bot.errors import MalformedReply, ModelError, ModelRefused, ModelRejected, ModelUnavailable, OperatorError
from bot.llm.anthropic_wire import Thinking
from bot.llm.base import OnText
from bot.llm.discarded import with_usage
from bot.llm.google_errors import KEY, error_for
from bot.llm.google_reply import Chunk, ReplyBuilder
from bot.llm.google_wire import path_of, to_wire
from bot.llm.keys import ApiKey, current
from bot.llm.transport import ClientOptions, connecting, unreached
from bot.redaction import mask, masked

if TYPE_CHECKING:
    import google.genai
    import httpx2

BASE_URL = "https://generativelanguage.googleapis.com"
"""Named here, since the SDK would else look into the environment."""
API_VERSION = "v1beta"
"""The one that has thinking and function calls with ids."""
NO_KEY = "none"
"""Sent to a server of one's own that asks for no key, since the SDK asks for one."""


def load_sdk() -> None:
    """Import the SDK (a second of CPU), so that the first request need not."""
    import google.genai.errors  # noqa: F401, PLC0415 - as above


class GoogleModel:
    """One model of Google's; the vendor's SDK is imported at the first request, which `warm` can bring forward."""

    def __init__(  # noqa: PLR0913 - each is one setting
        self,
        name: str,
        *,
        api_key: ApiKey,
        base_url: str | None = None,
        max_output_tokens: int,
        thinking_budget: Thinking = None,
        client_options: ClientOptions | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Prepare; nothing is imported or opened yet.

        Args:
            name: `provider:model`; the part behind the colon goes to the API, with `models/` in front if it has no
                slash.
            api_key: sent as `x-goog-api-key`, or what gives the one that is valid now, asked before each request.
            base_url: without `/v1beta`; None: Google's own.
            max_output_tokens: cap of one reply, thinking included.
            thinking_budget: tokens of that for thinking, below the cap; `adaptive`: as many as the model likes; None:
                nothing is said, and what the model thinks is not shown.
            client_options: how the API is reached.
            clock: Unix time, for dates in `retry-after`.

        Raises:
            OperatorError: a thinking budget that leaves no room for a reply.
        """
        if isinstance(thinking_budget, int) and not 0 <= thinking_budget < max_output_tokens:
            raise OperatorError(
                f"{name}: the thinking budget is {thinking_budget}: set it below the output limit of "
                f"{max_output_tokens}"
            )
        self._name = name
        self._api_key = api_key
        self._needs_key = base_url is None
        self._base_url = base_url or BASE_URL
        self._max_output_tokens = max_output_tokens
        self._thinking = thinking_budget
        self._options = client_options or ClientOptions()
        self._clock = clock
        self._client: google.genai.Client | None = None
        self._http: httpx2.AsyncClient | None = None
        self._opening = asyncio.Lock()
        self.unknown: Counter[str] = Counter()
        """Names of parts and fields that were passed over, and how often."""

    @property
    def name(self) -> str:
        """`provider:model`, as configured."""
        return self._name

    async def warm(self) -> None:
        """Import the SDK and make its client in a thread (a second of CPU); asks nothing of the network.

        Raises:
            OperatorError: the SDK is not installed, the certificates cannot be read, or the URL or proxy is none.
        """
        async with self._opening:
            if self._client is None:
                self._http, self._client = await asyncio.to_thread(self._connect)

    async def ask(self, prompt: Prompt, *, on_text: OnText | None = None) -> Reply:
        """Send the prompt and return the whole reply; errors as `Model.ask` says.

        An error carries the usage of what it threw away (`bot.llm.discarded.usage_of`).
        """
        if self._needs_key and not self._api_key:
            raise ModelRejected(f"There is no API key for {self._name}. Set {KEY}")
        body = to_wire(prompt, model=self._name, max_output_tokens=self._max_output_tokens, thinking=self._thinking)
        builder = ReplyBuilder(self._name, turn=len(prompt.messages))
        try:
            async with aclosing(self._chunks(body)) as chunks:
                async for chunk in chunks:
                    if (text := builder.feed(chunk)) and on_text is not None:
                        on_text(text)
            reply = builder.finish()
            if reply.stop == "refusal":
                raise ModelRefused(f"{self._name} declined to answer: {builder.refusal}")
        except ModelError as error:
            raise with_usage(error, builder.usage) from error.__cause__
        finally:
            self.unknown.update(builder.unknown)
        return reply

    async def close(self) -> None:
        """Close the connections; a later request opens new ones."""
        client, http = self._client, self._http
        self._client = self._http = None
        if client is not None:
            client.close()
        if http is not None:
            await http.aclose()

    async def _chunks(self, body: dict[str, Any]) -> AsyncGenerator[Chunk]:  # Any: the provider's JSON
        """Post the body and give the decoded chunks; no error of the SDK or its transport gets out."""
        await self.warm()
        import google.genai.errors  # noqa: PLC0415 - imported by `warm`
        import httpx2  # noqa: PLC0415 - the SDK's own transport, whose errors it lets through

        client = self._client
        if client is None:
            raise ModelUnavailable(f"{self._name} was closed while it was asked")
        key = await current(self._api_key)
        try:
            # The SDK's public methods make an object of each chunk, without the parts that they do not know, and spell
            # signatures anew; these two are the way that they take themselves.
            api = client._api_client  # noqa: SLF001
            request = api._build_request(  # noqa: SLF001
                "post", path_of(self._name), body, {"headers": {"x-goog-api-key": key or NO_KEY}}
            )
            answer = await api._async_request(request, stream=True)  # noqa: SLF001
            try:
                async for found in answer.async_segments():
                    for chunk in found if isinstance(found, list) else [found]:
                        yield chunk
            finally:
                await answer.response_stream.aclose()  # type: ignore[union-attr] # text only where nothing streams
        except google.genai.errors.APIError as error:
            headers = error.response.headers
            raise error_for(error.code, masked(error.details), headers=headers, now_s=self._clock()) from error
        except google.genai.errors.UnknownApiResponseError as error:
            raise MalformedReply(f"The stream of {self._name} cannot be read: {mask(str(error))[:500]}") from error
        except httpx2.HTTPError as error:
            raise unreached(error, self._name, self._base_url) from error
        except (httpx2.InvalidURL, ValueError) as error:
            raise ModelRejected(
                f"The request to {self._name} at {self._base_url} cannot be made: {mask(str(error))}"
            ) from error

    def _connect(self) -> "tuple[httpx2.AsyncClient, google.genai.Client]":
        try:
            import google.genai  # noqa: PLC0415 - costs a second of CPU, and is an extra
            import httpx2  # noqa: PLC0415 - comes with the SDK
            from google.genai import types  # noqa: PLC0415 - comes with it
        except ImportError as error:
            raise OperatorError(
                f"{self._name} needs Google's SDK, which is not installed. Run `pip install 'issuewright[google]'`"
            ) from error
        try:
            way = connecting(self._options)

            async def be_patient(request: httpx2.Request) -> None:
                # The SDK has one number for all phases, tells it the server as the longest time of a whole reply, and
                # takes none for eternity.
                request.extensions["timeout"] = way.timeout.as_dict()

            http = httpx2.AsyncClient(
                verify=way.verify, proxy=way.proxy, trust_env=False, event_hooks={"request": [be_patient]}
            )
            client = google.genai.Client(
                vertexai=False,
                api_key=NO_KEY,
                http_options=types.HttpOptions(
                    base_url=self._base_url, api_version=API_VERSION, httpx_async_client=http
                ),
            )
        except (ValueError, httpx2.InvalidURL) as error:
            raise OperatorError(f"{self._name} cannot be reached at {self._base_url}: {mask(str(error))}") from error
        return http, client
