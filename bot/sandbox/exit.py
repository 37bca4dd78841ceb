"""The server's side of the one way out of a sandbox: a proxy, and the sockets that pass between it and the helper."""

import asyncio
import contextlib
import socket
from collections.abc import Mapping

from bot.errors import SandboxError
from bot.sandbox.base import Proxy

PORT = 3128
"""Where a proxy is found inside a network namespace; there is nobody else on it."""
_CONNECT_S = 5.0
"""Within this time a proxy of our own accepts, or it has too much to do."""


class Exit:
    """A proxy as one helper reaches it.

    In a network namespace of its own, the helper listens and hands us the listening socket: whoever connects there is
    answered here. Elsewhere the proxy listens on this machine, and the helper asks us for a connection to it whenever a
    command wants one; no command can connect by itself.
    """

    def __init__(
        self, proxy: Proxy, ours: socket.socket, theirs: socket.socket, listener: socket.socket | None
    ) -> None:
        self.theirs = theirs
        """The helper's end of the line on which sockets are handed over."""
        self._proxy = proxy
        self._ours = ours
        self._listener = listener
        self.port: int = listener.getsockname()[1] if listener else PORT
        """Of 127.0.0.1, as commands see it."""
        self._handing: asyncio.Task[None] | None = None

    @classmethod
    async def open(cls, proxy: Proxy, network: str) -> "Exit":
        """Prepare the way out.

        Args:
            proxy: not started.
            network: of the layout, `namespace` or `proxy`.
        """
        listener = None
        if network == "proxy":
            listener = socket.create_server(("127.0.0.1", 0))
        elif network != "namespace":
            raise SandboxError("this level has no way to let a command out to named hosts only; leave the network off")
        ours, theirs = socket.socketpair()
        ours.setblocking(False)  # noqa: FBT003 - the name of the method says it
        return cls(proxy, ours, theirs, listener)

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables that make programs use it."""
        return self._proxy.environment(f"http://127.0.0.1:{self.port}")

    async def begin(self) -> None:
        """Answer from now on; the helper is ready."""
        self.theirs.close()
        if self._listener is None:
            # It is there: the helper sends it before it says that it is ready.
            _, (given, *_), _, _ = socket.recv_fds(self._ours, 1, 1)
            await self._proxy.start(socket.socket(fileno=given))
        else:
            await self._proxy.start(self._listener)
            self._handing = asyncio.create_task(self._hand_out(), name="sandbox-connections")

    async def _hand_out(self) -> None:
        """Connect to the proxy whenever the helper asks, and give it the connection."""
        loop = asyncio.get_running_loop()
        while await loop.sock_recv(self._ours, 1):
            try:
                with socket.socket() as connection:
                    connection.setblocking(False)  # noqa: FBT003 - the name of the method says it
                    async with asyncio.timeout(_CONNECT_S):
                        await loop.sock_connect(connection, ("127.0.0.1", self.port))
                    socket.send_fds(self._ours, [b"c"], [connection.fileno()])
            except OSError:
                # The command is told that nobody answers there; the helper must not wait for ever.
                self._ours.send(b"n")

    async def close(self) -> None:
        """Close everything."""
        if self._handing is not None:
            self._handing.cancel()
            with contextlib.suppress(asyncio.CancelledError, OSError):
                await self._handing
        await self._proxy.close()
        for one in (self.theirs, self._ours, self._listener):
            if one is not None:
                one.close()
