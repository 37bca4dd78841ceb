"""A company's network: an authority of its own, TLS in front of our servers, and a proxy that is the only way out."""

import asyncio
import base64
import contextlib
import ssl
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class Authority:
    """A private authority; its certificate is what `network.ca_bundle` names."""

    def __init__(self, folder: Path, name: str = "Example Corp Root") -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.bundle = folder / f"{name.replace(' ', '-')}.pem"
        usage = x509.KeyUsage(
            digital_signature=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            key_cert_sign=True,
            crl_sign=True,
            encipher_only=False,
            decipher_only=False,
        )
        made = self._made(self._subject, self._key).add_extension(
            x509.BasicConstraints(ca=True, path_length=0), critical=True
        )
        self.bundle.write_bytes(self._signed(made.add_extension(usage, critical=True)))

    def serving(self, host: str) -> ssl.SSLContext:
        """Make the context of a server with a certificate for a host."""
        key = ec.generate_private_key(ec.SECP256R1())
        made = self._made(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)]), key)
        made = made.add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        path = self._folder / f"{host}.pem"
        path.write_bytes(private + self._signed(made))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(path)
        return context

    def _made(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + timedelta(hours=1))
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )

    def _signed(self, made: x509.CertificateBuilder) -> bytes:
        return made.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    with contextlib.suppress(OSError, RuntimeError):
        # A TLS connection cannot be closed by halves.
        writer.write_eof() if writer.can_write_eof() else writer.close()


async def _join(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int) -> None:
    """Join a connection with a port of this machine until either side ends."""
    other_reader, other_writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        await asyncio.gather(_carry(reader, other_writer), _carry(other_reader, writer))
    finally:
        for end in (writer, other_writer):
            end.close()
            with contextlib.suppress(OSError):
                await end.wait_closed()


@dataclass
class Network:
    """Hosts that only the proxy can reach."""

    authority: Authority
    hosts: dict[str, int] = field(default_factory=dict)
    """Host to the port of this machine on which its TLS ends."""
    login: str | None = None
    """`user:password` that the proxy asks for."""
    forbidden: set[str] = field(default_factory=set)
    asked: list[str] = field(default_factory=list)
    """Where connections were asked for, as `host:port`."""
    port: int = 0
    """Of the proxy."""
    _open: set["asyncio.Task[None]"] = field(default_factory=set)

    @property
    def proxy(self) -> str:
        """The proxy without a login."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def proxy_with_login(self) -> str:
        """The proxy as the server would write it."""
        return f"http://{self.login}@127.0.0.1:{self.port}"

    async def serve(self, stack: contextlib.AsyncExitStack, host: str, backend: int) -> str:
        """Put TLS in front of a port, under a name; returns its URL."""

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await self._held(_join(reader, writer, backend))

        server = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=self.authority.serving(host))
        stack.push_async_callback(self._end, server)
        self.hosts[host] = server.sockets[0].getsockname()[1]
        return f"https://{host}"

    async def connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer CONNECTs as a company's proxy does, until one leads somewhere: git first asks without a login."""
        with contextlib.suppress(asyncio.IncompleteReadError, OSError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                refusal, port = self._judge(head)
                if not refusal:
                    break
                writer.write(f"HTTP/1.1 {refusal}\r\nContent-Length: 0\r\n\r\n".encode())
                await writer.drain()
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await writer.drain()
            await self._held(_join(reader, writer, port))
        writer.close()

    def _judge(self, head: str) -> tuple[str, int]:
        """Return the refusal of a CONNECT, empty where there is none, and the port that it leads to."""
        first, *rest = head.split("\r\n")
        method, target, _ = first.split(" ")
        given = dict(line.lower().split(": ", 1) for line in rest if ": " in line).get("proxy-authorization")
        self.asked.append(target)
        host = target.partition(":")[0]
        if self.login and given != f"basic {base64.b64encode(self.login.encode()).decode()}".lower():
            return "407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=corp", 0
        if method != "CONNECT" or host not in self.hosts or host in self.forbidden:
            return "403 Forbidden", 0
        return "", self.hosts[host]

    async def _held(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.ensure_future(work)
        self._open.add(task)
        with contextlib.suppress(OSError, asyncio.CancelledError):
            await task
        self._open.discard(task)

    async def _end(self, server: asyncio.Server) -> None:
        server.close()
        for task in list(self._open):
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)


@asynccontextmanager
async def company(folder: Path) -> AsyncIterator[tuple[Network, contextlib.AsyncExitStack]]:
    """Run a company's network; servers are put on the stack."""
    network = Network(Authority(folder))
    async with contextlib.AsyncExitStack() as stack:
        server = await asyncio.start_server(network.connect, "127.0.0.1", 0)
        stack.push_async_callback(network._end, server)
        network.port = server.sockets[0].getsockname()[1]
        yield network, stack
