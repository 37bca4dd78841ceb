"""The door for deliveries: what it lets in, and what it answers to everything else."""

import asyncio
import json
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import httpx
import pytest

from bot.store.base import Delivery, DeliveryStore
from bot.store.opening import open_store
from bot.web.webhook import MAX_BODY, MAX_HELD, Message, Patience, Scope, WebhookReceiver, understanding
from tests.unit.web.support import NOW, SECRET, MemoryDeliveries, headers, label_event, serving, sign

BODY = json.dumps(label_event()).encode()


class Door:
    """A receiver that is served, and what came through it."""

    def __init__(self, url: str, store: MemoryDeliveries, woken: list[int]) -> None:
        self.url = url
        self.store = store
        self.woken = woken
        self.http = httpx.Client(base_url=url, timeout=30)

    def post(self, body: bytes, **more: str) -> httpx.Response:
        """Send a signed delivery."""
        return self.http.post("/webhook", content=body, headers=headers(body, **more))

    def refused(self, answer: httpx.Response, status: int, code: str) -> None:
        """Check that nothing came of it but this answer."""
        assert (answer.status_code, answer.json()["error"]) == (status, code)
        assert answer.headers["content-type"] == "application/json"
        assert not self.store.rows
        assert not self.woken


def receiver(
    store: DeliveryStore, woken: list[int], *secrets: bytes, patience: Patience | None = None
) -> WebhookReceiver:
    """Make a receiver that serves `acme/*`."""
    understand = understanding(lambda name: name.startswith("acme/"), own_app_id=1, own_user_ids=(99,))
    return WebhookReceiver(store, secrets, understand, lambda: NOW, lambda: woken.append(1), patience or Patience())


@pytest.fixture(scope="module", params=["httptools", "h11"])
def served(request: pytest.FixtureRequest) -> Iterator[Door]:
    """Serve the door, over each of uvicorn's two parsers."""
    store, woken = MemoryDeliveries(), cast("list[int]", [])
    with serving(receiver(store, woken, SECRET, b"old"), http=request.param, lifespan="off") as url:
        door = Door(url, store, woken)
        yield door
        door.http.close()


@pytest.fixture
def door(served: Door) -> Door:
    """Give the door with nothing behind it."""
    served.store.rows.clear()
    served.store.fault = None
    served.woken.clear()
    return served


def raw_headers(name: str, value: bytes | None) -> list[tuple[bytes, bytes]]:
    """Make the headers of a delivery with one of them replaced by any bytes, or left out."""
    sent = [(key.encode(), text.encode()) for key, text in headers(BODY).items() if key != name]
    return sent if value is None else [*sent, (name.encode(), value)]


def test_a_delivery_is_kept_as_it_came(door: Door) -> None:
    """A signed delivery is kept with its raw bytes before 202, and whoever works on deliveries is woken."""
    answer = door.post(BODY)
    assert (answer.status_code, answer.json()) == (202, {"status": "accepted"})
    key = "label:5:1:labeled:2026-11-30T00:00:00Z:2"
    assert door.store.rows == {"g-1": Delivery("g-1", "issues", key, BODY, NOW)}
    assert door.woken == [1]


@pytest.mark.parametrize(
    "signature",
    [
        "sha256=" + "0" * 64,
        sign(BODY, b"another secret"),
        sign(BODY)[:-1],
        sign(BODY)[:-32],
        sign(BODY).upper(),
        sign(BODY).replace("sha256=", "sha1="),
        sign(BODY).removeprefix("sha256="),
        "sha256=",
        "sha256",
    ],
)
def test_a_forged_signature(door: Door, signature: str) -> None:
    """A forged, truncated or rewritten signature gets 401 and nothing else."""
    door.refused(door.post(BODY, x_hub_signature_256=signature), 401, "bad_signature")


