"""Anthropic's models on Amazon Bedrock through the real SDK: signed requests, replies in AWS's frames."""

import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from bot.domain.messages import Message, Prompt, Reply, TextPart, ToolCall, Usage
from bot.errors import ContextOverflow, MalformedReply, ModelError, ModelRejected, ModelUnavailable, OperatorError
from bot.llm.anthropic import AnthropicModel
from bot.llm.anthropic_bedrock import AwsKeys, Bedrock
from bot.llm.discarded import DroppedReply, usage_of
from bot.llm.keys import KeyRefused
from bot.llm.transport import ClientOptions
from tests.contract.corporate import company
from tests.unit.llm.aws import chunk, fault, refused, signature, streamed
from tests.unit.llm.cassettes import ROOT
from tests.unit.llm.google_peer import Answer, serving

NAME = "bedrock:us.anthropic.claude-sonnet-4-5-20250929-v1:0"
KEYS = AwsKeys("AKIAEXAMPLE", "the/secret+key", "the-session")
PROMPT = Prompt("Be brief.", (), (Message("user", (TextPart("Hi"),)),))
Make = Callable[..., AnthropicModel]

STARTED = {"type": "message_start", "message": {"model": "claude", "usage": {"input_tokens": 7, "output_tokens": 1}}}
TEXT = [
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "He"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "llo"}},
    {"type": "content_block_stop", "index": 0},
]
ENDED = [
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}},
    {"type": "message_stop", "amazon-bedrock-invocationMetrics": {"inputTokenCount": 7}},
]
HELLO = streamed(*map(chunk, [STARTED, *TEXT, *ENDED]))


@pytest.fixture(autouse=True)
def nobody_is_logged_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The machine's own credentials, and its role, are not asked."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / name))


@pytest.fixture
async def make() -> AsyncIterator[Make]:
    """Make models that are closed at the end."""
    made: list[AnthropicModel] = []

    def one(url: str | None, *, options: ClientOptions | None = None, **how: Any) -> AnthropicModel:
        platform = Bedrock("eu-west-3", **{"base_url": url, "keys": KEYS, **how})
        made.append(AnthropicModel(NAME, platform=platform, max_output_tokens=100, client_options=options))
        return made[-1]

    yield one
    for model in made:
        await model.close()


async def test_a_signed_request_and_its_frames(make: Make) -> None:
    """The model stands in the path, the rest of the wire is Anthropic's, and the signature is the one AWS computes."""
    async with serving(HELLO) as peer:
        heard: list[str] = []
        reply = await make(peer.url).ask(PROMPT, on_text=heard.append)
    assert reply == Reply(Message("assistant", (TextPart("Hello"),)), "end", Usage(7, output_tokens=3), "claude")
    assert heard == ["He", "llo"]
    path = "/model/us.anthropic.claude-sonnet-4-5-20250929-v1:0/invoke-with-response-stream"
    assert peer.heads[0].startswith(f"POST {path} HTTP/1.1\r\n")
    assert peer.bodies[0].keys() == {"anthropic_version", "max_tokens", "messages", "system"}
    assert "Credential=AKIAEXAMPLE/" in peer.heads[0]
    assert "/eu-west-3/bedrock/aws4_request" in peer.heads[0]
    assert "x-amz-security-token: the-session" in peer.heads[0].lower()
    sent, expected = signature(peer.heads[0], peer.raws[0], "the/secret+key")
    assert sent == expected


async def test_a_bearer_token_stands_in_for_the_signature(make: Make) -> None:
    """It may change from request to request, and is sent although there are keys too."""
    tokens = iter(["first", "second"])

    async def current() -> str:
        return next(tokens)

    async with serving(HELLO, HELLO) as peer:
        model = make(peer.url, bearer=current)
        await model.ask(PROMPT)
        await model.ask(PROMPT)
    sent = [line for head in peer.heads for line in head.splitlines() if line.lower().startswith("authorization")]
    assert [line.partition(": ")[2] for line in sent] == ["Bearer first", "Bearer second"]


async def test_calls_and_unknown_events_come_as_from_anthropic(make: Make) -> None:
    """The reply's builder is the same one."""
    block = {"type": "tool_use", "id": "t1", "name": "read", "input": {}}
    events = [
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "news"},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": '{"a":1}'}},
        {"type": "content_block_stop", "index": 0},
    ]
    async with serving(streamed(*map(chunk, [STARTED, *events, *ENDED]))) as peer:
        model = make(peer.url)
        reply = await model.ask(PROMPT)
    assert reply.message.parts == (ToolCall("t1", "read", '{"a":1}'),)
    assert reply.stop == "tool"
    assert model.unknown == {"news": 1}


