"""Models by their configured names: who is asked, and what is missing."""

import pytest
from pydantic import SecretStr

from bot.errors import ModelError, OperatorError
from bot.llm.retrying import Retrying
from bot.llm.spoken import Spoken
from bot.models import make_model, missing_key
from bot.settings.catalogue import load_catalogue
from bot.settings.server import (
    Access,
    AnthropicSection,
    AzureSection,
    GoogleSection,
    ModelsSection,
    OpenAIChatSection,
    OpenAISection,
    ServerSettings,
)

KEY = SecretStr("key-of-a-test")
HERE = "http://127.0.0.1:9/v1"
FULL = ServerSettings(
    anthropic=AnthropicSection(api_key=KEY),
    openai=OpenAISection(api_key=KEY),
    openai_chat=OpenAIChatSection(base_url=HERE),
    azure=AzureSection(api_key=KEY, base_url=HERE, api_version="2025-04-01-preview", facts_of="openai:gpt-5"),
    google=GoogleSection(api_key=KEY),
)


async def _retried(_: ModelError, __: float) -> None:
    """Nothing is tried again here."""


@pytest.mark.parametrize("provider", ["anthropic", "openai", "openai-chat", "azure", "google"])
async def test_each_provider_has_its_models(provider: str) -> None:
    """A model of each API is made without a request, and answers to the name that it was configured by."""
    model = make_model(FULL, load_catalogue(), f"{provider}:some-model", _retried)
    assert isinstance(model, Retrying)
    assert model.name == f"{provider}:some-model"
    await model.close()


@pytest.mark.parametrize("dialect", ["xml", "json", "prose"])
async def test_the_operator_may_choose_the_spelling(dialect: str) -> None:
    """A model without tool calls of its own is spoken to in text."""
    settings = FULL.model_copy(update={"models": ModelsSection(dialect=dialect)})
    model = make_model(settings, load_catalogue(), "openai-chat:some-model", _retried)
    assert isinstance(model, Retrying)
    assert isinstance(model._model, Spoken)
    await model.close()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("anthropic:x", "`ANTHROPIC_API_KEY`"),
        ("openai:x", "`OPENAI_API_KEY`"),
        ("openai-chat:x", "`openai_chat.base_url`"),
        ("azure:x", "`azure.base_url` and `azure.api_version`"),
        ("google:x", "`GEMINI_API_KEY`"),
        ("nobody:x", "known: anthropic, openai, openai-chat, azure, google"),
    ],
)
def test_what_is_missing_is_named(name: str, said: str) -> None:
    """Without its key or address a model is an operator's error that says what to set."""
    with pytest.raises(OperatorError) as raised:
        make_model(ServerSettings(), load_catalogue(), name, _retried)
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("act", "access", "variable"),
    [
        ("anthropic:x", Access(), "ANTHROPIC_API_KEY"),
        ("openai:x", Access(), "OPENAI_API_KEY"),
        ("openai:x", Access(base_url=HERE), ""),
        ("openai-chat:x", Access(), ""),
        ("azure:x", Access(base_url=HERE), "AZURE_OPENAI_API_KEY"),
        ("google:x", Access(api_key=KEY), ""),
    ],
)
def test_set_up_asks_for_the_key_of_the_configured_model(act: str, access: Access, variable: str) -> None:
    """Set-up names the one variable that the configured model needs; a server of one's own may be open."""
    group = act.partition(":")[0].replace("-", "_")
    section = type(getattr(FULL, group)).model_validate(access.model_dump(exclude_none=True))
    settings = ServerSettings(models=ModelsSection(act=act)).model_copy(update={group: section})
    assert missing_key(settings) == variable