def test_only_a_sha1_signature(door: Door) -> None:
    """The old SHA-1 signature alone gets 401."""
    sent = headers(BODY, x_hub_signature="sha1=" + "0" * 40)
    del sent["x-hub-signature-256"]
    door.refused(door.http.post("/webhook", content=BODY, headers=sent), 401, "bad_signature")


def test_a_signature_that_is_not_ascii(door: Door) -> None:
    """Any bytes in the header get 401, not 500."""
    for raw in ("sha256=é".encode(), b"sha256=\xff\xfe" + b"0" * 62):
        sent = raw_headers("x-hub-signature-256", raw)
        door.refused(door.http.post("/webhook", content=BODY, headers=sent), 401, "bad_signature")


def test_a_body_that_was_altered(door: Door) -> None:
    """One flipped byte, or the same JSON written anew, gets 401."""
    flipped = bytearray(BODY)
    flipped[10] ^= 1
    for other in (bytes(flipped), json.dumps(json.loads(BODY), indent=1).encode(), BODY + b" ", b""):
        answer = door.http.post("/webhook", content=other, headers=headers(BODY))
        door.refused(answer, 401, "bad_signature")


def test_rotation(door: Door) -> None:
    """The previous secret is accepted beside the current one, another is not."""
    assert door.post(BODY, x_hub_signature_256=sign(BODY, b"old")).status_code == 202
    assert door.post(BODY, guid="g-2", x_hub_signature_256=sign(BODY, b"older")).status_code == 401


def test_a_forged_body_is_not_parsed(door: Door) -> None:
    """Without a valid signature not even broken JSON is noticed."""
    door.refused(door.post(b"{", x_hub_signature_256=sign(b"")), 401, "bad_signature")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b'"x"',
        b"[" * 100_000,
        b'{"issue":' * 100_000,
        b'{"x":' + b"[" * 100_000,
        b'{"action":' + b"1" * 1_000_000 + b"}",
        b'{"issue":{"number":' + b"1" * 1_000_000 + b"}}",
        b'{"issue":{"number":NaN}}',
        b'{"action":"\xff\xfe"}',
        b'{"action":"\\ud800"}',
        b"\x1f\x8b\x08\x00" + b"\0" * 100,
        b'{"action":{}}',
        b'{"action":"labeled"} trailing',
    ],
    ids=range(16),
)
def test_a_payload_that_cannot_be_read(door: Door, body: bytes) -> None:
    """Signed nonsense and parser bombs get 400, and the server goes on."""
    answer = door.post(body)
    door.refused(answer, 400, "bad_payload")
    assert door.post(BODY, guid="after").status_code == 202


@pytest.mark.parametrize(
    "body",
    [
        b'{"action":"labeled","action":"labeled"}',
        b'{"unread":' + b"1" * 1_000_000 + b"}",
        b'{"action":"labeled","issue":{"number":1,"number":2}}',
    ],
    ids=range(3),
)
def test_what_is_not_read_is_tolerated(door: Door, body: bytes) -> None:
    """A key twice, and odd values in what we skip, do no harm."""
    assert door.post(body).json() == {"status": "ignored"}


def test_headers_that_are_missing(door: Door) -> None:
    """A delivery without id or event, or with an ill-formed one, gets 400."""
    for name in ("x-github-delivery", "x-github-event"):
        for value in (None, "", "a b", "x" * 65, "Ünï"):
            sent = raw_headers(name, None if value is None else value.encode())
            door.refused(door.http.post("/webhook", content=BODY, headers=sent), 400, "bad_headers")


def test_form_encoding(door: Door) -> None:
    """GitHub's other content type gets 415 with the setting that mends it."""
    answer = door.post(BODY, content_type="application/x-www-form-urlencoded")
    door.refused(answer, 415, "not_json")
    assert "content type" in answer.json()["detail"]
    assert door.post(BODY, content_type="Application/JSON; charset=utf-8").status_code == 202


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "HEAD", "OPTIONS"])
def test_other_methods(door: Door, method: str) -> None:
    """Only POST is taken."""
    answer = door.http.request(method, "/webhook")
    assert answer.status_code == 405
    assert answer.headers["allow"] == "POST"


