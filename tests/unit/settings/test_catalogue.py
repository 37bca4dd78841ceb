"""What we know of models, and what we take an unknown one for."""

from pathlib import Path

import pytest

from bot.errors import OperatorError
from bot.facts import facts_of, reply_cap, usable_window, window_of
from bot.llm.prices import window_tokens
from bot.settings.catalogue import load_catalogue
from bot.settings.server import AzureSection, ModelsSection, OpenAIChatSection, ServerSettings

SETTINGS = ServerSettings()


def test_each_figure_has_its_source() -> None:
    """Twelve models of five vendors and more; what is not published elsewhere says where and when it was read."""
    catalogue = load_catalogue()
    entries = [catalogue.entry(name) for name in catalogue.names]
    assert len(entries) >= 12
    assert len({entry.vendor or entry.name.partition(":")[0] for entry in entries}) >= 5
    for entry in entries:
        assert entry.source is not None, entry.name
        assert entry.read_on is not None, entry.name
        provider, _, model = entry.name.partition(":")
        published = window_tokens(f"{entry.vendor or provider}:{model}")
        assert entry.window is None or published is None, f"{entry.name}: the window is published"
        assert window_of(SETTINGS, catalogue, entry.name), f"{entry.name}: no window"


def test_defaults_are_known() -> None:
    """Where the operator says nothing, a model works of which we know all."""
    catalogue = load_catalogue()
    assert catalogue.defaults is not None
    assert catalogue.defaults.act == SETTINGS.models.act
    for name in (catalogue.defaults.act, catalogue.defaults.plan):
        facts = facts_of(SETTINGS, catalogue, name)
        assert None not in (facts.window, facts.output, facts.input_usd, facts.output_usd)


def test_a_dated_name_is_the_same_model() -> None:
    """Providers answer with it."""
    catalogue = load_catalogue()
    assert catalogue.entry("anthropic:claude-sonnet-4-5-20250929") == catalogue.entry("anthropic:claude-sonnet-4-5")


@pytest.mark.parametrize("name", ["ollama:qwen3", "openai-chat:gpt-4o", "anthropic:nothing-known"])
def test_of_an_unknown_model_nothing_is_said(name: str) -> None:
    """It is taken for a small one; a server of one's own costs nothing that we knew."""
    catalogue = load_catalogue()
    facts = facts_of(SETTINGS, catalogue, name)
    assert not facts.known
    assert (facts.window, facts.output, facts.input_usd, facts.output_usd) == (None, None, None, None)
    assert usable_window(SETTINGS, catalogue, name) == 128_000
    assert reply_cap(SETTINGS, catalogue, name) == 8_192


def test_a_model_that_only_prices_know_has_its_window() -> None:
    """Each source says what it knows."""
    facts = facts_of(SETTINGS, load_catalogue(), "openai:gpt-4.1-mini")
    assert (facts.known, facts.window, facts.output) == (False, 1_000_000, None)
    assert facts.input_usd == pytest.approx(0.4)


def test_a_deployment_is_what_it_is_said_to_be() -> None:
    """Its own name says nothing."""
    settings = ServerSettings(azure=AzureSection(facts_of="openai:gpt-6.1-sol"))
    facts = facts_of(settings, load_catalogue(), "azure:ours")
    assert (facts.name, facts.window, facts.output) == ("azure:ours", 1_050_000, 128_000)
    assert facts.input_usd == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("address", "usd"),
    [
        (None, (0.66, 1.32)),
        ("https://api.deepseek.com", (0.66, 1.32)),
        ("https://llm.example.org/v1", (None,)),
    ],
)
def test_a_server_takes_its_own_price(address: str | None, usd: tuple[float | None, ...]) -> None:
    """The same weights elsewhere cost what their server takes; before one is named, what the vendor takes.

    That is one price in some hours of the day and another in the others.
    """
    settings = ServerSettings(openai_chat=OpenAIChatSection(base_url=address))
    told = facts_of(settings, load_catalogue(), "openai-chat:deepseek-v4-pro").input_usd
    assert told in [None if one is None else pytest.approx(one) for one in usd]


def test_no_reply_takes_the_whole_window() -> None:
    """A model that may write as much as it reads leaves room for reading."""
    catalogue = load_catalogue()
    assert reply_cap(SETTINGS, catalogue, "openai-chat:kimi-k3.1-pro") == 64_000
    assert reply_cap(SETTINGS, catalogue, "openai-chat:gpt-oss-120b") == 131_072 // 4
    for name in catalogue.names:
        assert reply_cap(SETTINGS, catalogue, name) <= usable_window(SETTINGS, catalogue, name) // 4


def test_the_operators_file_comes_first(tmp_path: Path) -> None:
    """It adds models and replaces ours whole; the dialect of the settings counts for all."""
    own = tmp_path / "ours.yaml"
    own.write_text(
        "version: 1\nmodels:\n"
        "  - {name: 'openai-chat:llama', window: 32000, output: 4000, dialect: xml,\n"
        "     prices: {input: 1, output: 2, cache_read: 0.5}}\n"
        "  - {name: 'anthropic:claude-sonnet-5-5', window: 100000, output: unknown}\n"
    )
    catalogue = load_catalogue(own)
    llama = facts_of(SETTINGS, catalogue, "openai-chat:llama")
    assert (llama.window, llama.output, llama.dialect) == (32_000, 4_000, "xml")
    assert llama.input_usd == pytest.approx(1)
    assert llama.output_usd == pytest.approx(2)
    replaced = facts_of(SETTINGS, catalogue, "anthropic:claude-sonnet-5-5")
    assert (replaced.window, replaced.output, replaced.thinking) == (100_000, None, "none")
    assert catalogue.entry("openai:gpt-6.1-sol").known
    spoken = ServerSettings(models=ModelsSection(dialect="json"))
    assert facts_of(spoken, catalogue, "openai-chat:llama").dialect == "json"


def test_a_name_that_is_none_is_unknown() -> None:
    """A command may ask for one that a pattern of the operator's lets through."""
    for name in ("openai-chat:", f"openai:{'x' * 300}", "Odd:name"):
        assert not facts_of(SETTINGS, load_catalogue(), name).known
        assert reply_cap(SETTINGS, load_catalogue(), name) == 8_192


def test_the_operators_file_may_be_at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the files of keys may."""
    (tmp_path / "ours.yaml").write_text("version: 1\nmodels: [{name: 'openai-chat:llama', window: 32000}]\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert load_catalogue(Path("~/ours.yaml")).entry("openai-chat:llama").window == 32_000


def test_mistakes(tmp_path: Path) -> None:
    """A mistake is told with its place."""
    path = tmp_path / "models.yaml"
    path.write_text("version: 1\nmodels:\n  - {name: 'a:b', windows: 1000, output: 100}\n")
    with pytest.raises(OperatorError, match=r"models.yaml:3:19: `models\[0\].windows`: no such key; did you mean"):
        load_catalogue(path)
    with pytest.raises(OperatorError, match="cannot be read"):
        load_catalogue(tmp_path / "nowhere")
