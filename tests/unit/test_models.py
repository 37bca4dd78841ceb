"""Models by their configured names: who is asked, and what is missing."""

import pytest
from pydantic import SecretStr

from bot.domain.messages import Message, Prompt, TextPart
from bot.errors import ModelRejected, OperatorError
from bot.facts import price
from bot.llm.base import Model
from bot.llm.fallback import Fallback
from bot.llm.images import Blind
from bot.llm.meter import Meter
from bot.llm.retrying import Retrying
from bot.llm.spoken import Spoken
from bot.models import check_provider, lacking, make_model, require
from bot.settings.catalogue import load_catalogue
from bot.settings.server import (
    Access,
    AnthropicSection,
    AzureSection,
    BedrockSection,
    GoogleSection,
    ModelsSection,
    OpenAIChatSection,
    OpenAISection,
    ServerSettings,
    VertexSection,
)

KEY = SecretStr("key-of-a-test")
HERE = "http://127.0.0.1:9/v1"
FULL = ServerSettings(
    anthropic=AnthropicSection(api_key=KEY),
    openai=OpenAISection(api_key=KEY),
    openai_chat=OpenAIChatSection(base_url=HERE),
    azure=AzureSection(api_key=KEY, base_url=HERE, api_version="2025-04-01-preview", facts_of="openai:gpt-5"),
    google=GoogleSection(api_key=KEY),
    bedrock=BedrockSection(region="us-east-1"),
    vertex=VertexSection(project="p", region="eu"),
)


async def _told(_: str) -> None:
    """Nothing is amiss here."""


def _make(settings: ServerSettings, name: str) -> Model:
    return make_model(settings, load_catalogue(), name, _told, Meter(price(settings, load_catalogue())))


@pytest.mark.parametrize("provider", ["anthropic", "bedrock", "vertex", "openai", "openai-chat", "azure", "google"])
async def test_each_provider_has_its_models(provider: str) -> None:
    """A model of each API is made without a request, and answers to the name that it was configured by."""
    model = _make(FULL, f"{provider}:some-model")
    assert isinstance(model, Retrying)
    assert model.name == f"{provider}:some-model"
    await model.close()


@pytest.mark.parametrize("dialect", ["xml", "json", "prose"])
async def test_the_operator_may_choose_the_spelling(dialect: str) -> None:
    """A model without tool calls of its own is spoken to in text."""
    settings = FULL.model_copy(update={"models": ModelsSection(dialect=dialect)})
    model = _make(settings, "openai-chat:some-model")
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
        ("bedrock:x", "`bedrock.region`"),
        ("vertex:x", "`vertex.project` and `vertex.region`"),
        ("nobody:x", "known: anthropic, bedrock, vertex, openai, openai-chat, azure, google"),
    ],
)
def test_what_is_missing_is_named(name: str, said: str) -> None:
    """Without its key or address a model is an operator's error that says what to set."""
    with pytest.raises(OperatorError) as raised:
        _make(ServerSettings(), name)
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("act", "access", "said"),
    [
        ("anthropic:x", Access(), "`ANTHROPIC_API_KEY`"),
        ("anthropic:x", Access(base_url=HERE), "`ANTHROPIC_API_KEY`"),
        ("openai:x", Access(), "`OPENAI_API_KEY`"),
        ("openai:x", Access(base_url=HERE), ""),
        ("openai-chat:x", Access(), "`openai_chat.base_url`"),
        ("openai-chat:x", Access(base_url=HERE), ""),
        ("azure:x", Access(base_url=HERE), "`azure.api_version`"),
        ("google:x", Access(api_key=KEY), ""),
        ("anthropic:x", Access(api_key_command=("true",)), ""),
        ("bedrock:x", Access(), "`bedrock.region`"),
        ("vertex:x", Access(), "`vertex.project`"),
        ("antrophic:x", Access(), "unknown provider"),
    ],
)
def test_set_up_asks_for_what_the_configured_model_lacks(act: str, access: Access, said: str) -> None:
    """What no run can do without, of the one at work or one behind it; a server of one's own may be open."""
    group = act.partition(":")[0].replace("-", "_")
    kind = type(getattr(FULL, group if hasattr(FULL, group) else "anthropic"))
    section = kind.model_validate(access.model_dump(exclude_none=True))
    before = "openai:y" if group != "openai" else "google:y"
    for models in (ModelsSection(act=act), ModelsSection(act=before, fallback=(act, before))):
        settings = FULL.model_copy(update={"models": models, group: section})
        told = lacking(settings)
        assert (len(told), said in "".join(told)) == (1 if said else 0, True)
        if said:
            with pytest.raises(OperatorError, match="model"):
                require(settings)


async def test_models_behind_a_model() -> None:
    """Each with its own retries; the one at work is not behind itself."""
    settings = FULL.model_copy(update={"models": ModelsSection(fallback=("google:b", "openai:a", "openai:c"))})
    model = _make(settings, "openai:a")
    assert isinstance(model, Fallback)
    assert [one.name for one in model._models] == ["openai:a", "google:b", "openai:c"]
    await model.close()


@pytest.mark.parametrize("provider", ["anthropic", "bedrock", "vertex", "openai", "openai-chat", "azure", "google"])
async def test_a_command_may_print_the_key_of_each(provider: str) -> None:
    """The model asks for a new one where it is refused."""
    group = provider.replace("-", "_")
    section = getattr(FULL, group).model_copy(update={"api_key": None, "api_key_command": ("false",)})
    model = _make(FULL.model_copy(update={group: section}), f"{provider}:some-model")
    with pytest.raises(ModelRejected, match="`false`, failed with exit code 1"):
        await model.ask(Prompt("", (), (Message("user", (TextPart("Hi"),)),)))
    await model.close()


def test_keys_of_aws_come_in_pairs() -> None:
    """One alone signs nothing."""
    for section in (BedrockSection(region="x", access_key_id="a"), BedrockSection(region="x", secret_access_key=KEY)):
        with pytest.raises(OperatorError, match="belong together"):
            _make(ServerSettings(bedrock=section), "bedrock:x")


@pytest.mark.parametrize(
    ("name", "blind"),
    [("openai:gpt-6.1-sol", False), ("openai-chat:deepseek-v4-pro", True), ("openai:nobody-knows-it", True)],
)
async def test_who_cannot_see_gets_words(name: str, *, blind: bool) -> None:
    """An API refuses pictures that its model does not take, so an unknown one gets none."""
    model = _make(FULL, name)
    assert isinstance(model, Retrying)
    assert isinstance(model._model, Blind) == blind
    await model.close()


def test_a_model_of_nobody_is_found_at_the_start() -> None:
    """A misspelled provider is no surprise of the first run."""
    check_provider("azure:x")
    with pytest.raises(OperatorError, match="unknown provider"):
        check_provider("antrophic:claude")
