"""What all grammars share: a reply cut into lines, text passed on at once, limits."""

import io
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from bot.domain.messages import StopReason
from bot.llm.dialects.base import FINISHED, MESSAGE_CHARS, NOTHING_RAN, Event, Fault, Said, clipped

_STRAY = (
    f"ambiguous: `{{token}}` stands outside of a call. {NOTHING_RAN} Either the text in a call "
    "holds its own closing line (then write {token}-2 in both of its lines), or you wrote the answer of a tool "
    "yourself (then end your reply behind your calls)."
)
_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*\Z)|~{3,})")
_THINKS = re.compile(r"<(think|thinking|reasoning)>")


class Fences:
    """Knows which lines of a text are code, as Markdown has it."""

    def __init__(self) -> None:
        self.mark = ""
        """The fence that is open; empty where none is."""

    def take(self, line: str) -> bool:
        """Take the next line and say whether it is code or a fence."""
        if self.mark:
            if is_closing(line, self.mark):
                self.mark = ""
            return True
        found = _FENCE.match(line)
        self.mark = "" if found is None else found[1]
        return found is not None


def is_closing(line: str, mark: str) -> bool:
    """Say whether a line closes the block that `mark` opened."""
    bare = line.strip()
    return len(bare) >= len(mark) and not bare.strip(mark[0]) and not line.startswith("    ")


class Grammar(Protocol):
    """What one dialect makes of the lines of a reply."""

    opens: str
    """Characters with which a line begins that is not shown before it is whole."""

    @property
    def opened(self) -> str | None:
        """Tool (or an empty name) of the call that is not closed yet; None between calls."""
        ...

    def take(self, line: str) -> Sequence[Event] | None:
        """Take the next line with its line break; None: it is text."""
        ...

    @property
    def missing(self) -> str:
        """What must still come to close the call that is open; empty between calls."""
        ...


class LineParser:
    """A `Parser` that shows each whole line to a grammar.

    Nothing is read twice: a piece is searched for line breaks, and a line is judged when it is whole. Text passes at
    once unless its line begins like a call. Behind a fault that leaves open where a call ends nothing is read at all.
    """

    def __init__(self, grammar: Grammar, token: str) -> None:
        self._grammar = grammar
        self._token = token
        self._room = MESSAGE_CHARS
        self._line = io.StringIO()
        self._begun = False
        self._passes = False
        """Whether the line that is not whole yet is text that passes."""
        self._is_first = True
        """Whether only blank lines came before."""
        self._thinks = ""
        """The tag that ends the thinking which is open."""
        self._source: list[str] = []
        self._called = False
        self._over = False

    def feed(self, text: str) -> Sequence[Event]:
        """Take the next piece and return what is certain by now."""
        events: list[Event] = []
        start, size = 0, min(len(text), self._room)
        while not self._over and start < size:
            end = text.find("\n", start, size) + 1 or size
            self._piece(text[start:end], events)
            start = end
        if len(text) > self._room and not self._over:
            text = f"too_large: your reply is longer than {MESSAGE_CHARS} characters. {NOTHING_RAN}"
            self._add(Fault(text, self._name, whole=True), events)
        self._room -= size
        return events

    def finish(self, stop: StopReason) -> Sequence[Event]:
        """Take the last line as whole and return the rest."""
        events: list[Event] = []
        # Half a line of a call says nothing.
        is_half = stop not in FINISHED and self._grammar.opened is not None
        if self._begun and not self._over and not is_half:
            self._whole(self._line.getvalue(), events)
        if self._over:
            return events
        missing = self._grammar.missing
        if missing and stop in FINISHED:
            self._add(
                Fault(f"cut_off: your reply ended before {missing}. {NOTHING_RAN}", self._name, whole=True), events
            )
        elif missing or (self._called and stop not in FINISHED):
            where = "at the output limit" if stop == "length" else f"({stop})"
            text = f"cut_off: your reply was cut off {where}. {NOTHING_RAN} Send a smaller change."
            self._add(Fault(text, self._name, whole=True), events)
        return events

    @property
    def _name(self) -> str:
        return self._grammar.opened or ""

    def _piece(self, piece: str, events: list[Event]) -> None:
        """Take what holds no line break but at its end."""
        if not self._begun:
            self._passes = self._grammar.opened is None and piece[0] not in self._grammar.opens
            if piece[-1] == "\n":
                self._whole(piece, events)
                return
        self._line.write(piece)
        self._begun = True
        if self._passes:
            events.append(Said(piece))
        if piece[-1] == "\n":
            line = self._line.getvalue()
            self._line = io.StringIO()
            self._whole(line, events)

    def _whole(self, line: str, events: list[Event]) -> None:
        if self._passes and not self._begun:
            events.append(Said(line))
        self._begun = False
        taken: Sequence[Event] | None
        if self._is_thought(line):
            taken = [] if self._passes else [Said(line)]
        elif (taken := self._grammar.take(line)) is None:
            taken = self._text(line, events)
        else:
            self._source.append(line)
        for event in taken:
            self._add(event, events)
        if self._grammar.opened is None:
            self._source.clear()

    def _is_thought(self, line: str) -> bool:
        """Say whether a line is of the thinking that some servers leave in the text, where calls are only thought of.

        It can only begin the reply: elsewhere, text that closed a call could hide in it what gives that away.
        """
        if self._is_first and (found := _THINKS.match(line)):
            self._thinks = f"</{found[1]}>"
        self._is_first = self._is_first and not line.strip()
        is_thought = bool(self._thinks)
        if self._thinks and self._thinks in line:
            self._thinks = ""
        return is_thought

    def _text(self, line: str, events: list[Event]) -> Sequence[Event]:
        """Pass a line of text; one that holds the token is none.

        It closes what is closed already, or plays an answer of the harness: either a call was closed by the text in
        it, or what follows was written on the strength of an answer that never came.
        """
        if self._token in line:
            self._source.append(line)
            return [Fault(_STRAY.format(token=self._token), whole=True)]
        if not self._passes:
            events.append(Said(line))
        return ()

    def _add(self, event: Event, events: list[Event]) -> None:
        if isinstance(event, Fault):
            event = replace(event, written=clipped("".join(self._source)))
            self._over = self._over or event.whole
        self._called = self._called or not isinstance(event, Said)
        events.append(event)
