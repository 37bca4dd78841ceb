"""Tool calls of a chat completion, put together from pieces that servers cut, repeat and number as they like; pure."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bot.domain.messages import ToolCall
from bot.llm.clean import clean

Piece = Mapping[str, Any]  # Any: the provider's JSON


@dataclass(slots=True)
class _Open:
    """A call that grows."""

    id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list)
    size: int = 0
    """Characters of all pieces."""

    @property
    def arguments(self) -> str:
        """What has come of the arguments."""
        self.pieces[:] = ["".join(self.pieces)]
        return self.pieces[0]

    @property
    def is_whole(self) -> bool:
        """Whether the arguments are a JSON value already, so that more of them would break it."""
        try:
            json.loads(self.arguments)
        except (ValueError, RecursionError):
            return False
        return True

    def add(self, arguments: str) -> None:
        """Take a piece of the arguments, unless it is all of them a second time."""
        if arguments and not (len(arguments) == self.size and arguments == self.arguments and self.is_whole):
            self.pieces.append(arguments)
            self.size += len(arguments)


class Calls:
    """Collects the calls of one reply in the order in which they began.

    A piece goes on with the call of its `index`. It begins another one where it has a name and an id that is new, or a
    name, no other id and arguments where those so far are whole: some servers number all calls 0, and some have no
    numbers. What is said a second time is not taken twice.
    """

    def __init__(self) -> None:
        self._calls: list[_Open] = []
        self._at: dict[object, _Open] = {}

    def take(self, piece: Piece) -> None:
        """Take one piece.

        Raises:
            TypeError: a field has a type nobody knows.
        """
        function = piece.get("function") or {}
        identifier, name = str(piece.get("id") or ""), str(function.get("name") or "")
        given = function.get("arguments")
        arguments = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False) if given else ""
        call = self._of(piece.get("index"), identifier, name, arguments)
        call.id = call.id or identifier
        call.name = name if name.startswith(call.name) else call.name + name
        call.add(arguments)

    @property
    def are_whole(self) -> bool:
        """Whether the arguments of every call are whole; none at all are too."""
        return all(call.is_whole or not call.size for call in self._calls)

    def finish(self, seed: str) -> list[ToolCall]:
        """Return the calls, each with an id of its own.

        Args:
            seed: from which missing ids are made; the reply's own id.

        Raises:
            ValueError: a call has no name.
        """
        taken: set[str] = set()
        made = []
        for place, call in enumerate(self._calls):
            if not call.name:
                raise ValueError("a call without a name")
            made.append(ToolCall(_unique(call.id, f"{seed}:{place}", taken), clean(call.name), call.arguments or "{}"))
        return made

    def _of(self, index: object, identifier: str, name: str, arguments: str) -> _Open:
        found = self._at.get(index)
        if found is None and index is None and not name and self._calls:
            found = self._calls[-1]
        if found is None or _begins(found, identifier, name, arguments):
            found = self._at[index] = _Open()
            self._calls.append(found)
        return found


def _begins(call: _Open, identifier: str, name: str, arguments: str) -> bool:
    """Whether a piece begins another call than the one that has its number."""
    if not name:
        return False
    if identifier and call.id:
        return identifier != call.id
    return bool(arguments) and call.is_whole and (name, arguments) != (call.name, call.arguments)


def _unique(identifier: str, seed: str, taken: set[str]) -> str:
    """Return the id, or the same one each time for a call that has none or another's."""
    if not identifier or identifier in taken:
        identifier = "call_" + hashlib.sha256(f"{seed}:{identifier}".encode(errors="surrogatepass")).hexdigest()[:24]
    taken.add(identifier)
    return identifier
