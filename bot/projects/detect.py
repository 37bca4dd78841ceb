"""Tells from a repository's files which ecosystems it belongs to; no I/O."""

import re
from collections.abc import Callable, Sequence

from bot.projects import go, java, node, python, rust
from bot.projects.base import Files, Recipe, expression

_ECOSYSTEMS: tuple[tuple[Sequence[str], Callable[[Files], Recipe | None]], ...] = (
    (python.WANTED, python.recipe),
    (node.WANTED, node.recipe),
    (go.WANTED, go.recipe),
    (rust.WANTED, rust.recipe),
    (java.WANTED, java.recipe),
)
"""What each wants to see, and what it says."""


_WANTED = tuple(re.compile("|".join(map(expression, wanted))) for wanted, _ in _ECOSYSTEMS)


def is_wanted(path: str) -> bool:
    """Say whether `detect` wants to see a file; what others installed into the tree is none of the project's."""
    return "node_modules/" not in path and any(pattern.fullmatch(path) for pattern in _WANTED)


def detect(files: Files) -> Sequence[Recipe]:
    """Name what sets a project up, one recipe for each ecosystem that it belongs to.

    Args:
        files: contents of the files for which `is_wanted` holds.
    """
    found = []
    for pattern, (_, recipe) in zip(_WANTED, _ECOSYSTEMS, strict=True):
        if made := recipe({path: text for path, text in files.items() if pattern.fullmatch(path)}):
            found.append(made)
    return found
