"""How each provider's models are made from the operator's settings; nothing is asked of the network here."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bot.errors import OperatorError
from bot.llm.anthropic_platform import Platform
from bot.llm.base import Model
from bot.llm.keys import ApiKey, CommandKey, renewing
from bot.settings.server import Access, ServerSettings

KEYS = {
    "anthropic": "ANTHROPIC_API_KEY",
    "openai": "OPENAI_API_KEY",
    "azure": "AZURE_OPENAI_API_KEY",
    "google": "GEMINI_API_KEY",
}
"""The variable that holds each provider's key; servers of one's own (`openai-chat`) may need none."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The model to make."""

    name: str
    """`provider:model`, as configured."""
    output_tokens: int
    """What one reply may have."""
    thinking: str
    """How the model's thinking is measured, as the catalogue says."""


def _key(access: Access, name: str) -> ApiKey:
    if not access.has_key:
        raise OperatorError(f"The model {name!r} needs a key: set `{KEYS[name.partition(':')[0]]}`")
    return _any_key(access)


def _any_key(access: Access) -> ApiKey:
    """Return the key, or what a command prints; empty where there is none."""
    if access.api_key_command:
        return CommandKey(access.api_key_command, lifetime_s=access.api_key_lifetime_s)
    return access.api_key.get_secret_value() if access.api_key else ""


def _anthropic(settings: ServerSettings, wanted: Wanted) -> Model:
    from bot.llm.anthropic_platform import Direct

    access = settings.anthropic
    key = _key(access, wanted.name)
    return renewing(_of_anthropic(settings, wanted, Direct(key, access.base_url)), key)


def _bedrock(settings: ServerSettings, wanted: Wanted) -> Model:
    from bot.llm.anthropic_bedrock import AwsKeys, Bedrock

    access = settings.bedrock
    if access.region is None:
        raise OperatorError(f"The model {wanted.name!r} needs a region: set `bedrock.region`")
    if (access.access_key_id is None) != (access.secret_access_key is None):
        raise OperatorError("`bedrock.access_key_id` and `bedrock.secret_access_key` belong together: set both")
    secret, session = (
        one.get_secret_value() if one else None for one in (access.secret_access_key, access.session_token)
    )
    key = _any_key(access)
    keys = AwsKeys(access.access_key_id, secret, session)
    platform = Bedrock(access.region, base_url=access.base_url, bearer=key, keys=keys)
    return renewing(_of_anthropic(settings, wanted, platform), key)


def _vertex(settings: ServerSettings, wanted: Wanted) -> Model:
    from bot.llm.anthropic_vertex import Vertex
    from bot.llm.transport import ClientOptions

    access, network = settings.vertex, settings.network
    if access.project is None or access.region is None:
        raise OperatorError(f"The model {wanted.name!r} needs a place: set `vertex.project` and `vertex.region`")
    key = _any_key(access)
    options = ClientOptions(network.ca_bundle, network.proxy_for("https://oauth2.googleapis.com"))
    platform = Vertex(access.project, access.region, base_url=access.base_url, token=key, options=options)
    return renewing(_of_anthropic(settings, wanted, platform), key)


def _of_anthropic(settings: ServerSettings, wanted: Wanted, platform: Platform) -> Model:
    from bot.llm.anthropic import AnthropicModel
    from bot.llm.transport import ClientOptions

    network = settings.network
    options = ClientOptions(network.ca_bundle, network.proxy_for(platform.base_url))
    return AnthropicModel(
        wanted.name,
        platform=platform,
        max_output_tokens=wanted.output_tokens,
        thinking_budget="adaptive" if wanted.thinking == "adaptive" else None,
        client_options=options,
    )


