"""The only way out of a sandbox: an HTTP proxy that opens tunnels to the names of an allow-list.

Clients ask with `CONNECT host:port`. The name is decided on as text, looked up on the host, refused where any address
is not of the public internet, and connected to at just those addresses: no second look-up can change the answer.

What passes inside a tunnel is TLS and not looked into. Hence what an allow-list cannot promise: a name behind a large
CDN also opens what else that CDN serves at the same addresses to a client that asks for it inside TLS (domain
fronting), and whoever runs an allowed host can be sent anything. Name few hosts, and those to which nobody can write.
"""

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable, Collection, Sequence
from http import HTTPStatus

from bot.errors import SandboxError
from bot.sandbox.egress.addresses import Address, Resolve, Streams, SystemResolver, connect, is_public, may_be_private
from bot.sandbox.egress.allowed import Allowed, Decision, printable
from bot.sandbox.egress.head import CONNECTED, END, Request, answer, read_request
from bot.sandbox.egress.limits import Budget, EgressLimits
from bot.sandbox.egress.tunnel import closing, tunnel
from bot.sandbox.egress.upstream import Upstream

_LINGER_S = 2.0
"""Seconds in which a refused client may go on sending; were its bytes left unread, the kernel would drop our answer."""

_TOO_MANY = "too many connections are open at once"
_NOT_HTTP = "this is no request to an HTTP proxy"
_TUNNELS_ONLY = "only CONNECT is served here: use https, plain http is not passed on"

log = logging.getLogger(__name__)


def _nobody(_: Decision) -> None:
    """Tell nobody."""


