"""Request bodies: JSON objects whose fields are checked in GitHub's words."""

from __future__ import annotations

import json
from collections.abc import Mapping

from bot.testing.hub.errors import HubError, not_supplied
from bot.testing.hub.shapes.common import Json


class Body:
    """The fields of a JSON object.

    Args:
        raw: bytes of the request; none count as `{}`.

    Raises:
        HubError: 400 when that is no JSON object.
    """

    def __init__(self, raw: bytes) -> None:
        try:
            value = json.loads(raw) if raw.strip() else {}
        except (ValueError, RecursionError):
            raise HubError(400, "Problems parsing JSON") from None
        if not isinstance(value, dict):
            raise HubError(400, "Body should be a JSON object")
        self.fields: Json = value

    def __contains__(self, name: str) -> bool:
        return name in self.fields

    def text(self, name: str, default: str | None = None) -> str:
        """Return a text field.

        Raises:
            HubError: 422 when it is absent without a default, or no text.
        """
        value = self.optional_text(name)
        if value is None:
            value = default
        if value is None:
            raise not_supplied(name)
        return value

    def optional_text(self, name: str) -> str | None:
        """Return a text field, or None when absent or null."""
        value = self.fields.get(name)
        if value is not None and not isinstance(value, str):
            raise _wrong(name, value, "a string")
        return value

    def number(self, name: str, default: int | None = None) -> int:
        """Return a whole number.

        Raises:
            HubError: 422 when it is absent without a default, or no number.
        """
        value = self.fields.get(name, default)
        if value is None:
            raise not_supplied(name)
        if not isinstance(value, int) or isinstance(value, bool):
            raise _wrong(name, value, "an integer")
        return value

    def flag(self, name: str) -> bool:
        """Return a truth value, false when absent."""
        value = self.fields.get(name) or False
        if not isinstance(value, bool):
            raise _wrong(name, value, "a boolean")
        return value

    def texts(self, name: str) -> list[str]:
        """Return a list of texts, empty when absent; objects count by their `name`."""
        value = self.fields.get(name)
        items = [] if value is None else value
        if not isinstance(items, list):
            raise _wrong(name, value, "an array")
        texts = [item.get("name") if isinstance(item, dict) else item for item in items]
        if not all(isinstance(text, str) for text in texts):
            raise _wrong(name, value, "an array of strings")
        return [str(text) for text in texts]

    def numbers(self, name: str) -> list[int] | None:
        """Return a list of whole numbers, or None when absent."""
        value = self.fields.get(name)
        if value is None:
            return None
        if not isinstance(value, list) or not all(isinstance(item, int) for item in value):
            raise _wrong(name, value, "an array of integers")
        return [int(item) for item in value]

    def objects(self, name: str) -> list[Body]:
        """Return a list of objects, empty when absent."""
        value = self.fields.get(name)
        items = [] if value is None else value
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            raise _wrong(name, value, "an array of objects")
        return [Body.of(item) for item in items]

    def nested(self, name: str) -> Body | None:
        """Return an object, or None when absent."""
        value = self.fields.get(name)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise _wrong(name, value, "an object")
        return Body.of(value)

    @classmethod
    def of(cls, fields: Mapping[str, object]) -> Body:
        """Return a body of ready fields."""
        body = cls(b"")
        body.fields = dict(fields)
        return body


def _wrong(name: str, value: object, kind: str) -> HubError:
    return HubError(422, f"Invalid request.\n\nFor 'properties/{name}', {json.dumps(value)} is not {kind}.")