PROFILE = "Invocation of model ID x with on-demand throughput isn't supported. Use an inference profile"


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (refused(403, "UnrecognizedClientException", "The security token is invalid"), KeyRefused, "bedrock.access_k"),
        (refused(403, "ExpiredTokenException", "It expired"), KeyRefused, "Set AWS_BEARER_TOKEN_BEDROCK"),
        (refused(403, "", "Bearer Token has expired"), KeyRefused, "Set AWS_BEARER_TOKEN_BEDROCK"),
        (refused(403, "AccessDeniedException", "No access"), ModelRejected, "access to it in .* `bedrock.region`"),
        (refused(404, "ResourceNotFoundException", "No such"), ModelRejected, "one that `bedrock.region` has"),
        (refused(400, "ValidationException", PROFILE), ModelRejected, "Set the model to the id or ARN of an inference"),
        (refused(400, "ValidationException", "Input is too long for requested model."), ContextOverflow, "too long"),
        (refused(429, "ThrottlingException", "Too many requests"), ModelUnavailable, "Bedrock answered 429 Throttling"),
        (refused(424, "ModelErrorException", "Odd"), ModelUnavailable, "424 ModelErrorException: Odd"),
        (Answer(b"<html>Bad Gateway</html>", 502, "text/html"), ModelUnavailable, "502"),
        (streamed(chunk(STARTED), fault("throttlingException", "Slow down")), DroppedReply, "answered 429 throttling"),
        (streamed(chunk(STARTED), fault("internalServerException", "Oh")), DroppedReply, "answered 500 internal"),
        (streamed(fault("validationException", "Bad")), ModelRejected, "answered 400 validationException: Bad"),
        (streamed(chunk(STARTED), *map(chunk, TEXT)), DroppedReply, "broke off"),
        (streamed(chunk(STARTED), chunk(TEXT[0])[:-9]), DroppedReply, "broke off"),
        (streamed(chunk(STARTED)[:-1] + b"x"), MalformedReply, "cannot be read: Checksum"),
        (streamed(b"nonsense" * 20), MalformedReply, "cannot be read"),
        (streamed(chunk("text")), MalformedReply, "shape nobody knows"),
    ],
)
async def test_each_failure_has_its_error(make: Make, answer: Answer, kind: type[ModelError], words: str) -> None:
    """Whatever comes, it is a `ModelError` that says what to set; the SDK tries nothing again."""
    async with serving(answer) as peer:
        with pytest.raises(kind, match=words) as caught:
            await make(peer.url).ask(PROMPT)
    assert len(peer.heads) == 1
    assert "ANTHROPIC" not in str(caught.value)
    if kind is DroppedReply:
        assert usage_of(caught.value) == Usage(7, output_tokens=1)


async def test_without_credentials_it_says_what_to_set(make: Make) -> None:
    """Nothing is sent; AWS's own chain finds nobody."""
    async with serving() as peer:
        with pytest.raises(ModelRejected, match=r"no AWS credentials for bedrock:.*`bedrock\.access_key_id`"):
            await make(peer.url, keys=AwsKeys()).ask(PROMPT)
    assert peer.heads == []


async def test_awss_own_chain_signs_where_nothing_is_set(tmp_path: Path) -> None:
    """A profile in the usual file is taken."""
    (tmp_path / "AWS_SHARED_CREDENTIALS_FILE").write_text(
        "[default]\naws_access_key_id = AKIAFILE\naws_secret_access_key = of-the-file\n"
    )
    async with serving(HELLO) as peer:
        # The SDK keeps what it found for a region: another one.
        platform = Bedrock("eu-north-1", base_url=peer.url)
        model = AnthropicModel(NAME, platform=platform, max_output_tokens=100)
        await model.ask(PROMPT)
        await model.close()
    assert "Credential=AKIAFILE/" in peer.heads[0]
    sent, expected = signature(peer.heads[0], peer.raws[0], "of-the-file")
    assert sent == expected


async def test_the_environment_says_nothing_of_where_and_how(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither addresses, nor regions, nor other tokens, headers or a proxy."""
    nowhere = "http://127.0.0.1:9"
    for name, value in {
        "ANTHROPIC_BEDROCK_BASE_URL": nowhere,
        "ANTHROPIC_CUSTOM_HEADERS": "x-theirs: theirs",
        "AWS_BEARER_TOKEN_BEDROCK": "theirs",
        "AWS_REGION": "theirs",
        "ANTHROPIC_API_KEY": "theirs",
        "HTTP_PROXY": nowhere,
        "HTTPS_PROXY": nowhere,
        "ALL_PROXY": nowhere,
    }.items():
        monkeypatch.setenv(name, value)
    async with serving(HELLO) as peer:
        assert (await make(peer.url).ask(PROMPT)).stop == "end"
    assert "theirs" not in peer.heads[0]
    assert "Credential=AKIAEXAMPLE/" in peer.heads[0]
    model = make(None)
    await model.warm()
    assert model._client is not None
    assert str(model._client.base_url).rstrip("/") == "https://bedrock-runtime.eu-west-3.amazonaws.com"


async def test_a_missing_library_says_how_to_get_it(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is an extra; whoever chose the model reads what to run."""
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(OperatorError, match=r"pip install 'issuewright\[bedrock\]'"):
        await make(None).ask(PROMPT)


def test_the_platforms_alone_import_no_sdk() -> None:
    """Only `warm` and the first request do."""
    code = (
        "import sys, bot.llm.anthropic, bot.llm.anthropic_bedrock, bot.llm.anthropic_vertex; "
        "print([name for name in ('anthropic', 'botocore', 'google', 'urllib3', 'httpx2') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


async def test_a_company_network_is_crossed(make: Make, tmp_path: Path) -> None:
    """Through a proxy that wants a login, to a certificate of an authority of one's own."""
    async with company(tmp_path) as (network, stack):
        peer = await stack.enter_async_context(serving(HELLO))
        url = await network.serve(stack, "bedrock.example", int(peer.url.rpartition(":")[2]))
        network.login = "user:Pr0xy"
        options = ClientOptions(ca_bundle=network.authority.bundle, https_proxy=network.proxy_with_login)
        assert (await make(url, options=options).ask(PROMPT)).message.text == "Hello"
        assert network.asked == ["bedrock.example:443"]
