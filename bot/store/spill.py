"""JSON in a column, or as a blob where it is long; readers do not see the difference."""

import json
from collections.abc import Mapping
from typing import cast

from sqlalchemy import Connection

from bot.store.database import put_blob

INLINE = 64 * 1024
"""Bytes of JSON that stay in the row; longer rows would slow down every scan over them."""


def spill(connection: Connection, data: Mapping[str, object]) -> tuple[str | None, str | None]:
    """Return the JSON text and None, or None and the hash of the blob that now holds it."""
    # ASCII escapes hold what a database refuses as text: NUL and lone surrogates.
    text = json.dumps(data, separators=(",", ":"))
    return (text, None) if len(text) <= INLINE else (None, put_blob(connection, text.encode()))


def unspill(text: str | None, data: bytes | None) -> dict[str, object]:
    """Return the value from its text, or from its blob's bytes where there is no text."""
    # `spill` is given mappings only.
    return cast("dict[str, object]", json.loads(text if text is not None else data or b"null"))
