"""How a field is read: from its record, by whoever asks, with the field's arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from bot.testing.hub.graphql.asking import Ask

# Any: the record that the schema's type stands for; each function says which.
Resolver = Callable[[Any, Ask, Mapping[str, Any]], object]


def of(read: Callable[[Any], object]) -> Resolver:
    """Make a resolver of what needs only the record."""
    return lambda record, _ask, _args: read(record)
