"""Connections: one page of a list, with cursors that stay good while the list grows."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from bot.testing.hub.graphql.asking import refused


class Item(Protocol):
    """What is listed; the later ones have the larger ids."""

    @property
    def id(self) -> int:
        """Names it."""
        ...


MOST = 100
"""Largest `first` (https://docs.github.com/graphql/overview/rate-limits-and-query-limits-for-the-graphql-api)."""

PREFIX = "cursor:v2:"


@dataclass(frozen=True, slots=True)
class Page:
    """A connection.

    Args:
        nodes: one page, oldest first.
        total: how many there are on all pages.
        more: whether another page follows.
    """

    nodes: Sequence[Item]
    total: int
    more: bool

    @property
    def end(self) -> str | None:
        """Cursor of the last node."""
        return cursor(self.nodes[-1].id) if self.nodes else None


def page(name: str, items: Sequence[Item], args: Mapping[str, object]) -> Page:
    """Return the page that `first` and `after` ask for.

    Args:
        name: of the connection.
        items: all, oldest first, which is by id.
        args: of the field.

    Raises:
        GraphQLError: without `first`, with too large a one, and for a cursor that is none.
    """
    first, after = args.get("first"), args.get("after")
    if not isinstance(first, int):
        raise refused(
            "MISSING_PAGINATION_BOUNDARIES",
            f"You must provide a `first` or `last` value to properly paginate the `{name}` connection.",
        )
    if first < 0:
        raise refused("ARGUMENT_LIMIT", f"`first` on the `{name}` connection cannot be less than zero.")
    if first > MOST:
        message = f"Requesting {first} records on the `{name}` connection exceeds the `first` limit of {MOST} records."
        raise refused("EXCESSIVE_PAGINATION", message)
    rest = items if after is None else [item for item in items if item.id > position(str(after))]
    return Page(rest[:first], len(items), len(rest) > first)


def cursor(number: int) -> str:
    """Return the cursor of the item with this id."""
    return base64.b64encode(f"{PREFIX}{number}".encode()).decode()


def position(text: str) -> int:
    """Return the id in a cursor.

    Raises:
        GraphQLError: when it is no cursor.
    """
    try:
        number = base64.b64decode(text, validate=True).decode().removeprefix(PREFIX)
        return int(number)
    except (binascii.Error, ValueError):
        raise refused("INVALID_CURSOR_ARGUMENTS", f"`{text}` does not appear to be a valid cursor.") from None
