"""S71 and S72: what a sandbox with an allow-list can reach, however it asks."""

import asyncio
from pathlib import Path

import pytest

from bot.sandbox.egress.addresses import is_public
from bot.sandbox.egress.allowed import Allowed
from bot.sandbox.egress.limits import EgressLimits
from tests.unit.sandbox.egress.places import Names, Origin, Served, connect, echo, origin, send, serving, swallow, until

pytestmark = pytest.mark.security

CORPUS = Path(__file__).with_name("corpus") / "egress.txt"
NAMES = ["example.com", "*.example.org", "mirror.example.com:8443", "plain.example.com:80", "*.example.net"]
NEVER = ["ghe.example.net"]


def corpus() -> list[tuple[str, str]]:
    """The reason and the authority of each case."""
    lines = [line for line in CORPUS.read_text("utf-8").split("\n") if line and not line.startswith("#")]
    cases = [line.partition(" ")[::2] for line in lines]
    return [(why, case.encode("ascii").decode("unicode_escape")) for why, case in cases]


def test_size_of_the_corpus() -> None:
    """There are many spellings, and none twice."""
    cases = [case for _, case in corpus()]
    assert len(cases) >= 50
    assert len(set(cases)) == len(cases)


@pytest.mark.parametrize(("why", "authority"), corpus())
def test_spelling(why: str, authority: str) -> None:
    """S71: each is refused for its reason, in a sentence that is fit for a header."""
    decision = Allowed.parse(NAMES, never=NEVER).decide(authority)
    assert (decision.why, decision.allowed) == (why, False)
    assert decision.refusal.isascii()
    assert decision.refusal.isprintable()
    assert decision.asked.isascii()
    assert decision.asked.isprintable()
    assert len(decision.asked) <= 300


async def test_spellings_on_the_line() -> None:
    """S71: of none comes a tunnel, nor a look-up of its name."""
    names = Names()
    async with serving(Allowed.parse(NAMES, never=NEVER), resolve=names.resolve) as served:
        for _, authority in corpus():
            answer = await connect(served, authority)
            assert answer.status in (400, 403), authority
            answer.close()
    assert names.asked == []
    assert all(decision.why for decision in served.decisions)


def test_what_is_allowed() -> None:
    """The same allow-list lets its own names pass, in any case."""
    allowed = Allowed.parse(NAMES, never=NEVER)
    for authority in (
        "example.com:443", "EXAMPLE.com:443", "www.example.org:443", "a.b.example.org:443", "mirror.example.com:8443",
        "plain.example.com:80", "xn--exmple-cua.example.org:443", "www.example.net:443",
    ):  # fmt: skip
        assert allowed.decide(authority).allowed, authority


ADDRESSES = [
    "0.0.0.0", "10.0.0.1", "100.64.0.1", "100.100.100.200", "127.0.0.1", "127.8.8.8", "168.63.129.16",
    "169.254.169.254", "169.254.170.2", "172.16.0.1", "172.31.255.255", "192.0.0.192", "192.0.2.1", "192.88.99.1",
    "192.168.1.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1",
    "255.255.255.255", "::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:8.8.8.8", "64:ff9b::a9fe:a9fe",
    "64:ff9b::808:808", "64:ff9b:1::1", "100::1", "2001::1", "2001:0:4136:e378::1", "2001:db8::1", "2002:7f00:1::",
    "2002:808:808::1", "3fff::1", "5f00::1", "fc00::1", "fd00:ec2::254", "fd20:ce::254", "fe80::1", "fe80::1%1",
    "fec0::1", "ff02::1",
]  # fmt: skip


@pytest.mark.parametrize("address", ADDRESSES)
async def test_private_answer(address: str) -> None:
    """S71: a name that stands for an address that is not public is refused, and which it is stays inside."""
    names = Names({"example.com": [[address]]})
    async with serving(Allowed.parse(["example.com"]), resolve=names.resolve, acceptable=is_public) as served:
        answer = await connect(served, "example.com:443")
        body = await answer.rest()
    assert answer.status == 403
    assert served.decisions[-1].why == "resolved"
    assert address.encode() not in answer.head.encode() + body or len(address) < 4


