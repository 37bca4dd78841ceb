"""What the scripted model answers, in no vendor's words: a wire spells it."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from bot.testing.model.request import Text

Stop = Literal[
    "end_turn", "tool_use", "max_tokens", "stop_sequence", "pause_turn", "refusal", "model_context_window_exceeded"
]
FaultKind = Literal["status", "stream_error", "drop", "cut", "garbage", "bad_json", "stall"]


@dataclass(frozen=True, slots=True)
class Thinking:
    """Thinking, sent only where the request asks for it."""

    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call."""

    tool: str
    arguments: Mapping[str, object] = field(default_factory=dict)
    json: str | None = None
    """Sent instead of `arguments` byte for byte, so that it may be broken JSON."""
    unknown: bool = False
    """Whether the tool may be one that the request does not offer; else that is a problem."""

    def spelled(self) -> str:
        """Return the arguments as the text that goes over the wire."""
        return self.json if self.json is not None else json.dumps(self.arguments, ensure_ascii=False)

    def parsed(self) -> Mapping[str, object] | None:
        """Return the arguments as an object, for wires whose JSON cannot carry half of one; None if they are none."""
        try:
            value = json.loads(self.spelled())
        except (ValueError, RecursionError):
            return None
        return value if isinstance(value, dict) else None


Part = Text | Thinking | Call


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that goes wrong on purpose.

    `status` answers with that HTTP status. The others happen inside a 200: `stream_error` sends an error event,
    `drop` closes the connection, `bad_json` sends an event whose data is no JSON and `stall` stays silent for
    `seconds`, each after `after` events. `garbage` is a page of HTML; `cut` reaches the token limit in the middle of
    the last call's JSON.
    """

    kind: FaultKind = "status"
    times: int | None = None
    """How many requests of this turn it hits before the next fault or the answer; None: every one."""
    status: int = 500
    error: str = ""
    """The vendor's error type; empty: the usual one for `status`, for `stream_error` `overloaded_error`."""
    message: str = ""
    retry_after_s: float | None = None
    after: int = 3
    """Events sent before it happens."""
    seconds: float = 3600.0
    """How long a `stall` lasts; then the answer goes on."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast the answer comes."""

    delay_s: float = 0.0
    """Seconds before the first byte."""
    chunk_s: float = 0.0
    """Seconds before each delta."""
    chunk: int = 24
    """Characters in each delta."""


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer. `play` fills in `key`, `conversation` and `turn`; a callable turn leaves them empty."""

    parts: Sequence[Part] = ()
    stop: Stop | None = None
    """None: `tool_use` where there is a call, else `end_turn`."""
    pace: Pace = field(default_factory=Pace)
    faults: Sequence[Fault] = ()
    problem: str = ""
    """Not empty when the script cannot go on; the same words are the text of the answer."""
    key: str = ""
    """Same request, same key: wires make their ids from it. Letters and digits; carries the turn number."""
    conversation: str = ""
    turn: int = 0

    @property
    def stopped(self) -> Stop:
        """The reason why the answer ends."""
        if self.stop is not None:
            return self.stop
        return "tool_use" if any(isinstance(part, Call) for part in self.parts) else "end_turn"

    @property
    def tokens(self) -> int:
        """Estimated output tokens: a quarter of the bytes, at least one."""
        return max(1, sum(size(part) for part in self.parts) // 4)


def size(part: Part) -> int:
    """Return the bytes that a part takes on the wire, its envelope apart."""
    return len((part.tool + part.spelled() if isinstance(part, Call) else part.text).encode())


def pieces(text: str, chunk: int) -> Iterator[str]:
    """Cut a text into pieces of `chunk` characters, at least one."""
    step = max(1, chunk)
    for start in range(0, len(text), step):
        yield text[start : start + step]


def within(reply: Reply, max_tokens: int) -> Reply:
    """Return the reply as it is when `max_tokens` are enough, else cut off there."""
    return reply if reply.tokens <= max_tokens else _cut(reply, max_tokens * 4)


def cut_in_call(reply: Reply) -> Reply:
    """Cut the reply off halfway through the JSON of its last call, or through its last part if it has no call."""
    calls = [number for number, part in enumerate(reply.parts) if isinstance(part, Call)]
    last = calls[-1] if calls else len(reply.parts) - 1
    room = sum(size(part) for part in reply.parts[:last])
    part = reply.parts[last] if reply.parts else Text("")
    name = len(part.tool.encode()) if isinstance(part, Call) else 0
    return _cut(reply, room + name + (size(part) - name) // 2)


def fault_for(faults: Sequence[Fault], attempt: int) -> Fault | None:
    """Return the fault that hits a request of this turn.

    Args:
        faults: in the order in which they happen.
        attempt: how many requests of this turn came before; 0 for the first.
    """
    for fault in faults:
        if fault.times is None or attempt < fault.times:
            return fault
        attempt -= fault.times
    return None


def _cut(reply: Reply, room: int) -> Reply:
    """Keep the first `room` bytes of the parts; a part of which nothing is left is not sent."""
    kept: list[Part] = []
    for part in reply.parts:
        if room <= 0:
            break
        kept.append(_head(part, room))
        room -= size(part)
    return replace(reply, parts=tuple(kept), stop="max_tokens")


def _head(part: Part, room: int) -> Part:
    """Return the first `room` bytes of a part, whole characters only."""
    if isinstance(part, Call):
        left = max(0, room - len(part.tool.encode()))
        return replace(part, json=part.spelled().encode()[:left].decode(errors="ignore"))
    return replace(part, text=part.text.encode()[:room].decode(errors="ignore"))
