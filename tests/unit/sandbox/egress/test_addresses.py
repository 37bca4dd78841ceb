"""Addresses: which are public, and how one of several is reached."""

import asyncio
import contextlib
import socket
from ipaddress import ip_address

import pytest

from bot.sandbox.egress.addresses import SystemResolver, alternating, connect, is_public, may_be_private
from tests.unit.sandbox.egress.places import origin


@pytest.mark.parametrize(
    "address",
    ["1.1.1.1", "8.8.8.8", "93.184.215.14", "100.63.255.255", "100.128.0.1", "172.32.0.1", "168.63.129.17",
     "2606:4700::1111", "2a00:1450:4001::1", "2001:4860:4860::8888"],
)  # fmt: skip
def test_public(address: str) -> None:
    """Addresses of the public internet are public; those that are not stand among the tests of security."""
    assert is_public(ip_address(address))


def test_private() -> None:
    """A host that is called private may be inside a company's network, never on this machine or a cloud's metadata."""
    for address in ("10.1.2.3", "172.16.0.1", "192.168.1.1", "100.64.0.1", "203.0.113.80", "fd12:3456::1", "1.1.1.1"):
        assert may_be_private(ip_address(address)), address
    for address in (
        "127.0.0.1", "127.9.9.9", "0.0.0.0", "169.254.169.254", "168.63.129.16", "100.100.100.200", "224.0.0.1",
        "255.255.255.255", "::1", "::", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "fd00:ec2::254", "fe80::1",
        "2002:7f00:1::",
    ):  # fmt: skip
        assert not may_be_private(ip_address(address)), address


def test_alternating() -> None:
    """The families take turns, beginning with the first one."""
    given = [ip_address(address) for address in ("::1", "::2", "::3", "1.1.1.1")]
    assert [str(address) for address in alternating(given)] == ["::1", "1.1.1.1", "::2", "::3"]
    assert alternating([]) == []


async def test_next_address() -> None:
    """An address that refuses leads to the next at once; only when all have, it fails."""
    async with origin() as inner:
        began = asyncio.get_running_loop().time()
        _, writer = await connect([ip_address("127.0.0.2"), ip_address("127.0.0.1")], inner.port)
        assert writer.get_extra_info("peername")[0] == "127.0.0.1"
        assert asyncio.get_running_loop().time() - began < 0.2
        writer.close()
    with pytest.raises(OSError, match="no address answers"):
        await connect([ip_address("127.0.0.2"), ip_address("127.0.0.3")], inner.port)
    with pytest.raises(OSError, match="no address answers"):
        await connect([], inner.port)


async def test_silent_address() -> None:
    """An address that does not answer at all holds nobody up for long."""
    async with origin() as inner:
        # Its queue is full, so that the kernel drops what comes.
        with contextlib.ExitStack() as stack:
            silent = stack.enter_context(socket.create_server(("127.0.0.9", inner.port), backlog=0))
            for _ in range(2):
                waiting = stack.enter_context(socket.socket())
                waiting.setblocking(False)  # noqa: FBT003
                waiting.connect_ex(silent.getsockname())
            began = asyncio.get_running_loop().time()
            _, writer = await connect([ip_address("127.0.0.9"), ip_address("127.0.0.1")], inner.port)
            assert writer.get_extra_info("peername")[0] == "127.0.0.1"
            assert 0.2 < asyncio.get_running_loop().time() - began < 2
            writer.close()


async def test_system_resolver() -> None:
    """The machine's resolver answers with addresses, each once."""
    resolver = SystemResolver()
    found = await resolver.resolve("localhost", 443)
    resolver.close()
    assert {str(address) for address in found} <= {"127.0.0.1", "::1"}
    assert len(set(found)) == len(found) > 0
