"""The secret values that we hold, and where they stand in text: in whatever form they travel, split and cut."""

import base64
import bisect
import json
import re
import threading
import urllib.parse
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

MIN_SECRET = 4
"""Characters; a shorter one would mask half of each line."""
KEEP = 256
"""Passing values that are known at a time; a token lives for an hour."""

_MIN_FORM = 8
"""Characters of an encoded form, of one line of a key, and of a value that is found also where it is split."""
_WINDOW = 12
_STRIDE = 8
"""Text is looked at in windows of 12 letters and digits, 8 apart, so that its length counts and the number of secrets
does not; a form of 19 has such a window inside it wherever it stands."""
_LONG = _WINDOW + _STRIDE
_MIN_RUN = 16
"""Letters and digits of a longer form that are masked where the rest is missing, but at least a quarter of the form:
all keys of one kind, and all tokens of one App, begin alike."""
_SHARED = 4
"""Forms that are kept for one window."""
_WHOLE = 128
"""Letters and digits of a form of which every window is kept."""

_LETTERS = re.compile(rb"[A-Za-z0-9]+")
_OTHERS = bytes(byte for byte in range(256) if not _LETTERS.match(bytes([byte])))
_ESCAPES = re.compile(rb"\x1b\[[0-9;?]*[ -/]*[@-~]|\\[nrt]")
"""What stands between two halves and has letters of its own: a terminal's colours, line ends inside of JSON."""
Span = tuple[int, int]
"""A range of bytes; the end is not in it."""


@dataclass(frozen=True, slots=True)
class _Forms:
    """How a value is looked for."""

    long: frozenset[bytes] = frozenset()
    """By windows of letters and digits."""
    short: frozenset[bytes] = frozenset()
    """By letters and digits."""
    literal: frozenset[bytes] = frozenset()
    """As it is."""
    weak: frozenset[bytes] = frozenset()
    """As it is, but only where nothing depends on it: a password that is a word stands in many a file."""

    @classmethod
    def of(cls, value: str) -> "_Forms":
        forms = _encoded(value)
        if len(value) < _MIN_FORM or (value.isalpha() and len(value) < _MIN_RUN):
            return cls(weak=forms)
        bare = frozenset(letters for form in forms if len(letters := _bare(form)) >= _MIN_FORM)
        long = frozenset(letters for letters in bare if len(letters) >= _LONG)
        return cls(long, bare - long, frozenset(form for form in forms if len(_bare(form)) < _MIN_FORM))


