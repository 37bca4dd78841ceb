"""Stages for stories."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.scripts import FILES, GREETING
from tests.e2e.stage import Stage


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that other uids may pass through."""
    made = tmp_path_factory.mktemp("stage")
    for parent in (made, made.parent, made.parent.parent):
        parent.chmod(0o711)
    return made


@pytest.fixture
def stage(folder: Path) -> Iterator[Stage]:
    """The greeting's repository with its local GitHub and its scripted model."""
    with Stage(folder, GREETING, FILES).open() as opened:
        yield opened
        assert opened.model.problems == []
