"""Anthropic's models on Google's Vertex AI: the same replies at another path, with a token of Google's.

Source: https://cloud.google.com/vertex-ai/generative-ai/docs/partner-models/claude/use-claude
"""

import asyncio
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import unquote

from bot.errors import ModelError, ModelRejected, ModelUnavailable, OperatorError
from bot.llm.anthropic_errors import Host
from bot.llm.keys import ApiKey, current
from bot.llm.transport import CONNECT_TIMEOUT_S, ClientOptions, connecting
from bot.redaction import mask, register_secret

if TYPE_CHECKING:
    import google.auth.credentials
    import google.auth.transport
    import httpx2

    from bot.llm.anthropic_platform import Client

_LOGIN = "Run `gcloud auth application-default login`, or set `vertex.api_key_command` to what prints an access token"
VERTEX = Host(
    name="Vertex AI",
    key=_LOGIN,
    permission="Allow these credentials `aiplatform.endpoints.predict` in the project of `vertex.project`, and enable "
    "the Vertex AI API and this model there",
    absent="Set the model to one that the project of `vertex.project` has in `vertex.region`, and `vertex.base_url` to "
    "where the API is, with its `/v1`",
)
TOKEN_TIMEOUT_S = 30.0
"""Longest silence of who gives out a token."""
_SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)
_MULTI = frozenset({"us", "eu"})
"""Regions of many regions; their hosts are named otherwise."""


class Vertex:
    """Vertex AI in one project and region."""

    host = VERTEX
    as_given = False

    def __init__(
        self,
        project: str,
        region: str,
        *,
        base_url: str | None = None,
        token: ApiKey = "",
        options: ClientOptions | None = None,
    ) -> None:
        """Prepare; no credentials are looked for yet.

        Args:
            project: id of the project that pays.
            region: as `europe-west1`, `eu`, `us` or `global`.
            base_url: another address, with its `/v1`; None: Google's own.
            token: an access token; empty: Google's own chain is asked for one.
            options: how those are reached who give out tokens.
        """
        self.base_url = base_url or f"https://{_host(region)}/v1"
        self._project = project
        self._region = region
        self._token = token or GoogleLogin(options or ClientOptions())

    def connect(self, http: "httpx2.AsyncClient", max_retries: int) -> "Client":
        """Make the client."""
        import anthropic  # noqa: PLC0415 - costs 1.3 s of CPU

        if isinstance(self._token, GoogleLogin):
            self._token.load()
        return anthropic.AsyncAnthropicVertex(
            project_id=self._project,
            region=self._region,
            base_url=self.base_url,
            max_retries=max_retries,
            timeout=http.timeout,
            http_client=http,
        )

    async def authorize(self, client: Any, name: str) -> None:  # Any: see the protocol
        """Give the client the token, so that it looks for none itself."""
        client.access_token = await current(self._token)

    def meaning(self, error: Exception, name: str) -> ModelError | None:
        """Return None: whoever gives tokens has errors of ours."""
        return None


class GoogleLogin:
    """Access tokens from Google's own chain: a file of credentials, `gcloud`, or the account of the machine."""

    def __init__(self, options: ClientOptions) -> None:
        """Prepare.

        Args:
            options: how those are reached who give out tokens.
        """
        self._options = options
        self._asking = asyncio.Lock()
        self._credentials: google.auth.credentials.Credentials | None = None
        self._way: google.auth.transport.Request | None = None

    def load(self) -> None:
        """Import what is needed.

        Raises:
            OperatorError: it is not installed, or the certificates cannot be read.
        """
        try:
            self._way = _way(self._options)
        except ImportError as error:
            raise OperatorError(
                "Models on Vertex AI need Google's login, which is not installed. "
                "Run `pip install 'issuewright[vertex]'`"
            ) from error

    async def __call__(self) -> str:
        """Return a token that is valid now.

        Raises:
            ModelRejected: there are no credentials, or they are not taken.
            ModelUnavailable: who gives out tokens does not answer.
        """
        import google.auth.exceptions  # noqa: PLC0415 - imported by `load`

        async with self._asking:
            try:
                token = await asyncio.to_thread(self._valid)
            except google.auth.exceptions.TransportError as error:
                raise ModelUnavailable(f"Google gave no access token: {mask(str(error))}") from error
            except (google.auth.exceptions.GoogleAuthError, ValueError) as error:
                raise ModelRejected(f"Google gave no access token ({mask(str(error))}). {_LOGIN}") from error
        register_secret(token, passing=True)
        return token

    def _valid(self) -> str:
        import google.auth  # noqa: PLC0415 - imported by `load`

        if self._credentials is None:
            self._credentials, _ = google.auth.default(scopes=_SCOPES, request=self._way)
        if not self._credentials.valid:
            self._credentials.refresh(self._way)  # type: ignore[no-untyped-call] # the library's
        return str(self._credentials.token)


def _host(region: str) -> str:
    if region == "global":
        return "aiplatform.googleapis.com"
    return f"aiplatform.{region}.rep.googleapis.com" if region in _MULTI else f"{region}-aiplatform.googleapis.com"


def _way(options: ClientOptions) -> "google.auth.transport.Request":
    """Return what carries the requests for tokens: as those for models, but to a machine's own metadata directly."""
    import google.auth.transport.urllib3  # noqa: PLC0415 - an extra
    import urllib3  # noqa: PLC0415 - comes with it

    trusted, proxy = connecting(options).verify, options.https_proxy
    carrier: Any = google.auth.transport.urllib3.Request  # Any: the library says no types
    patience = urllib3.Timeout(connect=CONNECT_TIMEOUT_S, read=TOKEN_TIMEOUT_S)
    direct = carrier(urllib3.PoolManager(timeout=patience, ssl_context=trusted))
    if proxy is None:
        return cast("google.auth.transport.Request", direct)
    parts = urllib3.util.parse_url(proxy)
    login = urllib3.make_headers(proxy_basic_auth=unquote(parts.auth)) if parts.auth else None
    place = parts._replace(auth=None).url
    proxied = carrier(
        urllib3.ProxyManager(
            place, proxy_headers=login, timeout=patience, ssl_context=trusted, proxy_ssl_context=trusted
        )
    )

    def carry(url: str, *args: Any, **kwargs: Any) -> Any:  # Any: the library's own call, passed on
        return (proxied if url.startswith("https:") else direct)(url, *args, **kwargs)

    return cast("google.auth.transport.Request", carry)  # it is only ever called