class Known:
    """The values that we hold."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._passing: OrderedDict[str, None] = OrderedDict()
        self._lasting: set[str] = set()
        self._windows: dict[bytes, tuple[bytes, ...]] = {}
        self._short: frozenset[bytes] = frozenset()
        self._literal: frozenset[bytes] = frozenset()
        self._weak: frozenset[bytes] = frozenset()

    def add(self, value: str, *, passing: bool) -> None:
        """Hold a value from now on; of the passing ones the oldest goes where there are too many."""
        with self._lock:
            if value in self._lasting or value in self._passing:
                return
            if passing:
                self._passing[value] = None
            else:
                self._lasting.add(value)
            self._learn(value)
            if len(self._passing) > KEEP:
                self._unlearn(self._passing.popitem(last=False)[0])

    def clear(self) -> None:
        """Hold nothing any more."""
        with self._lock:
            self._passing.clear()
            self._lasting.clear()
            self._windows.clear()
            self._short = self._literal = self._weak = frozenset()

    def spans(self, data: bytes, *, weak: bool = False) -> list[Span]:
        """Find values, as ranges of bytes, in their order and apart from each other.

        Args:
            data: any bytes; text as UTF-8.
            weak: whether values of fewer than 8 characters count, and words of fewer than 16 letters.
        """
        literal = self._literal | self._weak if weak else self._literal
        if not (self._windows or self._short or literal):
            return []
        plain = _ESCAPES.sub(lambda match: b" " * len(match[0]), data)
        bare = plain.translate(None, _OTHERS)
        found = [*self._long_ones(bare), *_all(bare, self._short)]
        return _merged([*_placed(plain, found), *_all(data, literal)])

    def _learn(self, value: str) -> None:
        forms = _Forms.of(value)
        for form, window in _windows(forms.long):
            self._windows[window] = (form, *self._windows.get(window, ()))[:_SHARED]
        self._short |= forms.short
        self._literal |= forms.literal
        self._weak |= forms.weak

    def _unlearn(self, value: str) -> None:
        forms = _Forms.of(value)
        for form, window in _windows(forms.long):
            left = tuple(other for other in self._windows.get(window, ()) if other != form)
            if left:
                self._windows[window] = left
            else:
                self._windows.pop(window, None)
        self._short -= forms.short
        self._literal -= forms.literal
        self._weak -= forms.weak

    def _long_ones(self, bare: bytes) -> Iterator[Span]:
        windows, reached = self._windows, 0
        last = len(bare) - _WINDOW + 1
        for at in [at for at in range(0, last, _STRIDE) if bare[at : at + _WINDOW] in windows]:
            if at + _WINDOW <= reached:
                continue
            forms = windows.get(bare[at : at + _WINDOW], ())
            runs = [span for form in forms if _enough(span := _run(bare, at, form), form)]
            if runs:
                start, reached = max(runs, key=lambda span: span[1] - span[0])
                yield start, reached


def _encoded(value: str) -> frozenset[bytes]:
    """Return the forms in which a value travels."""
    data = value.encode("utf-8", "surrogateescape")
    texts = {value, urllib.parse.quote(value, safe="", errors="surrogateescape"), value[::-1]}
    texts |= {urllib.parse.quote_plus(value, errors="surrogateescape"), json.dumps(value)[1:-1], repr(value)[1:-1]}
    encoded = {data.hex(), data.hex().upper()}
    for before in range(3):
        # The characters at both ends mix with the neighbours' bits.
        text = base64.b64encode(bytes(before) + data).decode().rstrip("=")
        text = text[(0, 2, 3)[before] : len(text) - (1 if (before + len(data)) % 3 else 0)]
        encoded |= {text, text.replace("+", "-").replace("/", "_")}
    lines = [line.strip() for line in value.splitlines() if not line.startswith("-----")]
    if len(lines) > 1:
        # Not the first one of a key: all keys of a kind begin alike. The block as a whole begins with it.
        encoded |= {*lines[1:], "".join(lines)}
    texts |= {form for form in encoded if len(form) >= _MIN_FORM}
    return frozenset(text.encode("utf-8", "surrogateescape") for text in texts)


def _bare(data: bytes) -> bytes:
    """Return letters and digits alone, so that it does not matter how a value is split or which Base64 it is."""
    return _ESCAPES.sub(b"", data).translate(None, _OTHERS)


def _windows(forms: Iterable[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """Give windows of forms: of a long one 8 neighbours at its begin and at each of its quarters."""
    for form in forms:
        last = len(form) - _WINDOW + 1
        offsets: Iterable[int] = range(last)
        if last > _WHOLE:
            offsets = (start + step for start in range(0, last - _STRIDE, last // 4) for step in range(_STRIDE))
        for offset in offsets:
            yield form, form[offset : offset + _WINDOW]


def _run(bare: bytes, at: int, form: bytes) -> Span:
    """Return how far text and form agree around a window; a form that repeats itself may agree in several ways."""
    window = bare[at : at + _WINDOW]
    best, offset = (at, at), form.find(window)
    while offset >= 0 and best[1] - best[0] < len(form):
        best = max(best, _agreeing(bare, at, form, offset), key=lambda span: span[1] - span[0])
        offset = form.find(window, offset + 1)
    return best


def _agreeing(bare: bytes, at: int, form: bytes, offset: int) -> Span:
    """Return how far they agree where the text's window is the one at an offset of the form."""
    start, end, shift = at, at + _WINDOW, offset - at
    while start > max(0, -shift) and bare[start - 1] == form[start - 1 + shift]:
        start -= 1
    while end < min(len(bare), len(form) - shift) and bare[end] == form[end + shift]:
        end += 1
    return start, end


def _enough(span: Span, form: bytes) -> bool:
    return span[1] - span[0] >= min(len(form), max(_MIN_RUN, len(form) // 4))


def _all(data: bytes, forms: Iterable[bytes]) -> Iterator[Span]:
    for form in forms:
        at = data.find(form)
        while at >= 0:
            yield at, at + len(form)
            at = data.find(form, at + 1)


def _placed(plain: bytes, spans: list[Span]) -> list[Span]:
    """Turn ranges of letters and digits into ranges of the text that they were taken from."""
    if not spans:
        return []
    starts, before, total = [], [], 0
    for match in _LETTERS.finditer(plain):
        starts.append(match.start())
        before.append(total)
        total += len(match[0])

    def place(index: int) -> int:
        run = bisect.bisect_right(before, index) - 1
        return starts[run] + index - before[run]

    return [(place(start), place(end - 1) + 1) for start, end in spans]


def _merged(spans: list[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged
