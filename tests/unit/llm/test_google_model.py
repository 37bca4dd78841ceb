"""A model of Google's through the real SDK: over HTTP on this machine, and on recorded cassettes."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import vcr
import yaml

from bot.domain.messages import Message, Prompt, Reply, TextPart, ThinkingPart, ToolCall, Usage
from bot.errors import (
    ContextOverflow,
    MalformedReply,
    ModelError,
    ModelRefused,
    ModelRejected,
    ModelUnavailable,
    OperatorError,
)
from bot.llm.discarded import usage_of
from bot.llm.google import GoogleModel
from bot.llm.google_wire import from_wire, to_wire
from bot.llm.transport import ClientOptions
from tests.contract.corporate import company
from tests.unit.llm.cassettes import ROOT, interactions
from tests.unit.llm.google_peer import Answer, events, serving
from tests.unit.llm.google_traffic import CALLED, MODEL, Json, Talk, lines, talks

PROMPT = Prompt("Be brief.", (), (Message("user", (TextPart("Hi"),)),))
Make = Callable[..., GoogleModel]


@pytest.fixture
async def make() -> AsyncIterator[Make]:
    """Make models that are closed at the end."""
    made: list[GoogleModel] = []

    def one(url: str | None, **options: Any) -> GoogleModel:
        made.append(GoogleModel(MODEL, **{"api_key": "k", "base_url": url, "max_output_tokens": 100, **options}))
        return made[-1]

    yield one
    for model in made:
        await model.close()


def said(*parts: Json, stop: str | None = None, **fields: Any) -> Json:
    """One chunk."""
    return {"candidates": [{"content": {"parts": list(parts)}, **({"finishReason": stop} if stop else {})}], **fields}


HELLO = events(said({"text": "He"}), said({"text": "llo"}, stop="STOP", usageMetadata={"promptTokenCount": 3}))


async def test_a_request_and_its_answer(make: Make) -> None:
    """One POST to the stream of the model below the base URL, with the key in its header and nothing in the URL."""
    async with serving(Answer(HELLO), Answer(HELLO)) as peer:
        model = make(f"{peer.url}/gate", thinking_budget=10)
        heard: list[str] = []
        reply = await model.ask(PROMPT, on_text=heard.append)
        assert reply == Reply(Message("assistant", (TextPart("Hello"),)), "end", Usage(3))
        assert heard == ["He", "llo"]
        assert await model.ask(PROMPT) == reply
    head = peer.heads[0].lower()
    assert head.startswith("post /gate/v1beta/models/gemini:streamgeneratecontent?alt=sse http/1.1\r\n")
    assert "\r\nx-goog-api-key: k\r\n" in head
    assert "x-server-timeout" not in head
    assert peer.bodies == [to_wire(PROMPT, model=MODEL, max_output_tokens=100, thinking=10)] * 2


async def test_an_answer_in_one_piece_is_a_reply_too(make: Make) -> None:
    """A server that does not stream sends one object, or a list of chunks."""
    whole = said({"text": "x"}, {"functionCall": {"name": "f"}}, stop="STOP")
    bodies = [json.dumps(whole), json.dumps(whole, indent=2), json.dumps([said({"text": "x"}), whole])]
    async with serving(*[Answer(body.encode(), kind="application/json") for body in bodies]) as peer:
        model = make(peer.url)
        replies = [await model.ask(PROMPT) for _ in bodies]
    assert [reply.stop for reply in replies] == ["tool"] * 3
    assert [reply.message.text for reply in replies] == ["x", "x", "xx"]


async def test_a_key_may_change(make: Make) -> None:
    """Whatever gives it is asked before each request; a server of one's own may need none."""
    keys = iter(["first", "second"])

    async def current() -> str:
        return next(keys)

    async with serving(*[Answer(HELLO)] * 3) as peer:
        model = make(peer.url, api_key=current)
        await model.ask(PROMPT)
        await model.ask(PROMPT)
        await make(peer.url, api_key="").ask(PROMPT)
    sent = [line for head in peer.heads for line in head.splitlines() if line.startswith("x-goog-api-key")]
    assert sent == ["x-goog-api-key: first", "x-goog-api-key: second", "x-goog-api-key: none"]


