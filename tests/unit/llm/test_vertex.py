"""Anthropic's models on Vertex AI through the real SDK, with tokens of Google's own login library."""

import base64
import json
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from bot.domain.messages import Message, Prompt, Reply, TextPart, Usage
from bot.errors import ContextOverflow, ModelError, ModelRejected, ModelUnavailable, OperatorError
from bot.llm.anthropic import AnthropicModel
from bot.llm.anthropic_vertex import GoogleLogin, Vertex
from bot.llm.discarded import DroppedReply, usage_of
from bot.llm.keys import KeyRefused
from bot.llm.transport import ClientOptions
from bot.redaction import forget_secrets, mask
from tests.contract.corporate import company
from tests.unit.llm.google_peer import Answer, serving

NAME = "vertex:claude-sonnet-4-5@20250929"
PROMPT = Prompt("Be brief.", (), (Message("user", (TextPart("Hi"),)),))
Make = Callable[..., AnthropicModel]

STARTED: dict[str, Any] = {
    "type": "message_start",
    "message": {"model": "claude", "usage": {"input_tokens": 7, "output_tokens": 1}},
}
TEXT: list[dict[str, Any]] = [
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Hello"}},
    {"type": "content_block_stop", "index": 0},
]
ENDED: list[dict[str, Any]] = [
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}},
    {"type": "message_stop"},
]


def streamed(*events: dict[str, Any]) -> Answer:
    """An answer as the API streams it, with a name before each event."""
    text = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    return Answer(text.encode())


HELLO = streamed(STARTED, {"type": "ping"}, *TEXT, *ENDED)


@pytest.fixture
async def make() -> AsyncIterator[Make]:
    """Make models that are closed at the end."""
    made: list[AnthropicModel] = []

    def one(url: str | None, *, options: ClientOptions | None = None, **how: Any) -> AnthropicModel:
        base_url = f"{url}/v1" if url else None
        platform = Vertex("the-project", "europe-west1", **{"base_url": base_url, "token": "the-token", **how})
        made.append(AnthropicModel(NAME, platform=platform, max_output_tokens=100, client_options=options))
        return made[-1]

    yield one
    for model in made:
        await model.close()
    forget_secrets()


async def test_a_request_and_its_answer(make: Make) -> None:
    """Project, region and model stand in the path, the token in its header; the rest of the wire is Anthropic's."""
    async with serving(HELLO) as peer:
        reply = await make(peer.url).ask(PROMPT)
    assert reply == Reply(Message("assistant", (TextPart("Hello"),)), "end", Usage(7, output_tokens=3), "claude")
    place = "/v1/projects/the-project/locations/europe-west1/publishers/anthropic/models/"
    assert peer.heads[0].startswith(f"POST {place}claude-sonnet-4-5@20250929:streamRawPredict HTTP/1.1\r\n")
    assert "authorization: bearer the-token\r\n" in peer.heads[0].lower()
    assert peer.bodies[0].keys() == {"anthropic_version", "max_tokens", "messages", "stream", "system"}


@pytest.mark.parametrize(
    ("region", "host"),
    [
        ("global", "aiplatform.googleapis.com"),
        ("eu", "aiplatform.eu.rep.googleapis.com"),
        ("us", "aiplatform.us.rep.googleapis.com"),
        ("us-east5", "us-east5-aiplatform.googleapis.com"),
    ],
)
def test_each_region_has_its_host(region: str, host: str) -> None:
    """Also the regions of many regions."""
    assert Vertex("p", region).base_url == f"https://{host}/v1"


async def test_a_token_may_change(make: Make) -> None:
    """Whatever gives it is asked before each request."""
    tokens = iter(["first", "second"])

    async def current() -> str:
        return next(tokens)

    async with serving(HELLO, HELLO) as peer:
        model = make(peer.url, token=current)
        await model.ask(PROMPT)
        await model.ask(PROMPT)
    assert ["Bearer first" in peer.heads[0], "Bearer second" in peer.heads[1]] == [True, True]


def error(code: int, status: str, message: str) -> bytes:
    """An error of Google's own."""
    return json.dumps([{"error": {"code": code, "status": status, "message": message}}]).encode()


def theirs(kind: str, message: str) -> bytes:
    """An error of Anthropic's, passed on."""
    return json.dumps({"type": "error", "error": {"type": kind, "message": message}}).encode()


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (
            Answer(error(401, "UNAUTHENTICATED", "No"), 401),
            KeyRefused,
            "application-default login`, or set `vertex.api",
        ),
        (Answer(error(403, "PERMISSION_DENIED", "No"), 403), ModelRejected, "aiplatform.endpoints.predict` in the pro"),
        (Answer(error(404, "NOT_FOUND", "No"), 404), ModelRejected, "`vertex.project` has in `vertex.region`"),
        (
            Answer(error(429, "RESOURCE_EXHAUSTED", "Quota"), 429),
            ModelUnavailable,
            "AI answered 429 RESOURCE_EXHAUSTED",
        ),
        (Answer(theirs("invalid_request_error", "Prompt is too long"), 400), ContextOverflow, "too long"),
        (Answer(theirs("overloaded_error", "Overloaded"), 529), ModelUnavailable, "AI answered 529 overloaded_error"),
        (Answer(b"<html>Bad Gateway</html>", 502, "text/html"), ModelUnavailable, "502"),
        (streamed(STARTED, {"type": "error", "error": {"type": "overloaded_error"}}), DroppedReply, "AI answered 529"),
        (streamed(STARTED, *TEXT), DroppedReply, "broke off"),
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


