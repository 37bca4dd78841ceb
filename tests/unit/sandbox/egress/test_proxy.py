"""The proxy, over real sockets."""

import asyncio
import base64
import logging
import shutil
import socket
import subprocess
import tempfile
from ipaddress import ip_address
from pathlib import Path

import pytest

from bot.errors import OperatorError
from bot.sandbox.egress.allowed import Allowed
from bot.sandbox.egress.limits import EgressLimits
from bot.sandbox.egress.proxy import EgressProxy
from bot.sandbox.egress.upstream import Upstream
from tests.unit.sandbox.egress.places import Names, Origin, Talk, connect, echo, origin, serving, until


def names() -> Names:
    """A resolver that knows one name."""
    return Names({"example.com": [["127.0.0.1"]]})


async def test_tunnel(caplog: pytest.LogCaptureFixture) -> None:
    """An allowed host is reached, bytes come through unchanged, and the decision is told and logged."""
    caplog.set_level(logging.INFO)
    data = bytes(range(256)) * 4096
    async with origin() as inner:
        authority = f"example.com:{inner.port}"
        async with serving(Allowed.parse([authority]), resolve=names().resolve) as served:
            answer = await connect(served, authority)
            assert answer.status == 200
            assert await answer.talk(data) == data
            answer.close()
            await until(lambda: not served.proxy._serving)
            assert served.proxy.used_bytes == (len(data), len(data))
    assert [(decision.host, decision.allowed) for decision in served.decisions] == [("example.com", True)]
    events = {record.getMessage(): vars(record) for record in caplog.records if record.name.startswith("bot.")}
    assert list(events) == ["egress.allowed", "egress.ended"]
    assert events["egress.allowed"]["asked"] == authority
    assert events["egress.ended"]["up_bytes"] == len(data)


async def test_refusal(caplog: pytest.LogCaptureFixture) -> None:
    """Another host gets 403 with the reason in the first line and in the body, and the log has it."""
    async with serving(Allowed.parse(["example.com"]), resolve=names().resolve) as served:
        answer = await connect(served, "evil.test:443")
        assert await answer.rest() == b"evil.test is not on the allow-list of the operator.\n"
    assert answer.head.startswith("HTTP/1.1 403 Forbidden: evil.test is not on the allow-list of the operator\r\n")
    (record,) = [record for record in caplog.records if record.getMessage() == "egress.refused"]
    assert (vars(record)["asked"], vars(record)["why"]) == ("evil.test:443", "unlisted")


def test_private_host() -> None:
    """A name that the operator calls private may stand for an address inside, another name may not."""
    allowed = Allowed.parse(["mirror.example.com", "example.com"])
    proxy = EgressProxy(allowed, private=["mirror.example.com"])
    for name, address, why in (
        ("mirror.example.com", "10.1.2.3", None),
        ("mirror.example.com", "127.0.0.1", "resolved"),
        ("example.com", "10.1.2.3", "resolved"),
    ):
        assert proxy._judge(allowed.decide(f"{name}:443"), [ip_address(address)]).why == why


async def test_unreachable() -> None:
    """A name that nobody knows, or a host that does not listen, gives 502 and a sentence."""
    async with origin() as inner:
        pass
    async with serving(
        Allowed.parse([f"example.com:{inner.port}", "gone.example.com"]), resolve=names().resolve
    ) as served:
        for authority in (f"example.com:{inner.port}", "gone.example.com:443"):
            answer = await connect(served, authority)
            assert answer.status == 502
            assert b"cannot be reached" in await answer.rest()


