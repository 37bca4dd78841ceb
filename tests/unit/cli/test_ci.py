"""`issuewright ci` knows what an earlier job posted, and nobody else can make its marks."""

import pytest
from pydantic import SecretStr

from bot.cli.ci import _state_key
from bot.settings.server import Access, ModelsSection, ServerSettings

PROVIDERS = ["anthropic", "openai", "openai-chat", "azure", "google", "bedrock", "vertex"]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_key_of_marks_comes_from_the_key_of_the_model(provider: str) -> None:
    """Whichever API is asked: a key that all can guess seals nothing."""

    def made(key: str) -> bytes:
        group = provider.replace("-", "_")
        kind = type(getattr(ServerSettings(), group))
        section = kind.model_validate(Access(api_key=SecretStr(key)).model_dump(exclude_none=True))
        settings = ServerSettings(models=ModelsSection(act=f"{provider}:x"))
        return _state_key(settings.model_copy(update={group: section}))

    assert made("one-key") == made("one-key")
    assert len({made("one-key"), made("another-key"), _state_key(ServerSettings())}) == 3
