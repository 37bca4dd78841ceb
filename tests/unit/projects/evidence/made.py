"""Changes as tests write them."""

import textwrap
from collections.abc import Mapping

from bot.projects.evidence.changes import Change


def changes(files: Mapping[str, tuple[str | None, str | None]]) -> list[Change]:
    """Make a change of texts, indented as they stand in a test."""
    return [Change(path, _bytes(before), _bytes(after)) for path, (before, after) in files.items()]


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else textwrap.dedent(text).lstrip("\n").encode()