def _openai(settings: ServerSettings, wanted: Wanted) -> Model:
    from bot.llm.openai_client import Endpoint
    from bot.llm.openai_responses import OpenAIResponsesModel
    from bot.llm.transport import ClientOptions

    access, network = settings.openai, settings.network
    key = _any_key(access) if access.base_url is not None else _key(access, wanted.name)
    endpoint = Endpoint(key, access.base_url)
    options = ClientOptions(network.ca_bundle, network.proxy_for(endpoint.url))
    model = OpenAIResponsesModel(
        wanted.name, endpoint=endpoint, max_output_tokens=wanted.output_tokens, client_options=options
    )
    return renewing(model, key)


def _openai_chat(settings: ServerSettings, wanted: Wanted) -> Model:
    from bot.llm.openai_chat import OpenAIChatModel
    from bot.llm.openai_client import Endpoint
    from bot.llm.openai_errors import Provider
    from bot.llm.transport import ClientOptions

    access, network = settings.openai_chat, settings.network
    if access.base_url is None:
        raise OperatorError(f"The model {wanted.name!r} needs an address: set `openai_chat.base_url`, with its `/v1`")
    key = _any_key(access)
    says = Provider(access.base_url, "ISSUEWRIGHT_OPENAI_CHAT__API_KEY", "openai_chat.base_url")
    endpoint = Endpoint(key, access.base_url, provider=says)
    options = ClientOptions(network.ca_bundle, network.proxy_for(endpoint.url))
    model = OpenAIChatModel(
        wanted.name, endpoint=endpoint, max_output_tokens=wanted.output_tokens, client_options=options
    )
    return renewing(model, key)


def _azure(settings: ServerSettings, wanted: Wanted) -> Model:
    from bot.llm.openai_client import Endpoint
    from bot.llm.openai_errors import Provider
    from bot.llm.openai_responses import OpenAIResponsesModel
    from bot.llm.openai_responses_wire import reasons
    from bot.llm.transport import ClientOptions

    access, network = settings.azure, settings.network
    if access.base_url is None or access.api_version is None:
        raise OperatorError(f"The model {wanted.name!r} needs an address: set `azure.base_url` and `azure.api_version`")
    says = Provider("Azure OpenAI", KEYS["azure"], "azure.base_url")
    deployment = access.deployment or wanted.name.partition(":")[2]
    key = _key(access, wanted.name)
    endpoint = Endpoint(key, access.base_url, access.api_version, deployment, says)
    model = OpenAIResponsesModel(
        wanted.name,
        endpoint=endpoint,
        max_output_tokens=wanted.output_tokens,
        # A deployment's name says nothing of the model behind it.
        is_reasoning=reasons((access.facts_of or wanted.name).partition(":")[2]),
        client_options=ClientOptions(network.ca_bundle, network.proxy_for(endpoint.url)),
    )
    return renewing(model, key)


def _google(settings: ServerSettings, wanted: Wanted) -> Model:
    from bot.llm.google import BASE_URL, GoogleModel
    from bot.llm.transport import ClientOptions

    access, network = settings.google, settings.network
    key = _any_key(access) if access.base_url is not None else _key(access, wanted.name)
    options = ClientOptions(network.ca_bundle, network.proxy_for(access.base_url or BASE_URL))
    model = GoogleModel(
        wanted.name,
        api_key=key,
        base_url=access.base_url,
        max_output_tokens=wanted.output_tokens,
        client_options=options,
    )
    return renewing(model, key)


def load_sdk(name: str) -> None:
    """Import what speaks to a configured model."""
    match name.partition(":")[0]:
        case "anthropic" | "bedrock" | "vertex":
            from bot.llm.anthropic import load_sdk
        case "google":
            from bot.llm.google import load_sdk
        case _:
            from bot.llm.openai_client import load_sdk
    load_sdk()


MAKERS: Mapping[str, Callable[[ServerSettings, Wanted], Model]] = {
    "anthropic": _anthropic,
    "bedrock": _bedrock,
    "vertex": _vertex,
    "openai": _openai,
    "openai-chat": _openai_chat,
    "azure": _azure,
    "google": _google,
}
"""Each provider by the word before the colon."""
