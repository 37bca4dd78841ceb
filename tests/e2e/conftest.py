"""Stages for stories."""

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.e2e.scripts import FILES, GREETING
from tests.e2e.stage import Stage

HERE = Path(__file__).parent


ALONE = {
    "test_ci.py",
    "test_demo.py",
    "test_doors.py",
    "test_ecosystems.py",
    "test_everyday_stories.py",
    "test_gates.py",
    "test_planning.py",
    "test_run_resumed.py",
    "test_run_resumed_in_place.py",
}
"""They work as one person, or with the user ids that nobody chose: never at once, where workers go side by side."""


def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """Keep each file together, and those that could end each other's processes too."""
    for item in items:
        if item.path.is_relative_to(HERE):
            group = "alone" if item.path.name in ALONE or item.path.parent != HERE else item.path.name
            item.add_marker(pytest.mark.xdist_group(group))


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
