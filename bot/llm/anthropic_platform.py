"""Who serves Anthropic's models: all that differs is how the SDK's client is made and who is asked for credentials."""

from typing import TYPE_CHECKING, Any, Protocol

from bot.errors import ModelError, ModelRejected
from bot.llm.anthropic_errors import ANTHROPIC, Host
from bot.llm.keys import ApiKey, current

if TYPE_CHECKING:
    import anthropic
    import httpx2

    Client = anthropic.AsyncAnthropic | anthropic.AsyncAnthropicBedrock | anthropic.AsyncAnthropicVertex

BASE_URL = "https://api.anthropic.com"
"""Named here, since the SDK would else look into the environment."""


class Platform(Protocol):
    """One place that serves the models; what it is given is all that it knows, whatever the environment says."""

    @property
    def as_given(self) -> bool:
        """Whether its client sends a request's bytes as they are; others look for the model's name in it."""
        ...

    @property
    def host(self) -> Host:
        """Whom errors name."""
        ...

    @property
    def base_url(self) -> str:
        """Where it is."""
        ...

    def connect(self, http: "httpx2.AsyncClient", max_retries: int) -> "Client":
        """Make the SDK's client; blocks while modules are imported, asks nothing of the network.

        Raises:
            OperatorError: a library is not installed.
            ValueError: the URL is none.
        """
        ...

    async def authorize(self, client: Any, name: str) -> None:  # Any: what this class made itself
        """Give the client the credentials of the next request; raises a `ModelError`.

        Args:
            client: what `connect` made.
            name: of the model, for errors.
        """
        ...

    def meaning(self, error: Exception, name: str) -> ModelError | None:
        """Return what an error of the platform's own libraries means for a model of that name; None: it is none."""
        ...


class Direct:
    """Anthropic itself, or what speaks like it."""

    host = ANTHROPIC
    as_given = True

    def __init__(self, api_key: ApiKey, base_url: str | None = None) -> None:
        """Prepare.

        Args:
            api_key: sent with each request.
            base_url: without `/v1`; None: Anthropic's own.
        """
        self.base_url = base_url or BASE_URL
        self._key = api_key

    def connect(self, http: "httpx2.AsyncClient", max_retries: int) -> "Client":
        """Make the client."""
        import anthropic  # noqa: PLC0415 - costs 1.3 s of CPU

        # The SDK takes some key; the one that counts is given before each request.
        return anthropic.AsyncAnthropic(
            api_key="none", base_url=self.base_url, max_retries=max_retries, timeout=http.timeout, http_client=http
        )

    async def authorize(self, client: Any, name: str) -> None:  # Any: see the protocol
        """Give the client the key."""
        key = await current(self._key)
        if not key:
            raise ModelRejected(f"There is no API key for {name}. Set ANTHROPIC_API_KEY")
        client.api_key = key

    def meaning(self, error: Exception, name: str) -> ModelError | None:
        """Return None: all errors are the SDK's."""
        return None
