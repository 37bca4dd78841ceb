"""What the tests of the tasks have."""

from tests.unit.tasks.conftest import empty, world

__all__ = ["empty", "world"]