async def test_mixed_answer() -> None:
    """S71: one private address among public ones refuses the name, wherever it stands; nothing is connected to."""
    async with origin() as inner:
        for answers in (["93.184.215.14", "127.0.0.1"], ["127.0.0.1", "2606:4700::1111", "93.184.215.14"]):
            names = Names({"example.com": [answers]})
            allowed = Allowed.parse([f"example.com:{inner.port}"])
            async with serving(allowed, resolve=names.resolve, acceptable=is_public) as served:
                answer = await connect(served, f"example.com:{inner.port}")
                assert answer.status == 403
                answer.close()
    assert inner.connections == 0


async def test_rebinding() -> None:
    """S71: a name is looked up once for a connection, and just what was judged is connected to."""
    async with origin() as inner:
        names = Names({"example.com": [["127.0.0.1"], ["127.0.0.2"]]})
        allowed = Allowed.parse([f"example.com:{inner.port}"])
        async with serving(
            allowed, resolve=names.resolve, acceptable=lambda address: str(address) == "127.0.0.1"
        ) as served:
            first = await connect(served, f"example.com:{inner.port}")
            assert await first.talk(b"hello") == b"hello"
            assert names.asked == ["example.com"]
            second = await connect(served, f"example.com:{inner.port}")
            assert second.status == 403
            first.close()
            second.close()
    assert inner.connections == 1