def test_events_that_start_nothing(door: Door) -> None:
    """Events, actions and repositories that are not ours are kept as ignored, and nobody is woken."""
    ping = json.dumps({"zen": "x", "hook_id": 1}).encode()
    odd = json.dumps({**label_event(), "action": "invented"}).encode()
    foreign = json.dumps({**label_event(), "repository": {"id": 6, "full_name": "other/app"}}).encode()
    own = json.dumps({**label_event(), "sender": {"id": 99, "login": "us[bot]", "type": "Bot"}}).encode()
    sent = [("ping", ping), ("issues", odd), ("brand_new_event", BODY), ("issues", foreign), ("issues", own)]
    for number, (event, body) in enumerate(sent):
        answer = door.post(body, guid=f"g-{number}", event=event)
        assert (answer.status_code, answer.json()) == (202, {"status": "ignored"})
    assert {row.state for row in door.store.rows.values()} == {"ignored"}
    assert len(door.store.rows) == 5
    assert not door.woken


def test_replay_under_another_id(door: Door) -> None:
    """The delivery id is not signed: the same happening under another id is a duplicate."""
    assert door.post(BODY).json() == {"status": "accepted"}
    assert door.post(BODY, guid="g-2").json() == {"status": "duplicate"}
    assert door.post(BODY).json() == {"status": "duplicate"}
    assert door.woken == [1]


def test_a_store_that_fails(door: Door) -> None:
    """What is not kept is not acknowledged: 503, and the same delivery is taken later."""
    door.store.fault = OSError("disk full at /secret/place")
    answer = door.post(BODY)
    door.refused(answer, 503, "store_unavailable")
    assert "secret" not in answer.text
    door.store.fault = None
    assert door.post(BODY).json() == {"status": "accepted"}


def test_large_bodies(door: Door) -> None:
    """A body of exactly 25 MiB is taken, one byte more gets 413."""
    frame = json.dumps({**label_event(), "padding": ""}).encode()
    full = frame[:-2] + b"x" * (MAX_BODY - len(frame)) + frame[-2:]
    assert len(full) == MAX_BODY
    assert door.post(full).json() == {"status": "accepted"}
    door.store.rows.clear()
    door.woken.clear()
    door.refused(door.post(full + b" "), 413, "too_large")


