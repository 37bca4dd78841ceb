"""Addresses: which of them are of the public internet, how names become them, and how one of several is reached."""

import asyncio
import itertools
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

Address = IPv4Address | IPv6Address
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Resolve = Callable[[str, int], Awaitable[Sequence[Address]]]
"""Names the addresses of a host for a port, best first; raises OSError where there is none."""

_NEXT_S = 0.25
"""Seconds that the next address waits for the one before. Source: RFC 8305, section 5."""
_BUFFER = 64 << 10
_LOOKUPS = 4

_REFUSED = tuple(
    ip_network(network)
    for network in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",  # behind a provider's NAT; a cloud's metadata is at 100.100.100.200
        "127.0.0.0/8",
        "168.63.129.16/32",  # a cloud's host, at a public address
        "169.254.0.0/16",  # metadata of most clouds
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",  # relays of 6to4
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
        "2001::/23",  # Teredo, which holds an IPv4 address, and other protocols' own
        "2001:db8::/32",
        "2002::/16",  # 6to4, which holds an IPv4 address
        "3fff::/20",
        "fd00:ec2::/32",  # a cloud's metadata
    )
)
"""Python's `is_global` says otherwise on some of them before 3.11.10 and on some until today.

Source: https://www.iana.org/assignments/iana-ipv4-special-registry and its sibling for IPv6.
"""
_UNICAST = ip_network("2000::/3")
"""All that is given out of IPv6. Outside it lie ::1, IPv4 in IPv6, NAT64, and what is local or multicast."""


def is_public(address: Address) -> bool:
    """Tell whether an address is of the public internet, and no way round to one that is not."""
    if address.version == _UNICAST.version and address not in _UNICAST:
        return False
    return address.is_global and not any(address in network for network in _REFUSED)


_NEVER = tuple(
    ip_network(network)
    for network in (
        "0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "168.63.129.16/32", "100.100.100.200/32", "192.0.0.0/24",
        "224.0.0.0/3", "::/8", "64:ff9b::/96", "64:ff9b:1::/48", "2001::/23", "2002::/16", "fd00:ec2::/32",
        "fe80::/10", "ff00::/8",
    )
)  # fmt: skip
"""This machine, its link, metadata of clouds, and what holds another address: nobody's mirror is there."""


def may_be_private(address: Address) -> bool:
    """Tell whether a host that the operator calls private may stand for an address, as a company's own mirror does."""
    return not any(address in network for network in _NEVER)


class SystemResolver:
    """Asks the machine's resolver, in threads of its own: names that hang must not keep the server's threads busy."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_LOOKUPS, thread_name_prefix="egress-resolve")

    async def resolve(self, host: str, port: int) -> Sequence[Address]:
        """Name a host's addresses, best first.

        Raises:
            OSError: it has none, or nobody answered.
        """
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(
            self._threads, lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        )
        return list(dict.fromkeys(ip_address(where[0]) for *_, where in found))

    def close(self) -> None:
        """Look nothing up any more; a look-up that hangs ends by itself."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def alternating(addresses: Sequence[Address]) -> list[Address]:
    """Let the two families take turns, beginning with that of the first address."""
    if not addresses:
        return []
    first = [address for address in addresses if address.version == addresses[0].version]
    second = [address for address in addresses if address.version != addresses[0].version]
    turns = itertools.chain.from_iterable(itertools.zip_longest(first, second))
    return [address for address in turns if address is not None]


async def connect(addresses: Sequence[Address], port: int) -> Streams:
    """Connect to the first of some addresses that answers; no name is looked up.

    Args:
        addresses: at least one; each begins a moment after the one before, or when that one failed.
        port: of all of them.

    Raises:
        OSError: none of them answers.
    """
    waiting = alternating(addresses)
    attempts: set[asyncio.Task[Streams]] = set()
    running: set[asyncio.Task[Streams]] = set()
    won: asyncio.Task[Streams] | None = None
    error: BaseException | None = None
    try:
        while won is None and (waiting or running):
            if waiting:
                running.add(asyncio.create_task(asyncio.open_connection(str(waiting.pop(0)), port, limit=_BUFFER)))
                attempts |= running
            done, running = await asyncio.wait(
                running, timeout=_NEXT_S if waiting else None, return_when=asyncio.FIRST_COMPLETED
            )
            for attempt in done:
                error = attempt.exception()
                won = won or (attempt if error is None else None)
    finally:
        await _abandon(attempts - {won})
    if won is None:
        raise OSError("no address answers") from error
    return won.result()


async def _abandon(attempts: Iterable["asyncio.Task[Streams]"]) -> None:
    """End what lost the race, be it connected or not."""
    losers = list(attempts)
    for loser in losers:
        loser.cancel()
    for end in await asyncio.gather(*losers, return_exceptions=True):
        if not isinstance(end, BaseException):
            end[1].close()
