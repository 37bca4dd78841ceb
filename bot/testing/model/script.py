"""The script: conversations of turns, as Python values; `load` reads the same from YAML.

Which conversation answers a request, and with which turn, is read from the request alone (`scene`):

1. `match_last`: the plain-text user messages after the first one are tried from the newest to the oldest. A
   conversation whose `match_last` fits such a message starts there (if it has a `match` too, that must fit the first
   message). This is how the second run of a task, which sends the old transcript and one new message, is answered.
2. `match` alone: fits the first user message, and starts there.
3. Neither: the default; it starts at the first user message.

Within one rule the order in the script decides. A plain-text user message is one without tool results, so words that
are added to a message of results never start anything.

The turn is the number of assistant messages since that start. Ids of scripted calls carry it as well and win over the
count, so that a transcript whose middle was dropped or summarised still goes on where it was.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from bot.testing.model.reply import Call, Fault, Pace, Reply, Stop
from bot.testing.model.request import Request


@dataclass(frozen=True, slots=True)
class Condition:
    """What must be true of what came since the last turn: one tool result that fits all of it, and words that fit."""

    tool: str | None = None
    matches: str | None = None
    """Regular expression found in the result (multi-line)."""
    lacks: str | None = None
    """Regular expression not found in the result."""
    is_error: bool | None = None
    said: str | None = None
    """Regular expression found in the user's own words."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One answer of the model. `${name}` in text, thinking and arguments is a captured value; `$${name}` stays."""

    text: str = ""
    thinking: str = ""
    calls: Sequence[Call] = ()
    stop: Stop | None = None
    when: Condition | None = None
    """Inside `Choose`: taken if this holds; None: always."""
    expect: Sequence[Condition] = ()
    """All must hold, else the answer is a text that names what was wrong, and the problem is recorded."""
    capture: Mapping[str, str] = field(default_factory=dict)
    """Name to regular expression, searched in the tool results since the last turn, or in the user's words where there
    are none. The first group, or the whole match. Kept for all later turns."""
    faults: Sequence[Fault] = ()
    delay_s: float | None = None
    chunk_s: float | None = None
    chunk: int | None = None
    repeat: int = 1
    """How many turns this stands for."""


@dataclass(frozen=True, slots=True)
class Choose:
    """A turn with alternatives: the first whose `when` holds."""

    of: Sequence[Turn]


Step = Turn | Choose | Callable[[Request], Reply]


@dataclass(frozen=True, slots=True)
class Conversation:
    """Turns, and the messages that they answer: a substring, or a regular expression between slashes."""

    name: str
    turns: Sequence[Step]
    match: str | None = None
    """Fits the first user message."""
    match_last: str | None = None
    """Fits a later plain-text user message: a follow-up."""


@dataclass(frozen=True, slots=True)
class Script:
    """Everything the scripted model knows."""

    conversations: Sequence[Conversation]
    name: str = "script"
    """Part of the model id `scripted:<name>`."""
    values: Mapping[str, str] = field(default_factory=dict)
    """Values for `${name}` known beforehand."""
    window: int = 200_000
    """Tokens that a request may have before it is refused as too long."""
    pace: Pace = field(default_factory=Pace)
    """The pace of turns that do not say their own."""
