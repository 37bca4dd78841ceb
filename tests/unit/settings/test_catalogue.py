"""What we know of models, and what we take an unknown one for."""

from pathlib import Path

import pytest

from bot.errors import OperatorError
from bot.settings.catalogue import load_catalogue
from bot.settings.server import ServerSettings


def test_packed_catalogue() -> None:
    """The default model is known, under its dated name too."""
    catalogue = load_catalogue()
    entry = catalogue.entry(ServerSettings().models.act)
    assert entry.known
    assert (entry.window, entry.output, entry.caching) == (200_000, 64_000, True)
    assert catalogue.entry("anthropic:claude-sonnet-4-5-20250929") == entry
    assert all(entry.output < entry.window for entry in map(catalogue.entry, catalogue.names))


def test_unknown_model() -> None:
    """An unknown model is taken for a small one and marked."""
    entry = load_catalogue().entry("ollama:qwen3")
    assert (entry.window, entry.output, entry.known) == (128_000, 8_192, False)


def test_mistakes(tmp_path: Path) -> None:
    """A mistake is told with its place."""
    path = tmp_path / "models.yaml"
    path.write_text("version: 1\nmodels:\n  - {name: 'a:b', windows: 1000, output: 100}\n")
    with pytest.raises(OperatorError, match=r"models.yaml:3:19: `models\[0\].windows`: no such key; did you mean"):
        load_catalogue(path)
    with pytest.raises(OperatorError, match="cannot be read"):
        load_catalogue(tmp_path / "nowhere")
