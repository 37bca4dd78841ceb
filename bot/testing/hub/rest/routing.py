"""Routes: GitHub's own path templates, whose `{ref}`, `{path}`, `{basehead}` and `{branch}` may hold slashes."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import unquote

from bot.testing.hub.permissions import Need
from bot.testing.hub.rest.call import Answer, Call

WIDE = frozenset({"ref", "path", "basehead", "branch"})
"""Parameters that may hold slashes."""


@dataclass(frozen=True)
class Route:
    """One operation."""

    method: str
    template: str
    need: Need
    handler: Callable[[Call], Answer]

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The template as a pattern with named groups."""
        parts = re.split(r"\{(\w+)\}", self.template)
        names = (f"(?P<{name}>{'.+' if name in WIDE else '[^/]+'})" for name in parts[1::2])
        fixed = [re.escape(part) for part in parts[::2]]
        return re.compile("".join(text for pair in zip(fixed, [*names, ""], strict=True) for text in pair))


class Router:
    """Finds the route of a request.

    Args:
        routes: in any order; those with more fixed text win.
    """

    def __init__(self, routes: Sequence[Route]) -> None:
        self.routes = sorted(routes, key=lambda route: -len(re.sub(r"\{\w+\}", "", route.template)))

    def find(self, method: str, path: str) -> tuple[Route, dict[str, str]] | None:
        """Return the route and its path parameters, unquoted; `path` is as sent, still quoted."""
        for route in self.routes:
            if route.method == method and (match := route.pattern.fullmatch(path)):
                return route, {name: unquote(value) for name, value in match.groupdict().items()}
        return None
