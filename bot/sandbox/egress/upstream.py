"""A company's proxy, through which all tunnels go where there is one."""

import asyncio
import base64
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

from bot.errors import OperatorError, SandboxError
from bot.sandbox.egress.addresses import Streams
from bot.sandbox.egress.head import END, connect_request, read_status

_PORTS = {"http": 80, "https": 443}
_BUFFER = 64 << 10
"""Bytes, and so the longest head of an answer."""
_GOOD = range(200, 300)


@dataclass(frozen=True, slots=True)
class Upstream:
    """Where a company's proxy is."""

    host: str
    port: int
    authorization: str = field(repr=False)
    """Value of `Proxy-Authorization`, a secret; empty where the proxy asks for none."""
    tls: ssl.SSLContext | None
    """Of a proxy that is itself reached over TLS."""

    @classmethod
    def parse(cls, url: str, *, ca_bundle: Path | None = None) -> "Upstream":
        """Read a proxy's URL, `http://user:password@host:port`, where `https` means TLS to the proxy itself.

        Args:
            url: may hold credentials, quoted as in any URL.
            ca_bundle: certificates to trust besides the system's; None adds none.

        Raises:
            OperatorError: it is no such URL, or the certificates cannot be read; the text holds no credentials.
        """
        try:
            parts = urlsplit(url)
            host, port = parts.hostname or "", parts.port or _PORTS[parts.scheme]
        except (ValueError, KeyError):
            # Without the cause, which quotes parts of the URL.
            host, port = "", 0
        if not host or parts.scheme not in _PORTS:
            raise OperatorError("the proxy's URL is not of the form http://host:port")
        words = ""
        if parts.username is not None:
            pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            words = f"Basic {base64.b64encode(pair.encode()).decode()}"
        return cls(host, port, words, trusting(ca_bundle) if parts.scheme == "https" else None)

    async def connect(self, host: str, port: int) -> Streams:
        """Open a tunnel through the proxy; no name but the proxy's own is looked up here.

        Raises:
            SandboxError: the proxy cannot be reached or does not open it; the text is fit for the sandbox.
        """
        try:
            reader, writer = await asyncio.open_connection(self.host, self.port, ssl=self.tls, limit=_BUFFER)
        except OSError as error:
            raise SandboxError("the company's proxy cannot be reached") from error
        opened = False
        try:
            writer.write(connect_request(host, port, self.authorization))
            status = await _status(reader)
            opened = status in _GOOD
        finally:
            if not opened:
                writer.transport.abort()
        if not opened:
            said = f"answered with status {status}" if status else "did not answer as a proxy does"
            raise SandboxError(f"the company's proxy {said}")
        return reader, writer


async def _status(reader: asyncio.StreamReader) -> int:
    """Read the head of the proxy's answer and return its status; 0 where it is no such answer."""
    try:
        return read_status(await reader.readuntil(END))
    except (OSError, EOFError, asyncio.LimitOverrunError):
        return 0


def trusting(ca_bundle: Path | None) -> ssl.SSLContext:
    """Make what trusts the system's certificates and these.

    Raises:
        OperatorError: they cannot be read.
    """
    trusted = ssl.create_default_context()
    if ca_bundle is not None:
        try:
            trusted.load_verify_locations(ca_bundle)
        except OSError as error:
            raise OperatorError(f"the certificates in {ca_bundle} cannot be read: {error}") from error
    return trusted