async def test_without_a_key_nothing_is_sent(make: Make) -> None:
    """Google's own API needs one; the sentence says where to put it."""
    with pytest.raises(ModelRejected, match=r"There is no API key for google:gemini\. Set GEMINI_API_KEY"):
        await make(None, api_key="").ask(PROMPT)


async def test_the_environment_says_nothing(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither keys, nor addresses, nor another service, nor a proxy."""
    for name, value in {
        "GOOGLE_API_KEY": "theirs",
        "GEMINI_API_KEY": "theirs",
        "GOOGLE_GENAI_USE_VERTEXAI": "true",
        "GOOGLE_GENAI_API_VERSION": "v9",
        "GOOGLE_GEMINI_BASE_URL": "http://127.0.0.1:9",
        "HTTP_PROXY": "http://127.0.0.1:9",
        "HTTPS_PROXY": "http://127.0.0.1:9",
        "ALL_PROXY": "http://127.0.0.1:9",
    }.items():
        monkeypatch.setenv(name, value)
    async with serving(Answer(HELLO)) as peer:
        assert (await make(peer.url).ask(PROMPT)).stop == "end"
    assert "/v1beta/models/gemini:" in peer.heads[0]
    assert "theirs" not in peer.heads[0]


def error(code: int, status: str, message: str, **fields: Any) -> bytes:
    """An error as the API sends it."""
    return json.dumps({"error": {"code": code, "status": status, "message": message, **fields}}).encode()


RETRY = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "9s"}]


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (Answer(error(400, "INVALID_ARGUMENT", "API key not valid."), 400), ModelRejected, "Set GEMINI_API_KEY"),
        (Answer(error(404, "NOT_FOUND", "models/x is not found"), 404), ModelRejected, "Set the model to one"),
        (Answer(error(429, "RESOURCE_EXHAUSTED", "Slow", details=RETRY), 429), ModelUnavailable, "429"),
        (
            Answer(error(400, "INVALID_ARGUMENT", "The input token count (2) exceeds the maximum"), 400),
            ContextOverflow,
            "input token count",
        ),
        (Answer(b"<html>Bad Gateway</html>", 502, "text/html"), ModelUnavailable, "502"),
        (Answer(b"", 503), ModelUnavailable, "503"),
        (Answer(b"[]", 404, "application/json"), ModelRejected, "404"),
        (Answer(b'"x"', 500, "application/json"), ModelUnavailable, "500"),
        (Answer(error(403, "PERMISSION_DENIED", "Not " + "AIza" + "x" * 35), 403), ModelRejected, r"\*\*\*"),
        (Answer(events(said({"text": "x"})) + error(503, "UNAVAILABLE", "overloaded")), ModelUnavailable, "overloaded"),
        (Answer(events(said({"text": "x"}), {"error": {"message": "odd"}})), ModelUnavailable, "odd"),
        (Answer(events(said({"text": "x"}))), ModelUnavailable, "broke off"),
        (Answer(b""), ModelUnavailable, "broke off"),
        (Answer(b"data: {nonsense\n\n"), MalformedReply, "cannot be read"),
        (Answer(b"<html>Welcome</html>", kind="text/html"), MalformedReply, "cannot be read"),
        (Answer(events(5)), MalformedReply, "shape"),
        (Answer(events(said({"text": "x"}, stop="SAFETY"))), ModelRefused, "declined to answer: SAFETY"),
        (Answer(events({"promptFeedback": {"blockReason": "OTHER"}})), ModelRefused, "prompt was blocked: OTHER"),
        (Answer(events(said(stop="UNEXPECTED_TOOL_CALL"))), MalformedReply, "UNEXPECTED_TOOL_CALL"),
    ],
)  # fmt: skip
async def test_each_failure_has_its_error(make: Make, answer: Answer, kind: type[ModelError], words: str) -> None:
    """Whatever comes, it is a `ModelError` in one sentence; the SDK tries nothing again."""
    async with serving(answer) as peer:
        with pytest.raises(kind, match=words) as caught:
            await make(peer.url).ask(PROMPT)
    assert type(caught.value).__mro__[1] is kind or type(caught.value) is kind
    if answer.status == 429:
        assert isinstance(caught.value, ModelUnavailable)
        assert caught.value.retry_after_s == 9


async def test_a_failure_carries_what_it_cost(make: Make) -> None:
    """The count of a reply that broke off, was refused or could not be read is not lost."""
    count = {"promptTokenCount": 7, "thoughtsTokenCount": 2}
    bodies = [
        events(said(usageMetadata=count), said(stop=stop)) for stop in (None, "SAFETY", "MALFORMED_FUNCTION_CALL")
    ]
    async with serving(*map(Answer, bodies)) as peer:
        model = make(peer.url)
        for kind in (ModelUnavailable, ModelRefused, MalformedReply):
            with pytest.raises(kind) as caught:
                await model.ask(PROMPT)
            assert usage_of(caught.value) == Usage(7, 0, 0, 2)


async def test_silence_and_closed_doors_are_unavailable(make: Make) -> None:
    """A server that falls silent within a stream, and one that is not there."""
    async with serving(Answer(events(said({"text": "x"})), hangs=True)) as peer:
        with pytest.raises(ModelUnavailable, match="cannot be reached at http://127"):
            await make(peer.url, client_options=ClientOptions(silence_timeout_s=0.3)).ask(PROMPT)
    with pytest.raises(ModelUnavailable, match="cannot be reached"):
        await make(peer.url).ask(PROMPT)


async def test_what_the_operator_set_wrong_is_told_before_a_request(make: Make, tmp_path: Path) -> None:
    """Certificates that are none, a proxy that is no address, a budget that leaves no room."""
    missing = make(None, client_options=ClientOptions(ca_bundle=tmp_path / "none.pem"))
    with pytest.raises(OperatorError, match=r"none\.pem cannot be read"):
        await missing.warm()
    proxy = make(None, client_options=ClientOptions(https_proxy="ftp://u:secret@x"))
    with pytest.raises(OperatorError, match="cannot be reached") as caught:
        await proxy.warm()
    assert "secret" not in str(caught.value)
    for budget in (100, -1):
        with pytest.raises(OperatorError, match="thinking budget"):
            make(None, thinking_budget=budget)


async def test_a_missing_sdk_says_how_to_get_it(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is an extra; whoever chose the model reads what to run."""
    monkeypatch.setitem(sys.modules, "google.genai", None)
    with pytest.raises(OperatorError, match=r"pip install 'issuewright\[google\]'"):
        await make(None).ask(PROMPT)


async def test_a_closed_model_opens_again(make: Make) -> None:
    """Closing gives the connections back and ends nothing; what is unknown was counted."""
    async with serving(*[Answer(events(said({"text": "x", "news": 1}, stop="STOP")))] * 2) as peer:
        model = make(peer.url)
        await model.ask(PROMPT)
        await model.close()
        await model.ask(PROMPT)
    assert model.unknown == {"part news": 2}
    assert model.name == MODEL


def calling() -> list[Talk]:
    """The recorded streams with a tool call, those of the real API first and short ones before long ones."""
    found = [talk for talk in (*talks(), *lines()) if talk.is_stream and any("functionCall" in p for p in talk.parts)]
    return sorted(found, key=lambda talk: (not talk.request, len(events(*talk.chunks))))


async def test_a_stream_that_is_cut_at_any_byte_runs_nothing(make: Make) -> None:
    """Each recorded stream with a tool call, spelt as events: before its finishing event is whole there is no call."""
    found = calling()
    assert (len([talk for talk in found if talk.request]), len(found)) == (8, 131)
    cuts = []
    for talk in found:
        finishing = next(n for n, x in enumerate(talk.chunks) if "finishReason" in json.dumps(x))
        whole = events(*talk.chunks[: finishing + 1]).rstrip()
        step = max(1, len(whole) // (60 if talk.request else 5))
        cuts += [whole[:end] for end in {*range(0, len(whole), step), len(whole) - 1}]
    async with serving(*map(Answer, cuts)) as peer:
        model = make(peer.url)
        for _ in cuts:
            with pytest.raises((ModelUnavailable, MalformedReply)):
                await model.ask(PROMPT)
    assert len(cuts) > 1000


def cassette(path: Path, folder: Path) -> tuple[Path, list[int]]:
    """Write a recorded cassette as vcrpy reads it, with the answers that came as events; tell their numbers."""
    kept, numbers = [], []
    for number, interaction in enumerate(interactions(path)):
        request, response = dict(interaction["request"]), dict(interaction["response"])
        if CALLED.search(request["uri"]) and "alt=sse" in request["uri"] and "parsed_body" not in response:
            request["body"] = json.dumps(request.pop("parsed_body"))
            kept.append({"request": request, "response": response})
            numbers.append(number)
    made = folder / f"{len(list(folder.iterdir()))}.yaml"
    made.write_text(yaml.safe_dump({"version": 1, "interactions": kept}), encoding="utf-8")
    return made, numbers


async def test_recorded_streams_come_through_the_real_sdk(tmp_path: Path) -> None:
    """Vcrpy plays each stream that was recorded as events; what comes out is what the pure reader makes of it."""
    played = 0
    for path in sorted({talk.path for talk in talks() if talk.is_stream}):
        made, numbers = cassette(path, tmp_path)
        model = GoogleModel(MODEL, api_key="k", max_output_tokens=100)
        with vcr.use_cassette(str(made), record_mode="none", match_on=["method"]) as tape:
            for number in numbers:
                talk = next(t for t in talks() if t.path == path and t.name.endswith(f"#{number}"))
                reply = await model.ask(PROMPT)
                # The number of messages before is part of an id that we make.
                assert reply == from_wire(talk.chunks, model=MODEL, turn=len(PROMPT.messages)), talk.name
                played += 1
            assert tape.all_played
        await model.close()
    assert played == 12


async def test_two_requests_at_once_share_one_client(make: Make) -> None:
    """The SDK is opened once, whoever comes first."""
    async with serving(*[Answer(HELLO)] * 2) as peer:
        model = make(peer.url)
        first, second = await asyncio.gather(model.ask(PROMPT), model.ask(PROMPT))
    assert first == second


async def test_a_loop_goes_on_with_its_signature(make: Make) -> None:
    """What came back with a call is in the next request, verbatim."""
    seal = "EvQBCvEB/+=="
    parts = [{"functionCall": {"name": "read", "args": {"path": "a"}}, "thoughtSignature": seal}]
    async with serving(Answer(events(said(*parts), said({"text": ""}, stop="STOP"))), Answer(HELLO)) as peer:
        model = make(peer.url)
        reply = await model.ask(PROMPT)
        assert [type(part) for part in reply.message.parts] == [ThinkingPart, ToolCall]
        await model.ask(Prompt("", (), (*PROMPT.messages, reply.message, Message("user", ()))))
    returned = peer.bodies[1]["contents"][1]["parts"]
    assert [part["thoughtSignature"] for part in returned] == [seal]
    assert returned[0]["functionCall"]["args"] == {"path": "a"}


def test_the_adapter_alone_imports_no_sdk() -> None:
    """Only `warm` and the first request do."""
    code = "import sys, bot.llm.google; print([name for name in sys.modules if name.startswith('google')])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


async def test_a_company_network_is_crossed(make: Make, tmp_path: Path) -> None:
    """Through a proxy that wants a login, to a certificate of an authority of one's own; what is missing is told."""
    async with company(tmp_path) as (network, stack):
        peer = await stack.enter_async_context(serving(Answer(HELLO)))
        url = await network.serve(stack, "gemini.example", int(peer.url.rpartition(":")[2]))
        network.login = "user:Pr0xy"
        bundle = network.authority.bundle

        async def ask(ca_bundle: Path | None, proxy: str) -> Reply:
            options = ClientOptions(ca_bundle=ca_bundle, https_proxy=proxy)
            return await make(url, client_options=options).ask(PROMPT)

        assert (await ask(bundle, network.proxy_with_login)).message.text == "Hello"
        assert network.asked == ["gemini.example:443"]
        with pytest.raises(ModelRejected, match=r"(?s)proxy wants a login.*407"):
            await ask(bundle, network.proxy)
        with pytest.raises(ModelRejected, match=r"not trusted. Set `network\.ca_bundle`"):
            await ask(None, network.proxy_with_login)