async def test_the_environment_says_nothing_of_where_and_how(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither addresses, nor projects, nor headers or a proxy."""
    nowhere = "http://127.0.0.1:9"
    for name, value in {
        "ANTHROPIC_VERTEX_BASE_URL": nowhere,
        "ANTHROPIC_VERTEX_PROJECT_ID": "theirs",
        "CLOUD_ML_REGION": "theirs",
        "ANTHROPIC_CUSTOM_HEADERS": "x-theirs: theirs",
        "ANTHROPIC_API_KEY": "theirs",
        "HTTP_PROXY": nowhere,
        "HTTPS_PROXY": nowhere,
        "ALL_PROXY": nowhere,
    }.items():
        monkeypatch.setenv(name, value)
    async with serving(HELLO) as peer:
        assert (await make(peer.url).ask(PROMPT)).stop == "end"
    assert "theirs" not in peer.heads[0]
    model = make(None)
    await model.warm()
    assert model._client is not None
    assert model._client.base_url.host == "europe-west1-aiplatform.googleapis.com"


def account(folder: Path, token_uri: str) -> Path:
    """Write the file of a service account whose tokens are given out there."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
    path = folder / "account.json"
    path.write_text(
        json.dumps(
            {
                "type": "service_account",
                "project_id": "theirs",
                "private_key_id": "1",
                "private_key": pem,
                "client_email": "bot@theirs.example",
                "client_id": "1",
                "token_uri": token_uri,
            }
        )
    )
    return path


def given(number: int) -> Answer:
    """A token as it is given out."""
    told = {"access_token": f"ya29.token-number-{number}", "expires_in": 3600, "token_type": "Bearer"}
    return Answer(json.dumps(told).encode(), kind="application/json")


async def test_googles_own_chain_gives_the_token(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The account of the usual variable signs for a token, which is used while it is valid, and masked from then on."""
    async with serving(given(1)) as giver, serving(HELLO, HELLO) as peer:
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(account(tmp_path, f"{giver.url}/token")))
        model = make(peer.url, token="")
        await model.ask(PROMPT)
        await model.ask(PROMPT)
    form = parse_qs(giver.raws[0].decode())
    assert form["grant_type"] == ["urn:ietf:params:oauth:grant-type:jwt-bearer"]
    claims = json.loads(base64.urlsafe_b64decode(form["assertion"][0].split(".")[1] + "=="))
    assert claims["iss"] == "bot@theirs.example"
    assert claims["scope"] == "https://www.googleapis.com/auth/cloud-platform"
    assert all("Bearer ya29.token-number-1" in head for head in peer.heads)
    assert mask("It is ya29.token-number-1.") == "It is ***."


async def test_who_gives_no_token_is_told(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An account that is gone, a file that is none, and a place that does not answer; no model is asked."""
    gone = Answer(b'{"error": "invalid_grant", "error_description": "Account is gone"}', 400, "application/json")
    async with serving(gone) as giver, serving() as peer:
        path = account(tmp_path, f"{giver.url}/token")
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(path))
        with pytest.raises(ModelRejected, match=r"no access token \(.*invalid_grant.*`vertex\.api_key_command`"):
            await make(peer.url, token="").ask(PROMPT)
        account(tmp_path, "http://127.0.0.1:9/token")
        with pytest.raises(ModelUnavailable, match="Google gave no access token: "):
            await make(peer.url, token="").ask(PROMPT)
        path.write_text("{}")
        with pytest.raises(ModelRejected, match="application-default login"):
            await make(peer.url, token="").ask(PROMPT)
    assert peer.heads == []


async def test_a_missing_library_says_how_to_get_it(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is an extra; whoever has a token needs none of it."""
    monkeypatch.setitem(sys.modules, "google.auth.transport.urllib3", None)
    with pytest.raises(OperatorError, match=r"pip install 'issuewright\[vertex\]'"):
        await make(None, token="").ask(PROMPT)
    async with serving(HELLO) as peer:
        assert (await make(peer.url).ask(PROMPT)).stop == "end"


async def test_a_company_network_is_crossed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Through a proxy that wants a login, to certificates of one's own: for the token as for the model."""
    async with company(tmp_path) as (network, stack):
        peer = await stack.enter_async_context(serving(HELLO))
        giver = await stack.enter_async_context(serving(given(1)))
        model_url = await network.serve(stack, "vertex.example", int(peer.url.rpartition(":")[2]))
        token_url = await network.serve(stack, "token.example", int(giver.url.rpartition(":")[2]))
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(account(tmp_path, f"{token_url}/token")))
        network.login = "user:Pr0xy%"
        options = ClientOptions(ca_bundle=network.authority.bundle, https_proxy=network.proxy_with_login)
        platform = Vertex("p", "eu", base_url=f"{model_url}/v1", options=options)
        model = AnthropicModel(NAME, platform=platform, max_output_tokens=100, client_options=options)
        assert (await model.ask(PROMPT)).message.text == "Hello"
        await model.close()
        assert network.asked == ["token.example:443", "vertex.example:443"]


async def test_the_metadata_of_a_machine_is_asked_directly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy could not reach it, or would reach its own."""
    async with serving(given(1)) as giver:
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(account(tmp_path, f"{giver.url}/token")))
        login = GoogleLogin(ClientOptions(https_proxy="http://127.0.0.1:9"))
        login.load()
        assert await login() == "ya29.token-number-1"