def memory_mib() -> int:
    """Resident memory of this process, in which the server runs too."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 2**20


def raw(url: str, head: bytes, chunks: Iterator[bytes]) -> bytes:
    """Send what no client would send, as long as the server listens, and return its answer."""
    host, _, port = url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=20) as wire:
        try:
            wire.sendall(head)
            for chunk in chunks:
                wire.sendall(chunk)
        except (BrokenPipeError, ConnectionResetError):
            pass
        answer = b""
        try:
            while part := wire.recv(65536):
                answer += part
                if b"}" in answer:
                    break
        except ConnectionResetError:
            pass
        return answer


def request_head(*lines: str) -> bytes:
    """Write the head of a delivery by hand."""
    sent = headers(b"")
    return "\r\n".join(
        ["POST /webhook HTTP/1.1", "host: x", *(f"{k}: {v}" for k, v in sent.items()), *lines, "", ""]
    ).encode()


def test_an_endless_body(door: Door) -> None:
    """A body without a length is cut off after 25 MiB, and memory stays bounded."""
    piece = b"10000\r\n" + b"x" * 65536 + b"\r\n"
    before = memory_mib()
    most = 0

    def chunks() -> Iterator[bytes]:
        nonlocal most
        for number in range(4096):
            if number % 64 == 0:
                most = max(most, memory_mib())
            yield piece

    answer = raw(door.url, request_head("transfer-encoding: chunked"), chunks())
    assert not door.store.rows
    assert most - before < 64
    if answer:  # the answer can be lost when the server closes under a client that still writes
        assert b" 413 " in answer
    assert door.post(BODY).status_code == 202


def test_a_length_that_lies(door: Door) -> None:
    """A length beyond 25 MiB is refused before any byte is read; a length below what is sent ends the body there."""
    for length in (str(MAX_BODY + 1), "9" * 18):
        assert b" 413 " in raw(door.url, request_head(f"content-length: {length}"), iter(()))
    answer = raw(door.url, request_head("content-length: 10"), iter([BODY]))
    assert b" 401 " in answer or b" 400 " in answer  # httptools takes the rest for a second request at once
    assert not door.store.rows


def test_no_secret(door: Door) -> None:
    """Without a secret nothing can be trusted: 503 with the reason; an empty secret is none."""
    for secrets in ((), (b"",)):
        with serving(receiver(door.store, door.woken, *secrets), lifespan="off") as url:
            answer = httpx.post(
                f"{url}/webhook", content=BODY, headers=headers(BODY, x_hub_signature_256=sign(BODY, b""))
            )
            door.refused(answer, 503, "not_set_up")


@pytest.mark.parametrize("http", ["httptools", "h11"])
def test_others_are_answered_while_a_large_body_is_understood(http: str) -> None:
    """A body of 24 MB keeps nobody waiting: while it is looked at, others are answered."""
    body = json.dumps({**label_event(), "unread": [{"k": [1, "x" * 100]}] * 190_000}).encode()
    assert MAX_BODY > len(body) > 20_000_000
    usual = understanding(lambda _: True, own_app_id=1, own_user_ids=(99,))
    begun, answered = threading.Event(), threading.Event()

    def understand(event: str, data: bytes) -> tuple[str | None, bool]:
        begun.set()
        # On the event loop nobody would be answered until this gave up.
        assert answered.wait(20)
        return usual(event, data)

    app = WebhookReceiver(MemoryDeliveries(), [SECRET], understand, lambda: NOW, lambda: None)

    async def both(url: str) -> None:
        async with httpx.AsyncClient(base_url=url, timeout=30) as client:
            large = asyncio.create_task(client.post("/webhook", content=body, headers=headers(body)))
            assert await asyncio.to_thread(begun.wait, 20)
            assert (await client.get("/webhook")).status_code == 405
            answered.set()
            assert (await large).json() == {"status": "accepted"}

    with serving(app, http=http, lifespan="off") as url:
        asyncio.run(both(url))


async def ask(app: WebhookReceiver, messages: list[Message], sent: dict[str, str]) -> int | None:
    """Speak ASGI to the receiver; gives the status, None where it said nothing."""
    status: int | None = None

    async def receive() -> Message:
        if not messages:
            await asyncio.Event().wait()
        return messages.pop(0)

    async def send(message: Message) -> None:
        nonlocal status
        status = message.get("status", status)

    scope: Scope = {
        "type": "http",
        "method": "POST",
        "path": "/webhook",
        "headers": [(name.encode(), value.encode()) for name, value in sent.items()],
    }
    await app(scope, receive, send)
    return status


async def test_a_client_that_hangs_up() -> None:
    """Whoever hangs up in the middle gets no answer, and leaves nothing held."""
    store = MemoryDeliveries()
    app = receiver(store, [], SECRET)
    part: Message = {"type": "http.request", "body": BODY[:10], "more_body": True}
    assert await ask(app, [{"type": "http.disconnect"}], headers(BODY)) is None
    assert await ask(app, [part, {"type": "http.disconnect"}], headers(BODY)) is None
    assert app._held == 0
    assert not store.rows


async def test_a_store_that_hangs() -> None:
    """A store that does not come back gets 503 in time, and the door stays open."""
    store = MemoryDeliveries()
    store.hang_s = 60
    app = receiver(store, [], SECRET, patience=Patience(store_s=0.01))
    whole: Message = {"type": "http.request", "body": BODY}
    assert await ask(app, [whole], headers(BODY)) == 503
    store.hang_s = 0
    assert await ask(app, [whole], headers(BODY)) == 202


async def test_a_body_that_does_not_arrive() -> None:
    """A body that stops in the middle gets 408, and nothing of it is held."""
    app = receiver(MemoryDeliveries(), [], SECRET, patience=Patience(body_s=0.01))
    assert await ask(app, [{"type": "http.request", "body": b"{", "more_body": True}], headers(BODY)) == 408
    assert app._held == 0


async def test_many_unfinished_bodies() -> None:
    """Strangers who begin many large bodies cannot fill the memory: beyond 100 MiB the next gets 503."""
    app = receiver(MemoryDeliveries(), [], SECRET)
    piece = b"x" * (MAX_BODY - 1)
    part: Message = {"type": "http.request", "body": piece, "more_body": True}
    waiting = [asyncio.create_task(ask(app, [part], headers(BODY))) for _ in range(4)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert MAX_HELD - 4 <= app._held <= MAX_HELD
    assert await ask(app, [part, part], headers(BODY)) == 413
    assert await ask(app, [part, {"type": "http.request", "body": b"x", "more_body": True}], headers(BODY)) == 503
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    assert app._held == 0


async def test_fifty_at_once(tmp_path: Path) -> None:
    """The same delivery fifty times at once is one row on disk, and each gets 202."""
    tasks, store = open_store(tmp_path, None, now=lambda: NOW)
    woken: list[int] = []
    app = receiver(store, woken, SECRET)

    async def once() -> int | None:
        return await ask(app, [{"type": "http.request", "body": BODY}], headers(BODY))

    assert set(await asyncio.gather(*(once() for _ in range(50)))) == {202}
    assert len(await store.pending()) == len(woken) == 1
    await store.close()
    await tasks.close()


def test_fifty_at_once_over_http(door: Door) -> None:
    """The same over connections: one is accepted, all others are duplicates."""

    async def many() -> list[str]:
        async with httpx.AsyncClient(base_url=door.url, timeout=30) as client:
            posts = (client.post("/webhook", content=BODY, headers=headers(BODY)) for _ in range(50))
            return [answer.json()["status"] for answer in await asyncio.gather(*posts)]

    answers = asyncio.run(many())
    assert sorted(answers) == ["accepted"] + ["duplicate"] * 49


def examples() -> list[tuple[str, bytes]]:
    """Read GitHub's example payloads; without them the test is skipped, or fails where they are required."""
    shared = Path(os.environ.get("SHARED_DIR") or Path(__file__).parents[3].parent / "shared")
    path = shared / "data" / "webhooks" / "api.github.com.json"
    if not path.exists():
        message = f"{path} is not there; set SHARED_DIR to the folder of shared material"
        if os.environ.get("REQUIRE_SHARED") == "1":
            pytest.fail(message)
        pytest.skip(message)
    groups = json.loads(path.read_bytes())
    return [(group["name"], json.dumps(example).encode()) for group in groups for example in group["examples"]]


def test_githubs_own_examples(tmp_path: Path) -> None:
    """Each of GitHub's 329 example payloads, rightly signed, is accepted and kept."""
    found = examples()
    assert len(found) >= 329
    tasks, store = open_store(tmp_path, None, now=lambda: NOW)
    understand = understanding(lambda _: True)
    app = WebhookReceiver(store, [SECRET], understand, lambda: NOW, lambda: None)
    with serving(app, lifespan="off") as url, httpx.Client(base_url=url, timeout=30) as client:
        kept = 0
        for number, (event, body) in enumerate(found):
            answer = client.post("/webhook", content=body, headers=headers(body, guid=f"g-{number}", event=event))
            assert answer.status_code == 202, (event, answer.text)
            kept += answer.json()["status"] != "duplicate"
    assert kept > 300

    async def close() -> int:
        stored = len([number for number in range(len(found)) if await store.get(f"g-{number}")])
        await store.close()
        await tasks.close()
        return stored

    assert asyncio.run(close()) == kept
