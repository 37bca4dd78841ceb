"""Stages for stories."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.scripts import FILES, GREETING
from tests.e2e.stage import Stage


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that other uids may pass through; pytest's own is closed again by each pytest that starts beside us."""
    with tempfile.TemporaryDirectory(prefix="stage-", ignore_cleanup_errors=True) as made:
        Path(made).chmod(0o711)
        yield Path(made)


@pytest.fixture
def stage(folder: Path) -> Iterator[Stage]:
    """The greeting's repository with its local GitHub and its scripted model."""
    with Stage(folder, GREETING, FILES).open() as opened:
        yield opened
        assert opened.model.problems == []