async def test_half_closed() -> None:
    """Who has sent all may still receive."""

    async def late(_: Origin, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        data = await reader.read()
        writer.write(data.upper())

    async with origin(late) as inner:
        authority = f"example.com:{inner.port}"
        async with serving(Allowed.parse([authority]), resolve=names().resolve) as served:
            answer = await connect(served, authority)
            answer.streams[1].write(b"hello")
            answer.streams[1].write_eof()
            assert await answer.rest() == b"HELLO"


async def test_idle() -> None:
    """A tunnel in which nothing moves is closed, and one in which something does is not."""
    async with origin() as inner:
        authority = f"example.com:{inner.port}"
        limits = EgressLimits(idle_s=0.3)
        async with serving(Allowed.parse([authority]), resolve=names().resolve, limits=limits) as served:
            answer = await connect(served, authority)
            for _ in range(8):
                assert await answer.talk(b"x") == b"x"
                await asyncio.sleep(0.06)
            began = asyncio.get_running_loop().time()
            assert await answer.rest() == b""
            assert 0.2 < asyncio.get_running_loop().time() - began < 3
            silent = await connect(served, authority)
            async with asyncio.timeout(5):
                assert await silent.rest() == b""


async def test_client_that_takes_nothing() -> None:
    """A client that reads nothing is idle too, and what it was sent does not grow in memory."""

    async def flood(made: Origin, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            writer.write(bytes(65536))
            await writer.drain()
            made.received += 65536

    async with origin(flood) as inner:
        authority = f"example.com:{inner.port}"
        limits = EgressLimits(idle_s=0.5)
        async with serving(Allowed.parse([authority]), resolve=names().resolve, limits=limits) as served:
            answer = await connect(served, authority)
            await until(lambda: served.proxy.used_bytes[1] > 0)
            await until(lambda: not served.proxy._serving, 20)
            assert inner.received < 64 << 20
            answer.close()


async def test_download_limit() -> None:
    """More than may be received ends the tunnel."""

    async def send(_: Origin, __: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(bytes(2 << 20))
        await writer.drain()

    async with origin(send) as inner:
        authority = f"example.com:{inner.port}"
        limits = EgressLimits(connection_down_bytes=1 << 20)
        async with serving(Allowed.parse([authority]), resolve=names().resolve, limits=limits) as served:
            answer = await connect(served, authority)
            assert len(await answer.rest()) <= 1 << 20
            assert served.decisions[-1].refusal == "1,048,576 bytes are used up"


async def test_close() -> None:
    """The end of the proxy ends its tunnels, and nobody is let in any more; a second end does nothing."""
    async with origin() as inner:
        authority = f"example.com:{inner.port}"
        async with serving(Allowed.parse([authority]), resolve=names().resolve) as served:
            answer = await connect(served, authority)
            await served.proxy.close()
            assert await answer.rest() == b""
            with pytest.raises(ConnectionRefusedError):
                await connect(served, authority)


async def test_unix_listener() -> None:
    """The listener may be a Unix socket as well."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/egress"
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(path)
        listener.listen()
        proxy = EgressProxy(Allowed())
        await proxy.start(listener)
        reader, writer = await asyncio.open_unix_connection(path)
        writer.write(b"CONNECT example.com:443 HTTP/1.1\r\n\r\n")
        assert (await reader.readline()).startswith(b"HTTP/1.1 403 ")
        writer.close()
        await proxy.close()


def company(answer: bytes, seen: list[bytes]) -> Talk:
    """A company's proxy that keeps the heads it got, and gives one answer or, for a good one, echoes."""

    async def talk(made: Origin, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(answer)
        if b" 200 " in answer:
            await echo(made, reader, writer)

    return talk


async def test_chained() -> None:
    """Through a company's proxy: the name goes on unresolved, with the credentials, and bytes come through."""
    allowed = Allowed.parse(["example.com"])
    resolver = names()
    password = "p@ss:wörd/"
    seen: list[bytes] = []
    async with origin(company(b"HTTP/1.1 200 OK\r\nVia: x\r\n\r\nfirst", seen)) as inner:
        upstream = Upstream.parse(f"http://me:p%40ss%3Aw%C3%B6rd%2F@127.0.0.1:{inner.port}")
        async with serving(allowed, resolve=resolver.resolve, upstream=upstream) as served:
            answer = await connect(served, "example.com:443")
            assert answer.status == 200
            assert await answer.streams[0].readexactly(5) == b"first"
            assert await answer.talk(b"hello") == b"hello"
            refused = await connect(served, "evil.test:443")
            literal = await connect(served, "127.0.0.1:443")
            assert (refused.status, literal.status) == (403, 403)
            for one in (answer, refused, literal):
                one.close()
    words = base64.b64encode(f"me:{password}".encode()).decode()
    head = f"CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\nProxy-Authorization: Basic {words}\r\n\r\n"
    assert seen == [head.encode()]
    assert resolver.asked == []
    assert words not in repr(upstream)


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        (b"HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\n\r\nsecret page", "status 407"),
        (b"HTTP/1.0 503 No\r\n\r\n", "status 503"),
        (b"SSH-2.0-x\r\n\r\n", "did not answer as a proxy does"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * (200 << 10) + b"\r\n\r\n", "did not answer as a proxy does"),
        (b"", "did not answer as a proxy does"),
    ],
)
async def test_upstream_refuses(said: bytes, sentence: str, caplog: pytest.LogCaptureFixture) -> None:
    """What goes wrong at the company's proxy is 502 and a plain sentence, without that proxy's own words."""
    async with origin(company(said, [])) as inner:
        upstream = Upstream.parse(f"http://me:word@127.0.0.1:{inner.port}")
        async with serving(Allowed.parse(["example.com"]), upstream=upstream) as served:
            answer = await connect(served, "example.com:443")
            body = await answer.rest()
    assert answer.status == 502
    assert sentence in body.decode()
    assert b"secret" not in body
    (failed,) = [record for record in caplog.records if record.getMessage() == "egress.failed"]
    assert sentence in vars(failed)["error"]
    gone = Upstream.parse(f"http://127.0.0.1:{inner.port}")
    async with serving(Allowed.parse(["example.com"]), upstream=gone) as served:
        answer = await connect(served, "example.com:443")
        assert b"the company's proxy cannot be reached" in await answer.rest()


async def test_two_of_ours() -> None:
    """One such proxy can stand behind another."""
    async with origin() as inner:
        authority = f"example.com:{inner.port}"
        allowed = Allowed.parse([authority])
        async with (
            serving(allowed, resolve=names().resolve) as outer,
            serving(allowed, resolve=Names().resolve, upstream=Upstream.parse(outer.url)) as served,
        ):
            answer = await connect(served, authority)
            assert await answer.talk(b"hello") == b"hello"
            answer.close()


@pytest.mark.parametrize(
    "url", ["", "example.com:3128", "socks5://a.test:1", "http://", "http://me:pa:ss@:x", "http://[::1"]
)
def test_no_proxy_url(url: str) -> None:
    """What is no proxy's URL is told to the operator, without what it holds."""
    with pytest.raises(OperatorError, match="not of the form") as caught:
        Upstream.parse(url)
    assert "pa" not in str(caught.value)


def test_unreadable_certificates(tmp_path: Path) -> None:
    """Certificates that cannot be read are told to the operator."""
    with pytest.raises(OperatorError, match="cannot be read"):
        Upstream.parse("https://proxy.example.com:3128", ca_bundle=tmp_path / "none.pem")


async def run(*argv: str, environment: dict[str, str]) -> tuple[int, str]:
    """Run a program and return its exit code and both outputs."""
    process = await asyncio.create_subprocess_exec(
        *argv, env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", **environment},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    out, _ = await asyncio.wait_for(process.communicate(), 30)
    return process.returncode or 0, out.decode()


@pytest.mark.skipif(shutil.which("curl", path="/usr/bin:/bin") is None, reason="curl is not installed")
async def test_curl() -> None:
    """What curl shows of a refusal says why."""
    async with serving(Allowed.parse(["example.com"]), resolve=names().resolve) as served:
        code, out = await run("curl", "-sv", "https://evil.test/", environment={"https_proxy": served.url})
    assert code != 0
    assert "evil.test is not on the allow-list" in out
