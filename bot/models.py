"""Makes models by their configured names: the API, the spelling of tool calls, and retries around both."""

import asyncio
import random
from collections.abc import Callable

from bot.domain.messages import Usage
from bot.errors import ModelError, OperatorError
from bot.llm.base import Model
from bot.settings.catalogue import Catalogue, ModelEntry
from bot.settings.server import Access, ServerSettings
from bot.tasks.desk import OnRetry

_KEYS = {
    "anthropic": "ANTHROPIC_API_KEY",
    "openai": "OPENAI_API_KEY",
    "azure": "AZURE_OPENAI_API_KEY",
    "google": "GEMINI_API_KEY",
}
"""The variable that holds each provider's key; servers of one's own (`openai-chat`) may need none."""


def make_model(settings: ServerSettings, catalogue: Catalogue, name: str, on_retry: OnRetry) -> Model:
    """Make a model by its configured name, `provider:name`.

    Raises:
        OperatorError: there is no such provider, or its key or address is missing.
    """
    from bot.llm.retrying import Retrying
    from bot.llm.spoken import spoken

    provider = name.partition(":")[0]
    entry = catalogue.entry((settings.azure.facts_of if provider == "azure" else None) or name)
    makers: dict[str, Callable[[ServerSettings, ModelEntry], Model]] = {
        "anthropic": _anthropic,
        "openai": _openai,
        "openai-chat": _openai_chat,
        "azure": _azure,
        "google": _google,
    }
    if provider not in makers:
        raise OperatorError(f"The model {name!r} has an unknown provider; known: {', '.join(makers)}")
    dialect = settings.models.dialect or entry.dialect
    # What is said of the model as another name counts for it; it answers to its own.
    model = spoken(makers[provider](settings, entry.model_copy(update={"name": name})), dialect)

    # The hook is plain; what it starts is kept, since the loop itself holds tasks only weakly.
    heard: set[asyncio.Task[None]] = set()

    def hear(error: ModelError, delay_s: float) -> None:
        telling = asyncio.ensure_future(on_retry(error, delay_s))
        heard.add(telling)
        telling.add_done_callback(heard.discard)

    return Retrying(model, sleep=asyncio.sleep, random=random.random, on_retry=hear)


def missing_key(settings: ServerSettings) -> str:
    """Name the variable that has to hold the key of the configured model; empty where none is missing."""
    provider = settings.models.act.partition(":")[0]
    access = settings.access_to(provider)
    if provider not in _KEYS or access is None or access.api_key is not None:
        return ""
    # A server of one's own may be open.
    return "" if access.base_url is not None and provider != "azure" else _KEYS[provider]


def price(catalogue: Catalogue) -> Callable[[str, Usage], float | None]:
    """Make what tells the price of a request in US dollars; None where it is not known."""

    def tell(name: str, usage: Usage) -> float | None:
        from bot.llm.prices import Price, price_usd

        own = catalogue.entry(name).prices
        overrides = {name: Price(own.input, own.output, own.cache_read, own.cache_write)} if own else None
        return price_usd(name, usage, overrides=overrides)

    return tell


def _key(access: Access, name: str) -> str:
    if access.api_key is None:
        raise OperatorError(f"The model {name!r} needs a key: set `{_KEYS[name.partition(':')[0]]}`")
    return access.api_key.get_secret_value()


def _anthropic(settings: ServerSettings, entry: ModelEntry) -> Model:
    from bot.llm.anthropic import BASE_URL, AnthropicModel
    from bot.llm.transport import ClientOptions

    access, network = settings.anthropic, settings.network
    return AnthropicModel(
        entry.name,
        api_key=_key(access, entry.name),
        base_url=access.base_url,
        max_output_tokens=entry.output,
        client_options=ClientOptions(network.ca_bundle, network.proxy_for(access.base_url or BASE_URL)),
    )


def _openai(settings: ServerSettings, entry: ModelEntry) -> Model:
    from bot.llm.openai_client import Endpoint
    from bot.llm.openai_responses import OpenAIResponsesModel
    from bot.llm.transport import ClientOptions

    access, network = settings.openai, settings.network
    key = "" if access.base_url is not None and access.api_key is None else _key(access, entry.name)
    endpoint = Endpoint(key, access.base_url)
    options = ClientOptions(network.ca_bundle, network.proxy_for(endpoint.url))
    return OpenAIResponsesModel(entry.name, endpoint=endpoint, max_output_tokens=entry.output, client_options=options)


def _openai_chat(settings: ServerSettings, entry: ModelEntry) -> Model:
    from bot.llm.openai_chat import OpenAIChatModel
    from bot.llm.openai_client import Endpoint
    from bot.llm.openai_errors import Provider
    from bot.llm.transport import ClientOptions

    access, network = settings.openai_chat, settings.network
    if access.base_url is None:
        raise OperatorError(f"The model {entry.name!r} needs an address: set `openai_chat.base_url`, with its `/v1`")
    key = access.api_key.get_secret_value() if access.api_key else ""
    says = Provider(access.base_url, "ISSUEWRIGHT_OPENAI_CHAT__API_KEY", "openai_chat.base_url")
    endpoint = Endpoint(key, access.base_url, provider=says)
    options = ClientOptions(network.ca_bundle, network.proxy_for(endpoint.url))
    return OpenAIChatModel(entry.name, endpoint=endpoint, max_output_tokens=entry.output, client_options=options)


def _azure(settings: ServerSettings, entry: ModelEntry) -> Model:
    from bot.llm.openai_client import Endpoint
    from bot.llm.openai_errors import Provider
    from bot.llm.openai_responses import OpenAIResponsesModel
    from bot.llm.openai_responses_wire import reasons
    from bot.llm.transport import ClientOptions

    access, network = settings.azure, settings.network
    if access.base_url is None or access.api_version is None:
        raise OperatorError(f"The model {entry.name!r} needs an address: set `azure.base_url` and `azure.api_version`")
    says = Provider("Azure OpenAI", _KEYS["azure"], "azure.base_url")
    deployment = access.deployment or entry.name.partition(":")[2]
    endpoint = Endpoint(_key(access, entry.name), access.base_url, access.api_version, deployment, says)
    return OpenAIResponsesModel(
        entry.name,
        endpoint=endpoint,
        max_output_tokens=entry.output,
        # A deployment's name says nothing of the model behind it.
        is_reasoning=reasons((access.facts_of or entry.name).partition(":")[2]),
        client_options=ClientOptions(network.ca_bundle, network.proxy_for(endpoint.url)),
    )


def _google(settings: ServerSettings, entry: ModelEntry) -> Model:
    from bot.llm.google import BASE_URL, GoogleModel
    from bot.llm.transport import ClientOptions

    access, network = settings.google, settings.network
    key = "" if access.base_url is not None and access.api_key is None else _key(access, entry.name)
    options = ClientOptions(network.ca_bundle, network.proxy_for(access.base_url or BASE_URL))
    return GoogleModel(
        entry.name, api_key=key, base_url=access.base_url, max_output_tokens=entry.output, client_options=options
    )
