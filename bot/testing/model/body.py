"""Bodies as they come and go on every wire: JSON, and the answer to one that is refused; pure."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

Body = Mapping[str, object]
"""What a client sent."""
Event = dict[str, object]
"""What goes out: a whole answer, or one piece of a stream."""


class Rejected(Exception):  # noqa: N818 - the answer to a client, no failure of ours
    """The API refuses the request."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as it came, before anybody has looked at it."""

    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    """Names in lower case; the key is among them."""
    raw: bytes


def mappings(value: object) -> list[Body]:
    """Return the objects of a JSON array, or nothing if it is none."""
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def spelled(value: object) -> bytes:
    """Spell JSON in the order in which the client sent it: keys in another order miss the real cache as well."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(errors="surrogatepass")