class EgressProxy:
    """Serves one sandbox. Started once, and closed by whoever started it."""

    def __init__(  # noqa: PLR0913 - what tests give beside what is needed
        self,
        allowed: Allowed,
        *,
        limits: EgressLimits | None = None,
        upstream: Upstream | None = None,
        resolve: Resolve | None = None,
        acceptable: Callable[[Address], bool] = is_public,
        private: Collection[str] = (),
        decided: Callable[[Decision], None] = _nobody,
    ) -> None:
        """Describe a proxy; nothing is started.

        Args:
            allowed: what may be reached.
            limits: None takes the defaults.
            upstream: a company's proxy, through which everything goes. It looks the names up, so that the allow-list
                alone decides, and neither `resolve` nor `acceptable` is asked.
            resolve: looks names up; None asks the machine's resolver.
            acceptable: decides on each address of a name; one that is not refuses the name.
            private: names in lower case that may also stand for addresses inside a company's network.
            decided: is told each decision, also that a tunnel was ended at a limit; must not raise or block.
        """
        self._allowed = allowed
        self._limits = limits or EgressLimits()
        self._upstream = upstream
        self._system = SystemResolver()
        self._resolve = resolve or self._system.resolve
        self._acceptable = acceptable
        self._private = frozenset(private)
        self._decided = decided
        self._up = Budget(self._limits.up_bytes)
        self._down = Budget(self._limits.down_bytes)
        self._requests = Budget(self._limits.requests)
        self._serving: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    @property
    def used_bytes(self) -> tuple[int, int]:
        """What the sandbox has sent and received so far."""
        return self._up.used, self._down.used

    async def start(self, listener: socket.socket) -> None:
        """Serve a listening stream socket, of whichever family and network namespace; it is closed with the proxy."""
        self._server = await asyncio.start_server(self._accept, sock=listener, limit=self._limits.head_bytes)

    async def close(self) -> None:
        """Stop listening and end all tunnels; does nothing the second time."""
        if self._server is not None:
            self._server.close()
        serving = list(self._serving)
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)
        if self._server is not None:
            await self._server.wait_closed()
        self._system.close()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self._requests.take(1):
            log.debug("egress.exhausted")
            writer.transport.abort()
            return
        if len(self._serving) >= self._limits.connections:
            self._tell(Decision("").refused("limit", _TOO_MANY))
            writer.write(answer(HTTPStatus.SERVICE_UNAVAILABLE, _TOO_MANY))
            writer.close()
            return
        task = asyncio.create_task(self._serve((reader, writer)))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def _serve(self, inside: Streams) -> None:
        async with closing(inside[1]):
            head = await self._head(inside[0])
            if head is None:
                return
            request = read_request(head)
            if request is None:
                await self._refuse(inside, HTTPStatus.BAD_REQUEST, Decision("").refused("form", _NOT_HTTP))
            elif request.method != "CONNECT":
                asked = Decision(printable(request.target))
                await self._refuse(inside, HTTPStatus.METHOD_NOT_ALLOWED, asked.refused("method", _TUNNELS_ONLY))
            else:
                await self._connect(inside, request)

    async def _head(self, reader: asyncio.StreamReader) -> bytes | None:
        """Read the head of a request; None where it is too long or too slow, or the client went away."""
        try:
            async with asyncio.timeout(self._limits.head_s):
                return await reader.readuntil(END)
        except (OSError, EOFError, asyncio.LimitOverrunError):
            return None

    async def _connect(self, inside: Streams, request: Request) -> None:
        decision = self._allowed.decide(request.target)
        addresses: Sequence[Address] = ()
        try:
            async with asyncio.timeout(self._limits.connect_s):
                if decision.allowed and self._upstream is None:
                    addresses = await self._resolve(decision.host, decision.port)
                    decision = self._judge(decision, addresses)
                if not decision.allowed:
                    await self._refuse(inside, HTTPStatus.FORBIDDEN, decision)
                    return
                self._tell(decision)
                outside = await self._reach(decision, addresses)
        except (OSError, SandboxError) as error:
            why = str(error) if isinstance(error, SandboxError) else f"{decision.host} cannot be reached"
            log.warning("egress.failed", extra={"asked": decision.asked, "error": str(error) or type(error).__name__})
            await self._answer(inside, HTTPStatus.BAD_GATEWAY, why)
            return
        async with closing(outside[1]):
            inside[1].write(CONNECTED)
            await self._pass(decision, inside, outside)

    def _judge(self, decision: Decision, addresses: Sequence[Address]) -> Decision:
        """Refuse a name that has any address that is not acceptable; which, only the log says."""
        acceptable = may_be_private if decision.host in self._private else self._acceptable
        bad = [str(address) for address in addresses if not acceptable(address)]
        if not bad:
            return decision
        log.warning("egress.address", extra={"asked": decision.asked, "addresses": bad})
        return decision.refused("resolved", f"{decision.host} stands for an address that is not of the public internet")

    async def _reach(self, decision: Decision, addresses: Sequence[Address]) -> Streams:
        if self._upstream is not None:
            return await self._upstream.connect(decision.host, decision.port)
        return await connect(addresses, decision.port)

    async def _pass(self, decision: Decision, inside: Streams, outside: Streams) -> None:
        up = Budget(self._limits.connection_up_bytes)
        down = Budget(self._limits.connection_down_bytes)
        spent = await tunnel(inside, outside, up=(up, self._up), down=(down, self._down), idle_s=self._limits.idle_s)
        if spent:
            self._tell(decision.refused("limit", spent))
            inside[1].transport.abort()
            outside[1].transport.abort()
        log.info("egress.ended", extra={"asked": decision.asked, "up_bytes": up.used, "down_bytes": down.used})

    async def _refuse(self, inside: Streams, status: HTTPStatus, decision: Decision) -> None:
        self._tell(decision)
        await self._answer(inside, status, decision.refusal)

    async def _answer(self, inside: Streams, status: HTTPStatus, sentence: str) -> None:
        reader, writer = inside
        writer.write(answer(status, sentence))
        with contextlib.suppress(OSError):
            writer.write_eof()
            async with asyncio.timeout(_LINGER_S):
                while await reader.read(self._limits.head_bytes):
                    pass

    def _tell(self, decision: Decision) -> None:
        if decision.allowed:
            log.info("egress.allowed", extra={"asked": decision.asked})
        else:
            log.warning(
                "egress.refused", extra={"asked": decision.asked, "why": decision.why, "reason": decision.refusal}
            )
        self._decided(decision)
