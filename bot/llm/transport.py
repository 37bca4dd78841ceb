"""How a vendor's SDK reaches its API: certificates, proxy and patience, and what it means when it does not."""

import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bot.errors import ModelError, ModelRejected, ModelUnavailable, OperatorError
from bot.redaction import mask

if TYPE_CHECKING:
    import httpx2


CONNECT_TIMEOUT_S = 10.0
SILENCE_TIMEOUT_S = 300.0
"""Longest silence inside a stream; the APIs ping while a model thinks."""


@dataclass(frozen=True, slots=True)
class ClientOptions:
    """How the API is reached."""

    ca_bundle: Path | None = None
    """Certificates (PEM) that are trusted on top of the system's."""
    https_proxy: str | None = None
    """Proxy for all requests, with its login; None: none, whatever the environment says."""
    silence_timeout_s: float = SILENCE_TIMEOUT_S
    """Longest silence of the API before a request counts as lost."""


@dataclass(frozen=True, slots=True)
class Connecting:
    """What a client of `httpx2` takes."""

    verify: ssl.SSLContext
    proxy: "httpx2.Proxy | None"
    timeout: "httpx2.Timeout"


def connecting(options: ClientOptions) -> Connecting:
    """Read the certificates and the proxy.

    Raises:
        OperatorError: the certificates cannot be read.
        ValueError: the proxy's address is none.
    """
    import httpx2  # noqa: PLC0415 - costs time; it comes with the SDKs

    trusted = ssl.create_default_context()
    if options.ca_bundle is not None:
        try:
            trusted.load_verify_locations(options.ca_bundle)
        except OSError as error:
            raise OperatorError(f"The certificates in {options.ca_bundle} cannot be read: {error}") from error
    proxy = options.https_proxy
    # A proxy that is spoken to over TLS may have a certificate of the same authority.
    through = httpx2.Proxy(proxy, ssl_context=trusted if proxy.startswith("https:") else None) if proxy else None
    return Connecting(trusted, through, httpx2.Timeout(options.silence_timeout_s, connect=CONNECT_TIMEOUT_S))


def unreached(error: Exception, name: str, base_url: str) -> ModelError:
    """Return what it means that no answer came, or not all of it.

    Args:
        error: of the SDK or of `httpx2`.
        name: of the model.
        base_url: where it was asked.
    """
    import httpx2  # noqa: PLC0415 - costs time; it comes with the SDKs

    # An SDK puts an error of its own around the transport's.
    cause = error if isinstance(error, httpx2.HTTPError) else error.__cause__ or error
    reason = mask(str(cause) or type(cause).__name__)
    if isinstance(cause, httpx2.ProxyError) and reason.startswith("407"):
        return ModelRejected(
            f"The proxy wants a login before it connects to {base_url} ({reason}). Set "
            "ISSUEWRIGHT_NETWORK__HTTPS_PROXY_LOGIN, or name a file in `network.https_proxy_login_file`"
        )
    if isinstance(cause, httpx2.ProxyError) and reason.startswith("4"):
        return ModelRejected(f"The proxy does not connect to {base_url} ({reason}). Allow that host there")
    if "CERTIFICATE_VERIFY_FAILED" in reason:
        return ModelRejected(
            f"The certificate at {base_url} is not trusted. Set `network.ca_bundle` to your certificates: {reason}"
        )
    remedy = "Look at `base_url`, and whether this machine may connect there" * isinstance(cause, httpx2.ConnectError)
    return ModelUnavailable(f"{name} cannot be reached at {base_url}: {reason}" + (f". {remedy}" if remedy else ""))