async def redirect(_: Origin, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer a request with another place."""
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 302 Found\r\nLocation: http://evil.test/\r\nContent-Length: 0\r\n\r\n")


async def test_redirect() -> None:
    """S71: to follow an allowed host to another one takes a new tunnel, which is refused."""
    names = Names({"example.com": [["127.0.0.1"]]})
    async with origin(redirect) as inner:
        allowed = Allowed.parse([f"example.com:{inner.port}"])
        async with serving(allowed, resolve=names.resolve) as served:
            answer = await connect(served, f"example.com:{inner.port}")
            answer.streams[1].write(b"GET / HTTP/1.1\r\nHost: example.com\r\n\r\n")
            assert b"evil.test" in await answer.rest()
            followed = await connect(served, "evil.test:80")
            assert followed.status == 403
            followed.close()
    assert names.asked == ["example.com"]


@pytest.mark.parametrize(
    "line",
    [
        "GET http://169.254.169.254/latest/meta-data/ HTTP/1.1",
        "GET http://example.com/ HTTP/1.1",
        "GET / HTTP/1.1",
        "POST http://example.com/ HTTP/1.1",
        "OPTIONS * HTTP/1.1",
        "connect example.com:443 HTTP/1.1",
        "PUT https://example.com/ HTTP/1.0",
    ],
)
async def test_no_tunnel(line: str) -> None:
    """S71: what is no CONNECT gets 405 and a sentence, even for an allowed name."""
    async with serving(Allowed.parse(["example.com", "example.com:80"]), resolve=Names().resolve) as served:
        answer = await send(served, f"{line}\r\nHost: example.com\r\nContent-Length: 0\r\n\r\n".encode())
        body = await answer.rest()
    assert answer.status == 405
    assert "\r\nAllow: CONNECT\r\n" in answer.head
    assert b"https" in body
    assert served.decisions[-1].why == "method"


@pytest.mark.parametrize(
    "head",
    [
        b"\r\n\r\n",
        b"CONNECT example.com:443\r\n\r\n",
        b"CONNECT example.com:443 HTTP/2.0\r\n\r\n",
        b"CONNECT  example.com:443 HTTP/1.1\r\n\r\n",
        b"CONNECT example.com:443 x HTTP/1.1\r\n\r\n",
        b"CONNECT example.com:443 HTTP/1.1\nHost: x\r\n\r\n",
        b"CONNECT example.com:443 HTTP/1.1\r\nHost x\r\n\r\n",
        b"CONNECT example.com:443 HTTP/1.1\r\n folded\r\n\r\n",
        b"CONNECT example.com:443 HTTP/1.1\r\nHost : x\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n",
        b"SSH-2.0-x\r\n\r\n",
    ],
)
async def test_malformed(head: bytes) -> None:
    """What is no HTTP request gets 400."""
    async with serving(Allowed.parse(["example.com"]), resolve=Names().resolve) as served:
        answer = await send(served, head)
        answer.close()
    assert answer.status == 400


async def test_second_request_in_a_tunnel() -> None:
    """What follows a request is the tunnel's and never read as another request."""
    names = Names({"example.com": [["127.0.0.1"]]})
    async with origin(echo) as inner:
        allowed = Allowed.parse([f"example.com:{inner.port}"])
        async with serving(allowed, resolve=names.resolve) as served:
            more = b"CONNECT evil.test:443 HTTP/1.1\r\n\r\n"
            head = f"CONNECT example.com:{inner.port} HTTP/1.1\r\nContent-Length: 5\r\n\r\n".encode()
            answer = await send(served, head + more)
            assert await answer.streams[0].readexactly(len(more)) == more
            answer.close()
    assert [decision.host for decision in served.decisions] == ["example.com"]


async def test_long_head() -> None:
    """A head of more than 16 KiB, with an end or without, is not answered but closed."""
    async with serving(Allowed.parse(["example.com"]), resolve=Names().resolve) as served:
        for end in (b"", b"\r\n\r\n"):
            answer = await send(served, b"CONNECT example.com:443 HTTP/1.1\r\nA: " + b"x" * (32 << 10) + end)
            assert answer.status == 0
            answer.close()


async def test_slow_head() -> None:
    """A head that comes letter by letter is closed when its time is up, though something moves all the time."""
    async with serving(
        Allowed.parse(["example.com"]), resolve=Names().resolve, limits=EgressLimits(head_s=0.3)
    ) as served:
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
        began = asyncio.get_running_loop().time()
        for letter in b"CONNECT example.com:443 HTTP/1.1\r\nA: " + b"x" * 500:
            # An end while bytes are on their way is a reset.
            if reader.at_eof() or reader.exception():
                break
            writer.write(bytes([letter]))
            await asyncio.sleep(0.01)
        assert 0.2 < asyncio.get_running_loop().time() - began < 3
        writer.close()


async def test_upload() -> None:
    """S72: of 100 MB to an allowed host no more passes than one connection may send."""
    names = Names({"example.com": [["127.0.0.1"]]})
    async with origin(swallow) as inner:
        allowed = Allowed.parse([f"example.com:{inner.port}"])
        async with serving(allowed, resolve=names.resolve) as served:
            await _send_up(served, inner.port, 100 << 20)
            assert served.decisions[-1].why == "limit"
            assert 31 << 20 < inner.received <= 32 << 20


async def test_uploads_together() -> None:
    """S72: nor do many connections send more than all may together."""
    names = Names({"example.com": [["127.0.0.1"]]})
    limits = EgressLimits(up_bytes=10 << 20, connection_up_bytes=4 << 20)
    async with origin(swallow) as inner:
        allowed = Allowed.parse([f"example.com:{inner.port}"])
        async with serving(allowed, resolve=names.resolve, limits=limits) as served:
            for _ in range(5):
                await _send_up(served, inner.port, 8 << 20)
            assert served.proxy.used_bytes[0] <= 10 << 20
    assert 8 << 20 < inner.received <= 10 << 20


async def _send_up(served: Served, port: int, size_bytes: int) -> None:
    answer = await connect(served, f"example.com:{port}")
    assert answer.status == 200
    try:
        for _ in range(size_bytes >> 16):
            answer.streams[1].write(bytes(1 << 16))
            await answer.streams[1].drain()
        await answer.streams[0].read()
    except OSError:
        pass
    finally:
        answer.close()


async def test_thousand_connections() -> None:
    """S72: of 1,000 connections at once 64 are served, the others told so, and places are free again afterwards."""
    names = Names({"example.com": [["127.0.0.1"]]})
    async with origin() as inner:
        authority = f"example.com:{inner.port}"
        async with serving(Allowed.parse([authority]), resolve=names.resolve) as served:
            open_ones = [await connect(served, authority) for _ in range(64)]
            assert {answer.status for answer in open_ones} == {200}
            more = await asyncio.gather(*(connect(served, authority) for _ in range(936)))
            assert {answer.status for answer in more} <= {0, 503}
            assert [decision.why for decision in served.decisions].count("limit") == 936
            assert inner.connections == 64
            for answer in (*open_ones, *more):
                answer.close()
            await until(lambda: not served.proxy._serving)
            again = await connect(served, authority)
            assert await again.talk(b"again") == b"again"
            again.close()


async def test_requests_in_all(caplog: pytest.LogCaptureFixture) -> None:
    """S72: a loop that asks on and on writes a bounded number of lines into the log."""
    async with serving(Allowed(), resolve=Names().resolve, limits=EgressLimits(requests=20)) as served:
        statuses = []
        for _ in range(50):
            answer = await connect(served, "evil.test:443")
            statuses.append(answer.status)
            answer.close()
    assert statuses == [403] * 20 + [0] * 30
    assert len([record for record in caplog.records if record.levelname == "WARNING"]) == 20
