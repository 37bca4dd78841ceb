"""The way out of a sandbox, made of names: hosts become an allow-list, presets are asked of package managers once."""

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bot.errors import OperatorError
from bot.sandbox.base import Proxy
from bot.sandbox.egress.allowed import Allowed
from bot.sandbox.egress.environment import proxy_environment
from bot.sandbox.egress.presets import PRESETS, ask
from bot.sandbox.egress.proxy import EgressProxy
from bot.sandbox.egress.sources import Machine, Sources
from bot.sandbox.egress.upstream import Upstream

_SYSTEM = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Way:
    """What one sandbox is given so that the named things can be reached from it."""

    proxy: Callable[[], Proxy] | None = None
    """None where no host is named: all there is are folders."""
    readable: Sequence[Path] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    """Texts under the home, by their path there."""


class _Exit:
    """A proxy with the variables that lead to it."""

    def __init__(self, proxy: EgressProxy, ca_bundle: Path | None) -> None:
        self._proxy = proxy
        self._ca_bundle = ca_bundle

    async def start(self, listener: socket.socket) -> None:
        await self._proxy.start(listener)

    async def close(self) -> None:
        await self._proxy.close()

    def environment(self, url: str) -> Mapping[str, str]:
        return proxy_environment(url, str(self._ca_bundle) if self._ca_bundle else None)


class Network:
    """Makes ways out; one for a process, since package managers take seconds to answer."""

    def __init__(
        self,
        machine: Machine,
        *,
        upstream: Upstream | None = None,
        ca_bundle: Path | None = None,
        private: Sequence[str] = (),
    ) -> None:
        """Ask nothing yet.

        Args:
            machine: whose package managers are asked.
            upstream: a company's proxy.
            ca_bundle: file with all certificates that tools in a sandbox trust, readable for everybody; None leaves
                them the system's own.
            private: hosts that may stand for addresses inside a company's network.
        """
        self._machine = machine
        self._private = [name.lower() for name in private]
        self._upstream = upstream
        self._ca_bundle = ca_bundle
        self._asked: dict[str, Sources] = {}
        self._lock = asyncio.Lock()

    async def way(self, names: Sequence[str]) -> Way:
        """Make the way to what is named.

        Args:
            names: hosts as `Allowed.parse` takes them, and presets.

        Raises:
            OperatorError: a name cannot be allowed.
        """
        found = [await self._sources(name) for name in names if name in PRESETS]
        hosts = [name for name in names if name not in PRESETS]
        hosts += [host for sources in found for host in sources.hosts]
        allowed = Allowed.parse(hosts, never=self._machine.never)
        readable = [folder for sources in found for folder in sources.folders if folder.exists()]
        if hosts and self._ca_bundle:
            readable.append(self._ca_bundle)

        def proxy() -> Proxy:
            return _Exit(EgressProxy(allowed, upstream=self._upstream, private=self._private), self._ca_bundle)

        return Way(
            proxy if hosts else None,
            readable,
            {name: value for sources in found for name, value in sources.environment.items()},
            {path: text for sources in found for path, text in sources.files.items()},
        )

    async def _sources(self, preset: str) -> Sources:
        async with self._lock:
            if preset not in self._asked:
                self._asked[preset] = await ask(preset, self._machine)
                for remark in self._asked[preset].remarks:
                    log.warning("egress.preset", extra={"preset": preset, "remark": remark})
            return self._asked[preset]


def with_system_certificates(own: Path, target: Path) -> Path:
    """Write a file with the system's certificates and a company's own, readable for everybody; return it.

    Tools trust one file alone, so that it has to hold both.

    Raises:
        OperatorError: the company's file cannot be read, or is no text.
    """
    # Not `cafile`, which a variable of the environment may replace by the company's own.
    places = (ssl.get_default_verify_paths().openssl_cafile, *_SYSTEM)
    system = next((Path(place) for place in places if place and Path(place).is_file()), None)
    try:
        texts = [path.read_text(encoding="utf-8") for path in (system, own) if path is not None]
    except (OSError, UnicodeDecodeError) as error:
        raise OperatorError(f"The certificates in `network.ca_bundle` ({own}) cannot be read: {error}") from error
    target.write_text("\n".join(texts), encoding="utf-8")
    target.chmod(0o644)
    return target
