"""Models behind OpenAI's wires are reached through a company's proxy, under certificates of its own authority."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from bot.domain.messages import Message, Prompt, TextPart
from bot.errors import BotError, ModelRejected
from bot.llm.openai_chat import OpenAIChatModel
from bot.llm.openai_client import Endpoint
from bot.llm.transport import ClientOptions
from bot.testing.model.script import Conversation, Script, Turn
from bot.testing.model.server import ScriptedModel
from tests.contract.corporate import Network, company

MODEL = "model.corp.test"
PROMPT = Prompt("You are a test.", (), (Message("user", (TextPart("Hello?"),)),))


@pytest.fixture
async def network(tmp_path: Path) -> AsyncIterator[Network]:
    """A company's network with a model behind TLS; its proxy asks for a login."""
    script = Script([Conversation("test", [Turn(text="Hello!")], match="/./")])
    async with company(tmp_path) as (network, stack), ScriptedModel(script, api_key="k") as server:
        assert isinstance(stack, AsyncExitStack)
        network.login = "svc-agent:Pr0xy-pass.word"
        await network.serve(stack, MODEL, int(server.url.rpartition(":")[2]))
        yield network


async def ask(ca_bundle: Path | None, proxy: str | None) -> str:
    """Ask it once."""
    endpoint, options = Endpoint("k", f"https://{MODEL}/v1"), ClientOptions(ca_bundle, proxy)
    model = OpenAIChatModel("own:x", endpoint=endpoint, max_output_tokens=100, client_options=options)
    try:
        return (await model.ask(PROMPT)).message.text
    finally:
        await model.close()


async def test_a_model_is_reached_through_the_proxy(network: Network) -> None:
    """A request goes through it, under the company's own certificate, and its answer streams back."""
    assert await ask(network.authority.bundle, network.proxy_with_login) == "Hello!"
    assert network.asked == [f"{MODEL}:443"]


async def test_what_is_missing_is_told(network: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    """A login, a certificate, a forbidden host: told with what to set; the environment's proxy is not asked."""
    bundle = network.authority.bundle
    with pytest.raises(ModelRejected, match=r"(?s)proxy wants a login.*407.*HTTPS_PROXY_LOGIN"):
        await ask(bundle, network.proxy)
    with pytest.raises(ModelRejected, match=r"not trusted\. Set `network.ca_bundle`"):
        await ask(None, network.proxy_with_login)
    network.forbidden.add(MODEL)
    with pytest.raises(ModelRejected, match="Allow that host"):
        await ask(bundle, network.proxy_with_login)
    monkeypatch.setenv("HTTPS_PROXY", network.proxy_with_login)
    asked = len(network.asked)
    with pytest.raises(BotError, match="cannot be reached"):
        await ask(bundle, None)
    assert len(network.asked) == asked
